"""Check receipts: answers in words that are not what stands in the log."""

from dataclasses import replace
from typing import Any, Final

from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.charging import Charged
from ragaudit.lab.scenario.submitted_answers import SubmittedAnswers
from ragaudit.ledger.messages.generated import GeneratedReceipt


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


CHEATS: Final = (
    constructed(
        name="answer-beside-the-log",
        description="Gives an answer in words whose charge is in no log, so that nothing pays.",
        window=AnswersBesideTheLog,
        checks=("receipts",),
        reason="signed for a charge that is not in the log",
    ),
    constructed(
        name="another-text-told",
        description="Gives two texts for one logged answer in words, each with its receipt.",
        window=TellsTwoTexts,
        checks=("receipts",),
        reason="two different receipts were signed",
    ),
    constructed(
        name="another-answer-logged",
        description="Logs another answer in words than the account was given.",
        window=LogsAnotherAnswer,
        checks=("receipts",),
        reason="signed for an answer that is not in the log",
    ),
)
