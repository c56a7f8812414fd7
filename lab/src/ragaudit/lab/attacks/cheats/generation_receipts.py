"""Check receipts: generated answers that are not what stands in the log."""

from dataclasses import replace
from typing import Any, Final

from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.charging import Charged
from ragaudit.lab.scenario.submitted_answers import SubmittedAnswers
from ragaudit.ledger.messages.generated import GeneratedFile, GeneratedReceipt
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.statement_checks import judge


class AnswersBesideTheLog(SubmittedAnswers):
    """An answer whose charge and answer entries never get into the log: no document pays for it.

    Check 13 (`receipts`), once its account has submitted the receipt.
    """

    def words_receipt(self, asked: Charged) -> GeneratedReceipt:
        found = super().words_receipt(asked)
        if asked is not self.charged[0]:
            return found
        charge = replace(found.charged, threshold=0).encode()
        body = replace(found.answered, generated_digest=bytes(32)).encode()
        return self.sign_receipt(
            asked,
            replace(found.charge, body=charge, proof=None),
            replace(found.answer, body=body, proof=None),
            found.issued,
        )


class LogsAnotherAnswer(SubmittedAnswers):
    """The charge stands in the log, and another answer to it than the account was given.

    Check 13 (`receipts`): a replay shows only that the logged one is right.
    """

    def words_receipt(self, asked: Charged) -> GeneratedReceipt:
        found = super().words_receipt(asked)
        if asked is not self.charged[0]:
            return found
        body = replace(found.answered, generated_digest=bytes(32)).encode()
        return self.sign_receipt(
            asked,
            replace(found.charge, proof=None),
            replace(found.answer, body=body, proof=None),
            found.issued,
        )


class TellsTwoTexts(SubmittedAnswers):
    """An account is given two texts for one logged answer, each with a receipt of its own.

    Check 13 (`receipts`): a receipt binds the text, whatever is logged of it.
    """

    def receipts(self) -> list[dict[str, Any]]:
        asked = self.charged[0]
        assert asked.answer is not None
        first = self.words_receipt(asked)
        entries = replace(first.charge, proof=None), replace(first.answer, proof=None)
        other = replace(asked, answer=replace(asked.answer, text="another text"))
        again = self.sign_receipt(other, *entries, first.issued)
        return [*super().receipts(), again.to_json()]


class DisputedAnswers(SubmittedAnswers):
    """The account of the first question disputes its answer, and shows the file."""

    def spoil(self, asked: Charged) -> Charged:
        """Return what the account is told: a hook for cheats."""
        return asked

    def words_file(self, asked: Charged) -> GeneratedFile:
        return super().words_file(self.spoil(asked) if asked is self.charged[0] else asked)

    def disputes(self) -> list[dict[str, Any]]:
        asked = self.charged[0]
        file = self.words_file(asked).to_json()
        view = WindowView(self.policy, self.opening)
        step = judge(file, view, engine("core")).step
        return [self.dispute_file(asked.account, file, file=file if step else None, step=step)]

    def judged(self) -> list[dict[str, Any]]:
        return [self.words_file(self.charged[0]).public.to_json()]


class TellsAnotherText(DisputedAnswers):
    """An account is told another text than was logged, under the one receipt that there is.

    Check 15 (`disputes`): the receipt binds the text, which does not open the logged digest.
    """

    def spoil(self, asked: Charged) -> Charged:
        assert asked.answer is not None
        return replace(asked, answer=replace(asked.answer, text="another text"))


class ChargesAnotherQuestion(DisputedAnswers):
    """A receipt has another question than was charged.

    Check 15 (`disputes`): its openings do not open the digests of the charge.
    """

    def spoil(self, asked: Charged) -> Charged:
        text = "what nobody charged ?"
        return replace(
            asked,
            request=replace(asked.request, query=text),
            openings=replace(asked.openings, query=text),
        )


CHEATS: Final = (
    constructed(
        name="another-text-signed",
        description="Tells an account another text than the logged one, under its only receipt.",
        window=TellsAnotherText,
        checks=("disputes",),
        reason="step 4 (answer digest)",
    ),
    constructed(
        name="another-question-charged",
        description="Signs an answer to a question whose openings do not open the charge.",
        window=ChargesAnotherQuestion,
        checks=("disputes",),
        reason="step 5 (openings)",
    ),
    constructed(
        name="answer-beside-the-log",
        description="Gives a generated answer whose charge is in no log, so that nothing pays.",
        window=AnswersBesideTheLog,
        checks=("receipts",),
        reason="signed for a charge that is not in the log",
    ),
    constructed(
        name="another-text-told",
        description="Gives two texts for one logged generated answer, each with its receipt.",
        window=TellsTwoTexts,
        checks=("receipts",),
        reason="two different receipts were signed",
    ),
    constructed(
        name="another-answer-logged",
        description="Logs another generated answer than the account was given.",
        window=LogsAnotherAnswer,
        checks=("receipts",),
        reason="signed for an answer that is not in the log",
    ),
)
