"""How far the sampler is from the discrete Gaussian (docs/spec/03-noise.md §3.5).

Recomputed from the table that is actually used, not from how it was made.
"""

from fractions import Fraction

from ragaudit.circuits.noise import (
    THRESHOLD_BITS,
    Interval,
    NoiseParameters,
    Table,
    exp_negative,
    weights,
)
from ragaudit.encoding.errors import InternalError, RejectedError

__all__ = ["GAMMA", "DistanceRejected", "certified_distance", "certify"]

GAMMA = Fraction(1, 2**100)
"""The distance that policies claim and the accounting uses."""

_BITS = 384
# A rational below π² = 9.8696044..., so that exponents are under- and distances overestimated.
_PI_SQUARED_LOW = Fraction(98696, 10000)


class DistanceRejected(RejectedError):
    """A table's law is farther from the discrete Gaussian than claimed."""


def certify(table: Table, claimed: Fraction = GAMMA) -> Fraction:
    """Return the certified distance of ``table``, a total variation.

    Args:
        table: its thresholds are measured, not how they were made.
        claimed: the largest distance that is accepted.

    Raises:
        DistanceRejected: it exceeds ``claimed``.
    """
    actual = certified_distance(table)
    if actual > claimed:
        raise DistanceRejected(
            "noise table is too far from the discrete Gaussian",
            where=f"sigma {table.parameters.sigma}",
            expected=f"total variation at most {float(claimed):.3e}, not {float(actual):.3e}",
        )
    return actual


def certified_distance(table: Table) -> Fraction:
    """Return an upper bound of the total-variation distance of one sample from ``D_S``.

    It holds for a uniform key stream: ``L + 1`` times the table's distance from ``D_s``,
    plus the distances of the ``L`` convolutions.

    Args:
        table: its thresholds are measured, not how they were made.
    """
    levels = table.parameters.levels
    look_ups = (levels + 1) * table_distance(table)
    return look_ups + sum(
        (convolution_distance(table.parameters, level) for level in range(1, levels + 1)),
        Fraction(0),
    )


def table_distance(table: Table) -> Fraction:
    """Return an upper bound of the distance between the table's law and ``D_s``.

    ``1/2 (sum_(|v| <= w) |P[v] - D_s(v)| + D_s[|v| > w])`` with every term rounded up.

    Args:
        table: as of `certified_distance`.
    """
    parameters = table.parameters
    w = parameters.half_width
    half = weights(parameters, _BITS, w + 3)
    tail = _tail_high(half[w + 1], half[w + 2])
    z_low = half[0].low + 2 * sum(p.low for p in half[1 : w + 1])
    z_high = half[0].high + 2 * sum(p.high for p in half[1 : w + 1]) + tail
    # The last value has the mass that is left, so the masses sum to 1 whatever the thresholds are.
    edges = [0, *table.values(), 1 << THRESHOLD_BITS]
    total = Fraction(tail, z_low)
    sum_units = 0  # in units of 2^-_BITS, each rounded up
    for index in range(2 * w + 1):
        mass = (edges[index + 1] - edges[index]) << (_BITS - THRESHOLD_BITS)
        p = half[abs(index - w)]
        low = (p.low << _BITS) // z_high
        high = -((-p.high << _BITS) // z_low)
        # The distance to the end of the enclosure that is farther away.
        sum_units += max(mass - low, high - mass)
    total += Fraction(sum_units, 1 << _BITS)
    return total / 2


def convolution_distance(parameters: NoiseParameters, level: int) -> Fraction:
    """Return the bound ``ε_l / (1 - ε_l)`` of level ``l`` (1 <= l <= L).

    ``ε_l = 2 sum_(j>=1) r^(j²) <= 2 r / (1 - r)`` with ``r = exp(-2 π² t²/K²)``.

    Args:
        parameters: of the sampler.
        level: 1..L.
    """
    s2 = parameters.base_variance
    k2 = parameters.factor**2
    previous = s2 * sum(Fraction(k2) ** i for i in range(level))
    t2_over_k2 = s2 * previous / (s2 + k2 * previous)
    # exp is decreasing: an exponent rounded down to 2^-20 keeps this an upper bound.
    exponent = Fraction(int(2 * _PI_SQUARED_LOW * t2_over_k2 * 2**20), 2**20)
    r = Fraction(exp_negative(exponent, _BITS).high, 1 << _BITS)
    epsilon = 2 * r / (1 - r)
    return epsilon / (1 - epsilon)


def _tail_high(first: Interval, second: Interval) -> int:
    """Return an upper bound of ``2 sum_(v > w) p_v`` from the first two terms beyond the table.

    The ratios p_(v+1)/p_v decrease, so the sum is below the geometric one.
    """
    if first.low <= second.high:
        raise InternalError("too few bits to bound the tail", expected=f"more than {_BITS}")
    return -((-2 * first.high * first.low) // (first.low - second.high))
