"""Where the largest of many smooth functions becomes another one.

Used for the optimal attack on noise: between two such places one guess is the best throughout, and
its gain integrates in closed form (docs/notes/disclosure-risk.md, claim 4.1).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from ragaudit.lab.risk.validation import FloatArray, IntegerArray

__all__ = ["Envelope", "Functions", "upper_envelope"]

Functions = Callable[[FloatArray], FloatArray]
"""Many functions at once: shape (n,) to (groups, functions, n)."""

_LEVELS: Final = 60
_BISECT_EVERY: Final = 3
"""Every third guess at a crossing is the middle, so that no bracket stays wide."""


class Envelope(NamedTuple):
    """Cells within which, as far as seen, one function of each group is the largest.

    Attributes:
        breaks: the given points and the crossings, ascending.
        loss: what is lost at most, summed over groups, by taking one function per cell, if the
            largest function lies below its chords (as that of straight lines does).
    """

    breaks: FloatArray
    loss: float


class _Brackets(NamedTuple):
    """Cells of one group each; heights of all its functions at both ends, shape (n, functions)."""

    group: IntegerArray
    left: FloatArray
    right: FloatArray
    at_left: FloatArray
    at_right: FloatArray

    def where(self, chosen: npt.NDArray[np.bool_]) -> "_Brackets":
        """Return those for which ``chosen``, shape (n,), is true."""
        return _Brackets(
            self.group[chosen],
            self.left[chosen],
            self.right[chosen],
            self.at_left[chosen],
            self.at_right[chosen],
        )

    def leads(self) -> tuple[FloatArray, FloatArray]:
        """Return, for each end, its largest function's lead over the other end's largest there."""
        rows = np.arange(len(self.left))
        first, second = self.at_left.argmax(axis=1), self.at_right.argmax(axis=1)
        return (
            self.at_left[rows, first] - self.at_left[rows, second],
            self.at_right[rows, second] - self.at_right[rows, first],
        )

    def split(self, middle: FloatArray, at_middle: FloatArray) -> "_Brackets":
        """Return both halves of each; ``at_middle`` has the heights at ``middle``."""
        lower = self._replace(right=middle, at_right=at_middle)
        upper = self._replace(left=middle, at_left=at_middle)
        return _Brackets(*(np.concatenate(pair) for pair in zip(lower, upper, strict=True)))


def upper_envelope(
    functions: Functions, points: FloatArray, *, tolerance: float, hidden: bool
) -> Envelope:
    """Find the crossings of the largest functions by regula falsi, all at once.

    A cell whose ends have different largest functions contains a crossing.

    Args:
        functions: smooth between the points.
        points: ascending, distinct.
        tolerance: largest loss, for all cells and groups together.
        hidden: whether a function may be the largest within a cell and at neither end. Then each
            cell is probed where the parabola through its ends and its middle says so.
    """
    share = tolerance / len(points)
    heights = functions(points)
    if hidden and len(points) > 1:
        points, heights = _probed(functions, points, heights, share)
    brackets = _changes(points, heights)
    found = [points]
    loss = 0.0
    for level in range(_LEVELS):
        above_left, above_right = brackets.leads()
        losses = np.minimum(above_left, above_right) * (brackets.right - brackets.left) / 2
        open_ = losses > share
        loss += float(losses[~open_].sum())
        if not open_.any():
            break
        brackets = brackets.where(open_)
        ratio = above_left[open_] / (above_left[open_] + above_right[open_])
        # Where functions bend, regula falsi alone moves one end only and creeps.
        if level % _BISECT_EVERY == _BISECT_EVERY - 1:
            ratio = np.full(len(ratio), 0.5)
        middle = brackets.left + (brackets.right - brackets.left) * ratio
        found.append(middle)
        own = functions(middle)[brackets.group, :, np.arange(len(middle))]
        brackets = brackets.split(middle, own)
    else:
        loss += float(losses[open_].sum())
    return Envelope(np.unique(np.concatenate(found)), loss)


def _changes(points: FloatArray, heights: FloatArray) -> _Brackets:
    """The cells whose ends have different largest functions, group by group."""
    largest = heights.argmax(axis=1)
    group, cell = np.nonzero(largest[:, :-1] != largest[:, 1:])
    return _Brackets(
        group,
        points[cell],
        points[cell + 1],
        heights[group, :, cell],
        heights[group, :, cell + 1],
    )


def _probed(
    functions: Functions, points: FloatArray, heights: FloatArray, share: float
) -> tuple[FloatArray, FloatArray]:
    """More points with their heights: the middles of all cells, and where parabolas rise.

    Through three points each function's distance below the one that is largest at the middle is
    a parabola; of those that fall below 0 by more than ``share`` of area, the deepest of a cell
    is probed.
    """
    middles, half = (points[:-1] + points[1:]) / 2, np.diff(points) / 2
    inner = functions(middles)
    best = inner.argmax(axis=1)[:, None, :]
    with np.errstate(invalid="ignore"):  # of functions that are minus infinity everywhere
        left, middle, right = (
            np.take_along_axis(part, best, axis=1) - part
            for part in (heights[:, :, :-1], inner, heights[:, :, 1:])
        )
        slope, bend = (right - left) / 2, (right + left) / 2 - middle
        # middle + slope t + bend t², t from -1 to 1, is least at -slope/(2 bend).
        falls = (np.abs(slope) < 2 * bend) & (slope**2 > 4 * bend * middle)
    group, _, cell = np.nonzero(falls)
    slope, bend, middle = slope[falls], bend[falls], middle[falls]
    depth = slope**2 / (4 * bend) - middle
    deepest = _first_of_each(group * len(middles) + cell, -depth)
    chosen = deepest[depth[deepest] * half[cell[deepest]] > share]
    place = -slope[chosen] / (2 * bend[chosen])
    probes = np.unique(middles[cell[chosen]] + place * half[cell[chosen]])
    every = np.concatenate([points, middles, probes])
    order = np.argsort(every)
    grown = np.concatenate([heights, inner, functions(probes)], axis=2)
    return every[order], grown[:, :, order]


def _first_of_each(key: IntegerArray, rank: FloatArray) -> IntegerArray:
    """The index of the entry of least rank for each key."""
    order = np.lexsort((rank, key))
    _, first = np.unique(key[order], return_index=True)
    return np.asarray(order[first], dtype=np.int64)
