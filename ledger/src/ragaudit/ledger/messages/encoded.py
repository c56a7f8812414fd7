"""Encoded bodies, and readers of their fields (docs/spec/01-encoding.md §1.1)."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import call
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.tagged import DIGEST_BYTES, Field, decode, enc
from ragaudit.ledger.errors import MalformedRecord

T = TypeVar("T")


def parsed_body(tag: str, data: bytes, count: int, build: Callable[[tuple[bytes, ...]], T]) -> T:
    """Return what ``build`` makes of the fields of an encoded body (docs/spec/01-encoding.md).

    Args:
        tag: that the body must have, so that no body is read as another kind.
        data: ``enc(tag, ..)``.
        count: of the fields.
        build: from the fields, as bytes.

    Raises:
        MalformedRecord: another tag, count or encoding, or what ``build`` refuses.
    """
    try:
        return build(decode(tag, data, count))
    # It already says which field is wrong.
    except MalformedRecord:
        raise
    except MalformedError as error:
        raise MalformedRecord(error.what, where=tag, expected=error.expected) from error


def field_count(tag: str, data: bytes) -> int:
    """Return how many fields an encoded body says it has, where kinds of a body differ in that.

    The count is read before the tag is: what it means is checked by the reader of the fields.

    Args:
        tag: that the body must have.
        data: ``enc(tag, ..)``, or anything else.
    """
    head = len(enc(tag)) - 2
    return int.from_bytes(data[head : head + 2], "little")


def check_range(what: str, value: int, low: int, high: int) -> None:
    """Check that an integer lies in ``low``..``high``.

    Raises:
        MalformedRecord: it does not; the error calls it ``what``.
    """
    if not low <= value <= high:
        raise MalformedRecord(f"{what} {value} out of range", expected=f"{low}..{high}")


def check_digests(*values: bytes | None) -> None:
    """Check that each value that is there is a digest of 32 bytes.

    Raises:
        MalformedRecord: another length.
    """
    for value in values:
        if value is not None and len(value) != DIGEST_BYTES:
            raise MalformedRecord("digest field has a wrong length", expected="32 bytes")


def check_key(raw: bytes) -> None:
    """Check that this is an Ed25519 public key of 32 bytes.

    Raises:
        MalformedRecord: another length, or no point that may be a key.
    """
    try:
        PublicKey.from_raw(raw)
    except MalformedError as error:
        raise MalformedRecord(error.what, where="dispute key", expected=error.expected) from error


Readers: TypeAlias = tuple[Callable[[bytes], Any], ...]


@dataclass(frozen=True, slots=True)
class EntryBody:
    """A body: its attributes in order, under a tag of its own, so that none is read as another.

    Attributes:
        KIND: of the entry; TAG is made of it.
        READ: reader of each field.
    """

    KIND: ClassVar[str]
    TAG: ClassVar[str]
    READ: ClassVar[Readers]

    def __init_subclass__(cls) -> None:
        cls.TAG = f"ragaudit/v1/entry/{cls.KIND}"

    def _fields(self) -> tuple[Field, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> Self:
        return cls(*map(call, cls.READ, f))  # as many fields as readers: `parse` counts them

    def encode(self) -> bytes:
        """Return the body as it is logged (docs/spec/01-encoding.md §1.1)."""
        return enc(self.TAG, *self._fields())

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Return the body in ``body``, the strict inverse of `encode`.

        Args:
            body: of a log entry, as an untrusted party sent it.

        Raises:
            MalformedRecord: another kind or encoding, or a field out of range.
        """
        return parsed_body(cls.TAG, body, len(cls.READ), cls._from)
