"""The channels of a window, documents and generated answers: all in which they differ here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragaudit.ledger.messages.entries import QueryEntry
from ragaudit.ledger.messages.generated import GeneratedFile, GeneratedReceipt, GenerationRequest
from ragaudit.ledger.messages.generated_check import (
    check_generated_file,
    check_generated_inclusion,
)
from ragaudit.ledger.messages.public_parts import PublicPart, is_generated
from ragaudit.ledger.messages.receipt_check import (
    StepResult,
    check_inclusion,
    check_receipt_file,
)
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request

__all__ = ["AnyFile", "AnyRequest", "Channel", "channel_of", "queried"]

AnyFile = ReceiptFile | GeneratedFile
AnyRequest = Request | GenerationRequest


@dataclass(frozen=True)
class Channel:
    """One way to be answered.

    Attributes:
        file: class of its receipt files.
        asks, promises, reveals: its calls, below the window's own path.
        folder: of its receipts in a state directory.
        check: runs every step on a file; `included` that of the inclusion on a public part.
        reuses: whether a question may get an earlier answer again at any time of the window.
    """

    file: type[ReceiptFile] | type[GeneratedFile]
    asks: str
    promises: str
    reveals: str
    folder: str
    check: Callable[..., list[StepResult]]
    included: Callable[[Any, Any], StepResult]
    reuses: bool


DOCUMENTS: Final = Channel(
    ReceiptFile, "query", "promise", "reveal", "receipts",
    check_receipt_file, check_inclusion, reuses=False,
)  # fmt: skip
GENERATED: Final = Channel(
    GeneratedFile, "ask", "ask", "ask/reveal", "answers",
    check_generated_file, check_generated_inclusion, reuses=True,
)  # fmt: skip


def channel_of(one: AnyRequest | AnyFile | PublicPart | Mapping[str, Any]) -> Channel:
    """Return the channel of a request, a receipt file or its JSON, or a public part."""
    if isinstance(one, Mapping):
        return GENERATED if is_generated(one) else DOCUMENTS
    generated = isinstance(one, GenerationRequest | GeneratedFile | GeneratedReceipt)
    return GENERATED if generated else DOCUMENTS


def queried(public: PublicPart) -> QueryEntry:
    """Return the entry of a receipt that counts as a query: its record, or its charge."""
    return public.charged if isinstance(public, GeneratedReceipt) else public.record
