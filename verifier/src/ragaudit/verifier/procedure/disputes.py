"""Judging a disputed receipt file (docs/spec 5.10): for the verifier, the arbiter, the procedure.

A file counts only if the provider's signature binds every part of it; what an account changed in
its own file accuses nobody. The log is not asked here: the public half goes to check 13.
"""

from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.ledger.errors import MalformedRecord, StepRejected
from ragaudit.ledger.messages.disputes import STEPS, Dispute, Finding
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.receipt_check import (
    GroupOperations,
    WindowView,
    check_receipt_file,
)
from ragaudit.ledger.messages.receipts import PublicReceipt, ReceiptFile, bound_receipt

KEPT_MEMBERS = "dispute step file finding"
ANSWER_STEP = 4  # where a file fails that is signed and has not the form of an answer


@dataclass(frozen=True, slots=True)
class KeptDispute:
    """A dispute as the evidence holds it.

    Attributes:
        step: that fails, 0 if none does; None while nobody judged the file.
        file: the receipt file, if the verifier judged it and upheld; it keeps no other.
        finding: the arbiter's, if there is one.
    """

    dispute: Dispute
    step: int | None = None
    file: dict[str, Any] | None = field(default=None, repr=False)
    finding: Finding | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "dispute": self.dispute.to_json(),
            "step": self.step,
            "file": self.file,
            "finding": None if self.finding is None else self.finding.to_json(),
        }

    @classmethod
    def from_json(cls, value: Any) -> "KeptDispute":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        f = Fields(value, KEPT_MEMBERS, MalformedRecord, "dispute")
        file, finding = f.raw("file"), f.raw("finding")
        if file is not None and not isinstance(file, dict):
            raise MalformedRecord("not an object", where="dispute.file")
        return cls(
            Dispute.from_json(f.raw("dispute")),
            None if f.raw("step") is None else f.integer("step", 0, STEPS),
            file,
            None if finding is None else Finding.from_json(finding),
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a bound receipt file shows.

    Attributes:
        public: its public half, without the proof, which nobody signed.
        step: the step of docs/spec 5.9 that fails, 0 if none does.
        reason: what failed; may name a position, so it stays with whoever judged.
    """

    public: PublicReceipt
    step: int
    reason: str = ""

    @property
    def upheld(self) -> bool:
        """Whether the provider signed something false."""
        return self.step > 0


def judge(document: dict[str, Any], view: WindowView, operations: GroupOperations) -> Judgement:
    """Judge a receipt file, a JSON value, by steps 1 to 8 and 10 of docs/spec 5.9.

    Raises:
        RagauditError: the provider did not sign it, part for part.
    """
    public = bound_receipt(document, view.policy)
    try:
        file = ReceiptFile.from_json({**document, "public": public.to_json()})
        check_receipt_file(file, view, operations)
    except InternalError:
        raise
    except StepRejected as error:
        return Judgement(public, error.step, str(error))
    except RagauditError as error:
        return Judgement(public, ANSWER_STEP, str(error))
    return Judgement(public, 0)
