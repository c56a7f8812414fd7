"""What a search returns: the documents and a receipt that was checked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragaudit.ledger.receipt_check import StepResult
from ragaudit.ledger.receipts import ReceiptFile
from ragaudit.ledger.requests import Document

__all__ = ["Receipt", "SearchResult"]


@dataclass
class Receipt:
    """A receipt whose checks have run; `checks` says which were done and which could not be.

    Attributes:
        file: request, answer, public and private half.
        checks: the steps of docs/spec 5.9, and the pinning of the window as step 0.
        path: where the client keeps it, or None without a state directory.
        counter: of the record.
    """

    file: ReceiptFile = field(repr=False)
    checks: Sequence[StepResult]
    path: Path | None
    _complete: Callable[["Receipt", float], None] = field(repr=False)

    @property
    def index(self) -> int:
        """Place of the record in the window's log."""
        return self.file.public.index

    @property
    def counter(self) -> int:
        """The account's counter of this record."""
        return self.file.public.record.counter

    @property
    def completed(self) -> bool:
        """Whether the receipt holds its inclusion proof under a cosigned checkpoint."""
        return self.file.public.proof is not None

    @property
    def not_done(self) -> list[StepResult]:
        """The checks that could not be done, each with what it lacked."""
        return [each for each in self.checks if each.status == "not done"]

    def complete(self, timeout_seconds: float = 60.0) -> None:
        """Fetch and check the inclusion proof, a .tlog-proof: the check that was outstanding.

        Raises:
            AnswerRejected: the proof is false, or is missing after the policy's merge delay.
            ServiceUnreachable: no proof within ``timeout_seconds``, which is not overdue yet.
        """
        self._complete(self, timeout_seconds)


@dataclass(frozen=True)
class SearchResult:
    """Documents in row order, without scores: a set, not a ranking.

    Attributes:
        documents: at most K rows, in rising position.
        receipt: checked.
        remaining: queries that the account has left.
        missed: logged records of this account since the client's last one that it did not see
            (a plain account that is used elsewhere too); always 0 for anchored accounts.
    """

    documents: tuple[Document, ...]
    receipt: Receipt
    remaining: int
    missed: int = 0
