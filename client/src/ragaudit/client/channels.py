"""The channels of a window, documents and generated answers: all in which they differ here."""

from dataclasses import dataclass
from typing import Final

from ragaudit.ledger.messages.receipts import (
    AnyFile,
    GeneratedFile,
    GenerationRequest,
    ReceiptFile,
)
from ragaudit.ledger.messages.requests import Request

__all__ = ["AnyRequest", "Channel", "channel_of"]

AnyRequest = Request | GenerationRequest


@dataclass(frozen=True)
class Channel:
    """One way to be answered.

    Attributes:
        file: class of its receipt files.
        asks, promises, reveals: its calls, below the window's own path.
        folder: of its receipts in a state directory.
        reuses: whether a question may get an earlier answer again at any time of the window.
    """

    file: type[ReceiptFile] | type[GeneratedFile]
    asks: str
    promises: str
    reveals: str
    folder: str
    reuses: bool


DOCUMENTS: Final = Channel(ReceiptFile, "query", "promise", "reveal", "receipts", reuses=False)
GENERATED: Final = Channel(GeneratedFile, "ask", "ask", "ask/reveal", "answers", reuses=True)


def channel_of(one: AnyRequest | AnyFile) -> Channel:
    """Return the channel of a request or a receipt file."""
    return GENERATED if isinstance(one, GenerationRequest | GeneratedFile) else DOCUMENTS
