"""What opens a row of an index: salt, vector, squares, blinding and path (docs/spec 5.8, 5.16)."""

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, Final, Protocol, TypedDict

from ragaudit.encoding.digests import DIGEST_BYTES, SALT_BYTES
from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.errors import CommitmentRejected, ProofRejected
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.merkle_commitments import content_digest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.vectors import vector_text

__all__ = [
    "MAX_PATH",
    "SQUARES",
    "CommitRows",
    "OpenedRow",
    "RowOpening",
    "check_length",
    "completed_row",
    "is_null",
    "opening_members",
    "read_opening",
]

SQUARES: Final = 4  # that complete a row to squared norm B²
MAX_PATH: Final = 40  # of a row among at most 2^40
INNER_PRODUCT: Final = "inner-product"

_EMPTY: Final = content_digest("", "")

CommitRows = Callable[[Sequence[Sequence[int]], Sequence[bytes]], Sequence[bytes]]
"""Completed rows of 16-bit integers and canonical scalars to their commitments, 32 bytes each.

Many rows at once take a hundredth of the time that as many single ones do. Raises MalformedError
for what is out of range."""


class RowOpening(TypedDict):
    """What opens a row, by the names of its members.

    Attributes:
        salt: of its row digest, 32 bytes.
        vector: d integers of norm at most B.
        squares: four integers that complete its squared norm to B².
        blinding: canonical scalar of its commitment, 32 bytes.
        commitment: C_i, 32 bytes.
        path: of the row in C_idx, 32 bytes each.
    """

    salt: bytes
    vector: tuple[int, ...]
    squares: tuple[int, ...]
    blinding: bytes
    commitment: bytes
    path: tuple[bytes, ...]


class OpenedRow(Protocol):
    """A row with the attributes of a `RowOpening`."""

    @property
    def position(self) -> int:
        """In the index, from 0."""

    @property
    def salt(self) -> bytes:
        """As of `RowOpening`, like the five below."""

    @property
    def vector(self) -> tuple[int, ...]: ...

    @property
    def squares(self) -> tuple[int, ...]: ...

    @property
    def blinding(self) -> bytes: ...

    @property
    def commitment(self) -> bytes: ...

    @property
    def path(self) -> tuple[bytes, ...]: ...


def is_null(vector: Sequence[int], content: bytes, columns: str) -> bool:
    """Return whether a row is a null row: no text, no attributes, no column, all entries 0 (5.4).

    A vector of zeros alone is none: with inner products short vectors are rounded to it (2.5).

    Args:
        vector: X_i.
        content: the digest of its content and attributes, 32 bytes.
        columns: canonical text of its public columns; ``null`` of a marked row.
    """
    held = content != _EMPTY or columns not in (NO_COLUMNS, NULL_ROW)
    return not held and not any(vector)


def check_length(vector: Sequence[int], policy: Policy, where: str) -> None:
    """Check that a row which is no null row was not committed at a part of its length (5.16).

    Args:
        vector: X_i, d entries.
        policy: of the window.
        where: names the row in an error.

    Raises:
        ProofRejected: it was.
    """
    # With inner products a row keeps its length, and only its document's vector tells it.
    if policy.retrieval.metric == INNER_PRODUCT:
        return
    length, norm = sum(map(mul, vector, vector)), policy.squared_norm
    # The step of quantisation (2.1) that was not taken would have more than doubled an entry that
    # is not 0, or lifted at most d that are: B² lies below four times the square, plus d.
    if 4 * length + policy.dimension <= norm:
        share = math.sqrt(length / norm)
        what = f"committed at {share:.2f} of its length: no search ranks it where it belongs"
        raise ProofRejected(what, where=where, expected="a quantised vector")


def opening_members(row: OpenedRow) -> dict[str, Any]:
    """Return the JSON members that open a row."""
    return {
        "salt": row.salt.hex(),
        "vector": vector_text(row.vector),
        "squares": list(row.squares),
        "blinding": row.blinding.hex(),
        "commitment": row.commitment.hex(),
        "path": [digest.hex() for digest in row.path],
    }


def read_opening(f: Fields, bound: int) -> RowOpening:
    """Return what opens a row, of the members of ``f``.

    Args:
        f: an object with those members among its own.
        bound: the largest B that its window may have; the policy's is compared later (5.9).

    Raises:
        MalformedRecord: one of them out of range.
    """
    return {
        "salt": f.hex("salt", SALT_BYTES),
        "vector": f.vector("vector", LIMITS.dimension, bound),
        "squares": f.integers("squares", (SQUARES, SQUARES), -bound, bound),
        "blinding": f.hex("blinding", 32),
        "commitment": f.hex("commitment", 32),
        "path": f.hexes("path", MAX_PATH, DIGEST_BYTES),
    }


def completed_row(row: OpenedRow, policy: Policy) -> tuple[int, ...]:
    """Return a row's vector and squares, d + 4 integers, once their norm is B².

    Args:
        row: of an index of the window.
        policy: of the window.

    Raises:
        CommitmentRejected: a vector of another length, or another norm.
    """
    where, norm = f"row {row.position}", policy.squared_norm
    if len(row.vector) != policy.dimension:
        expected = f"{policy.dimension}"
        raise CommitmentRejected(f"{len(row.vector)} entries", where=where, expected=expected)
    completed = (*row.vector, *row.squares)
    if sum(map(mul, completed, completed)) != norm:
        expected = f"squared norm {norm} of a completed row"
        raise CommitmentRejected("another norm", where=where, expected=expected)
    return completed
