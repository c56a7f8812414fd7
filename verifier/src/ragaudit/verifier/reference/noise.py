"""The noise: discrete Gaussian values from a key stream (spec 3)."""

import re
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, floor, isqrt
from typing import NamedTuple

from .chacha20 import BLOCK_BYTES, key_stream
from .errors import InvalidNoiseRequest

SCORE_UNIT = 127**2  # B², lattice units per unit of score
SMALLEST_UNITS, LARGEST_UNITS, DIRECT_UNITS = 16, 2**40, 512
LARGEST_FACTOR = 256
TABLE_BITS = 128
WORD_BYTES = TABLE_BITS // 8
LARGEST_STREAM = BLOCK_BYTES * 2**32
_SIGMA = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,12})?", re.ASCII)


class Sampler(NamedTuple):
    """A built table (spec 3.1, 3.2)."""

    levels: int  # L
    factor: int  # K
    half_width: int  # w
    thresholds: tuple[int, ...]  # T_(-w), .., T_(w-1)


def sample_noise(sigma: str, key: bytes, count: int) -> list[int]:
    """z_0, ..., z_(count-1), in lattice units.

    Args:
        sigma: the policy's decimal string.
        key: 32 bytes.
        count: number of rows, count >= 0.

    Raises:
        InvalidNoiseRequest: sigma, key or count outside spec 3.
    """
    sampler = build_sampler(sigma)
    size = WORD_BYTES * (sampler.levels + 1)
    if len(key) != 32 or not 0 <= count * size <= LARGEST_STREAM:
        raise InvalidNoiseRequest("the key must have 32 bytes, and the stream at most 2^38")
    stream = key_stream(key, count * size)
    return [_sample(sampler, stream[at : at + size]) for at in range(0, count * size, size)]


def _sample(sampler: Sampler, data: bytes) -> int:
    """Spec 3.4: sum of x_j K^j, each x_j looked up with 16 bytes."""
    value = 0
    for level in range(sampler.levels + 1):
        word = int.from_bytes(data[WORD_BYTES * level : WORD_BYTES * (level + 1)], "little")
        x = bisect_right(sampler.thresholds, word) - sampler.half_width
        value += x * sampler.factor**level
    return value


@lru_cache(maxsize=8)
def build_sampler(sigma: str) -> Sampler:
    """The levels, the factor and the table for ``sigma``.

    Raises:
        InvalidNoiseRequest: not a decimal of the policy's form, or out of range.
    """
    if not _SIGMA.fullmatch(sigma):
        raise InvalidNoiseRequest("sigma must be a decimal string such as 0.25")
    units = Fraction(sigma) * SCORE_UNIT
    if not SMALLEST_UNITS <= units <= LARGEST_UNITS:
        raise InvalidNoiseRequest("sigma·B² must be in 16..2^40")
    levels, factor = _convolution(units)
    variance = units**2 / _geometric(factor, levels) if levels else units**2
    half_width = isqrt(ceil(169 * variance) - 1) + 1  # the least w with w² >= 169 s²
    return Sampler(levels, factor, half_width, _thresholds(variance, half_width))


def _geometric(factor: int, levels: int) -> int:
    """1 + K² + ... + K^(2L)."""
    return sum(factor ** (2 * j) for j in range(levels + 1))


def _convolution(units: Fraction) -> tuple[int, int]:
    """(L, K) of spec 3.1."""
    if units <= DIRECT_UNITS:
        return 0, 1

    def fits(factor: int, levels: int) -> bool:
        return units**2 >= 4 * (1 + factor**2) * _geometric(factor, levels)

    levels = 1
    while fits(LARGEST_FACTOR + 1, levels):
        levels += 1
    return levels, max(k for k in range(1, LARGEST_FACTOR + 1) if fits(k, levels))


def _thresholds(variance: Fraction, half_width: int) -> tuple[int, ...]:
    """T_v for -w <= v < w; the precision is doubled until every floor is certain."""
    precision = 4 * TABLE_BITS
    while True:
        lower, upper = _weights(variance, half_width, precision)
        below = [*reversed(lower[1:]), *lower]
        above = [*reversed(upper[1:]), *upper]
        smallest, largest = sum(below), sum(above)
        low = [(part << TABLE_BITS) // largest for part in accumulate(below[:-1])]
        high = [(part << TABLE_BITS) // smallest for part in accumulate(above[:-1])]
        if low == high:
            return tuple(low)
        precision *= 2


def _weights(variance: Fraction, half_width: int, precision: int) -> tuple[list[int], list[int]]:
    """Integers below and above 2^precision · exp(-v²/(2s²)), for v = 0..w.

    p_(v+1) = p_v · q^(2v+1) with q = exp(-1/(2s²)); each product is rounded outwards.
    """
    exponent = 1 / (2 * variance)
    q = _exp_minus(exponent, precision)
    square = _product(q, q, precision)
    ratio, weight = q, (1 << precision, 1 << precision)
    weights = [weight]
    for _ in range(half_width):
        weight = _product(weight, ratio, precision)
        ratio = _product(ratio, square, precision)
        weights.append(weight)
    return [low for low, _ in weights], [high for _, high in weights]


def _product(a: tuple[int, int], b: tuple[int, int], precision: int) -> tuple[int, int]:
    """Product of two non-negative intervals of fixed-point numbers."""
    return a[0] * b[0] >> precision, -(-a[1] * b[1] >> precision)


def _exp_minus(exponent: Fraction, precision: int) -> tuple[int, int]:
    """An interval around 2^precision · exp(-exponent), 0 < exponent < 1.

    The series alternates with falling terms, so two neighbouring partial sums enclose its value.
    """
    partial, term, order = Fraction(1), Fraction(1), 0
    while True:
        order += 1
        term = term * exponent / order
        previous, partial = partial, partial - term if order % 2 else partial + term
        if term < Fraction(1, 1 << precision + 8):
            break
    low, high = sorted((previous, partial))
    return floor(low * 2**precision), ceil(high * 2**precision)
