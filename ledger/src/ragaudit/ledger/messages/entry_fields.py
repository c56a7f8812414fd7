"""What the fields of log entries must be (docs/spec/05-records.md §5.7)."""

from collections.abc import Callable
from typing import TypeVar

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.tagged import decode, read_digest
from ragaudit.ledger.errors import MalformedRecord

T = TypeVar("T")


def decoded(tag: str, data: bytes, count: int, build: Callable[[tuple[bytes, ...]], T]) -> T:
    """Return what ``build`` makes of the fields of an encoded body; MalformedRecord."""
    try:
        return build(decode(tag, data, count))
    except MalformedRecord:
        raise
    except MalformedError as error:
        raise MalformedRecord(error.what, where=tag, expected=error.expected) from error


def check_range(what: str, value: int, low: int, high: int) -> None:
    """Check that an integer lies in low..high; MalformedRecord."""
    if not low <= value <= high:
        raise MalformedRecord(f"{what} {value} out of range", expected=f"{low}..{high}")


def check_digests(*values: bytes) -> None:
    """Check that each value is a digest of 32 bytes; MalformedRecord."""
    for value in values:
        try:
            read_digest(value)
        except MalformedError as error:
            raise MalformedRecord(error.what, expected=error.expected) from error


def check_key(raw: bytes) -> None:
    """Check that this is an Ed25519 public key; MalformedRecord."""
    try:
        PublicKey.from_raw(raw)
    except MalformedError as error:
        raise MalformedRecord(error.what, where="dispute key", expected=error.expected) from error


def check_optional_digests(*values: bytes | None) -> None:
    """Check each value that is there, as `check_digests`."""
    check_digests(*(value for value in values if value is not None))
