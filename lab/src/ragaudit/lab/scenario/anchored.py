"""A window with a generation channel in which an account has an anchor."""

from __future__ import annotations

from ragaudit.lab.scenario.charging import Charged
from ragaudit.lab.scenario.generating import GeneratingWindow
from ragaudit.lab.scenario.opening import Event
from ragaudit.ledger.messages.entries import Charge
from ragaudit.ledger.messages.generated import GenerationRequest
from ragaudit.ledger.messages.promises import Promise


class AnchoredQuestions(GeneratingWindow):
    """Alice reveals a nonce for each answer, and claims her first one at the verifier."""

    def script(self) -> list[Event]:
        return [
            ("register", "alice", "acme", True, -25),
            ("register", "bob", "acme", False, -24),
            ("register", "carol", "beta", False, -23),
            ("checkpoint", -20),
            ("charge", "alice", "treatment of bazeli ?", 1),
            ("claim_answer", 0),
            *self.first_end(),
            ("query", "bob", "first question of bob", 3, 5),
            ("charge", "bob", "treatment of bazeli ?", 6),
            ("checkpoint", 7),
            ("reply", 1, 9),
            ("charge", "carol", "symptom of mokuti ?", 12),
            ("charge", "alice", "treatment of bazeli ?", 13),
            *self.last_events(),
            ("void", 2, 17),
            ("reply", 3, 18),
            ("query", "carol", "first question of carol", 2, 19),
            ("checkpoint", 20),
        ]

    def first_end(self) -> list[Event]:
        """Return what ends the first charge before the next one: a hook for cheats."""
        return [("reply", 0, 4)]

    def last_events(self) -> list[Event]:
        """Return what else is logged after Alice's second charge: a hook for cheats."""
        return []

    def claim_answer(self, number: int) -> None:
        """Claim the promise of a charge at the verifier, with the nonce that was revealed for it.

        Args:
            number: of the charge entry in this window, from 0; its account has an anchor.
        """
        asked = self.charged[number]
        assert asked.account.chain is not None
        self.claim(self.promise_charge(asked), asked.account.chain.nonce(asked.charge.counter))

    def promise_charge(self, asked: Charged) -> Promise:
        """Return the promise of a logged charge (docs/spec/11-generation.md §11.11)."""
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=self.promised_charge(asked).encode(),
            request=GenerationRequest(
                asked.request.query, asked.request.filter, asked.charge.counter
            ),
            openings=asked.openings,
        )

    def promised_charge(self, asked: Charged) -> Charge:
        """Return the entry that was promised: a hook for cheats."""
        return asked.charge
