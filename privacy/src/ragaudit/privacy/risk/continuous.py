"""Theorem 4.3 for continuous records on an interval, by deterministic quadrature.

Loss ``|z' - z|``, no auxiliary knowledge. Balboa et al., Appendix A.2, whose nested Monte Carlo
this replaces; corrections in docs/notes/disclosure-risk.md §5.
"""

import math
import warnings

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.risk.mechanisms import AdditiveNoise, ExponentialMechanism
from ragaudit.privacy.risk.priors import ContinuousPrior
from ragaudit.privacy.risk.quadrature import NumericalAdvantage, integrate
from ragaudit.privacy.risk.validation import FloatArray, IntegerArray, check_non_negative

__all__ = ["SMALLEST_SCALE", "ExactGuessWarning", "continuous_advantage"]

SMALLEST_SCALE = 1 / 100
"""Least scale of the mechanism, as a share of the interval, that the grid resolves."""

# At least so many, and so many per scale of the mechanism: the middle of a cell stands for it.
_GUESSES = 1000
_GUESSES_PER_SCALE = 160
_PANELS = 24
_PANELS_PER_SCALE = 0.5
_LEVELS = 1
_TOLERANCE = 1e-7
_CELLS = 2**20
"""Most densities held at a time."""


class ExactGuessWarning(UserWarning):
    """Exact guesses of a continuous record never succeed; near misses are not counted."""


class _Grid:
    """Cells of the records' interval with their prior masses, and guesses between them.

    Guesses crowd towards both ends, where priors such as Beta(0.1, 0.1) have their mass. Ends
    of all success sets are ends of cells, so every success set is a whole number of cells.
    """

    def __init__(self, prior: ContinuousPrior, eta: float, guesses: int) -> None:
        angle = np.linspace(0, math.pi, guesses + 1)
        crowded = prior.low + (prior.high - prior.low) * np.sin(angle / 2) ** 2
        corners = np.array([prior.low, prior.high, prior.low + eta, prior.high - eta])
        centers = np.unique(np.clip(np.concatenate([crowded, corners]), prior.low, prior.high))
        first = np.maximum(centers - eta, prior.low)
        last = np.minimum(centers + eta, prior.high)
        edges = np.unique(np.concatenate([centers, first, last]))
        self.middles: FloatArray = (edges[1:] + edges[:-1]) / 2
        self.masses: FloatArray = np.diff(np.asarray(prior.cdf(edges)))
        self.first: IntegerArray = np.searchsorted(edges, first)
        self.last: IntegerArray = np.searchsorted(edges, last)

    def best_gains(self, densities: FloatArray) -> FloatArray:
        """Return the best guess's gain per output; ``densities`` has shape (outputs, cells)."""
        mixture = densities @ self.masses
        gains = (densities - mixture[:, None]) * self.masses
        sums = np.zeros((len(gains), gains.shape[1] + 1))
        np.cumsum(gains, axis=1, out=sums[:, 1:])
        return np.asarray((sums[:, self.last] - sums[:, self.first]).max(axis=1))


def continuous_advantage(
    prior: ContinuousPrior, mechanism: ExponentialMechanism | AdditiveNoise, eta: float
) -> NumericalAdvantage:
    """Return the optimal advantage against a record of the interval, to about 1e-6.

    Args:
        prior: of the records.
        mechanism: the exponential mechanism on the same interval, or additive noise; its
            outputs are taken over the interval, or over the whole line.
        eta: largest distance that counts as success, in the records' unit. 0 gives 0, with an
            ExactGuessWarning.

    Returns:
        The value, and as error the difference to half as many guesses plus that of the outer
        quadrature.

    Raises:
        InvalidArgumentError: negative eta, another interval than the prior's, or a mechanism
            whose scale is below ``SMALLEST_SCALE`` of the interval: use Theorem 4.2 there.
    """
    reach = check_non_negative(eta, "eta")
    span = prior.high - prior.low
    if mechanism.scale < SMALLEST_SCALE * span:
        raise InvalidArgumentError(
            f"scale {mechanism.scale:g} is too small for the grid",
            where="mechanism",
            expected=f"at least {SMALLEST_SCALE * span:g}; otherwise a bound",
        )
    outputs = _output_range(prior, mechanism)
    if reach == 0:
        warnings.warn(
            "exact guesses of a continuous record have advantage 0, whatever is released",
            ExactGuessWarning,
            stacklevel=2,
        )
        return NumericalAdvantage(0.0, 0.0)
    if reach >= span:
        return NumericalAdvantage(0.0, 0.0)  # every guess succeeds, seen or unseen
    guesses = max(_GUESSES, math.ceil(_GUESSES_PER_SCALE * span / mechanism.scale))
    fine = _evaluate(_Grid(prior, reach, guesses), mechanism, outputs)
    coarse = _evaluate(_Grid(prior, reach, guesses // 2), mechanism, outputs)
    return NumericalAdvantage(fine.value, fine.error + abs(fine.value - coarse.value))


def _evaluate(
    grid: _Grid, mechanism: ExponentialMechanism | AdditiveNoise, breaks: FloatArray
) -> NumericalAdvantage:
    def gain(theta: FloatArray) -> FloatArray:
        batch = max(1, _CELLS // len(grid.middles))
        parts = []
        for part in np.split(theta, range(batch, len(theta), batch)):
            if isinstance(mechanism, ExponentialMechanism):
                densities = mechanism.density(part[:, None], grid.middles)
            else:
                densities = mechanism.density(part[:, None] - grid.middles)
            parts.append(grid.best_gains(densities))
        return np.concatenate(parts)

    return integrate(gain, breaks[:-1], breaks[1:], tolerance=_TOLERANCE, levels=_LEVELS)


def _output_range(
    prior: ContinuousPrior, mechanism: ExponentialMechanism | AdditiveNoise
) -> FloatArray:
    """Break points of the outer integral."""
    panels = max(_PANELS, math.ceil(_PANELS_PER_SCALE * (prior.high - prior.low) / mechanism.scale))
    inside = np.linspace(prior.low, prior.high, panels + 1)
    if isinstance(mechanism, ExponentialMechanism):
        if (mechanism.low, mechanism.high) != (prior.low, prior.high):
            raise InvalidArgumentError(
                "another interval than the prior's",
                where="mechanism",
                expected=f"[{prior.low:g}, {prior.high:g}]",
            )
        return inside
    steps = np.arange(1, 1 + math.ceil(mechanism.reach / (4 * mechanism.scale)))
    tail = 4 * mechanism.scale * steps
    return np.concatenate([prior.low - tail[::-1], inside, prior.high + tail])
