"""Real vectors to integer vectors of norm at most 127 (docs/spec/02-integers.md §2.1, §2.2)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.parameters import LIMITS, SQUARED_NORM, B
from ragaudit.encoding.errors import MalformedError

__all__ = ["distance", "quantise", "quantise_rows", "squared_norms"]


def quantise(vector: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Return the integer vector int8[d] of a real vector, with ``|X|² <= 16129``.

    Args:
        vector: d real numbers, 1 <= d <= 4096, read as binary64.

    Raises:
        MalformedError: NaN, infinity, all zero, truncating to zero, wrong shape or type.
    """
    values = np.asarray(vector)
    if values.ndim != 1:
        raise MalformedError("vector has a wrong shape", expected="one dimension")
    row: npt.NDArray[np.int8] = quantise_rows(values[np.newaxis, :])[0]
    return row


def quantise_rows(matrix: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Return int8[N, d]; each row is what :func:`quantise` gives for it.

    Raises:
        MalformedError: as :func:`quantise`; ``where`` names the first bad row.
    """
    values = _real(matrix)
    largest = np.max(np.abs(values), axis=1, keepdims=True)
    _refuse(~np.isfinite(largest[:, 0]), "NaN or infinity")
    _refuse(largest[:, 0] == 0, "all entries are zero")
    # Two divisions: by the largest entry, so that no square over- or underflows, then by
    # the norm of what is left, which lies between 1 and sqrt(d).
    scaled = values / largest
    norms = np.sqrt(np.sum(scaled * scaled, axis=1, keepdims=True))
    integers = np.trunc(B * scaled / norms).astype(np.int64)
    for row in np.flatnonzero(squared_norms(integers) > SQUARED_NORM):
        _shrink(integers[row])
    _refuse(~np.any(integers, axis=1), "every entry truncates to zero")
    result: npt.NDArray[np.int8] = integers.astype(np.int8)
    return result


def squared_norms(rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the integer squared norms int64[N] of integer rows [N, d]."""
    wide = rows.astype(np.int64)
    norms: npt.NDArray[np.int64] = np.einsum("ij,ij->i", wide, wide)
    return norms


def distance(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> int:
    """Return ``sum (a_j - b_j)²`` of two integer vectors of one length."""
    if a.shape != b.shape or a.ndim != 1:
        raise MalformedError("vectors have different shapes", expected=f"{a.shape}")
    difference = a.astype(np.int64) - b.astype(np.int64)
    return int(difference @ difference)


def _real(matrix: npt.ArrayLike) -> npt.NDArray[np.float64]:
    values = np.asarray(matrix)
    if values.dtype.kind not in "fiu":
        raise MalformedError(f"entries of type {values.dtype}", expected="real numbers")
    if values.ndim != 2 or not 1 <= values.shape[1] <= LIMITS.dimension:
        raise MalformedError(
            f"matrix has shape {values.shape}", expected=f"[N, d] with 1 <= d <= {LIMITS.dimension}"
        )
    # A copy in row order: sums then run the same way whatever the caller's memory layout.
    return np.array(values, dtype=np.float64, order="C")


def _refuse(bad: npt.NDArray[np.bool_], what: str) -> None:
    if np.any(bad):
        raise MalformedError(what, where=f"row {int(np.argmax(bad))}")


def _shrink(row: npt.NDArray[np.int64]) -> None:
    """Step 3: move the largest entry toward zero until the norm is within the bound.

    Correctly rounded binary64 never gets here (the norm is wrong by parts in 10^15 and
    entries were truncated); the bound must not depend on that.
    """
    while int(row @ row) > SQUARED_NORM:
        at = int(np.argmax(np.abs(row)))  # argmax gives the lowest index among equals
        row[at] -= np.sign(row[at])
