"""Real vectors to integer vectors of norm at most B (docs/spec/02-integers.md §2.1, §2.2).

The result is defined in exact arithmetic: each entry is ``c |x_j|`` rounded to the nearest integer,
halves toward zero, at the largest scale c at which the norm still fits. Binary64 finds it for
nearly all rows and knows where it may be wrong; those few rows are done with fractions.
"""

from collections.abc import Iterator
from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import ceil, isqrt
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import LIMITS, B

__all__ = ["IntegerRows", "distance", "quantise", "quantise_rows", "row_type"]

IntegerRows = npt.NDArray[np.int8 | np.int16]
"""Vectors of integers: int8 where B = 127, int16 where B = 4095."""

_BLOCK_ROWS = 256
"""Rows worked on together: their entries stay in the processor's cache."""

_INTERPOLATIONS = 12
"""Turns that guess by interpolation, every other one; from then on the bracket is halved."""

_TURNS = 40
"""Turns after which a row whose scale is still not singled out is done in exact arithmetic."""

_MARGIN = 1e-10
"""Scaled entries (below 4096, wrong by at most 2^-40) this close to a half count as unsure."""

_ROW_TYPES: Final[dict[int, type[np.int8] | type[np.int16]]] = {B: np.int8, 4095: np.int16}


def row_type(norm_bound: int) -> type[np.int8] | type[np.int16]:
    """Return the type of the entries of rows of norm at most B: int8 for 127, int16 for 4095.

    Args:
        norm_bound: B of the policy.

    Raises:
        MalformedError: any other B.
    """
    if norm_bound not in _ROW_TYPES:
        raise MalformedError(f"norm bound {norm_bound}", expected="127 or 4095")
    return _ROW_TYPES[norm_bound]


@overload
def quantise(vector: npt.ArrayLike) -> npt.NDArray[np.int8]: ...


@overload
def quantise(vector: npt.ArrayLike, norm_bound: int) -> IntegerRows: ...


def quantise(vector: npt.ArrayLike, norm_bound: int = B) -> IntegerRows:
    """Return the integer vector [d] of a real vector, with ``|X|² <= B²``; never zero.

    Args:
        vector: d real numbers, 1 <= d <= 4096, read as binary64.
        norm_bound: B, 127 or 4095; the result is int8 or int16 (`row_type`).

    Raises:
        MalformedError: NaN, infinity, all zero, wrong shape or type, another B.
    """
    values = np.asarray(vector)
    if values.ndim != 1:
        raise MalformedError("vector has a wrong shape", expected="one dimension")
    numbers = _real(values[np.newaxis, :])
    largest = _checked_largest(numbers)
    # Every answer quantises one vector: the steps for many rows at once cost five times as much.
    sizes = np.ldexp(np.abs(numbers[0]), -np.frexp(largest[0])[1])
    rounded = _one_by_bracketing(sizes, norm_bound)
    row: IntegerRows = (
        quantise_rows(numbers, norm_bound)[0]
        if rounded is None
        else np.copysign(rounded, numbers[0]).astype(row_type(norm_bound))
    )
    return row


@overload
def quantise_rows(matrix: npt.ArrayLike) -> npt.NDArray[np.int8]: ...


@overload
def quantise_rows(matrix: npt.ArrayLike, norm_bound: int) -> IntegerRows: ...


def quantise_rows(matrix: npt.ArrayLike, norm_bound: int = B) -> IntegerRows:
    """Return integers [N, d]; each row is what :func:`quantise` gives for it.

    Args:
        matrix: real numbers [N, d], 1 <= d <= 4096, read as binary64.
        norm_bound: B, 127 or 4095; the result is int8 or int16 (`row_type`).

    Raises:
        MalformedError: as :func:`quantise`; ``where`` names the first bad row.
    """
    values = _real(matrix)
    largest = _checked_largest(values)
    result: npt.NDArray[Any] = np.empty(values.shape, dtype=row_type(norm_bound))
    for start in range(0, len(values), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        # A power of two changes no rounding; squares then neither overflow nor vanish.
        _, exponents = np.frexp(largest[block])
        sizes = np.ldexp(np.abs(values[block]), -exponents[:, np.newaxis])
        # Signs come last: -x has the integers of x with the other sign (spec 2.1).
        result[block] = np.copysign(_rounded_at_largest_scale(sizes, norm_bound), values[block])
    return result


def distance(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> int:
    """Return ``sum (a_j - b_j)²`` of two integer vectors.

    Args:
        a, b: integers [d].

    Raises:
        MalformedError: different lengths.
    """
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


def _checked_largest(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the largest absolute value of each row, finite and not zero."""
    largest: npt.NDArray[np.float64] = np.max(np.abs(values), axis=1)
    _refuse(~np.isfinite(largest), "NaN or infinity")
    _refuse(largest == 0, "all entries are zero")
    return largest


def _refuse(bad: npt.NDArray[np.bool_], what: str) -> None:
    if np.any(bad):
        raise MalformedError(what, where=f"row {int(np.argmax(bad))}")


def _rounded_at_largest_scale(
    sizes: npt.NDArray[np.float64], norm_bound: int
) -> npt.NDArray[np.float64]:
    """Round the rows of sizes float64[n, d] >= 0, largest in [1/2, 1), at their largest scales."""
    result = np.empty_like(sizes)
    unsure = np.ones(len(sizes), dtype=np.bool_)
    for rows, rounded in _by_bracketing(sizes, norm_bound):
        result[rows], unsure[rows] = rounded, False
    for row in np.flatnonzero(unsure):
        result[row] = _exactly(sizes[row], norm_bound)
    return result


def _by_bracketing(
    sizes: npt.NDArray[np.float64], norm_bound: int
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]]:
    """Yield (row numbers, their rounded rows) as scales are singled out.

    Every row's largest scale lies in a bracket: at `low` the rounded row fits, at `high` it does
    not. The bracket shrinks until only one entry, or several equal ones, differ between its ends.
    """
    norms: npt.NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", sizes, sizes))
    # Rounding moves each entry by a half at most, so the norm by sqrt(d)/2 at most.
    reach = np.sqrt(sizes.shape[1]) / 2 + 0.01
    rows: npt.NDArray[np.intp] = np.arange(len(sizes), dtype=np.intp)
    low, high, guess = (np.maximum(norm_bound + by, 0) / norms for by in (-reach, reach, 0.0))
    (below, least), (above, most) = _measured(sizes, low), _measured(sizes, high)
    for turn in range(_TURNS):
        norm, total = _measured(sizes, guess)
        fits = norm <= norm_bound**2
        low, below, least = (
            np.where(fits, *pair) for pair in ((guess, low), (norm, below), (total, least))
        )
        high, above, most = (
            np.where(fits, *pair) for pair in ((high, guess), (above, norm), (most, total))
        )
        # One step of one entry is left, or equal entries move together and it never will be one.
        ripe = np.flatnonzero((most - least <= 1) | (turn in (_TURNS // 2, _TURNS - 1)))
        if len(ripe):
            rounded, certain = _settled(sizes[ripe], low[ripe], high[ripe])
            yield rows[ripe[certain]], rounded[certain]
            keep = np.ones(len(rows), dtype=np.bool_)
            keep[ripe[certain]] = False
            rows, sizes = rows[keep], sizes[keep]
            low, high, below, above, least, most = (
                column[keep] for column in (low, high, below, above, least, most)
            )
            if not len(rows):
                return
        share: Any = 0.5
        if turn < _INTERPOLATIONS and turn % 2 == 0:
            share = np.clip((norm_bound**2 + 1 - below) / (above - below), 0.05, 0.95)
        guess = low + share * (high - low)


def _one_by_bracketing(
    sizes: npt.NDArray[np.float64], norm_bound: int
) -> npt.NDArray[np.float64] | None:
    """Return what `_by_bracketing` finds for one row float64[d], None where it is not sure.

    In numbers instead of columns of them; a bracket that does not close early is given up.
    """

    def measured(scale: float) -> tuple[float, float]:
        rounded = _rounded(sizes * scale)
        return float(rounded @ rounded), float(rounded.sum())

    norm = float(np.sqrt(sizes @ sizes))
    reach = float(np.sqrt(len(sizes))) / 2 + 0.01
    low, high, guess = (max(norm_bound + by, 0) / norm for by in (-reach, reach, 0.0))
    (below, least), (above, most) = measured(low), measured(high)
    for turn in range(_TURNS // 2):
        squared, total = measured(guess)
        if squared <= norm_bound**2:
            low, below, least = guess, squared, total
        else:
            high, above, most = guess, squared, total
        if most - least <= 1:
            break
        share = 0.5
        if turn < _INTERPOLATIONS and turn % 2 == 0:
            share = min(max((norm_bound**2 + 1 - below) / (above - below), 0.05), 0.95)
        guess = low + share * (high - low)
    at_low, at_high = sizes * low, sizes * high
    rounded, after = _rounded(at_low), _rounded(at_high)
    moved = np.flatnonzero(after != rounded)
    # As `_settled` demands it.
    together = (
        len(moved) < 2
        or _settled(sizes[np.newaxis, moved], np.array([low]), np.array([high]))[1][0]
    )
    clear = all(
        np.min(np.abs(np.abs(at - to) - 0.5)) > _MARGIN
        for at, to in ((at_low, rounded), (at_high, after))
    )
    return rounded if together and clear and most - least <= len(moved) else None


def _measured(
    sizes: npt.NDArray[np.float64], scales: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return squared norms and sums of the rows rounded at their scales, float64[n] and exact."""
    rounded = _rounded(sizes * scales[:, np.newaxis])
    return np.einsum("ij,ij->i", rounded, rounded), np.einsum("ij->i", rounded)


def _settled(
    sizes: npt.NDArray[np.float64], low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the rows rounded at `low`, and whether each certainly is so at its largest scale.

    It is where all entries that differ between `low` and `high` step once, at the same scale, and
    no entry is so close to a half at either end that binary64 may have misread it.
    """
    at_low, at_high = sizes * low[:, np.newaxis], sizes * high[:, np.newaxis]
    rounded, after = _rounded(at_low), _rounded(at_high)
    steps = after - rounded
    first = np.argmax(steps, axis=1)[:, np.newaxis]
    size, value = (np.take_along_axis(column, first, axis=1) for column in (sizes, rounded))
    same = (2 * rounded + 1) * size == (2 * value + 1) * sizes
    # These products are exact for entries of 24 bits; longer ones are the same or not compared.
    same &= (sizes == size) | (_short(sizes) & _short(size))
    together = (steps == 0) | ((steps == 1) & same)
    clear = np.abs(np.abs(at_low - rounded) - 0.5) > _MARGIN
    clear &= np.abs(np.abs(at_high - after) - 0.5) > _MARGIN
    return rounded, np.all(together & clear, axis=1)


def _short(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return whether entries have at most 24 significant bits, as those of binary32 do."""
    short: npt.NDArray[np.bool_] = sizes == sizes.astype(np.float32)
    return short


def _rounded(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values >= 0 rounded to the nearest integer, halves toward zero."""
    rounded: npt.NDArray[np.float64] = np.ceil(values - 0.5)
    return rounded


def _exactly(sizes: npt.NDArray[np.float64], norm_bound: int) -> list[int]:
    """Return one row in exact arithmetic: raise entries in the order of their steps' scales."""
    exact = [Fraction(float(size)) for size in sizes]
    # Rounding moves each entry by a half at most: below this scale every row fits.
    length = sum(size * size for size in exact)
    longest = Fraction(isqrt(int(length * 2**128)) + 1, 2**64)
    start = max(Fraction(0), norm_bound - Fraction(isqrt(len(exact)) + 1, 2)) / longest
    integers = [_half_down(start * size) for size in exact]
    steps = [
        (Fraction(2 * integer + 1, 2) / size, entry)
        for entry, (integer, size) in enumerate(zip(integers, exact, strict=True))
        if size
    ]
    heapify(steps)
    squared = sum(integer * integer for integer in integers)
    while True:
        scale, together = steps[0][0], []
        # Entries that step at one scale step together or not at all: the order of entries must not
        # decide (spec 2.1).
        while steps and steps[0][0] == scale:
            together.append(heappop(steps)[1])
        squared += sum(2 * integers[entry] + 1 for entry in together)
        if squared > norm_bound**2:
            return integers
        for entry in together:
            integers[entry] += 1
            heappush(steps, (Fraction(2 * integers[entry] + 1, 2) / exact[entry], entry))


def _half_down(value: Fraction) -> int:
    """Return a number >= 0 rounded to the nearest integer, halves toward zero."""
    return ceil(value - Fraction(1, 2))
