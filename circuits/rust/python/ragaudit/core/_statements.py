"""The statements of the two arguments: as a caller passes them, and as the module reads them.

A statement is any object with these attributes; arrays are read where they are, not copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.core._arrays import (
    CONTEXT_BYTES,
    POINT_BYTES,
    Memory,
    array_bytes,
    exact_bytes,
    integer,
    positions,
    ranked,
    signed,
    truth,
)


class IndexStatement(Protocol):
    """Each of N commitments holds an integer row of squared norm B² (docs/spec/04-arguments.md)."""

    @property
    def context(self) -> bytes:
        """Return 32 bytes that bind everything the argument does not see."""

    @property
    def rows(self) -> int:
        """Return N, 1 <= N < 2^32."""

    @property
    def dimension(self) -> int:
        """Return d, 1 <= d < 2^16; a completed row has d + 4 entries."""

    @property
    def commitments(self) -> bytes:
        """Return C_0 || .. || C_(N-1), 32 N bytes."""

    @property
    def squared_norm(self) -> int:
        """Return B² of the policy: 1 <= 4B² < 2^26 and N² B² (d + 4) < 2^82."""


class SelectionStatement(Protocol):
    """B_sel holds { i allowed : y_i > y_(K+1) }, y_i = <query, X_i> + noise_i, over committed rows.

    The verifier must have accepted the index argument of the commitments before.
    """

    @property
    def context(self) -> bytes:
        """Return 32 bytes that bind everything the argument does not see."""

    @property
    def rows(self) -> int:
        """Return N, 1 <= N < 2^32."""

    @property
    def commitments(self) -> bytes:
        """Return C_0 || .. || C_(N-1), 32 N bytes."""

    @property
    def query(self) -> npt.NDArray[np.int16]:
        """Return e, int16[d], of squared norm at most B²."""

    @property
    def noise(self) -> npt.NDArray[np.int64]:
        """Return z, int64[N]."""

    @property
    def top_k(self) -> int:
        """Return K, 1 <= K < 2^32."""

    @property
    def selection_commitment(self) -> bytes:
        """Return B_sel, 32 bytes."""

    @property
    def allowed(self) -> Sequence[int] | None:
        """Return the distinct positions that pass the filter, in any order; None for all."""

    @property
    def squared_norm(self) -> int:
        """Return B² of the policy, 1 <= 4B² < 2^26."""

    @property
    def keeps_ties(self) -> bool:
        """Return whether B_sel holds { i allowed : y_i >= y_(K) } instead."""


class TiesStatement(Protocol):
    """Served and withdrawn rows are the first K of T, the others follow (docs/spec 4.6.10).

    T and the commitments' places in the index have been checked before.
    """

    @property
    def context(self) -> bytes:
        """Return 32 bytes that bind everything the argument does not see."""

    @property
    def rows(self) -> int:
        """Return N, 1 <= N < 2^32."""

    @property
    def query(self) -> Sequence[int]:
        """Return e, d integers of squared norm at most B²."""

    @property
    def top_k(self) -> int:
        """Return K, 1 <= K < 2^32."""

    @property
    def served(self) -> Sequence[tuple[int, int]]:
        """Return the rows of the answer with their scores, positions rising."""

    @property
    def withdrawn(self) -> Sequence[tuple[int, int]]:
        """Return the first rows that were left out, with their scores, positions rising."""

    @property
    def others(self) -> Sequence[int]:
        """Return the positions of T behind the first K, rising."""

    @property
    def commitments(self) -> bytes:
        """Return C_i of withdrawn rows and others, in one list of rising positions."""

    @property
    def squared_norm(self) -> int:
        """Return B² of the policy, 1 <= 4B² < 2^26."""


@dataclass(frozen=True, slots=True)
class CheckedIndex:
    """An index statement as the compiled module reads it; attributes as `IndexStatement`."""

    context: bytes
    rows: int
    dimension: int
    commitments: bytes
    squared_norm: int

    @classmethod
    def of(cls, statement: IndexStatement) -> "CheckedIndex":
        """Return the statement, its types and lengths checked.

        Raises:
            MalformedInput: a wrong one.
        """
        return cls(
            context=exact_bytes(statement.context, "context", CONTEXT_BYTES),
            rows=integer(statement.rows, "rows"),
            dimension=integer(statement.dimension, "dimension"),
            commitments=exact_bytes(statement.commitments, "commitments"),
            squared_norm=integer(statement.squared_norm, "squared_norm", 32),
        )


@dataclass(frozen=True, slots=True)
class CheckedSelection:
    """A `SelectionStatement` as the compiled module reads it, with the same attributes."""

    context: bytes
    rows: int
    commitments: bytes
    query: Memory
    noise: Memory
    top_k: int
    selection_commitment: bytes
    allowed: list[int] | None
    squared_norm: int
    keeps_ties: bool

    @classmethod
    def of(cls, statement: SelectionStatement) -> "CheckedSelection":
        """Return the statement, its types and lengths checked.

        Raises:
            MalformedInput: a wrong one.
        """
        allowed = statement.allowed
        commitment = statement.selection_commitment
        return cls(
            context=exact_bytes(statement.context, "context", CONTEXT_BYTES),
            rows=integer(statement.rows, "rows"),
            commitments=exact_bytes(statement.commitments, "commitments"),
            query=array_bytes(statement.query, "query", [np.int16], 1),
            noise=array_bytes(statement.noise, "noise", [np.int64], 1),
            top_k=integer(statement.top_k, "top_k"),
            selection_commitment=exact_bytes(commitment, "selection_commitment", POINT_BYTES),
            allowed=None if allowed is None else positions(allowed, "allowed"),
            squared_norm=integer(statement.squared_norm, "squared_norm", 32),
            keeps_ties=truth(statement.keeps_ties, "keeps_ties"),
        )


@dataclass(frozen=True, slots=True)
class CheckedTies:
    """A `TiesStatement` as the compiled module reads it, with the same attributes."""

    context: bytes
    rows: int
    query: list[int]
    top_k: int
    served: list[tuple[int, int]]
    withdrawn: list[tuple[int, int]]
    others: list[int]
    commitments: bytes
    squared_norm: int

    @classmethod
    def of(cls, statement: TiesStatement) -> "CheckedTies":
        """Return the statement, its types and lengths checked.

        Raises:
            MalformedInput: a wrong one.
        """
        return cls(
            context=exact_bytes(statement.context, "context", CONTEXT_BYTES),
            rows=integer(statement.rows, "rows"),
            query=[signed(entry, "query", 16) for entry in statement.query],
            top_k=integer(statement.top_k, "top_k"),
            served=ranked(statement.served, "served"),
            withdrawn=ranked(statement.withdrawn, "withdrawn"),
            others=positions(statement.others, "others"),
            commitments=exact_bytes(statement.commitments, "commitments"),
            squared_norm=integer(statement.squared_norm, "squared_norm", 32),
        )

    def unserved(self) -> list[int]:
        """Return the positions of the commitments, rising."""
        return sorted([*(position for position, _ in self.withdrawn), *self.others])
