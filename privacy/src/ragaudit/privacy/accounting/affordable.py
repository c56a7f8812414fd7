"""What a noise parameter affords: queries, accounts, windows; and the noise for them.

Whole numbers, rounded down: one more would break the guarantee (docs/notes/accounting.md §7).
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from ragaudit.encoding.errors import InvalidArgumentError, UnsupportedError
from ragaudit.privacy.accounting.accountants import GaussianAccountant
from ragaudit.privacy.accounting.calibration import calibrate
from ragaudit.privacy.accounting.events import (
    GAMMA,
    MAX_QUERIES,
    Composition,
    Event,
    NoisyScores,
    check_scores,
    releases,
)
from ragaudit.privacy.accounting.gaussian import gives
from ragaudit.privacy.guarantees import ApproximateDp
from ragaudit.privacy.numbers import Number, count, exact

__all__ = [
    "calibrate_coalition",
    "largest_coalition",
    "largest_queries",
    "largest_rate",
    "remaining_queries",
]


def largest_queries(mechanism: NoisyScores, epsilon: Number, delta: Number) -> int:
    """Return the largest m for which m queries together are (epsilon, delta)-DP.

    Args:
        mechanism: the noise and the relation; its own ``queries`` is not used.
        epsilon: > 0.
        delta: between 0 and 1.

    Returns:
        0 if not even one query is; at most 10^13, the largest number that an event may have.

    Raises:
        InvalidArgumentError: epsilon or delta out of range.
    """
    check_scores(mechanism, "mechanism")
    loss = exact(epsilon, "epsilon", above=0)
    target = exact(delta, "delta", above=0, below=1)
    # Without the sampler's error one evaluation settles a comparison (claim 19).
    ideal = replace(mechanism, gamma=Fraction(0))
    # Invariant of both searches: `low` queries have the guarantee, `high` do not (claim 19).
    high = 1 + _most(lambda m: gives(ideal.with_queries(m), loss, target), 0, MAX_QUERIES + 1)
    # The sampler's error can only lower the number: step down from that of the ideal sampler.
    step, low = 1, high - 1
    while low and not gives(mechanism.with_queries(low), loss, target):
        high, low, step = low, max(0, low - step), 2 * step
    return _most(lambda m: gives(mechanism.with_queries(m), loss, target), low, high)


def _most(allowed: Callable[[int], bool], low: int, high: int) -> int:
    """Return the largest allowed number, where ``low`` is allowed and ``high`` is not."""
    while high - low > 1:
        middle = (low + high) // 2
        if allowed(middle):
            low = middle
        else:
            high = middle
    return low


def remaining_queries(spent: Event, mechanism: NoisyScores, budget: ApproximateDp) -> int:
    """Return how many queries of a mechanism a budget still allows after what was released.

    Args:
        spent: all earlier releases about the same records.
        mechanism: the next ones; its own ``queries`` is not used.
        budget: for all of them together, under their relation.

    Returns:
        0 if the budget is spent or overspent; at most 10^13.

    Raises:
        InvalidArgumentError: different relations, or a budget for another relation.
        UnsupportedError: an unknown event.
    """
    check_scores(mechanism, "mechanism")
    try:
        releases(spent)
    # The error names the argument as the caller knows it.
    except UnsupportedError as error:
        raise UnsupportedError(error.what, where="spent", expected=error.expected) from None
    accountant = GaussianAccountant()

    def allowed(queries: int) -> bool:
        together = Composition((spent, mechanism.with_queries(queries)))
        return accountant.within(together, budget)

    low, high = 0, 1
    if not allowed(low):
        return low
    # Doubled first: a budget for a few queries is found without trying 10^13.
    while high <= MAX_QUERIES and allowed(high):
        low, high = high, 2 * high
    return _most(allowed, low, min(high, MAX_QUERIES + 1))


def largest_rate(
    mechanism: NoisyScores, epsilon: Number, delta: Number, *, accounts: int, windows: int = 1
) -> int:
    """Return the largest r: each of ``accounts`` colluders asks r queries in each window.

    Args:
        mechanism, epsilon, delta: as for :func:`largest_queries`.
        accounts, windows: at least 1.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    return largest_queries(mechanism, epsilon, delta) // _product(
        accounts=accounts, windows=windows
    )


def largest_coalition(
    mechanism: NoisyScores, epsilon: Number, delta: Number, *, rate: int, windows: int = 1
) -> int:
    """Return the largest k: so many accounts may collude at ``rate`` queries per window each.

    Args:
        mechanism, epsilon, delta: as for :func:`largest_queries`.
        rate, windows: at least 1.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    return largest_queries(mechanism, epsilon, delta) // _product(rate=rate, windows=windows)


def calibrate_coalition(
    epsilon: Number,
    delta: Number,
    *,
    accounts: int,
    rate: int,
    relation: str,
    group_size: int,
    windows: int = 1,
    gamma: Number = GAMMA,
    places: int = 6,
) -> str:
    """Return the least sigma for which the coalition's answers are (epsilon, delta)-DP.

    Args:
        epsilon, delta: both above 0, delta below 1.
        accounts: k, at least 1.
        rate: r, queries per account and window, at least 1.
        relation: "replace" or "null-replace".
        group_size: g, rows that one privacy unit may own.
        windows: w, at least 1.
        gamma: total-variation distance of one noise sample.
        places: of the result, 1 to 12.

    Returns:
        A decimal in cosine units, rounded up.

    Raises:
        InvalidArgumentError: a value out of range.
        RefusedError: no sigma in the sampler's range gives it.
    """
    # Pooled answers are those of one analyst who asks all of it (claim 17).
    queries = _product(accounts=accounts, rate=rate, windows=windows)
    return calibrate(epsilon, delta, queries, relation, group_size, gamma=gamma, places=places)


def _product(**counts: int) -> int:
    product = 1
    for where, value in counts.items():
        product *= count(value, where)
    # Refused here, by the names of the factors: the caller gave no number of queries.
    if product > MAX_QUERIES:
        raise InvalidArgumentError(
            "too many queries", where=" x ".join(counts), expected=f"at most {MAX_QUERIES}"
        )
    return product
