"""Adaptive Gauss-Lobatto integration of many panels at once, with an error estimate."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from ragaudit.privacy.risk.validation import FloatArray

__all__ = ["NumericalAdvantage", "integrate"]

_ORDER = 10


def _lobatto(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1], both ends included; exact to degree ``2 points - 3``.

    The ends matter: a kink between an end and the first inner node is invisible to a rule
    without them, and panels would settle on a wrong value.
    """
    polynomial = np.polynomial.Legendre.basis(points - 1)
    nodes = np.concatenate([[-1.0], np.sort(polynomial.deriv().roots().real), [1.0]])
    weights = 2 / (points * (points - 1) * polynomial(nodes) ** 2)
    return nodes, weights


_NODES, _WEIGHTS = _lobatto(_ORDER)


class NumericalAdvantage(NamedTuple):
    """A value computed by quadrature.

    Attributes:
        value: the advantage.
        error: estimate (no bound) of its absolute error.
    """

    value: float
    error: float


def integrate(
    function: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    *,
    tolerance: float,
    levels: int,
) -> NumericalAdvantage:
    """Integrate over the panels ``[low_i, high_i]``; halve those that have not settled.

    A panel has settled when its estimate and that of its halves differ by at most
    ``tolerance`` divided by the number of panels given. Kinks (the maximum over guesses has
    many) are cornered by halving; after ``levels`` halvings what remains is taken as it is,
    and its difference goes into the error.

    Args:
        function: vectorized, shape (n,) to (n,); called with about 10^4 points at a time.
        low, high: shape (panels,).
        tolerance: absolute, for the whole integral.
        levels: most halvings of a panel.
    """
    share = tolerance / len(low)
    values: list[float] = []
    errors: list[float] = []
    whole = _panels(function, low, high)
    for level in range(levels + 1):
        middle = (low + high) / 2
        left = _panels(function, low, middle)
        right = _panels(function, middle, high)
        difference = np.abs(left + right - whole)
        open_ = difference > (share if level < levels else math.inf)
        values.extend((left + right)[~open_])
        errors.extend(difference[~open_])
        low, high = (
            np.concatenate([low[open_], middle[open_]]),
            np.concatenate([middle[open_], high[open_]]),
        )
        whole = np.concatenate([left[open_], right[open_]])
        if not len(low):
            break
    return NumericalAdvantage(math.fsum(values), math.fsum(errors))


def _panels(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """The ten-point estimate of each panel; shape (panels,)."""
    half = (high - low) / 2
    estimates = np.empty(len(low))
    for start in range(0, len(low), 1024):
        part = slice(start, start + 1024)
        nodes = (low + high)[part, None] / 2 + half[part, None] * _NODES
        heights = function(nodes.ravel()).reshape(nodes.shape)
        estimates[part] = half[part] * (heights @ _WEIGHTS)
    return estimates
