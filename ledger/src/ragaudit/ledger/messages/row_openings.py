"""What opens a row of an index: salt, vector, squares, blinding and path (docs/spec 5.8, 5.16)."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypedDict

from ragaudit.encoding.digests import DIGEST_BYTES, SALT_BYTES
from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.errors import CommitmentRejected
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.vectors import vector_text

__all__ = [
    "MAX_PATH",
    "SQUARES",
    "CommitRows",
    "OpenedRow",
    "RowOpening",
    "completed_row",
    "opening_members",
    "read_opening",
]

SQUARES: Final = 4  # that complete a row to squared norm B²
MAX_PATH: Final = 40  # of a row among at most 2^40

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
    if sum(entry * entry for entry in completed) != norm:
        expected = f"squared norm {norm} of a completed row"
        raise CommitmentRejected("another norm", where=where, expected=expected)
    return completed
