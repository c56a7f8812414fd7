"""A window without noise with all services: `Scenario` with filters and vectors."""

from typing import Final

from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.integrity import LEFT_SHELF, RECENT
from ragaudit.lab.scenario.provision import EXACT
from ragaudit.lab.scenario.scenario import ACCOUNTS, Scenario

PLAIN: Final = tuple((name, tenant, False) for name, tenant, _ in ACCOUNTS)

COPIED: Final = "document 3 of acme"
"""The text of three rows of acme."""


def vector_near(text: str) -> list[float]:
    """Return a vector that points where a text's embedding does, one entry put aside."""
    vector = HashEmbedder().embed([text])[0] / 7.0
    vector[0] = 0.5
    return [float(entry) for entry in vector]


class ExactScenario(Scenario):
    """Traffic in which somebody filters, somebody brings a vector, and rows are tied."""

    offer = EXACT
    roster = PLAIN

    def before_second(self, at: int) -> None:
        self.clock.at(at + 1)
        self.ask("alice", "the first question of alice", 3)
        self.clock.at(at + 2)
        self.ask("bob", COPIED, 2)
        self.accounts["carol"].ask("the first question of carol", 3, LEFT_SHELF)
        self.prover.checkpoint()
        self.clock.at(at + 5)
        self._register("dora")
        self.prover.checkpoint()
        self.clock.at(at + 20)
        self.accounts["alice"].ask(vector_near("document 5 of acme"), 2)
        self.accounts["bob"].ask("the second question of bob", 3, RECENT)
