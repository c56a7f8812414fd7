"""Nested Monte Carlo for continuous records: a cross-check of the quadrature.

Balboa et al., Appendix A.2, with its concentration bound corrected
(docs/notes/disclosure-risk.md §5). Slower and far less exact than ``continuous_advantage``, but it
shares nothing with it: no cells, no distribution function.
"""

import math
from collections.abc import Callable

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.mechanisms import ExponentialMechanism
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.validation import (
    FloatArray,
    check_integer,
    check_non_negative,
    check_positive,
    check_probability,
)

__all__ = ["monte_carlo_advantage", "nested_deviation", "outer_deviation"]


@typed
def monte_carlo_advantage(
    draw: Callable[[int], FloatArray],
    mechanism: ExponentialMechanism,
    eta: float,
    *,
    outer: int,
    inner: int,
    guesses: int,
    generator: np.random.Generator,
) -> float:
    """Estimate the optimal advantage of :func:`continuous_advantage` by sampling.

    For each of ``outer`` outputs, uniform on the mechanism's interval, the mixture and the
    gains are means over ``inner`` fresh records each. Only the exponential mechanism: uniform
    outputs would miss the tails of noise on the whole line.

    Args:
        draw: returns that many independent records of the prior, within the interval.
        eta: largest distance that counts as success, >= 0.
        outer, inner, guesses: >= 2; the guesses are equally spaced over the interval.
        generator: the only other source of randomness.
    """
    reach = check_non_negative(eta, "eta")
    for value, name in ((outer, "outer"), (inner, "inner"), (guesses, "guesses")):
        check_integer(value, name, least=2)
    low, high = mechanism.low, mechanism.high
    centers = np.linspace(low, high, guesses)
    total = 0.0
    for theta in generator.uniform(low, high, outer):
        records = _drawn(draw, inner, mechanism)
        # Records of its own: with those of the gains both means would err together.
        mixture = float(mechanism.density(theta, _drawn(draw, inner, mechanism)).mean())
        records.sort()
        gains = np.concatenate([[0.0], np.cumsum(mechanism.density(theta, records) - mixture)])
        first = np.searchsorted(records, centers - reach, side="left")
        last = np.searchsorted(records, centers + reach, side="right")
        total += float((gains[last] - gains[first]).max()) / inner
    return (high - low) * total / outer


def outer_deviation(
    deviation: float, *, samples: int, largest_density: float, length: float = 1.0
) -> float:
    """Bound P[|estimate - value| > deviation] when only the outer integral is sampled.

    ``2 exp(-N t^2/(2 M^2 L^2))``, at most 1: Hoeffding for summands in [-M, M].

    Args:
        deviation: t >= 0.
        samples: N >= 1.
        largest_density: M > 0.
        length: L > 0, of the interval of outputs.
    """
    t = check_non_negative(deviation, "deviation")
    n = check_integer(samples, "samples", least=1)
    m = check_positive(largest_density, "largest_density")
    return min(1.0, 2 * _tail(n, t / check_positive(length, "length"), m))


def nested_deviation(
    deviation: float,
    *,
    outer: int,
    inner: int,
    guesses: int,
    largest_density: float,
    largest_ball: float,
    length: float = 1.0,
) -> float:
    """Bound P[|estimate - value| >= deviation] of :func:`monte_carlo_advantage`.

    The value is that for the same grid of guesses. A third of the deviation each goes to the
    outer mean, the gains and the mixture; 1 where a third is within the bias of its mean.

    Args:
        deviation: t >= 0.
        outer, inner, guesses: as in the estimate.
        largest_density: M > 0.
        largest_ball: ``kappa_plus`` in (0, 1].
        length: > 0, of the interval of outputs.
    """
    third = check_non_negative(deviation, "deviation") / check_positive(length, "length") / 3
    n = check_integer(outer, "outer", least=1)
    m = check_positive(largest_density, "largest_density")
    per_record = m / math.sqrt(check_integer(inner, "inner", least=1))
    ball = check_positive(check_probability(largest_ball, "largest_ball"), "largest_ball")
    candidates = check_integer(guesses, "guesses", least=1)
    gains = third - per_record * math.sqrt(2 * math.log(2 * candidates))
    mixture = third / ball - per_record / 2
    if min(gains, mixture) <= 0:
        return 1.0
    return min(1.0, 2 * _tail(n, third, m) + _tail(n, gains, m) + _tail(n, mixture, m))


def _tail(samples: int, deviation: float, bound: float) -> float:
    """``exp(-n t^2/(2 M^2))``, for the smallest and the largest numbers too."""
    share = deviation / bound
    return math.exp(-samples / 2 * share * share)


def _drawn(
    draw: Callable[[int], FloatArray], count: int, mechanism: ExponentialMechanism
) -> FloatArray:
    records = np.array(draw(count), dtype=np.float64)
    inside = (records >= mechanism.low) & (records <= mechanism.high)
    if records.shape != (count,) or not inside.all():
        raise InvalidArgumentError(
            "not that many records of the interval", where="draw", expected=f"{count} records"
        )
    return records
