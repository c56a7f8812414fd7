"""Checks nonces, promises and answers: an anchored account's answer is chosen by its coins."""

from dataclasses import replace
from typing import Final

from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.anchored import AnchoredQuestions
from ragaudit.lab.scenario.charging import Charged
from ragaudit.lab.scenario.opening import Event
from ragaudit.ledger.messages.charges import Charge


class AnswersWithAnotherNonce(AnchoredQuestions):
    """An answer's coins follow from a nonce that the provider drew.

    Check 11 (`nonces`): it is not of the account's chain.
    """

    def nonce(self, asked: Charged) -> bytes | None:
        found = super().nonce(asked)
        return found and (bytes(32) if asked is self.charged[0] else found)


class AnswersAfterTheNextCharge(AnchoredQuestions):
    """A charge waits for its answer until the nonce of a later one gives its own away.

    Check 28 (`answers`).
    """

    def first_end(self) -> list[Event]:
        return []

    def last_events(self) -> list[Event]:
        return [("reply", 0, 14)]


class AnswersAfterTheNextPromise(AnchoredQuestions):
    """A charge waits until the nonce of a later one is out, which is logged only then.

    Check 27 (`charges`): the later one has the time of its promise, and stands behind the answer.
    """

    def script(self) -> list[Event]:
        events = [event for event in super().script() if event[0] != "claim_answer"]
        # What is promised at 13 is logged behind the answer of 14.
        following = next(at for at, event in enumerate(events) if event[-1] == 13)
        return [*events[:following], ("reply", 0, 14), *events[following:]]

    def first_end(self) -> list[Event]:
        return []


class VoidsARevealedCharge(AnchoredQuestions):
    """A charge is voided after its nonce was revealed and its coins were seen.

    Check 12 (`promises`): the account claimed it. Its promise has run out by then, so that nothing
    else is wrong with the void.
    """

    def script(self) -> list[Event]:
        return [
            ("register", "alice", "acme", True, -25),
            ("register", "carol", "beta", False, -23),
            ("checkpoint", -20),
            ("charge", "alice", "treatment of bazeli ?", 1),
            ("claim_answer", 0),
            ("query", "carol", "first question of carol", 2, 19),
            ("checkpoint", 20),
            ("void", 0, 40),
            ("checkpoint", 42),
        ]


class VoidsBeforeThePromiseHasRunOut(AnchoredQuestions):
    """A charge is voided while its account could still reveal a nonce, and did not.

    Check 28 (`answers`).
    """

    def script(self) -> list[Event]:
        return [event for event in super().script() if event[0] != "claim_answer"]

    def first_end(self) -> list[Event]:
        return [("void", 0, 4)]


class ChargesAnotherPlace(AnchoredQuestions):
    """The promised charge has another place among the tenant's than the logged one.

    Check 12 (`promises`).
    """

    def promised_charge(self, asked: Charged) -> Charge:
        return replace(asked.charge, number=asked.charge.number + 1)


class ChargesOtherRows(AnchoredQuestions):
    """The promised charge is paid by other rows than the logged one.

    Check 12 (`promises`).
    """

    def promised_charge(self, asked: Charged) -> Charge:
        return replace(asked.charge, charge=self.commit_charge((0,), self.scalar()))


CHEATS: Final = (
    constructed(
        name="answer-with-another-nonce",
        description="Draws the coins of an anchored account's answer from a nonce of its own.",
        window=AnswersWithAnotherNonce,
        checks=("nonces",),
        reason="not the chain's nonce",
    ),
    constructed(
        name="answered-after-the-next-charge",
        description="Holds an anchored account's answer back until a later nonce is out.",
        window=AnswersAfterTheNextCharge,
        checks=("answers",),
        reason="stands before what ends its",
    ),
    constructed(
        name="answered-after-the-next-promise",
        description="Promises an anchored account's next question before it answers the last one.",
        window=AnswersAfterTheNextPromise,
        checks=("charges",),
        reason="earlier than the account's answer before it",
    ),
    constructed(
        name="revealed-charge-voided",
        description="Voids an anchored account's charge after it has seen the coins.",
        window=VoidsARevealedCharge,
        checks=("promises",),
        reason="no answer keeps it",
    ),
    constructed(
        name="unclaimed-charge-voided-early",
        description="Voids an anchored account's charge while the promise of it can be claimed.",
        window=VoidsBeforeThePromiseHasRunOut,
        checks=("answers",),
        reason="while its promise could be claimed",
    ),
    constructed(
        name="charge-of-another-place",
        description="Logs a promised charge at another place among the tenant's.",
        window=ChargesAnotherPlace,
        checks=("promises",),
        reason="the charge entry contradicts it",
    ),
    constructed(
        name="charge-of-other-rows",
        description="Has other rows pay for a promised charge.",
        window=ChargesOtherRows,
        checks=("promises",),
        reason="the charge entry contradicts it",
    ),
)
