"""Public halves of receipts of either channel: what anybody may hand to a verifier (spec 8.3)."""

from collections.abc import Mapping
from typing import Any

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.messages.generated import GeneratedFile, GeneratedReceipt
from ragaudit.ledger.messages.receipts import PublicReceipt

__all__ = ["PublicHalf", "demand_record", "is_words", "query_name", "read_public_half"]

PublicHalf = PublicReceipt | GeneratedReceipt
"""Of a record (5.8), or of an answer in words (11.10)."""


def read_public_half(value: Any, where: str = "") -> PublicHalf:
    """Return the public half of a JSON value, of the channel that its format names.

    Args:
        value: the JSON value.
        where: of the value, for errors.

    Raises:
        MalformedRecord: a public half of neither channel; one that names no format is judged as
            that of a record. Nothing is verified.
    """
    named = value.get("format") if isinstance(value, dict) else None
    kind = GeneratedReceipt if named == GeneratedReceipt.FORMAT else PublicReceipt
    return kind.from_json(value, where)


def query_name(half: PublicHalf) -> str:
    """Return what findings call the query of a receipt."""
    return f"{'record' if isinstance(half, PublicReceipt) else 'charge entry'} {half.index}"


def is_words(value: Mapping[str, Any]) -> bool:
    """Return whether a file says that it holds an answer in words, or its public half alone.

    Args:
        value: the file's JSON.
    """
    return value.get("format") in (GeneratedFile.FORMAT, GeneratedReceipt.FORMAT)


def demand_record(value: Mapping[str, Any], instead: str, where: str = "") -> None:
    """Check that a receipt is of a record: what follows has no meaning for an answer in words.

    Args:
        value: of a receipt file, or of a public half alone, JSON.
        instead: what to do with a receipt of an answer in words.
        where: of the value, for the error.

    Raises:
        UnsupportedError: it is of an answer in words.
    """
    if is_words(value):
        raise UnsupportedError("a receipt of an answer in words", where=where, expected=instead)
