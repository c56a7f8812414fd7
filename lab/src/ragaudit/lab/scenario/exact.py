"""A window without noise with all services: `Scenario` with filters and vectors."""

from typing import Final

from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.integrity import LEFT_SHELF, RECENT
from ragaudit.lab.scenario.provision import EXACT, shelved_documents
from ragaudit.lab.scenario.scenario import ACCOUNTS, Scenario
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments

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


CHANGED: Final = "document 7 of acme, as it was written anew"
"""What stands in acme-7 from version 2 on; acme-5 is deleted then."""


class ChangingScenario(ExactScenario):
    """The same, and acme's documents change: withdrawn at first, then taken up by a version."""

    def before_second(self, at: int) -> None:
        super().before_second(at)
        self.clock.at(at + 22)
        documents = StoredDocuments(self.prover.service.store)
        documents.add("acme", changed_documents(), replace=True)
        self.ask("bob", "document 7 of acme", 3)
        self.prover.service.refresher.refresh(self.prover.policy.window, "acme")
        self.prover.checkpoint()

    def after_second(self, at: int) -> None:
        super().after_second(at)
        self.ask("bob", CHANGED, 3)


def changed_documents() -> list[Document]:
    """Return acme's documents after the change."""
    return [
        Document(each.id, CHANGED, each.attributes) if each.id == "acme-7" else each
        for each in shelved_documents("acme")
        if each.id != "acme-5"
    ]
