"""Gaussian differential privacy: the headline accountant, and the least noise for a guarantee.

Sources: docs/notes/accounting.md §3 and §7.
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from ragaudit.encoding.errors import RefusedError, RejectedError
from ragaudit.encoding.text import floor_decimal
from ragaudit.privacy.accounting.events import (
    GAMMA,
    KERNEL_VARIANCE,
    SCORE_UNIT,
    SIGMA_UNITS_MAX,
    SIGMA_UNITS_MIN,
    NoisyScores,
    check_scores,
)
from ragaudit.privacy.normal import decimal_of, density, mills, precise, quantile, tail
from ragaudit.privacy.numbers import Number, count, decimal, exact

# Every delta is raised by this share: far above what 80 digits lose, far below any rounding.
_UP = Decimal("1." + 49 * "0" + "1")
_WIDTH = Decimal("1e-18")
# Beyond these arguments the closed values are replaced by plain upper bounds.
_ZERO = Decimal(0)
_CERTAIN = Decimal(-60)
_REMOTE = Decimal(10_000)
_REMOTE_DELTA = Decimal("1e-20000000")


class NoFiniteBound(RejectedError):
    """No epsilon satisfies the delta equation: there is no finite guarantee."""


@precise
def delta(mu: Number, epsilon_value: Number) -> Decimal:
    """Return an upper bound of the least delta of a mu-GDP mechanism at ``epsilon_value``.

    ``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)`` (Balle and Wang 2018, Theorem 8), as
    ``density(a) (mills(a) - mills(a + mu))`` with ``a = eps/mu - mu/2``, because
    ``e^eps density(a + mu) = density(a)``.

    Args:
        mu: >= 0.
        epsilon_value: >= 0.

    Raises:
        MalformedError: a value out of its range.
    """
    mu = decimal(mu, "mu", least=0)
    if mu == 0:
        return _ZERO
    a = decimal(epsilon_value, "epsilon", least=0) / mu - mu / 2
    if a < _CERTAIN:
        return Decimal(1)
    if a > _REMOTE:
        return _REMOTE_DELTA
    # Mills' ratio needs arguments >= 0: its difference keeps digits that two tails would lose.
    if a >= 0:
        return density(a) * (mills(a) - mills(a + mu)) * _UP
    return (tail(a) - density(a) * mills(a + mu)) * _UP


@precise
def least_epsilon(mu: Number, target: Number, slack: Number = 0) -> Decimal | None:
    """Return the least epsilon >= 0 with ``delta(mu, eps) + (1 + e^eps) slack <= target``.

    The left side is convex in ``e^eps`` (claim 4), so it falls until
    ``tail(mu/2 + eps/mu) = slack`` and rises after; the answer lies on the falling part.

    Args:
        mu: >= 0.
        target: the delta to be met, in (0, 1).
        slack: m·g·gamma, >= 0.

    Returns:
        The upper end of an interval of relative width at most 1e-18 around it, or None.

    Raises:
        MalformedError: a value out of its range.
    """
    mu = decimal(mu, "mu", least=0)
    goal = decimal(target, "delta", above=0, below=1)
    share = decimal(slack, "slack", least=0) * _UP
    return _least_epsilon(mu, goal, share)


# Prover, verifier and report ask for the same numbers of a window.
@lru_cache(maxsize=256)
@precise
def _least_epsilon(mu: Decimal, goal: Decimal, share: Decimal) -> Decimal | None:
    low = Decimal(0)
    if _total(mu, low, share) <= goal:
        return low
    # Past the turning point the sum only rises: no answer is there (claim 4).
    high = _turning_point(mu, share) if share else _doubled(mu, goal)
    if high is None or _total(mu, high, share) > goal:
        return None
    # The upper end always satisfies the inequality: it is what is returned, rounded up.
    while high - low > _WIDTH * max(Decimal(1), high):
        middle = (low + high) / 2
        if _total(mu, middle, share) <= goal:
            high = middle
        else:
            low = middle
    return high


def epsilon(event: NoisyScores, target: Number) -> Decimal:
    """Return the headline epsilon of an event (docs/notes/accounting.md §3).

    Args:
        event: what was released.
        target: delta, between 0 and 1.

    Raises:
        InvalidArgumentError: another type, or delta out of range.
        NoFiniteBound: no epsilon solves the equation.
    """
    check_scores(event, "event")
    goal = exact(target, "delta", above=0, below=1)
    least = least_epsilon(event.mu(), goal, event.slack)
    if least is None:
        raise NoFiniteBound(
            "no finite epsilon",
            where=f"{event.queries} queries at delta {float(goal):.3g}",
            expected="more noise, fewer queries or a larger delta",
        )
    return least


def gives(event: NoisyScores, epsilon_value: Number, target: Number) -> bool:
    """Return whether the event is (epsilon_value, target)-DP by the headline accountant.

    Args:
        event: what was released.
        epsilon_value: >= 0.
        target: delta, between 0 and 1.

    Raises:
        InvalidArgumentError: another type, or a value out of range.
    """
    check_scores(event, "event")
    return meets(event.mu(), epsilon_value, target, event.slack)


@precise
def least_delta(mu: Number, epsilon_value: Number, slack: Number = 0) -> Decimal:
    """Return the least ``delta(mu, e) + (1 + e^e) slack`` of the e up to ``epsilon_value``.

    Beyond the turning point of :func:`least_epsilon` the sum rises again, but what holds at a
    smaller epsilon holds at a larger one.

    Args:
        mu: >= 0.
        epsilon_value: >= 0.
        slack: m·g·gamma, >= 0.

    Returns:
        The sum, rounded up; not cut at 1.

    Raises:
        MalformedError: a value out of its range.
    """
    mu = decimal(mu, "mu", least=0)
    share = decimal(slack, "slack", least=0) * _UP
    at = decimal(epsilon_value, "epsilon", least=0)
    if share:
        at = min(at, _turning_point(mu, share) or Decimal(0))
    return _total(mu, at, share)


def meets(mu: Number, epsilon_value: Number, target: Number, slack: Number = 0) -> bool:
    """Return whether some epsilon up to ``epsilon_value`` satisfies `least_epsilon`'s inequality.

    Args:
        mu, slack: as for :func:`least_epsilon`.
        epsilon_value: >= 0.
        target: delta, in (0, 1).

    Raises:
        MalformedError: a value out of its range.
    """
    goal = decimal(target, "delta", above=0, below=1)
    return least_delta(mu, epsilon_value, slack) <= goal


@precise
def _total(mu: Decimal, epsilon_value: Decimal, share: Decimal) -> Decimal:
    loss = delta(mu, epsilon_value)
    return loss + (1 + epsilon_value.exp()) * share if share else loss


@precise
def _turning_point(mu: Decimal, share: Decimal) -> Decimal | None:
    if mu == 0 or share >= 1:
        return None
    # tail(mu/2 + eps/mu) = slack, solved for eps (claim 4).
    point = mu * (quantile(share) - mu / 2)
    return point if point > 0 else None


@precise
def _doubled(mu: Decimal, goal: Decimal) -> Decimal:
    high = max(Decimal(1), mu * mu)
    while delta(mu, high) > goal:
        high *= 2
    return high


LARGEST_EPSILON = 10**9
"""No policy has more; beyond it every noise serves."""

_SIGMA_WIDTH = Decimal("1e-30")


@precise
def largest_mu(epsilon_value: Number, target: Number, slack: Number = 0) -> Decimal | None:
    """Return the largest mu that is (epsilon_value, target)-DP with ``slack``, rounded down.

    Args:
        epsilon_value: 0 to 10^9.
        target: delta, between 0 and 1.
        slack: m·g·gamma, >= 0.

    Returns:
        None if the slack alone exceeds the target.

    Raises:
        MalformedError: epsilon_value < 0, or a value out of its range.
    """
    loss = exact(epsilon_value, "epsilon", least=0, most=LARGEST_EPSILON)
    goal = exact(target, "delta", above=0, below=1)
    share = exact(slack, "slack", least=0)
    return _largest_mu(loss, goal, share)


@lru_cache(maxsize=256)
@precise
def _largest_mu(loss: Fraction, goal: Fraction, share: Fraction) -> Decimal | None:
    low, high = Decimal(0), Decimal(1)
    # Not even mu = 0 is enough: the sampler's error alone is above delta.
    if not meets(low, loss, goal, share):
        return None
    while meets(high, loss, goal, share):
        low, high = high, 2 * high
    # `low` keeps the promise, `high` does not; what is granted is rounded down.
    while high - low > _SIGMA_WIDTH * high:
        middle = (low + high) / 2
        if meets(middle, loss, goal, share):
            low = middle
        else:
            high = middle
    return low


@precise
def calibrate(
    epsilon_value: Number,
    target: Number,
    queries: int,
    relation: str,
    group_size: int,
    *,
    gamma: Number = GAMMA,
    places: int = 6,
) -> str:
    """Return the least sigma with ``places`` places that gives (epsilon_value, target)-DP.

    Args:
        epsilon_value, target: epsilon in (0, 10^9], and delta between 0 and 1.
        queries: number of queries that the guarantee covers (r, or k_max·r).
        relation: "replace" or "null-replace".
        group_size: g, 1 to 1000.
        gamma: total-variation distance of one noise sample, in [0, 1).
        places: 1 to 12.

    Returns:
        A decimal in cosine units.

    Raises:
        MalformedError: a value out of range.
        RefusedError: no sigma in the sampler's range gives it.
    """
    loss = exact(epsilon_value, "epsilon", above=0, most=LARGEST_EPSILON)
    goal = exact(target, "delta", above=0, below=1)
    count(queries, "queries")
    count(places, "places", most=12)
    least_units = Fraction(SIGMA_UNITS_MIN)
    # Of any sigma: sensitivity and slack do not depend on it.
    probe = NoisyScores.of_policy(1, relation, group_size, queries, gamma)
    mu = largest_mu(loss, goal, probe.slack)
    if mu is None or mu == 0:
        raise RefusedError(
            "no noise gives this guarantee", where="delta", expected="a larger delta"
        )
    # mu² = sensitivity² m / (sigma² - 16), solved for sigma (claims 2 and 3).
    squared = Fraction(probe.squared_sensitivity * queries) / Fraction(mu) ** 2 + KERNEL_VARIANCE
    units = max(least_units, Fraction(decimal_of(squared).sqrt()))
    # The square root and mu are rounded; the last place is settled by the accountant itself.
    step = Fraction(1, 10**places)
    sigma = max(units / SCORE_UNIT // step - 1, -(-least_units / SCORE_UNIT // step)) * step
    while sigma * SCORE_UNIT <= SIGMA_UNITS_MAX:
        event = NoisyScores(sigma * SCORE_UNIT, probe.relation, group_size, queries, probe.gamma)
        # The first that holds is the least: the sigmas that hold form an upper ray (claim 8).
        if gives(event, loss, goal):
            return floor_decimal(sigma, places)
        sigma += step
    raise RefusedError(
        "no sigma in range gives this guarantee", where="epsilon", expected="sigma_units <= 2^40"
    )
