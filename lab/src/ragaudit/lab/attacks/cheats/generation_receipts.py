"""Generated answers: receipts, and the promises of accounts with a chain."""

from dataclasses import replace
from typing import Any

from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.generating import AnchoredQuestions, Charged, SubmittedAnswers
from ragaudit.lab.scenario.opening import Event
from ragaudit.ledger.messages.entries import Charge
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import GeneratedFile, GeneratedReceipt
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.statement_checks import judge

# --- receipts ------------------------------------------------------------------------------------


@constructed(
    "answer-beside-the-log",
    checks=("receipts",),
    reason="signed for a charge that is not in the log",
)
class AnswersBesideTheLog(SubmittedAnswers):
    """Gives a generated answer whose charge is in no log, so that nothing pays.

    Its answer entry is in no log either.

    Check 13 (`receipts`), once its account has submitted the receipt.
    """

    def generated_receipt(self, asked: Charged) -> GeneratedReceipt:
        found = super().generated_receipt(asked)
        if asked is not self.charged[0]:
            return found
        charge = replace(found.query, threshold=0).encode()
        body = replace(found.answered, generated_digest=bytes(32)).encode()
        return self.sign_receipt(
            asked,
            replace(found.charge, body=charge, proof=None),
            replace(found.answer, body=body, proof=None),
            found.issued,
        )


@constructed(
    "another-answer-logged",
    checks=("receipts",),
    reason="signed for an answer that is not in the log",
)
class LogsAnotherAnswer(SubmittedAnswers):
    """Logs another generated answer than the account was given.

    Its charge is in the log.

    Check 13 (`receipts`): a replay shows only that the logged one is right.
    """

    def generated_receipt(self, asked: Charged) -> GeneratedReceipt:
        found = super().generated_receipt(asked)
        if asked is not self.charged[0]:
            return found
        body = replace(found.answered, generated_digest=bytes(32)).encode()
        return self.sign_receipt(
            asked,
            replace(found.charge, proof=None),
            replace(found.answer, body=body, proof=None),
            found.issued,
        )


@constructed("another-text-told", checks=("receipts",), reason="two different receipts were signed")
class TellsTwoTexts(SubmittedAnswers):
    """Gives two texts for one logged generated answer, each with its receipt.

    Check 13 (`receipts`): a receipt binds the text, whatever is logged of it.
    """

    def receipts(self) -> list[dict[str, Any]]:
        asked = self.charged[0]
        assert asked.answer is not None
        first = self.generated_receipt(asked)
        entries = replace(first.charge, proof=None), replace(first.answer, proof=None)
        other = replace(asked, answer=replace(asked.answer, text="another text"))
        again = self.sign_receipt(other, *entries, first.issued)
        return [*super().receipts(), again.to_json()]


class DisputedAnswers(SubmittedAnswers):
    """The account of the first question disputes its answer, and shows the file."""

    def spoil(self, asked: Charged) -> Charged:
        """Return what the account is told: a hook for cheats."""
        return asked

    def generated_file(self, asked: Charged) -> GeneratedFile:
        return super().generated_file(self.spoil(asked) if asked is self.charged[0] else asked)

    def disputes(self) -> list[dict[str, Any]]:
        asked = self.charged[0]
        file = self.generated_file(asked).to_json()
        view = WindowView(self.policy, self.opening)
        step = judge(file, view, engine("core")).step
        return [self.dispute_file(asked.account, file, file=file if step else None, step=step)]

    def judged(self) -> list[dict[str, Any]]:
        return [self.generated_file(self.charged[0]).public.to_json()]


@constructed("another-text-signed", checks=("disputes",), reason="step 4 (answer digest)")
class TellsAnotherText(DisputedAnswers):
    """Tells an account another text than the logged one, under its only receipt.

    Check 15 (`disputes`): the receipt binds the text, which does not open the logged digest.
    """

    def spoil(self, asked: Charged) -> Charged:
        assert asked.answer is not None
        return replace(asked, answer=replace(asked.answer, text="another text"))


@constructed("another-question-charged", checks=("disputes",), reason="step 5 (openings)")
class ChargesAnotherQuestion(DisputedAnswers):
    """Signs an answer to a question whose openings do not open the charge.

    Check 15 (`disputes`): its openings do not open the digests of the charge.
    """

    def spoil(self, asked: Charged) -> Charged:
        text = "what nobody charged ?"
        return replace(
            asked,
            request=replace(asked.request, query=text),
            openings=replace(asked.openings, query=text),
        )


# --- accounts with a chain -----------------------------------------------------------------------


@constructed("answer-with-another-nonce", checks=("nonces",), reason="not the chain's nonce")
class AnswersWithAnotherNonce(AnchoredQuestions):
    """Draws the coins of an anchored account's answer from a nonce of its own.

    Check 11 (`nonces`): it is not of the account's chain.
    """

    def nonce(self, asked: Charged) -> bytes | None:
        found = super().nonce(asked)
        return found and (bytes(32) if asked is self.charged[0] else found)


@constructed(
    "answered-after-the-next-charge", checks=("answers",), reason="stands before what ends its"
)
class AnswersAfterTheNextCharge(AnchoredQuestions):
    """Holds an anchored account's answer back until a later nonce is out.

    The later nonce gives its own away.

    Check 28 (`answers`).
    """

    def first_end(self) -> list[Event]:
        return []

    def last_events(self) -> list[Event]:
        return [("reply", 0, 14)]


@constructed(
    "answered-after-the-next-promise",
    checks=("charges",),
    reason="earlier than the account's answer before it",
)
class AnswersAfterTheNextPromise(AnchoredQuestions):
    """Promises an anchored account's next question before it answers the last one.

    The next charge is logged only behind that answer.

    Check 27 (`charges`): the later one has the time of its promise, and stands behind the answer.
    """

    def script(self) -> list[Event]:
        events = [event for event in super().script() if event[0] != "claim_answer"]
        # What is promised at 13 is logged behind the answer of 14.
        following = next(at for at, event in enumerate(events) if event[-1] == 13)
        return [*events[:following], ("reply", 0, 14), *events[following:]]

    def first_end(self) -> list[Event]:
        return []


@constructed("revealed-charge-voided", checks=("promises",), reason="no answer keeps it")
class VoidsARevealedCharge(AnchoredQuestions):
    """Voids an anchored account's charge after it has seen the coins.

    The nonce of the charge was revealed by then.

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


@constructed(
    "unclaimed-charge-voided-early",
    checks=("answers",),
    reason="while its promise could be claimed",
)
class VoidsBeforeThePromiseHasRunOut(AnchoredQuestions):
    """Voids an anchored account's charge while the promise of it can be claimed.

    The account has not revealed its nonce yet.

    Check 28 (`answers`).
    """

    def script(self) -> list[Event]:
        return [event for event in super().script() if event[0] != "claim_answer"]

    def first_end(self) -> list[Event]:
        return [("void", 0, 4)]


@constructed(
    "charge-of-another-place", checks=("promises",), reason="the charge entry contradicts it"
)
class ChargesAnotherPlace(AnchoredQuestions):
    """Logs a promised charge at another place among the tenant's.

    Check 12 (`promises`).
    """

    def promised_charge(self, asked: Charged) -> Charge:
        return replace(asked.charge, number=asked.charge.number + 1)


@constructed("charge-of-other-rows", checks=("promises",), reason="the charge entry contradicts it")
class ChargesOtherRows(AnchoredQuestions):
    """Has other rows pay for a promised charge.

    Check 12 (`promises`).
    """

    def promised_charge(self, asked: Charged) -> Charge:
        return replace(asked.charge, charge=self.commit_charge((0,), self.scalar()))
