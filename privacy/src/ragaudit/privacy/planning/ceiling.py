"""The largest recall that any mechanism with fresh noise could have under a guarantee.

A row that answers a question is returned with probability R, recall; a row that does not with
K/N, as any of the others. Replace the first by the second: over m questions with independent noise
the number of times that it is returned changes from Binomial(m, R) to Binomial(m, K/N), and an
attacker may count. So both have to be (epsilon, delta)-indistinguishable, whatever the mechanism
is (docs/notes/accounting.md, claim 25). The limit does not know the score, the corpus or sigma.
"""

import math

from ragaudit.privacy.numbers import Number, count, real
from ragaudit.privacy.planning.missing import Missing
from ragaudit.privacy.planning.price import Price

__all__ = ["LARGEST_QUERIES", "ceiling_of", "largest_recall"]

LARGEST_QUERIES = 10**8
"""Beyond it, sums over tails take too long."""

_STEPS = 60
# Of delta: more than the logarithms lose, so that the limit is never too small.
_LENIENT = 1 + 1e-6
_NEGLIGIBLE = 1e-17


def largest_recall(epsilon: Number, delta: Number, queries: int, blind: Number) -> float:
    """Return the largest R >= blind that the guarantee allows, rounded up by less than 1e-6.

    Args:
        epsilon: natural logarithm, >= 0.
        delta: in [0, 1].
        queries: m, 1 to ``LARGEST_QUERIES``: questions that the guarantee covers, all of which
            the row may answer.
        blind: K/N, the recall of blind choice, in (0, 1].

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    loss = real(epsilon, "epsilon", least=0)
    allowed = real(delta, "delta", least=0, most=1) * _LENIENT
    m = count(queries, "queries", most=LARGEST_QUERIES)
    share = real(blind, "blind", above=0, most=1)
    if share == 1:
        return 1.0
    if allowed == 0:
        # Every count keeps the ratio: m hits bind from above, m misses from below.
        hits = math.log(share) + loss / m
        return min(1.0, math.exp(min(0.0, hits)), 1 - (1 - share) * math.exp(-loss / m))

    def keeps(recall: float) -> bool:
        return (
            _hockey_stick(m, recall, share, loss) <= allowed
            and _hockey_stick(m, 1 - share, 1 - recall, loss) <= allowed
        )

    low, high = share, 1.0
    if keeps(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return high


def ceiling_of(price: Price, blind: Number) -> float | Missing:
    """Return the largest recall under what a price promises for its queries.

    Args:
        price: the promise.
        blind: K/N, the recall of blind choice, in (0, 1].

    Returns:
        Missing without a finite epsilon, and for more than ``LARGEST_QUERIES``.
    """
    if price.epsilon is None:
        return Missing("there is no finite epsilon")
    if price.queries > LARGEST_QUERIES:
        return Missing(f"more than {LARGEST_QUERIES} queries")
    return largest_recall(price.epsilon, price.delta, price.queries, blind)


def _hockey_stick(trials: int, more: float, less: float, epsilon: float) -> float:
    """Return ``max over t of P[A >= t] - e^epsilon P[B >= t]``, A ~ Bin(n, more), B ~ Bin(n, less).

    The likelihood ratio rises with t, so the sum of all positive differences begins at the first t
    whose ratio exceeds e^epsilon.
    """
    if less <= 0:
        return -math.expm1(trials * math.log1p(-more)) if more < 1 else 1.0
    if more >= 1:
        # A is n always; B is n with probability less^n.
        return 1 - math.exp(min(0.0, epsilon + trials * math.log(less)))
    up, down = math.log(more / less), math.log1p(-more) - math.log1p(-less)
    if up - down <= 0:
        return 0.0
    start = max(0, math.floor((epsilon - trials * down) / (up - down)) + 1)
    if start > trials:
        return 0.0
    tail_more = _upper_tail(trials, more, start)
    log_tail_less = _log_upper_tail(trials, less, start) + epsilon
    return max(0.0, tail_more - math.exp(min(0.0, log_tail_less)))


def _upper_tail(trials: int, rate: float, start: int) -> float:
    if start == 0:
        return 1.0
    if start > trials * rate:
        return math.exp(_log_upper_tail(trials, rate, start))
    # P[X <= start - 1], which is P[n - X >= n - start + 1].
    return 1 - math.exp(_log_upper_tail(trials, 1 - rate, trials - start + 1))


def _log_upper_tail(trials: int, rate: float, start: int) -> float:
    """Return ``ln P[X >= start]`` by the first term and the ratios of the following ones."""
    if start == 0:
        return 0.0
    if start <= trials * rate:
        return math.log(_upper_tail(trials, rate, start))
    term = total = 1.0
    odds = rate / (1 - rate)
    for successes in range(start, trials):
        term *= (trials - successes) / (successes + 1) * odds
        total += term
        if term < _NEGLIGIBLE * total:
            break
    first = (
        math.lgamma(trials + 1)
        - math.lgamma(start + 1)
        - math.lgamma(trials - start + 1)
        + start * math.log(rate)
        + (trials - start) * math.log1p(-rate)
    )
    return min(0.0, first + math.log(total))
