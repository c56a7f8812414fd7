"""Public columns of an index as arrays, for filters over all of its rows at once (spec 5.12).

What passes is what `ragaudit.ledger.messages.filters.Filter.passes` says of one row after the
other; this is the fast way to the same positions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ColumnArrays", "Mask"]

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
