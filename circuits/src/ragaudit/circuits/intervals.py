"""Non-negative fixed-point intervals with directed rounding, in integers only.

An :class:`Interval` ``(low, high)`` at ``bits`` stands for the reals in
``[low / 2^bits, high / 2^bits]``. Every operation encloses the exact result.
"""

from fractions import Fraction
from typing import NamedTuple


class Interval(NamedTuple):
    """Enclosure of a real number >= 0 in units of ``2^-bits`` (bits is the caller's).

    Attributes:
        low, high: its ends, both included.
    """

    low: int
    high: int


def enclose(value: Fraction, bits: int) -> Interval:
    """Return the tightest interval around a rational >= 0.

    Args:
        value: at least 0.
        bits: of the interval.
    """
    scaled = value.numerator << bits
    return Interval(scaled // value.denominator, -(-scaled // value.denominator))


def multiply(a: Interval, b: Interval, bits: int) -> Interval:
    """Return an enclosure of the product of two intervals at ``bits``.

    Args:
        a, b: at ``bits``, as is the result.
        bits: of all three intervals.
    """
    # Each end is rounded away from the product: a bound made of these is never too small.
    return Interval((a.low * b.low) >> bits, -((-a.high * b.high) >> bits))


def exp_negative(value: Fraction, bits: int) -> Interval:
    """Return an enclosure of ``exp(-value)`` for ``value >= 0``.

    The argument is halved until it is at most 1/2, the alternating series is summed until
    its next term is below one unit (which bounds the remainder), and the result squared back.

    Args:
        value: at least 0.
        bits: of the interval.
    """
    halvings = max(0, (2 * value.numerator // value.denominator).bit_length())
    argument = enclose(value / 2**halvings, bits)
    total = Interval(0, 0)
    term = Interval(1 << bits, 1 << bits)
    order = 0
    while term.high > 1:
        if order % 2 == 0:
            total = Interval(total.low + term.low, total.high + term.high)
        else:
            total = Interval(total.low - term.high, total.high - term.low)
        order += 1
        product = multiply(term, argument, bits)
        term = Interval(product.low // order, -(-product.high // order))
    result = Interval(max(0, total.low - term.high), total.high + term.high)
    for _ in range(halvings):
        result = multiply(result, result, bits)
    return result
