"""The least noise that gives a stated guarantee (docs/notes/accounting.md §7)."""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.text import floor_decimal
from ragaudit.privacy.accounting.events import (
    GAMMA,
    KERNEL_VARIANCE,
    SCORE_UNIT,
    SIGMA_UNITS_MAX,
    SIGMA_UNITS_MIN,
    NoisyScores,
)
from ragaudit.privacy.accounting.gaussian import gives, meets
from ragaudit.privacy.normal import decimal_of, precise
from ragaudit.privacy.numbers import Number, count, exact

__all__ = ["calibrate", "largest_mu"]

LARGEST_EPSILON = 10**9
"""No policy has more; beyond it every noise serves."""

_WIDTH = Decimal("1e-30")


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
    while high - low > _WIDTH * high:
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
