"""Where the largest of many smooth functions becomes another one.

Used for the optimal attack on noise: between two such places one guess is the best throughout, and
its gain integrates in closed form (docs/notes/disclosure-risk.md, claim 4.1).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from ragaudit.privacy.risk.validation import FloatArray

__all__ = ["Envelope", "upper_envelope"]

_LEVELS: Final = 60
_BISECT_EVERY: Final = 3
"""Every third guess at a crossing is the middle, so that no bracket stays wide."""


class Envelope(NamedTuple):
    """Cells within which, as far as seen, one function of each group is the largest.

    Attributes:
        breaks: the given points and the crossings, ascending.
        loss: estimate of what is lost, summed over groups, by taking one function per cell.
    """

    breaks: FloatArray
    loss: float


def upper_envelope(
    functions: Callable[[FloatArray], FloatArray], points: FloatArray, *, tolerance: float
) -> Envelope:
    """Find the crossings of the largest functions by regula falsi, all at once.

    A cell whose ends have different largest functions contains a crossing. Two functions that
    cross twice between two points are not seen.

    Args:
        functions: shape (n,) to (groups, functions, n), smooth between the points.
        points: ascending, distinct.
        tolerance: largest loss, for all cells and groups together.
    """
    heights = functions(points)
    largest = heights.argmax(axis=1)
    group, cell = np.nonzero(largest[:, :-1] != largest[:, 1:])
    left, right = points[cell], points[cell + 1]
    at_left, at_right = heights[group, :, cell], heights[group, :, cell + 1]
    share = tolerance / len(points)
    loss = 0.0
    found = [points]
    for level in range(_LEVELS):
        above_left, above_right = _leads(at_left, at_right)
        losses = _triangles(above_left, above_right) * (right - left)
        open_ = losses > share
        loss += float(losses[~open_].sum())
        if not open_.any():
            break
        group, left, right = group[open_], left[open_], right[open_]
        at_left, at_right = at_left[open_], at_right[open_]
        ratio = above_left[open_] / (above_left[open_] + above_right[open_])
        if level % _BISECT_EVERY == _BISECT_EVERY - 1:
            ratio = np.full(len(ratio), 0.5)
        middle = left + (right - left) * ratio
        found.append(middle)
        at_middle = functions(middle)[group, :, np.arange(len(middle))]
        group = np.concatenate([group, group])
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        at_left, at_right = (
            np.concatenate([at_left, at_middle]),
            np.concatenate([at_middle, at_right]),
        )
    else:
        loss += float(losses[open_].sum())
    return Envelope(np.unique(np.concatenate(found)), loss)


def _leads(at_left: FloatArray, at_right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far the largest function at either end is above the one that leads at the other."""
    rows = np.arange(len(at_left))
    first, second = at_left.argmax(axis=1), at_right.argmax(axis=1)
    return (
        at_left[rows, first] - at_left[rows, second],
        at_right[rows, second] - at_right[rows, first],
    )


def _triangles(above_left: FloatArray, above_right: FloatArray) -> FloatArray:
    """The smaller triangle between two straight lines that cross; cells of width 1.

    It is what the better of the two loses on the other's side.
    """
    both = above_left + above_right
    areas = np.zeros(len(both))
    np.divide(np.minimum(above_left, above_right) ** 2, 2 * both, out=areas, where=both > 0)
    return areas
