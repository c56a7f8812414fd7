"""What opens a row of an index: salt, vector, squares, blinding and path (docs/spec 5.8, 5.16)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from operator import mul
from typing import Annotated, Final, TypeAlias

from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.errors import CommitmentRejected, ProofRejected
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW
from ragaudit.ledger.messages.kernel import Digest, Integer, Items, Message
from ragaudit.ledger.messages.merkle_commitments import content_digest
from ragaudit.ledger.messages.policy import LARGE_B, Policy
from ragaudit.ledger.messages.records import MAX_ROWS
from ragaudit.ledger.messages.vectors import int16s

__all__ = [
    "MAX_PATH",
    "SQUARES",
    "CommitRows",
    "RowOpening",
    "RowPath",
    "check_length",
    "completed_row",
    "is_null",
]

SQUARES: Final = 4  # that complete a row to squared norm B²
MAX_PATH: Final = 40  # of a row among at most 2^40
INNER_PRODUCT: Final = "inner-product"

_EMPTY: Final = content_digest("", "")

CommitRows = Callable[[Sequence[Sequence[int]], Sequence[bytes]], Sequence[bytes]]
"""Completed rows of 16-bit integers and canonical scalars to their commitments, 32 bytes each.

Many rows at once take a hundredth of the time that as many single ones do. Raises MalformedError
for what is out of range."""


Square: TypeAlias = Annotated[int, Integer(-LARGE_B, LARGE_B)]
RowPath: TypeAlias = Annotated[tuple[Digest, ...], Items(0, MAX_PATH)]


class RowOpening(Message):
    """What opens a row.

    Attributes:
        position: in the index, from 0.
        salt: of its row digest.
        vector: d integers of norm at most B, which the policy says (5.9).
        squares: four integers that complete its squared norm to B².
        blinding: canonical scalar of its commitment.
        commitment: C_i.
        path: of the row in C_idx.
    """

    position: Annotated[int, Integer(0, MAX_ROWS - 1)]
    salt: Digest = field(repr=False)
    vector: Annotated[tuple[int, ...], int16s(LIMITS.dimension, LARGE_B)] = field(repr=False)
    squares: Annotated[tuple[Square, ...], Items(SQUARES, SQUARES)] = field(repr=False)
    blinding: Digest = field(repr=False)
    commitment: Digest
    path: RowPath = field(repr=False)


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


def completed_row(row: RowOpening, policy: Policy) -> tuple[int, ...]:
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
