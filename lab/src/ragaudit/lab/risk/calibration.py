"""Inversion: the parameter at which a bound of the advantage reaches a target.

Targets are advantages. At a target <= 0 nothing may be learnt: epsilon is 0, noise infinite. At a
target that no parameter exceeds there is no constraint: epsilon is infinite, noise 0. Neither is
an error. Derivations: docs/notes/disclosure-risk.md §9.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from ragaudit.lab.risk.general_bounds import trade_off_forms
from ragaudit.lab.risk.trade_off import GaussianTradeOff
from ragaudit.lab.risk.validation import (
    check_delta,
    check_finite,
    check_integer,
    check_positive,
    check_probability,
    typed,
)
from ragaudit.privacy.accounting.risk import PriorSummary
from scipy import optimize, special

_ROUNDING: Final = 1e-12
"""Advantages this close count as equal; roots are found to this, relatively."""
_LOG_LEAST: Final = math.log(1e-300)
"""Parameters of smaller logarithm count as 0."""
_LOG_2: Final = math.log(2)


def total_variation_epsilon(
    advantage: float, collision_probability: float = 0.0, delta: float = 0.0
) -> float:
    """Return epsilon at which Theorem 4.2 gives ``advantage``: ``ln((1+r-2 delta)/(1-r))``.

    ``r = advantage/(1 - kappa)``. 0 if delta alone allows it, infinite if r >= 1.

    Args:
        advantage: the target.
        collision_probability: kappa, 0 to 1; 0 is the safe one.
        delta: 0 to 1.
    """
    target = check_finite(advantage, "advantage")
    d = check_delta(delta)
    rest = 1 - check_probability(collision_probability, "collision_probability")
    if target >= rest:
        return math.inf
    share = target / rest
    return _positive_log(1 + share - 2 * d, 1 - share)


def grr_epsilon(advantage: float, records: int, collision_probability: float) -> float:
    """Return epsilon of generalized randomized response with this optimal advantage.

    ``ln((1 + r (m-1))/(1 - r))``, ``r = advantage/(1 - kappa)``: full knowledge, or exact guesses.

    Args:
        advantage: the target.
        records: m >= 2.
        collision_probability: kappa, 0 to 1.
    """
    target = check_finite(advantage, "advantage")
    m = check_integer(records, "records", least=2)
    rest = 1 - check_probability(collision_probability, "collision_probability")
    if target >= rest:
        return math.inf
    return _positive_log(1 + target / rest * (m - 1), 1 - target / rest)


def ss_epsilon(advantage: float, records: int, subset: int) -> float:
    """Return epsilon of subset selection with this value, for a fixed subset size.

    Uniform prior, exact guesses, no auxiliary knowledge.

    Args:
        advantage: the target.
        records: m >= 2.
        subset: omega, 1 to records - 1; a mechanism that takes it from epsilon needs
            :func:`largest_parameter`.
    """
    target = check_finite(advantage, "advantage")
    m = check_integer(records, "records", least=2)
    omega = check_integer(subset, "subset", least=1, most=m - 1)
    # advantage = (p m - w)/(m w), so p = w/m + w advantage; e^eps = p (m - w)/(w (1 - p)).
    p = omega / m + omega * target
    if p >= 1:
        return math.inf
    return _positive_log(p * (m - omega), omega * (1 - p))


def uniform_exact_guess_epsilon(advantage: float, records: int, delta: float = 0.0) -> float:
    """Return epsilon at which Corollary 5.6 gives ``advantage``, with delta (Eq. 61, corrected).

    ``ln((1 + g m - delta m)/(1 - g m/(m-1)))``; infinite ("no finite epsilon explains this") if
    the denominator is not positive, 0 if the numerator is below it.

    Args:
        advantage: g, the target.
        records: m >= 2.
        delta: 0 to 1.
    """
    target = check_finite(advantage, "advantage")
    m = check_integer(records, "records", least=2)
    below = 1 - target * m / (m - 1)
    if below <= 0:
        return math.inf
    return _positive_log(1 + (target - check_delta(delta)) * m, below)


def laplace_scale(advantage: float, records: int, span: float) -> float:
    """Return the scale b of Laplace noise with this value, for equal gaps and uniform prior.

    It is the least safe scale for any positions within ``span`` (exact guesses, no knowledge).

    Args:
        advantage: the target.
        records: m >= 2.
        span: distance of the extreme records, > 0; the scale has its unit.
    """
    width, ratio = check_positive(span, "span"), laplace_epsilon(advantage, records)
    return width / ratio if ratio > 0 else math.inf


def laplace_epsilon(advantage: float, records: int) -> float:
    """Return ``span/b`` of :func:`laplace_scale`: ``-2 (m-1) ln(1 - g m/(m-1))``.

    Args:
        advantage: g, the target.
        records: m >= 2.
    """
    target = check_finite(advantage, "advantage")
    m = check_integer(records, "records", least=2)
    share = target * m / (m - 1)
    if share >= 1:
        return math.inf
    return max(0.0, -2 * (m - 1) * math.log1p(-share))


def gaussian_scale(advantage: float, records: int, span: float) -> float:
    """Return the standard deviation of Gaussian noise with this value, as `laplace_scale`.

    ``span/(2 (m-1) Phi^-1(1/2 + g m/(2(m-1))))``.

    Args:
        advantage: g, the target.
        records: m >= 2.
        span: distance of the extreme records, > 0; the deviation has its unit.
    """
    target = check_finite(advantage, "advantage")
    m = check_integer(records, "records", least=2)
    width = check_positive(span, "span")
    share = target * m / (m - 1)
    if share >= 1:
        return 0.0
    if share <= 0:
        return math.inf
    return width / (2 * math.sqrt(2) * (m - 1) * float(special.erfinv(share)))


class Crossing(NamedTuple):
    """Where a non-decreasing bound crosses a target.

    Attributes:
        parameter: on the safe side of the crossing; infinite where there is no constraint.
        bound: the bound there; NaN where the parameter is infinite.
    """

    parameter: float
    bound: float


@typed
def largest_parameter(
    bound: Callable[[float], float], advantage: float, *, limit: float = 1e4
) -> Crossing:
    """Return the largest parameter with ``bound <= advantage``: for calibration.

    Bisection to neighboring floats, so jumps (of subset selection's size) are no obstacle: the
    result keeps the target. Infinite if ``bound(limit)`` does.

    Args:
        bound: non-decreasing on [0, limit]; called about 70 times.
        advantage: the target; at <= ``bound(0)`` the parameter is 0.
        limit: beyond it the parameter counts as infinite.
    """
    target = check_finite(advantage, "advantage")
    if target <= (start := bound(0.0)):
        return Crossing(0.0, start)
    inside, outside = _bisect(lambda value: bound(value) <= target, limit)
    if outside is None:
        return Crossing(math.inf, math.nan)
    return Crossing(inside, bound(inside))


@typed
def least_parameter(
    bound: Callable[[float], float], advantage: float, *, limit: float = 1e4
) -> Crossing:
    """Return the least parameter with ``bound >= advantage``: for an audit.

    What an observed advantage proves: every smaller parameter would forbid it. Infinite if
    ``bound(limit)`` stays below.

    Args:
        bound, limit: as of :func:`largest_parameter`.
        advantage: the lower confidence limit of what was observed; at <= ``bound(0)`` the parameter
            is 0.
    """
    target = check_finite(advantage, "advantage")
    _, reached = _bisect(lambda value: bound(value) < target, limit)
    if reached is None:
        return Crossing(math.inf, math.nan)
    return Crossing(reached, bound(reached))


@typed
def continuous_largest_parameter(
    bound: Callable[[float], float], advantage: float, *, limit: float = 1e4
) -> Crossing:
    """Return `largest_parameter` of a continuous bound that is costly, in about 15 evaluations.

    Infinite if the target is at the supremum ``bound(limit)``, but for rounding, or above it.

    Args:
        bound: continuous and non-decreasing on [0, limit].
        advantage: the target.
        limit: beyond it the parameter counts as infinite.
    """
    target, evaluate = check_finite(advantage, "advantage"), cache(bound)
    root = _root(evaluate, target, limit)
    if root == 0 or math.isinf(root):
        return Crossing(root, evaluate(0.0) if root == 0 else math.nan)
    return _step_while(lambda found: found > target, evaluate, root, -_ROUNDING)


@typed
def continuous_least_parameter(
    bound: Callable[[float], float], advantage: float, *, limit: float = 1e4
) -> Crossing:
    """Return `least_parameter` of a continuous bound that is costly, in about 15 evaluations.

    Args:
        bound, limit: as of :func:`continuous_largest_parameter`.
        advantage: as of :func:`least_parameter`.
    """
    target, evaluate = check_finite(advantage, "advantage"), cache(bound)
    root = _root(evaluate, target, limit)
    if root == 0 or math.isinf(root):
        return Crossing(root, evaluate(0.0) if root == 0 else math.nan)
    return _step_while(lambda found: found < target, evaluate, root, _ROUNDING)


@typed
def largest_mu(advantage: float, summary: PriorSummary, *, limit: float = 1e3) -> Crossing:
    """Return the largest mu for which Theorem 5.1 (both forms) keeps the target.

    The mu of two *different* records: full-batch DP-SGD over T steps has ``2 sqrt(T)/sigma``
    (the paper's Example 5.7 takes ``sqrt(T)/sigma``, which is for an absent record).

    Args:
        advantage: the target.
        summary: of the prior.
        limit: beyond it mu counts as infinite.
    """

    def bound(mu: float) -> float:
        return min(trade_off_forms(summary, GaussianTradeOff(mu)))

    return largest_parameter(bound, advantage, limit=limit)


def _positive_log(above: float, below: float) -> float:
    """``ln(above/below)``, 0 where that would be negative; below > 0."""
    return math.log(above / below) if above > below else 0.0


def _root(bound: Callable[[float], float], advantage: float, limit: float) -> float:
    """Where a continuous bound meets a target: 0 if it begins there, inf if it ends there."""
    target, end = check_finite(advantage, "advantage"), check_positive(limit, "limit")
    if target <= bound(0.0):
        return 0.0
    if target >= bound(end) * (1 - _ROUNDING):
        return math.inf

    # The parameter's logarithm: targets of all sizes are then met as precisely, and as fast.
    def excess(logarithm: float) -> float:
        return bound(math.exp(logarithm)) - target

    # A little beyond the limit, lest rounding leave the crossing outside.
    low, high = _bracket(lambda logarithm: excess(logarithm) < 0, math.log(end) + _ROUNDING)
    if excess(low) >= 0:
        return 0.0
    return math.exp(optimize.brentq(excess, low, high, xtol=_ROUNDING))


def _bracket(below: Callable[[float], bool], limit: float) -> tuple[float, float]:
    """Two logarithms around a crossing, if it is not below the least that counts.

    Away from 0 each that is tried is twice the one before.
    """
    low, high = -_LOG_2, min(_LOG_2, limit)
    while high < limit and below(high):
        low, high = high, min(2 * high, limit)
    while low > _LOG_LEAST and not below(low):
        low, high = max(2 * low, _LOG_LEAST), low
    return low, high


def _step_while(
    wrong: Callable[[float], bool], bound: Callable[[float], float], root: float, step: float
) -> Crossing:
    """From a root, by growing relative steps, to its safe side."""
    while wrong(found := bound(value := root * (1 + step))):
        step *= 4
    return Crossing(value, found)


def _bisect(holds: Callable[[float], bool], limit: float) -> tuple[float, float | None]:
    """Neighboring floats between which a predicate turns false; None if it never does.

    If it does not hold even at 0, both are 0.
    """
    high = check_positive(limit, "limit")
    if holds(high):
        return high, None
    low = 0.0
    if not holds(low):
        return 0.0, 0.0
    while low < (middle := (low + high) / 2) < high:
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high
