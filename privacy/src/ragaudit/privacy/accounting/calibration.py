"""The least noise that gives a stated guarantee (docs/notes/accounting.md §7)."""

from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.decimals import floor_decimal
from ragaudit.encoding.errors import RefusedError
from ragaudit.privacy.accounting.checks import (
    check_count,
    check_inside,
    check_positive,
    read_decimal,
)
from ragaudit.privacy.accounting.events import (
    GAMMA,
    KERNEL_VARIANCE,
    SCORE_UNIT,
    SIGMA_UNITS_MAX,
    SIGMA_UNITS_MIN,
    NoisyScores,
)
from ragaudit.privacy.accounting.gaussian import gives, meets
from ragaudit.privacy.accounting.normal import decimal_of, precise

__all__ = ["calibrate", "largest_mu"]

_WIDTH = Decimal("1e-30")


@precise
def largest_mu(
    epsilon_value: Fraction, target: Fraction, slack: Fraction = Fraction(0)
) -> Decimal | None:
    """Return the largest mu that is (epsilon_value, target)-DP with ``slack``, rounded down.

    Returns:
        None if the slack alone exceeds the target.

    Raises:
        MalformedError: epsilon_value < 0, or a value out of its range.
    """
    low, high = Decimal(0), Decimal(1)
    if not meets(low, epsilon_value, target, slack):
        return None
    while meets(high, epsilon_value, target, slack):
        low, high = high, 2 * high
    while high - low > _WIDTH * high:
        middle = (low + high) / 2
        if meets(middle, epsilon_value, target, slack):
            low = middle
        else:
            high = middle
    return low


@precise
def calibrate(
    epsilon_value: str,
    target: str,
    queries: int,
    relation: str,
    group_size: int,
    *,
    gamma: Fraction = GAMMA,
    places: int = 6,
) -> str:
    """Return the least sigma with ``places`` places that gives (epsilon_value, target)-DP.

    Args:
        epsilon_value, target: decimals, both > 0.
        queries: number of queries that the guarantee covers (r, or k_max·r).
        relation: "replace" or "null-replace".
        group_size: g.
        places: 1 to 12.

    Raises:
        MalformedError: a value out of range.
        RefusedError: no sigma in the sampler's range gives it.
    """
    loss, goal = read_decimal(epsilon_value, "epsilon"), read_decimal(target, "delta")
    check_positive(loss, "epsilon")
    check_inside(goal, "delta")
    check_count(queries, "queries")
    check_count(places, "places", most=12)
    least_units = Fraction(SIGMA_UNITS_MIN)
    probe = NoisyScores.of_policy("1", relation, group_size, queries, gamma)
    mu = largest_mu(loss, goal, probe.slack)
    if mu is None or mu == 0:
        raise RefusedError(
            "no noise gives this guarantee", where="delta", expected="a larger delta"
        )
    squared = Fraction(probe.squared_sensitivity * queries) / Fraction(mu) ** 2 + KERNEL_VARIANCE
    units = max(least_units, Fraction(decimal_of(squared).sqrt()))
    # The square root and mu are rounded; the last place is settled by the accountant itself.
    step = Fraction(1, 10**places)
    sigma = max(units / SCORE_UNIT // step - 1, -(-least_units / SCORE_UNIT // step)) * step
    while sigma * SCORE_UNIT <= SIGMA_UNITS_MAX:
        event = NoisyScores(sigma * SCORE_UNIT, probe.relation, group_size, queries, gamma)
        if gives(event, loss, goal):
            return floor_decimal(sigma, places)
        sigma += step
    raise RefusedError(
        "no sigma in range gives this guarantee", where="epsilon", expected="sigma_units <= 2^40"
    )
