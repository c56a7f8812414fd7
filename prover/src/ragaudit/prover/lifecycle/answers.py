"""What an application gets for a query, and of a document that it was given before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Answer

__all__ = ["Answered", "ServedDocument", "id_of", "receipt_id"]


@dataclass(frozen=True)
class ServedDocument:
    """A document that an account was given, as it was and still is.

    Attributes:
        position: of its row.
        version: of the index that it was selected from last.
        attributes: canonical JSON of all that the store holds beside the text; empty for nothing.
        columns: values of its public columns.
        vector: the committed one, d integers of norm at most B, which a receipt shows anyway.
    """

    position: int
    version: int
    id: str
    content: str = field(repr=False)
    attributes: str = field(repr=False)
    columns: Mapping[str, object] = field(repr=False)
    vector: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True)
class Answered:
    """What an account was answered; the receipt is made when it is asked for.

    Attributes:
        receipt: its id, see `receipt_id`.
        vectors: the committed rows of the documents, integers [n, d] of norm at most B.
        norm_bound: B.
    """

    receipt: str
    answer: Answer
    vectors: npt.NDArray[Any] = field(repr=False)
    norm_bound: int


def receipt_id(file: ReceiptFile) -> str:
    """Return the id by which an account gets a receipt again: its window and place in the log.

    Args:
        file: the receipt file, as it was answered.
    """
    return id_of(file.public.record.window, file.public.index)


def id_of(window: str, position: int) -> str:
    """Return the id of the receipt of a record, see `receipt_id`.

    Args:
        position: of the record in the window's log.
    """
    return f"{window}.{position}"
