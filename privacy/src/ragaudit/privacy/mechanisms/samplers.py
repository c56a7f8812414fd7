"""What a mechanism draws: an interface, coins that follow from a key, and the laws behind them.

Mechanisms get their coins from outside. A test scripts them, and a trace on paper replays exactly;
a service takes them from the key of the record, and an auditor who is given the key recomputes
every one. Laws of integers are drawn from uniform numbers of 256 bits: exact thresholds, one draw a
sample. A threshold is ``floor(2^128 · F(n))`` for the law's distribution function F, as for the
noise of scores (spec 3.2), and is compared with the upper 128 bits of the draw. Floors are taken of
real numbers: a value is computed with an error bound, and with more digits while an integer lies
within it, so that all builders agree. Each sampler's distance from its law is below 2^-100 (11.2).
"""

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate
from typing import Protocol

from ragaudit.encoding.errors import InternalError, InvalidArgumentError
from ragaudit.privacy.numbers import count, exact

LARGEST_SCALE = 2**16
"""Of the Laplace law: the sum of the roundings of all thresholds stays below 2^-104."""

LARGEST_DEVIATION = 2**12
"""Of the Gaussian law: its table is built when it is needed, entry by entry."""

LARGEST_EXPONENT = 44
"""Least utility to most, over the scale: no weight is rounded to 0, nor by a factor of 2^-63."""

_BITS = 128
_DIGITS = 80
_MOST_DIGITS = 640
# Tails of e^-90 and of 14 deviations lie below 2^-128: the largest results are cut to them.
_LAPLACE_TAIL = 90
_GAUSSIAN_TAIL = 14


def laplace(uniform: int, scale: Fraction) -> int:
    """Return n with probability proportional to ``exp(-|n|/scale)``.

    Args:
        uniform: 0 to 2^256 - 1.
        scale: above 0, at most `LARGEST_SCALE`.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    draw = _draw(uniform)
    scale = exact(scale, "scale", above=0, most=LARGEST_SCALE)
    width = int(_LAPLACE_TAIL * scale) + 1
    # The least n with draw < floor(2^128 F(n)): F in closed form, so that no table is needed.
    low, high = -width, width
    while low < high:
        middle = (low + high) // 2
        if draw < _laplace_threshold(middle, scale):
            high = middle
        else:
            low = middle + 1
    return low


@lru_cache(maxsize=65_536)
def _laplace_threshold(n: int, scale: Fraction) -> int:
    # F(n) = q^-n/(1+q) below 0, and 1 - q^(n+1)/(1+q) from 0 on, with q = exp(-1/scale).
    power = Fraction(n if n < 0 else -n - 1) / scale

    def value() -> Decimal:
        part = _exp(power) / (1 + _exp(-1 / scale))
        return part if n < 0 else 1 - part

    return _floor(value)


def gaussian(uniform: int, deviation: Fraction) -> int:
    """Return n with probability proportional to ``exp(-n²/(2 deviation²))``.

    Args:
        uniform: 0 to 2^256 - 1.
        deviation: above 0, at most `LARGEST_DEVIATION`.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    draw = _draw(uniform)
    first, thresholds = _gaussian_table(deviation)
    return first + bisect_right(thresholds, draw)


def gaussian_threshold(deviation: Fraction, failure: Fraction) -> int:
    """Return the least c with ``P[n > c] <= failure`` for the law of :func:`gaussian`.

    Computed from the very table that is sampled from, with its distance set aside.

    Args:
        deviation: as for :func:`gaussian`.
        failure: 2^-90 to 1/2.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    failure = exact(failure, "failure", least=Fraction(1, 2**90), most=Fraction(1, 2))
    first, thresholds = _gaussian_table(deviation)
    # P[n <= v] = T_v / 2^128 by the table; the law itself is within 2^-100 of it.
    needed = 2**_BITS * (1 - failure + Fraction(1, 2**100))
    for position, threshold in enumerate(thresholds):
        if threshold >= needed:
            return first + position
    return first + len(thresholds)


@lru_cache(maxsize=256)
def _gaussian_table(deviation: Fraction) -> tuple[int, list[int]]:
    deviation = exact(deviation, "deviation", above=0, most=LARGEST_DEVIATION)
    width = int(_GAUSSIAN_TAIL * deviation) + 2
    values = range(-width, width + 1)

    # At each precision once: all thresholds are parts of one list of sums.
    @cache
    def sums(_: int) -> list[Decimal]:
        return list(accumulate(_exp(-Fraction(v * v) / (2 * deviation**2)) for v in values))

    def threshold(position: int) -> int:
        def value() -> Decimal:
            partial = sums(getcontext().prec)
            return partial[position] / partial[-1]

        return _floor(value)

    return -width, [threshold(position) for position in range(len(values) - 1)]


def exponential(
    uniform: int, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
) -> int:
    """Return a candidate of ``range(size)``, of weight ``floor(2^128 exp((u - most)/scale))``.

    Over all candidates, also those of which nobody spoke: a draw among the observed ones would tell
    which they are.

    Args:
        uniform: 0 to 2^256 - 1.
        utilities: of the candidates whose utility is not 0, each in [0, most].
        size: of the candidates, >= 1, at most 2^32.
        most: the largest utility that any data can give, >= 0.
        scale: above 0; ``most/scale`` is at most `LARGEST_EXPONENT`.

    Raises:
        InvalidArgumentError: a value out of its range, or a candidate that is none.
    """
    draw = count(uniform, "uniform", least=0, most=2**256 - 1)
    count(size, "size", most=2**32)
    scale = exact(scale, "scale", above=0)
    if most > LARGEST_EXPONENT * scale:
        raise InvalidArgumentError(
            "weights as small as that are rounded", where="scale", expected="a larger scale"
        )
    listed = sorted(utilities)
    if listed and not 0 <= listed[0] <= listed[-1] < size:
        raise InvalidArgumentError(
            "no such candidate", where="utilities", expected=f"0..{size - 1}"
        )
    weights = {each: _weight(utilities[each], most, scale) for each in listed}
    rest = _weight(Fraction(0), most, scale)
    total = sum(weights.values()) + rest * (size - len(listed))
    point = draw * total >> 256
    # In the order of the candidates; between two listed ones all weights are equal.
    place = 0
    for candidate in listed:
        between = rest * (candidate - place)
        if point < between:
            return place + point // rest
        point -= between
        if point < weights[candidate]:
            return candidate
        point -= weights[candidate]
        place = candidate + 1
    return place + point // rest


def weights(utilities: Sequence[Fraction], *, most: int, scale: Fraction) -> list[int]:
    """Return the weights of :func:`exponential`, each 1 to 2^128.

    Args:
        utilities: each in [0, most].
        most, scale: as for :func:`exponential`.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    return [_weight(utility, most, scale) for utility in utilities]


@lru_cache(maxsize=65_536)
def _weight(utility: Fraction, most: int, scale: Fraction) -> int:
    exponent = (exact(utility, "utilities", least=0, most=most) - most) / scale
    return _floor(lambda: _exp(exponent)) if exponent else 2**_BITS


def permutation(uniforms: Sequence[int]) -> list[int]:
    """Return ``range(len(uniforms) + 1)`` shuffled, by Fisher and Yates from the last place down.

    Args:
        uniforms: each 0 to 2^256 - 1; at most 2^16.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    count(len(uniforms), "uniforms", least=0, most=2**16)
    order = list(range(len(uniforms) + 1))
    for last, uniform in zip(range(len(uniforms), 0, -1), uniforms, strict=True):
        other = count(uniform, "uniforms", least=0, most=2**256 - 1) * (last + 1) >> 256
        order[last], order[other] = order[other], order[last]
    return order


def _draw(uniform: int) -> int:
    return count(uniform, "uniform", least=0, most=2**256 - 1) >> _BITS


def _exp(exponent: Fraction) -> Decimal:
    return (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def _floor(value: Callable[[], Decimal]) -> int:
    """Return ``floor(2^128 v)`` of an irrational v in (0, 1)."""
    digits = _DIGITS
    while digits <= _MOST_DIGITS:
        with localcontext(Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)):
            scaled = value() * 2**_BITS
            # Fewer than 2^20 operations, each correctly rounded; exponents below 2^14.
            error = Decimal(10) ** (40 + 12 - digits)
            low, high = int(scaled - error), int(scaled + error)
        if low == high:
            return low
        digits *= 2
    raise InternalError("no floor of this threshold is found", where="samplers")


class Coins(Protocol):
    """The draws of one question, in the order in which the mechanism asks for them."""

    def laplace(self, scale: Fraction) -> Fraction:
        """Return noise of the discrete Laplace law, ``P[n]`` proportional to ``exp(-|n|/scale)``.

        Args:
            scale: above 0, in the unit of what the noise is added to.
        """

    def gaussian(self, deviation: Fraction) -> Fraction:
        """Return noise of the discrete Gaussian law, ``P[n]`` as ``exp(-n²/(2 deviation²))``.

        Args:
            deviation: above 0, in the unit of what the noise is added to.
        """

    def choose(
        self, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
    ) -> int:
        """Return a candidate of ``range(size)``, with a weight of ``exp(utility/scale)``.

        The same law as that of the largest utility after Gumbel noise of this scale.

        Args:
            utilities: of the candidates whose utility is not 0.
            size: how many candidates there are, >= 1.
            most: the largest utility that any data can give; public.
            scale: above 0.
        """

    def permutation(self, size: int) -> list[int]:
        """Return ``range(size)`` in a uniformly random order."""


class KeyedCoins:
    """Coins that follow from a key: the same key, the same coins, in both languages.

    Draw number n is HMAC-SHA-256(key, "ragaudit/v1/generation-coin" || 0x00 || le(n, 8)), a number
    of 256 bits, little endian; a permutation takes one draw for each place (spec 11.2).
    """

    def __init__(self, key: bytes, drawn: int = 0) -> None:
        """Start where the question stands.

        Args:
            key: 32 secret bytes, of one record and for nothing else.
            drawn: draws that were used before.
        """
        count(len(key), "key", least=32, most=32)
        self._key = key
        self._drawn = count(drawn, "drawn", least=0)

    def __repr__(self) -> str:
        return f"KeyedCoins(drawn={self._drawn})"

    def laplace(self, scale: Fraction) -> Fraction:
        return Fraction(laplace(self._uniform(), scale))

    def gaussian(self, deviation: Fraction) -> Fraction:
        return Fraction(gaussian(self._uniform(), deviation))

    def choose(
        self, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
    ) -> int:
        return exponential(self._uniform(), utilities, size, most=most, scale=scale)

    def permutation(self, size: int) -> list[int]:
        return permutation([self._uniform() for _ in range(max(0, size - 1))])

    def _uniform(self) -> int:
        message = b"ragaudit/v1/generation-coin\0" + self._drawn.to_bytes(8, "little")
        self._drawn += 1
        return int.from_bytes(hmac.digest(self._key, message, hashlib.sha256), "little")
