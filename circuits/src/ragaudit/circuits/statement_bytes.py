"""Statements as bytes, for jobs that another process does.

They pass between the processes of one party only: what crosses between parties is in the ledger's
messages. The commitments are not among the bytes: an index has them once, for all its records.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry, ChargeStatement
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import decode, enc, read_int

__all__ = [
    "budget_bytes",
    "charge_bytes",
    "read_budget",
    "read_charge",
    "read_selection",
    "read_several",
    "selection_bytes",
    "several",
]

_TAG: Final = "selection statement"
_SEVERAL: Final = "several"
_BUDGET: Final = "budget statement"
_CHARGE: Final = "charge statement"
_ENTRY: Final = "charge entry"
_PART: Final = 2**15
_NOISE: Final = (np.dtype("<i4"), np.dtype("<i8"))
_POSITIONS: Final = np.dtype("<u4")


def selection_bytes(statement: SelectionStatement) -> bytes:
    """Return everything that a statement says but for the commitments."""
    noise = np.ascontiguousarray(statement.noise)
    small = _NOISE[0]
    limits = np.iinfo(small)
    # Of nearly every policy: half the bytes.
    fits = not noise.size or (noise.min() >= limits.min and noise.max() <= limits.max)
    kind = small if fits else _NOISE[1]
    allowed = statement.allowed
    return enc(
        _TAG,
        statement.context,
        statement.query.astype("<i2").tobytes(),
        kind.itemsize,
        noise.astype(kind).tobytes(),
        statement.top_k,
        statement.selection_commitment,
        int(allowed is not None),
        np.array([] if allowed is None else allowed, dtype=_POSITIONS).tobytes(),
        statement.squared_norm,
        int(statement.keeps_ties),
    )


def read_selection(data: bytes, commitments: bytes) -> SelectionStatement:
    """Return the statement of `selection_bytes` about the commitments of an index.

    Args:
        data: as `selection_bytes` returned it.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.

    Raises:
        MalformedError: other bytes.
    """
    context, query, size, noise, top_k, selection, filtered, allowed, squared, keeps = decode(
        _TAG, data, 10
    )
    kinds = {kind.itemsize: kind for kind in _NOISE}
    if (width := read_int(size)) not in kinds:
        raise MalformedError("entries of another size", where="noise", expected="4 or 8 bytes")
    return SelectionStatement(
        context=context,
        rows=len(commitments) // 32,
        commitments=commitments,
        query=np.frombuffer(query, dtype="<i2").astype(np.int16),
        noise=np.frombuffer(noise, dtype=kinds[width]).astype(np.int64),
        top_k=read_int(top_k),
        selection_commitment=selection,
        allowed=np.frombuffer(allowed, dtype=_POSITIONS).tolist() if read_int(filtered) else None,
        squared_norm=read_int(squared),
        keeps_ties=bool(read_int(keeps)),
    )


def budget_bytes(statement: BudgetStatement) -> bytes:
    """Return everything that a statement says."""
    return enc(
        _BUDGET,
        statement.context,
        statement.rows,
        statement.uses,
        statement.charges,
        statement.squared_norm,
    )


def read_budget(data: bytes) -> BudgetStatement:
    """Return the statement of `budget_bytes`; MalformedError for other bytes."""
    context, rows, uses, charges, squared = decode(_BUDGET, data, 5)
    return BudgetStatement(context, read_int(rows), read_int(uses), charges, read_int(squared))


def charge_bytes(statement: ChargeStatement) -> bytes:
    """Return everything that a statement says but for the commitments."""
    entries = [
        enc(
            _ENTRY,
            entry.context,
            entry.query.astype("<i2").tobytes(),
            entry.threshold,
            int(entry.allowed is not None),
            np.array([] if entry.allowed is None else entry.allowed, dtype=_POSITIONS).tobytes(),
            entry.charged_before,
            entry.charge,
        )
        for entry in statement.entries
    ]
    # A group may have one entry more than one field can hold.
    halves = [several(entries[start : start + _PART]) for start in range(0, len(entries), _PART)]
    return enc(_CHARGE, statement.uses, statement.squared_norm, several(halves))


def read_charge(data: bytes, commitments: bytes) -> ChargeStatement:
    """Return the statement of `charge_bytes` about the commitments of an index.

    Args:
        data: as `charge_bytes` returned it.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.

    Raises:
        MalformedError: other bytes.
    """
    uses, squared, entries = decode(_CHARGE, data, 3)
    parts = (read_several(part) for part in read_several(entries))
    read = tuple(_read_entry(entry) for part in parts for entry in part)
    return ChargeStatement(read_int(uses), commitments, read, read_int(squared))


def _read_entry(data: bytes) -> ChargeEntry:
    context, query, threshold, filtered, allowed, before, charge = decode(_ENTRY, data, 7)
    return ChargeEntry(
        context,
        np.frombuffer(query, dtype="<i2").astype(np.int16),
        read_int(threshold),
        np.frombuffer(allowed, dtype=_POSITIONS).tolist() if read_int(filtered) else None,
        before,
        charge,
    )


def several(parts: Sequence[bytes]) -> bytes:
    """Return byte strings as one, which `read_several` takes apart.

    Args:
        parts: at most 65,535.
    """
    return enc(_SEVERAL, *parts)


def read_several(data: bytes) -> tuple[bytes, ...]:
    """Return the byte strings of `several`.

    Raises:
        MalformedError: other bytes.
    """
    at = len(enc(_SEVERAL)) - 2
    return decode(_SEVERAL, data, int.from_bytes(data[at : at + 2], "little"))
