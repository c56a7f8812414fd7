"""What the provider opens of the sampled rows of a tenant's index (docs/spec/09-audit.md §9.11)."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final, Self

from ragaudit.encoding.digests import PREFIX, SALT_BYTES
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import (
    DIGEST_BYTES,
    decode,
    enc,
    read_digest,
    read_int,
    read_text,
    stream,
)
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.merkle_commitments import content_digest
from ragaudit.ledger.messages.records import MAX_ROWS
from ragaudit.ledger.messages.row_openings import SQUARES
from ragaudit.ledger.messages.vectors import int16_bytes

__all__ = ["RowsHead", "SampledRow", "encode_rows", "longest_rows", "read_rows"]

ROWS_TAG: Final = PREFIX + "response/rows"
ROW_TAG: Final = PREFIX + "response/row"

MAX_TEXT_BYTES: Final = 65_536
"""Of a content, and of attributes: a document has no longer ones."""

_WHERE: Final = "rows"
_HEAD: Final = 3  # fields before the rows
_FIELDS: Final = 9
_BLINDING_BYTES: Final = 32
_MAX_ID_BYTES: Final = 512
_FRAME: Final = 256  # what stands around the fields of a row, tag and lengths
_ENTRY_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class SampledRow:
    """A sampled row with what opens its leaf; nothing in it has been checked.

    Attributes:
        position: in the index, from 0.
        id: of its document, 1 to 512 bytes.
        content, attributes: of its document, at most 65,536 bytes each; both None: the store has
            changed since, so that nobody can show what was committed to.
        content_digest: of the committed content and attributes, 32 bytes.
        salt: of the row digest, 32 bytes.
        vector: X_i, d entries in -2^15..2^15-1.
        squares: w_0..w_3, that complete its squared norm to B².
        blinding: rho_i, a scalar.
    """

    position: int
    id: str = field(repr=False)
    content: str | None = field(repr=False)
    attributes: str | None = field(repr=False)
    content_digest: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    vector: tuple[int, ...] = field(repr=False)
    squares: tuple[int, ...] = field(repr=False)
    blinding: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return the row as it stands in a response."""
        return enc(
            ROW_TAG,
            self.position,
            self.id,
            self.content,
            self.attributes,
            self.content_digest,
            self.salt,
            int16_bytes(self.vector),
            int16_bytes(self.squares),
            self.blinding,
        )

    @classmethod
    def parse(cls, data: bytes, dimension: int) -> Self:
        """Return the row in ``data``, the strict inverse of `encode`.

        Args:
            data: a field of a response.
            dimension: d of the policy.

        Raises:
            MalformedError: not a row, or a part of another length.
        """
        f = decode(ROW_TAG, data, _FIELDS)
        for name, text in (("content", f[2]), ("attributes", f[3])):
            if len(text) > MAX_TEXT_BYTES:
                expected = f"at most {MAX_TEXT_BYTES} bytes"
                raise MalformedRecord(f"{name} too long", where=_WHERE, expected=expected)
        lengths = (SALT_BYTES, _ENTRY_BYTES * dimension, _ENTRY_BYTES * SQUARES, _BLINDING_BYTES)
        if tuple(map(len, f[5:])) != lengths:
            raise MalformedRecord("a part of another length", where=_WHERE, expected=f"{lengths}")
        position = read_int(f[0])
        if not 0 <= position < MAX_ROWS:
            raise MalformedRecord("position out of range", where=_WHERE)
        committed = read_digest(f[4])
        # Absent and empty have one encoding: the digest says which of the two it is.
        given = bool(f[2] or f[3]) or committed == _NOTHING
        return cls(
            position=position,
            id=check_document_id(read_text(f[1])),
            content=read_text(f[2]) if given else None,
            attributes=read_text(f[3]) if given else None,
            content_digest=committed,
            salt=f[5],
            vector=struct.unpack(f"<{dimension}h", f[6]),
            squares=struct.unpack(f"<{SQUARES}h", f[7]),
            blinding=f[8],
        )


_NOTHING: Final = content_digest("", "")
"""Of a row without content and attributes."""


@dataclass(frozen=True, slots=True)
class RowsHead:
    """Whose rows a response opens.

    Attributes:
        tenant, version: of the index.
        secret: k_t, the tenant's document secret, 32 bytes.
    """

    tenant: str
    version: int
    secret: bytes = field(repr=False)


def encode_rows(head: RowsHead, rows: Iterable[SampledRow]) -> bytes:
    """Return a response as it is sent.

    Args:
        head: whose rows.
        rows: by rising position, all that were sampled.
    """
    opened = (row.encode() for row in rows)
    return enc(ROWS_TAG, head.tenant, head.version, head.secret, *opened)


def read_rows(file: BinaryIO, count: int, dimension: int) -> tuple[RowsHead, Iterator[SampledRow]]:
    """Return a response from a file, its rows one by one: together they may not fit into memory.

    Args:
        file: at the response's first byte, with nothing behind it.
        count: of the rows that were sampled.
        dimension: d of the policy.

    Returns:
        The head; and the rows, which raise MalformedError where they are none.

    Raises:
        MalformedError: not a response with so many rows.
    """
    fields = stream(ROWS_TAG, file, _HEAD + count, longest_row(dimension))
    first = [next(fields) for _ in range(_HEAD)]
    version = read_int(first[1])
    if version < 1 or len(first[2]) != DIGEST_BYTES:
        raise MalformedError("version or document secret out of range", where=_WHERE)
    head = RowsHead(read_text(first[0]), version, first[2])
    return head, (SampledRow.parse(data, dimension) for data in fields)


def longest_row(dimension: int) -> int:
    """Return how many bytes a row of a response has at most.

    Args:
        dimension: d of the policy.
    """
    numbers = _ENTRY_BYTES * (dimension + SQUARES)
    return _FRAME + _MAX_ID_BYTES + 2 * MAX_TEXT_BYTES + 3 * DIGEST_BYTES + numbers


def longest_rows(count: int, dimension: int) -> int:
    """Return how many bytes a response may have (spec 9.11).

    Args:
        count: of the rows that were sampled.
        dimension: d of the policy.
    """
    return 2 * _FRAME + count * (8 + longest_row(dimension))
