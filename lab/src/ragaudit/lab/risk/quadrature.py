"""Adaptive Gauss-Lobatto integration of many panels at once, with an error estimate."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from ragaudit.lab.risk.validation import FloatArray

__all__ = ["Integral", "NumericalAdvantage", "integrate"]

_POINTS: Final = 8
_DROPPED: Final = [3, 4]
"""Nodes that the coarser rule of the same panel leaves out: the two around its middle."""


def _lobatto(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1], both ends included; exact to degree ``2 points - 3``.

    The ends matter: a kink between an end and the first inner node is invisible to a rule
    without them, and panels would settle on a wrong value.
    """
    polynomial = np.polynomial.Legendre.basis(points - 1)
    nodes = np.concatenate([[-1.0], np.sort(polynomial.deriv().roots().real), [1.0]])
    weights = 2 / (points * (points - 1) * polynomial(nodes) ** 2)
    return nodes, weights


def _coarser(nodes: FloatArray) -> FloatArray:
    """Weights of the interpolatory rule on ``nodes`` without ``_DROPPED``, which weigh 0."""
    kept = np.delete(np.arange(len(nodes)), _DROPPED)
    degrees = np.arange(len(kept))
    moments = (1 - (-1.0) ** (degrees + 1)) / (degrees + 1)
    weights = np.zeros(len(nodes))
    weights[kept] = np.linalg.solve(nodes[kept] ** degrees[:, None], moments)
    return weights


_NODES, _WEIGHTS = _lobatto(_POINTS)
_COARSE_WEIGHTS = _coarser(_NODES)


class NumericalAdvantage(NamedTuple):
    """A value computed numerically.

    Attributes:
        value: the advantage.
        error: estimate (no bound) of its absolute error.
    """

    value: float
    error: float


class Integral(NamedTuple):
    """What :func:`integrate` found.

    Attributes:
        value: the integral.
        error: estimate (no bound) of its absolute error.
        unrefined: the estimate from the panels as they were given.
    """

    value: float
    error: float
    unrefined: float


def integrate(
    function: Callable[[FloatArray], FloatArray],
    breaks: FloatArray,
    *,
    tolerance: float,
    levels: int,
) -> Integral:
    """Integrate over the panels between ``breaks``; halve those that have not settled.

    A panel has settled when its eight-point rule and the rule on six of the eight points differ
    by at most ``tolerance`` divided by the number of panels given. Kinks (the maximum over
    guesses has many) are cornered by halving; after ``levels`` halvings what remains is taken
    as it is, and its difference goes into the error.

    Args:
        function: continuous (a jump may go unseen), vectorized, shape (n,) to (n,).
        breaks: shape (panels + 1,), ascending.
        tolerance: absolute, for the whole integral.
        levels: most halvings of a panel.
    """
    low, high = breaks[:-1], breaks[1:]
    share = tolerance / len(low)
    value = error = unrefined = 0.0
    for level in range(levels + 1):
        half = (high - low) / 2
        nodes = low[:, None] + half[:, None] * (1 + _NODES)
        # Exactly: the sum may round to beyond the end, where the function need not be defined.
        nodes[:, -1] = high
        heights = function(nodes.ravel()).reshape(nodes.shape)
        estimates = half * (heights @ _WEIGHTS)
        differences = half * np.abs(heights @ (_WEIGHTS - _COARSE_WEIGHTS))
        if level == 0:
            unrefined = float(estimates.sum())
        open_ = differences > share if level < levels else np.zeros(len(low), dtype=np.bool_)
        value += float(estimates[~open_].sum())
        error += float(differences[~open_].sum())
        if not open_.any():
            break
        low, high = low[open_], high[open_]
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return Integral(value, error, unrefined)
