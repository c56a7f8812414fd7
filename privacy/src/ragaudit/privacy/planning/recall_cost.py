"""What a recall costs, and which recall no mechanism with fresh noise can exceed.

`cost_of_recall` looks a recall up in a simulation. `largest_recall` knows no score, corpus or
sigma: a row that answers a question is returned with probability R, recall; a row that does not
with K/N, as any of the others. Replace the first by the second: over m questions with independent
noise the number of times that it is returned changes from Binomial(m, R) to Binomial(m, K/N), and
an attacker may count. So both have to be (epsilon, delta)-indistinguishable, whatever the mechanism
is (docs/notes/accounting.md, claim 25).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import floor_decimal
from ragaudit.privacy.numbers import Number, count, real
from ragaudit.privacy.planning.price import (
    Missing,
    Price,
    Targets,
    price_of_account,
    price_of_coalition,
)
from ragaudit.privacy.planning.retrieval import Simulation

__all__ = [
    "LARGEST_QUERIES",
    "Cost",
    "RecallCost",
    "ceiling_of",
    "cost_of_recall",
    "largest_recall",
]


@dataclass(frozen=True)
class Cost:
    """A sigma (decimal, cosine units) and what it promises.

    Attributes:
        account: one account's r queries, at ``delta``.
        coalition: the queries of ``coalition`` accounts in all windows, at ``delta_policy``.
    """

    sigma: str
    account: Price
    coalition: Price


@dataclass(frozen=True)
class RecallCost:
    """What a recall costs. Where the largest sigma is larger, epsilon is smaller.

    Attributes:
        recall: wanted, 0 to 1.
        best: at the estimated curve; None if no simulated sigma reaches the recall.
        sure: at the lower end of the intervals: enough recall with confidence; None as above.
        hopeful: at their upper end; None if not even that reaches the recall.
        beyond: the largest simulated sigma still has this recall: ``best`` is then that sigma,
            and more noise than that may do.
    """

    recall: float
    best: Cost | None
    sure: Cost | None
    hopeful: Cost | None
    beyond: bool


def cost_of_recall(simulation: Simulation, targets: Targets, recall: float) -> RecallCost:
    """Return the largest sigma that keeps a recall, and its epsilon.

    More noise cannot help, so the estimates are first made to fall with sigma (isotonic
    regression; the ends of the intervals by running minimum and maximum), then interpolated
    linearly in the logarithm of sigma. The interval is the pointwise one carried through.

    Args:
        recall: in (0, 1].

    Raises:
        MalformedError: recall out of range.
    """
    if not 0 < recall <= 1:
        raise MalformedError(f"recall is {recall}", where="recall", expected="above 0, at most 1")
    # Imported here: half a second, and only a simulation needs it.
    from scipy.optimize import isotonic_regression  # noqa: PLC0415

    points = simulation.points
    sigmas = [float(Fraction(point.sigma)) for point in points]
    mean = isotonic_regression([point.recall.mean for point in points], increasing=False).x
    low = np.minimum.accumulate([point.recall.low for point in points])
    high = np.maximum.accumulate([point.recall.high for point in points][::-1])[::-1]
    best, sure, hopeful = (
        _cost(targets, _crossing(sigmas, curve, recall)) for curve in (mean, low, high)
    )
    return RecallCost(recall, best, sure, hopeful, beyond=bool(mean[-1] >= recall))


def _crossing(
    sigmas: Sequence[float], curve: npt.NDArray[np.float64], recall: float
) -> float | None:
    """Return the largest sigma up to which a falling curve stays at least ``recall``."""
    reached = int(np.count_nonzero(curve >= recall))
    if reached == 0:
        return None
    if reached == len(sigmas):
        return sigmas[-1]
    above, below = float(curve[reached - 1]), float(curve[reached])
    share = (above - recall) / (above - below)
    ends = math.log(sigmas[reached - 1]), math.log(sigmas[reached])
    return math.exp(ends[0] + share * (ends[1] - ends[0]))


def _cost(targets: Targets, sigma: float | None) -> Cost | None:
    if sigma is None:
        return None
    # Four digits, rounded down: less noise than interpolated, a larger epsilon.
    places = max(0, 3 - math.floor(math.log10(sigma)))
    text = floor_decimal(Fraction(sigma), places)
    return Cost(
        text,
        price_of_account(targets, text),
        price_of_coalition(targets, text, windows=targets.windows),
    )


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
    # The upper end is returned: what nobody can exceed is rounded up.
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
    # Equal rates: no count tells the two apart.
    if up - down <= 0:
        return 0.0
    start = max(0, math.floor((epsilon - trials * down) / (up - down)) + 1)
    # No count has so large a ratio: e^epsilon covers all of them.
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
        # By ratios: the binomial coefficients themselves exceed every float.
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
