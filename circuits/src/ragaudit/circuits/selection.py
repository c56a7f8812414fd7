"""Exact scores and noise-then-select (docs/spec/02-integers.md §2.3)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError

__all__ = ["scores", "select"]

# Rows converted at a time: 4096 rows of 4096 float32 are 64 MiB.
_BLOCK_ROWS = 4096
# Integers up to this size are exact in binary32, and so are their sums and differences.
_EXACT_BINARY32 = 2**24


def scores(rows: npt.NDArray[np.int8], query: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
    """Return the inner products int64[N] of all rows with the query, exactly.

    They are computed as a binary32 matrix product, which is exact: in whatever order a
    library adds, every partial sum is an integer of absolute value at most
    ``128 · sum |e_j|``, checked to be below 2^24. (For |e| <= 127 and d <= 4096 that is at
    most 128·127·64 = 1040384; with row norms <= 127 as well, partial sums stay within 16129.)

    Args:
        rows: int8[N, d].
        query: int16[d].

    Raises:
        MalformedError: wrong types or shapes, or a query too large for exactness.
    """
    if rows.dtype != np.int8 or rows.ndim != 2:
        raise MalformedError("rows have a wrong type or shape", expected="int8[N, d]")
    if query.dtype != np.int16 or query.shape != rows.shape[1:]:
        raise MalformedError("query has a wrong type or shape", expected=f"int16{rows.shape[1:]}")
    if 128 * int(np.sum(np.abs(query.astype(np.int64)))) >= _EXACT_BINARY32:
        raise MalformedError("query too large for exact scores", expected="norm at most 127")
    e = query.astype(np.float32)
    result = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS].astype(np.float32)
        result[start : start + _BLOCK_ROWS] = block @ e
    return result


def select(
    noised: npt.NDArray[np.int64], top_k: int, allowed: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return T in rising order: the allowed positions above the (K+1)-th largest value.

    Positions tied at the boundary are dropped, so at most K are returned and the set
    depends on the noised values alone.

    Args:
        noised: int64[N], scores plus noise.
        top_k: K >= 1.
        allowed: the positions that pass the filter; None for all.

    Raises:
        MalformedError: wrong type, K < 1, positions repeated or out of range.
    """
    if noised.dtype != np.int64 or noised.ndim != 1:
        raise MalformedError("noised scores have a wrong type or shape", expected="int64[N]")
    if top_k < 1:
        raise MalformedError(f"top_k is {top_k}", expected="at least 1")
    positions = None if allowed is None else _positions(allowed, len(noised))
    values = noised if positions is None else noised[positions]
    if len(values) <= top_k:
        chosen = np.arange(len(values))
    else:
        at = len(values) - 1 - top_k
        chosen = np.flatnonzero(values > np.partition(values, at)[at])
    return tuple((chosen if positions is None else positions[chosen]).tolist())


def _positions(allowed: Sequence[int], count: int) -> npt.NDArray[np.int64]:
    positions = np.array(sorted(allowed), dtype=np.int64)
    if len(positions) and not 0 <= positions[0] <= positions[-1] < count:
        raise MalformedError("allowed position out of range", expected=f"0 to {count - 1}")
    if np.any(positions[1:] == positions[:-1]):
        raise MalformedError("allowed position repeated", expected="distinct positions")
    return positions
