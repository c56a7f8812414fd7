"""Exact scores, which rows pass a filter, which an answer contains, and which need a score.

Which rows an answer can contain follows from their noise alone (docs/notes/zero-knowledge.md). A
score lies within ``[-B², B²]``. So a row whose noise is below a level ``high`` by more than
``2 B²`` cannot be selected where at least K + 1 rows have noise of ``high`` or more: its noised
score is at most ``high - B²``, theirs are at least that. For noise of useful size nearly all rows
are such, and only the rest needs a score.

The levels and the number of rows scored follow from N, K and sigma, which are public. They are
chosen so that a draw does not fit with probability below 2^-60 only; for such a draw all rows are
scored. So the time of an answer does not reveal how many rows were close.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, log1p
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import SQUARED_NORM

__all__ = [
    "CandidateRule",
    "ColumnArrays",
    "Mask",
    "candidate_rule",
    "scores",
    "select",
]

Integers = npt.NDArray[np.int64]

# Rows converted at a time: 4096 rows of 4096 float32 are 64 MiB, of float64 128 MiB.
_BLOCK_ROWS = 4096
# Integers up to this size are exact in binary32, and so are their sums and differences.
_EXACT_BINARY32 = 2**24
# Each of two events may miss with this probability; the distribution functions used are those of
# the continuous Gaussian, so it is a design value. No result depends on it.
_MISS = 2.0**-61
# Scoring single rows costs several times what scoring all costs a row.
_LARGEST_SHARE = 4
_NEVER = -(2**62)


def scores(rows: IntegerRows, query: npt.NDArray[np.int16]) -> Integers:
    """Return the inner products int64[N] of all rows with the query, exactly.

    They are computed as a matrix product of floating point numbers, which is exact: in whatever
    order a library adds, every partial sum is an integer. In binary32, for int8 rows, it is of
    absolute value at most ``128 · sum |e_j|``, checked to be below 2^24. (For |e| <= 127 and
    d <= 4096 that is at most 128·127·64 = 1040384; with row norms <= 127 as well, partial sums stay
    within 16129.) In binary64, for int16 rows, it is below 2^15 · 2^15 · 2^16.

    Args:
        rows: int8[N, d] or int16[N, d], d < 2^16.
        query: int16[d].

    Raises:
        MalformedError: wrong types or shapes, or a query too large for exactness.
    """
    if rows.dtype not in (np.int8, np.int16) or rows.ndim != 2:
        expected = "int8[N, d] or int16[N, d]"
        raise MalformedError("rows have a wrong type or shape", expected=expected)
    if query.dtype != np.int16 or query.shape != rows.shape[1:]:
        raise MalformedError("query has a wrong type or shape", expected=f"int16{rows.shape[1:]}")
    if rows.dtype == np.int8:
        if 128 * int(np.sum(np.abs(query.astype(np.int64)))) >= _EXACT_BINARY32:
            raise MalformedError("query too large for exact scores", expected="norm at most 127")
        return _products(rows, query, np.float32)
    return _products(rows, query, np.float64)


def _products(
    rows: IntegerRows, query: npt.NDArray[np.int16], exact: type[np.float32] | type[np.float64]
) -> Integers:
    e: npt.NDArray[Any] = query.astype(exact)
    result = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block: npt.NDArray[Any] = rows[start : start + _BLOCK_ROWS].astype(exact)
        result[start : start + _BLOCK_ROWS] = block @ e
    return result


def select(
    noised: npt.NDArray[np.int64],
    top_k: int,
    allowed: Sequence[int] | None = None,
    *,
    keep_ties: bool = False,
) -> tuple[int, ...]:
    """Return T in rising order: the allowed positions above the (K+1)-th largest value.

    Positions tied at the boundary are dropped, so at most K are returned, or kept, so at least K
    are (docs/spec 4.6.1, 4.6.9). Either way the set depends on the noised values alone. Where at
    most K positions are allowed, it is all of them.

    Args:
        noised: int64[N], scores plus noise.
        top_k: K >= 1.
        allowed: the positions that pass the filter; None for all.
        keep_ties: whether T is the positions whose value is at least the K-th largest.

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
        # By value and never by rank: a tie that positions decide would release more than the noised
        # values.
        rank = top_k - 1 if keep_ties else top_k
        boundary = np.partition(values, len(values) - 1 - rank)[len(values) - 1 - rank]
        chosen = np.flatnonzero(values >= boundary if keep_ties else values > boundary)
    return tuple((chosen if positions is None else positions[chosen]).tolist())


@dataclass(frozen=True)
class CandidateRule:
    """How many rows of an index are scored, and which.

    Attributes:
        high: noise that more than K rows reach.
        count: rows that are scored, in every answer; at least those with noise above ``high - 2
            B²``.
        top_k: the largest K that may be asked for.
    """

    high: int
    count: int
    top_k: int

    def candidates(self, noise: Integers) -> "tuple[Integers, Integers] | None":
        """Return the rows to score, rising, and their noise, both int64 of length ``count``.

        The last ones are fillers: row 0, with a noise that is never selected. None if this draw
        does not fit, and all rows must be scored.

        Args:
            noise: int64[N].
        """
        near = np.flatnonzero(noise > self.high - 2 * SQUARED_NORM)
        if len(near) > self.count:
            return None
        rows = np.zeros(self.count, dtype=np.int64)
        values = np.full(self.count, _NEVER, dtype=np.int64)
        rows[: len(near)] = near
        values[: len(near)] = noise[near]
        return (rows, values) if np.count_nonzero(values >= self.high) > self.top_k else None


def candidate_rule(sigma_units: float, rows: int, top_k: int) -> CandidateRule | None:
    """Return the rule for an index; None where scoring all rows costs no more.

    Args:
        sigma_units: of the noise, in score units times B².
        rows: N >= 1.
        top_k: the largest K that may be asked for.
    """
    if rows <= top_k:
        return None
    gaussian = NormalDist(sigma=sigma_units)
    # Probability to reach `high`, such that hardly ever only top_k of all rows do.
    reaching = _bisect(lambda p: _chernoff(rows, top_k, p) > _MISS, top_k / rows, 1.0)
    if not 0.0 < reaching < 1.0:
        return None
    high = int(gaussian.inv_cdf(1.0 - reaching))
    above = 1.0 - gaussian.cdf(high - 2 * SQUARED_NORM)
    if above * _LARGEST_SHARE >= 1.0:
        return None
    share = _bisect(lambda q: _chernoff(rows, q * rows, above) > _MISS, above, 1.0)
    count = int(share * rows) + 1
    return CandidateRule(high, count, top_k) if _LARGEST_SHARE * count < rows else None


def _positions(allowed: Sequence[int], count: int) -> npt.NDArray[np.int64]:
    positions = np.array(sorted(allowed), dtype=np.int64)
    if len(positions) and not 0 <= positions[0] <= positions[-1] < count:
        raise MalformedError("allowed position out of range", expected=f"0 to {count - 1}")
    # A position given twice would count twice towards the boundary.
    if np.any(positions[1:] == positions[:-1]):
        raise MalformedError("allowed position repeated", expected="distinct positions")
    return positions


def _chernoff(trials: int, successes: float, probability: float) -> float:
    """Return a bound on the probability that Bin(trials, probability) is that far from its mean."""
    share = successes / trials
    if not 0.0 < probability < 1.0:
        return 0.0
    divergence = (1.0 - share) * (log1p(-share) - log1p(-probability)) if share < 1.0 else 0.0
    if share > 0.0:
        divergence += share * (log(share) - log(probability))
    return exp(-trials * max(divergence, 0.0))


def _bisect(too_low: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least value from which ``too_low`` no longer holds, which is monotonic."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return high


Value: TypeAlias = str | int | float | bool
Mask: TypeAlias = npt.NDArray[np.bool_]

_ABSENT: Final = -1
_NOT: Final = {"ne": "eq", "nin": "in"}


class ColumnArrays:
    """The public columns of N rows.

    Args:
        rows: values by name, of one type a column; None for a null row, which no filter passes and
            which no search may select.
    """

    def __init__(self, rows: Iterable[Mapping[str, Value] | None]) -> None:
        places: dict[str, list[int]] = {}
        values: dict[str, list[Value]] = {}
        null, count = [], 0
        for position, row in enumerate(rows):
            count += 1
            if row is None:
                null.append(position)
                continue
            for name, value in row.items():
                places.setdefault(name, []).append(position)
                values.setdefault(name, []).append(value)
        self.rows = count
        self.null_rows = len(null)
        self._live = np.ones(count, dtype=np.bool_)
        self._live[null] = False
        self._columns = {name: _column(count, places[name], values[name]) for name in places}

    def compare(self, op: str, key: str, value: Value | Sequence[Value]) -> Mask:
        """Return which rows pass a comparison, bool[N].

        Args:
            op: "eq", "ne", "in", "nin", "lt", "le", "gt" or "ge".
            key: name of a column; one that no row has is one that all rows lack.
            value: of the column's type; a sequence of such for "in" and "nin".
        """
        if op in _NOT:
            # Rows without the value pass these two: they are all that the opposite does not pass.
            return ~self.compare(_NOT[op], key, value)
        if key not in self._columns:
            return np.zeros(self.rows, dtype=np.bool_)
        return self._columns[key].passing(op, value)

    def combine(self, op: str, parts: Sequence[Mask]) -> Mask:
        """Return which rows pass a combination, bool[N].

        Args:
            op: "and", "or" or "not".
            parts: which rows pass each part; one for "not".
        """
        if op == "not":
            return ~parts[0]
        joined: Mask = (np.logical_and if op == "and" else np.logical_or).reduce(parts)
        return joined

    def allowed(self, passing: Mask | None) -> tuple[int, ...] | None:
        """Return the positions that a search may select, rising; None for all.

        Args:
            passing: which rows pass the filter, bool[N]; None without one.
        """
        if passing is None and not self.null_rows:
            return None
        mask = self._live if passing is None else passing & self._live
        return tuple(np.flatnonzero(mask).tolist())


class _Texts:
    """A column of texts or booleans: a number for each value that there is."""

    def __init__(self, count: int, places: Sequence[int], values: Sequence[Value]) -> None:
        self._codes: dict[Value, int] = {}
        numbers = [self._codes.setdefault(value, len(self._codes)) for value in values]
        self._column = np.full(count, _ABSENT, dtype=np.int32)
        self._column[places] = numbers

    def passing(self, _: str, value: Value | Sequence[Value]) -> Mask:
        """Return which rows have the value, or one of the values: there is no order here."""
        wanted = (value,) if isinstance(value, str | bool | int | float) else value
        chosen = np.zeros(len(self._codes) + 1, dtype=np.bool_)
        # The last entry is that of rows without a value, which -1 finds.
        chosen[[self._codes[each] for each in wanted if each in self._codes]] = True
        found: Mask = chosen[self._column]
        return found


class _Numbers:
    """A column of doubles; integers of 53 bits are such exactly."""

    def __init__(self, count: int, places: Sequence[int], values: Sequence[Value]) -> None:
        # No JSON value is NaN, and no comparison with NaN holds.
        self._column = np.full(count, np.nan, dtype=np.float64)
        self._column[places] = np.array(values, dtype=np.float64)

    def passing(self, op: str, value: Value | Sequence[Value]) -> Mask:
        """Return which rows compare so with a number, or have one of the numbers."""
        column, wanted = self._column, np.array(value, dtype=np.float64)
        found: Mask
        match op:
            case "in":
                found = np.isin(column, wanted)
            case "eq":
                found = column == wanted
            case "lt":
                found = column < wanted
            case "le":
                found = column <= wanted
            case "gt":
                found = column > wanted
            case _:
                found = column >= wanted
        return found


def _column(count: int, places: Sequence[int], values: Sequence[Value]) -> _Texts | _Numbers:
    if isinstance(values[0], str | bool):
        return _Texts(count, places, values)
    return _Numbers(count, places, values)
