"""Budgets of rows: how often a window's charge entries charge them (docs/spec/04-arguments.md)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.core import _core
from ragaudit.core._arrays import (
    CONTEXT_BYTES,
    exact_bytes,
    integer,
    positions,
    scalars_bytes,
)

__all__ = ["BudgetStatement", "CheckedBudget", "prove_budget", "verify_budget"]

_Progress = Callable[[float], bool | None] | None


class BudgetStatement(Protocol):
    """No row is charged more than M times by these charge entries (docs/spec 4.10)."""

    @property
    def context(self) -> bytes:
        """Return 32 bytes that bind everything the argument does not see."""

    @property
    def rows(self) -> int:
        """Return N, 1 <= N < 2^32."""

    @property
    def uses(self) -> int:
        """Return M, 1 <= M <= 2^16."""

    @property
    def charges(self) -> bytes:
        """Return B_0 || .. || B_(R-1), 32 R bytes: all of the tenant and window, in log order."""

    @property
    def squared_norm(self) -> int:
        """Return B² of the policy, 1 <= 4B² < 2^26."""


@dataclass(frozen=True, slots=True)
class CheckedBudget:
    """A `BudgetStatement` as the compiled module reads it, with the same attributes."""

    context: bytes
    rows: int
    uses: int
    charges: bytes
    squared_norm: int

    @classmethod
    def of(cls, statement: BudgetStatement) -> "CheckedBudget":
        """Return the statement, its types and lengths checked.

        Raises:
            MalformedInput: a wrong one.
        """
        return cls(
            context=exact_bytes(statement.context, "context", CONTEXT_BYTES),
            rows=integer(statement.rows, "rows"),
            uses=integer(statement.uses, "uses"),
            charges=exact_bytes(statement.charges, "charges"),
            squared_norm=integer(statement.squared_norm, "squared_norm", 32),
        )


def prove_budget(
    statement: BudgetStatement,
    charged: Sequence[Sequence[int]],
    blindings: npt.NDArray[np.uint8],
    *,
    progress: _Progress = None,
) -> bytes:
    """Return a budget proof: no row is charged more than M times (docs/spec 4.10).

    Its work grows with the rows that are charged, not with R times N.

    Args:
        statement: about the points of these charge entries.
        charged: the positions that each entry charges, R sequences of distinct ones below N.
        blindings: rho_t, uint8[R, 32], canonical scalars.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type, shape or range, or a row that is charged too often.
        Cancelled: ``progress`` returned False.
    """
    checked = CheckedBudget.of(statement)
    secret = scalars_bytes(blindings, "blindings", len(charged))
    return _core.prove_budget(
        checked, [positions(each, "charged") for each in charged], secret, progress
    )


def verify_budget(statement: BudgetStatement, proof: bytes, *, progress: _Progress = None) -> None:
    """Check a budget proof ("budget/v1").

    Raises:
        MalformedInput: another type or length.
        ProofRejected: the statement's public conditions do not hold, or the proof is not valid.
        Cancelled: ``progress`` returned False.
    """
    _core.verify_budget(CheckedBudget.of(statement), exact_bytes(proof, "proof"), progress)
