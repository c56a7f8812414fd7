"""What the channels answer: documents or a generated answer, and a receipt that was checked."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from ragaudit.ledger.messages.receipt_check import StepResult
from ragaudit.ledger.messages.receipts import (
    AnyFile,
    GeneratedFile,
    GenerationRequest,
    PublicPart,
    ReceiptFile,
)
from ragaudit.ledger.messages.requests import Document, Request

__all__ = [
    "Answered",
    "AnyReceipt",
    "AnyRequest",
    "AsyncReceipt",
    "Channel",
    "Checked",
    "CheckedAnswer",
    "CheckedReceipt",
    "GeneratedResult",
    "Receipt",
    "SearchResult",
    "channel_of",
    "file_json",
    "public_parts",
]

AnyRequest = Request | GenerationRequest
COMPLETION_SECONDS = 60.0
F = TypeVar("F", ReceiptFile, GeneratedFile)


@dataclass
class Checked(Generic[F]):
    """A receipt whose checks have run; `checks` says which were done and which could not be.

    Attributes:
        file: request, answer, public and private part.
        checks: the steps of docs/spec 5.9, of a generated answer those of 11.10, and the pinning of
            the window as step 0. Step 11 says which of the policy's further cosigners stand behind
            it, if it names any.
        path: where the client keeps it, or None without a state directory.
    """

    file: F = field(repr=False)
    checks: Sequence[StepResult]
    path: Path | None

    @property
    def index(self) -> int:
        """Return the position of the record, or of the charge, in the window's log."""
        return self.file.public.index

    @property
    def counter(self) -> int:
        """Return the account's counter of this question, from 0."""
        return self.file.public.query.counter

    @property
    def completed(self) -> bool:
        """Return whether the receipt holds its inclusion proofs under cosigned checkpoints."""
        return None not in self.file.public.proofs

    @property
    def not_done(self) -> list[StepResult]:
        """Return the checks that could not be done; the detail of each says what was missing."""
        return [step for step in self.checks if step.status == "not done"]


class CheckedReceipt(Checked[ReceiptFile]):
    """The receipt of an answer of documents, checked."""

    @property
    def withdrawn(self) -> int:
        """Return how many documents of the answer were withheld: selected, and changed or gone."""
        return len(self.file.private.withdrawn)


class CheckedAnswer(Checked[GeneratedFile]):
    """The receipt of a generated answer, checked."""


Answered = CheckedReceipt | CheckedAnswer
AnyReceipt = Answered | AnyFile
"""A receipt of either channel, checked or as a file."""


@dataclass(frozen=True)
class Channel:
    """One way to be answered: all in which documents and generated answers differ here.

    Attributes:
        file, checked: classes of its receipt files, and of those that were checked.
        asks, promises, reveals: its calls, below the window's own path.
        folder: of its receipts in a state directory.
        reuses: whether a question may get an earlier answer again at any time of the window.
    """

    file: type[ReceiptFile] | type[GeneratedFile]
    checked: Callable[[Any, Sequence[StepResult], Path | None], Answered]
    asks: str
    promises: str
    reveals: str
    folder: str
    reuses: bool


_DOCUMENTS: Final = Channel(
    ReceiptFile, CheckedReceipt, "query", "promise", "reveal", "receipts", reuses=False
)
_GENERATED: Final = Channel(
    GeneratedFile, CheckedAnswer, "ask", "ask", "ask/reveal", "answers", reuses=True
)


def channel_of(one: AnyRequest | AnyFile) -> Channel:
    """Return the channel of a request or a receipt file."""
    return _GENERATED if isinstance(one, GenerationRequest | GeneratedFile) else _DOCUMENTS


def public_parts(receipts: Sequence[AnyReceipt]) -> list[PublicPart]:
    """Return the public part of each receipt."""
    files = [each.file if isinstance(each, Checked) else each for each in receipts]
    return [file.public for file in files]


def file_json(receipt: AnyReceipt | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a receipt file as JSON; a rejected answer is JSON as it was received.

    Args:
        receipt: of either channel, or what was received.
    """
    file = receipt.file if isinstance(receipt, Checked) else receipt
    return file.to_json() if isinstance(file, ReceiptFile | GeneratedFile) else file


@dataclass(frozen=True)
class GeneratedResult:
    """The generated answer to a question.

    Attributes:
        text: of the answer.
        private: how many of its tokens were asked of documents; 0 where the model alone answered,
            and of an answer by keywords.
        receipt: checked.
        remaining: queries that the account has left.
        missed: as of `SearchResult`.
        keywords: that were released, in alphabetic order, of an answer that has them; None: the
            model alone answered, or each token was voted on.
    """

    text: str
    private: int
    receipt: CheckedAnswer
    remaining: int
    missed: int = 0
    keywords: tuple[str, ...] | None = None


@dataclass
class Receipt(CheckedReceipt):
    """A checked receipt of a `Client`."""

    _complete: Callable[[CheckedReceipt, float], None] = field(repr=False)

    def complete(self, timeout_seconds: float = COMPLETION_SECONDS) -> None:
        """Fetch and check the inclusion proof, a .tlog-proof, and add it to the receipt.

        Args:
            timeout_seconds: how long to wait for the proof.

        Raises:
            AnswerRejected: the proof is false, or is withheld: a checkpoint that covers the record
                is cosigned, and the merge delay is over.
            ServiceUnreachable: no proof within ``timeout_seconds``.
        """
        self._complete(self, timeout_seconds)


@dataclass
class AsyncReceipt(CheckedReceipt):
    """A checked receipt of an `AsyncClient`."""

    _complete: Callable[[CheckedReceipt, float], Coroutine[Any, Any, None]] = field(repr=False)

    async def complete(self, timeout_seconds: float = COMPLETION_SECONDS) -> None:
        """Fetch and check the inclusion proof, and add it to the receipt.

        Args:
            timeout_seconds: how long to wait for the proof.

        Raises:
            AnswerRejected, ServiceUnreachable: as `Receipt.complete`.
        """
        await self._complete(self, timeout_seconds)

    def blocking(self, run: Callable[[Coroutine[Any, Any, None]], None]) -> Receipt:
        """Return the same receipt, completed by ``run``, which awaits a coroutine and blocks.

        Args:
            run: returns when the coroutine has ended, and raises what it raises.
        """
        return Receipt(
            self.file,
            self.checks,
            self.path,
            lambda receipt, seconds: run(self._complete(receipt, seconds)),
        )


# Both clients return the same result but for how its receipt is completed.
R = TypeVar("R", bound=CheckedReceipt)


@dataclass(frozen=True)
class SearchResult(Generic[R]):
    """What a query was answered.

    Attributes:
        documents: at most K rows. In a window with noise in rising position and without scores: a
            set, not a ranking. In one without, the best first, each with its score.
        receipt: checked.
        remaining: queries that the account has left.
        missed: logged records of this account since the client's last one that it did not see
            (a plain account that is used elsewhere too); always 0 for anchored accounts.
        withheld: rows that were selected and are not among the documents: the provider says that
            they were deleted or changed since the index was committed. The receipt names them.
    """

    documents: tuple[Document, ...]
    receipt: R
    remaining: int
    missed: int = 0
    withheld: int = 0
