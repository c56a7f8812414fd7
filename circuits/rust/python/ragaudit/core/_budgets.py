"""Charges of rows: how often a row is charged, and which ones (docs/spec/04-arguments.md)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.core import _core
from ragaudit.core._arrays import (
    CONTEXT_BYTES,
    ENTRIES,
    POINT_BYTES,
    Memory,
    Rows,
    array_bytes,
    exact_bytes,
    integer,
    positions,
    scalars_bytes,
    signed,
)

__all__ = [
    "BudgetStatement",
    "ChargeEntry",
    "ChargeStatement",
    "CheckedBudget",
    "CheckedCharge",
    "prove_budget",
    "prove_charges",
    "running_sums",
    "verify_budget",
    "verify_charges",
]

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


class ChargeEntry(Protocol):
    """What is public of one charge entry."""

    @property
    def context(self) -> bytes:
        """Return 32 bytes that bind everything the argument does not see."""

    @property
    def query(self) -> npt.NDArray[np.int16]:
        """Return e, int16[d], of squared norm at most B²."""

    @property
    def threshold(self) -> int:
        """Return tau, 0 <= tau <= B²: a row is relevant above it."""

    @property
    def allowed(self) -> Sequence[int] | None:
        """Return the positions that pass the filter, rising; None for all."""

    @property
    def charged_before(self) -> bytes:
        """Return S, the sum of the tenant's B with a smaller log index, 32 bytes."""

    @property
    def charge(self) -> bytes:
        """Return B, 32 bytes."""


class ChargeStatement(Protocol):
    """Each entry charges the allowed relevant rows charged less than M times (docs/spec 4.11).

    It holds only together with the index argument of the commitments and the budget argument over
    all charge entries of the tenant and window.
    """

    @property
    def uses(self) -> int:
        """Return M, 1 <= M <= 2^16."""

    @property
    def commitments(self) -> bytes:
        """Return C_0 || .. || C_(N-1), 32 N bytes."""

    @property
    def entries(self) -> Sequence[ChargeEntry]:
        """Return the entries of the group in log order, 1 to 2^16."""

    @property
    def squared_norm(self) -> int:
        """Return B² of the policy, 1 <= 4B² < 2^26."""


@dataclass(frozen=True, slots=True)
class CheckedEntry:
    """A `ChargeEntry` as the compiled module reads it, with the same attributes."""

    context: bytes
    query: Memory
    threshold: int
    allowed: list[int] | None
    charged_before: bytes
    charge: bytes


@dataclass(frozen=True, slots=True)
class CheckedCharge:
    """A `ChargeStatement` as the compiled module reads it, with the same attributes."""

    uses: int
    commitments: bytes
    entries: list[CheckedEntry]
    squared_norm: int

    @classmethod
    def of(cls, statement: ChargeStatement) -> "CheckedCharge":
        """Return the statement, its types and lengths checked.

        Raises:
            MalformedInput: a wrong one.
        """
        return cls(
            uses=integer(statement.uses, "uses"),
            commitments=exact_bytes(statement.commitments, "commitments"),
            entries=[_checked(entry) for entry in statement.entries],
            squared_norm=integer(statement.squared_norm, "squared_norm", 32),
        )


def _checked(entry: ChargeEntry) -> CheckedEntry:
    allowed = entry.allowed
    return CheckedEntry(
        context=exact_bytes(entry.context, "context", CONTEXT_BYTES),
        query=array_bytes(entry.query, "query", [np.int16], 1),
        threshold=signed(entry.threshold, "threshold"),
        allowed=None if allowed is None else positions(allowed, "allowed"),
        charged_before=exact_bytes(entry.charged_before, "charged_before", POINT_BYTES),
        charge=exact_bytes(entry.charge, "charge", POINT_BYTES),
    )


def prove_charges(
    statement: ChargeStatement,
    rows: Rows,
    blindings: npt.NDArray[np.uint8],
    charged: Sequence[Sequence[int]],
    charge_blindings: npt.NDArray[np.uint8],
    numbers: Sequence[int],
    *,
    progress: _Progress = None,
) -> bytes:
    """Return one proof for a group of charge entries (docs/spec 4.11).

    Runs on any charges; if an entry's are not the ones it should have, the proof is rejected.

    Args:
        statement: about these rows and entries.
        rows, blindings: of the index, int8 or int16[N, d + 4] and uint8[N, 32].
        charged, charge_blindings: as in :func:`prove_budget`, of all charge entries of the tenant
            and window from the first to the last of the group, or further.
        numbers: places of the group's entries among these, rising.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type, shape or range.
        Cancelled: ``progress`` returned False.
    """
    checked = CheckedCharge.of(statement)
    data = array_bytes(rows, "rows", ENTRIES, 2)
    secret = scalars_bytes(blindings, "blindings", rows.shape[0])
    history = scalars_bytes(charge_blindings, "charge_blindings", len(charged))
    places = [positions(each, "charged") for each in charged]
    return _core.prove_charges(
        checked,
        (data, rows.dtype.itemsize, rows.shape[1]),
        secret,
        (places, history, positions(numbers, "numbers")),
        progress,
    )


def verify_charges(statement: ChargeStatement, proof: bytes, *, progress: _Progress = None) -> None:
    """Check the proof of a group of charge entries ("charge/v1").

    Raises:
        MalformedInput: another type or length.
        ProofRejected: the statement's public conditions do not hold, or the proof is not valid.
        Cancelled: ``progress`` returned False.
    """
    _core.verify_charges(CheckedCharge.of(statement), exact_bytes(proof, "proof"), progress)


def running_sums(points: bytes, numbers: Sequence[int]) -> list[bytes]:
    """Return the sum of the points before each of these places, 32 bytes each.

    Args:
        points: B_0 || .. || B_(R-1), 32 R bytes.
        numbers: rising places below R; the sum before the first point is the identity.

    Raises:
        MalformedInput: another type or range, or a point that is not canonical.
    """
    return _core.running_sums(exact_bytes(points, "points"), positions(numbers, "numbers"))
