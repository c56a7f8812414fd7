"""Theorem 4.3 for continuous records on an interval, by deterministic quadrature.

Loss ``|z' - z|``, no auxiliary knowledge. Balboa et al., Appendix A.2, whose nested Monte Carlo
this replaces; corrections in docs/notes/disclosure-risk.md §5.
"""

import math
import warnings
from typing import Final

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.guess_grid import GuessGrid
from ragaudit.lab.risk.mechanisms import AdditiveNoise, ExponentialMechanism
from ragaudit.lab.risk.priors import ContinuousPrior
from ragaudit.lab.risk.quadrature import NumericalAdvantage, integrate
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.validation import FloatArray, check_non_negative

__all__ = ["SMALLEST_SCALE", "ExactGuessWarning", "continuous_advantage"]

SMALLEST_SCALE: Final = 1 / 100
"""Least scale of the mechanism, as a share of the interval, that the grid resolves."""

# At least so many, and so many per scale of the mechanism.
_GUESSES: Final = 160
_GUESSES_PER_SCALE: Final = 12
_PANELS: Final = 8
_LEVELS: Final = 6
_TOLERANCE: Final = 2e-6


class ExactGuessWarning(UserWarning):
    """Exact guesses of a continuous record never succeed; near misses are not counted."""


@typed
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
        The value, and as error that of the outer quadrature plus a third of the difference to
        half as many guesses.

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
    breaks = _output_breaks(prior, mechanism)
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
    fine = _grid(prior, mechanism, reach, guesses)
    coarse = _grid(prior, mechanism, reach, guesses // 2)
    found = integrate(fine.best_gains, breaks, tolerance=_TOLERANCE, levels=_LEVELS)
    check = integrate(coarse.best_gains, breaks, tolerance=_TOLERANCE, levels=0)
    return NumericalAdvantage(found.value, found.error + abs(found.unrefined - check.unrefined) / 3)


def _grid(
    prior: ContinuousPrior,
    mechanism: ExponentialMechanism | AdditiveNoise,
    eta: float,
    guesses: int,
) -> GuessGrid:
    if isinstance(mechanism, ExponentialMechanism):
        return GuessGrid(prior, mechanism.density, mechanism.scale, eta, guesses, has_kink=True)
    return GuessGrid(
        prior,
        lambda theta, record: mechanism.density(theta - record),
        mechanism.scale,
        eta,
        guesses,
        has_kink=mechanism.has_kink,
    )


def _output_breaks(
    prior: ContinuousPrior, mechanism: ExponentialMechanism | AdditiveNoise
) -> FloatArray:
    """Break points of the outer integral: a scale apart inside, ever farther apart outside."""
    panels = max(_PANELS, math.ceil((prior.high - prior.low) / mechanism.scale))
    inside = np.linspace(prior.low, prior.high, panels + 1)
    if isinstance(mechanism, ExponentialMechanism):
        if (mechanism.low, mechanism.high) != (prior.low, prior.high):
            raise InvalidArgumentError(
                "another interval than the prior's",
                where="mechanism",
                expected=f"[{prior.low:g}, {prior.high:g}]",
            )
        return inside
    tail = mechanism.reach * 2.0 ** np.arange(-5, 1)
    return np.concatenate([prior.low - tail[::-1], inside, prior.high + tail])
