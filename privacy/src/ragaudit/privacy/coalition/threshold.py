"""The Hamming threshold of a cosine (docs/spec/07-coalition.md §7.1)."""

from decimal import Decimal, localcontext
from fractions import Fraction

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.numbers import Number, count, exact

__all__ = ["hamming_threshold"]

_DIGITS = 60
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
# Closer than this is equality, which Niven's theorem confines to cos = 1/2 at a third of pi.
_DECIDED = Decimal("1e-50")


def hamming_threshold(theta: Number, bits: int) -> int:
    """Return ``floor(b · arccos(theta) / pi)``: the greatest h with ``cos(pi h/b) >= theta``.

    The comparison is exact, so both sides get the same integer on every machine: for a
    rational theta in (0, 1) and integers h, b, equality holds only for theta = 1/2, 3h = b.

    Args:
        theta: in (0, 1).
        bits: sketch length b, a multiple of 8 from 64 to 512.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    cosine = exact(theta, "theta", above=0, below=1)
    count(bits, "bits", least=64, most=512)
    if bits % 8:
        raise InvalidArgumentError(
            f"{bits} sketch bits", where="bits", expected="a multiple of 8 from 64 to 512"
        )
    low, high = 0, bits // 2  # cos(0) = 1 >= theta, cos(pi/2) = 0 < theta
    while high - low > 1:
        middle = (low + high) // 2
        if _reaches(cosine, middle, bits):
            low = middle
        else:
            high = middle
    return low


def _reaches(cosine: Fraction, distance: int, bits: int) -> bool:
    """Return whether ``cos(pi·distance/bits) >= cosine``."""
    if cosine == Fraction(1, 2) and 3 * distance == bits:
        return True
    with localcontext(prec=_DIGITS):
        difference = _cos(_PI * distance / bits) - Decimal(cosine.numerator) / cosine.denominator
        if abs(difference) < _DECIDED:
            raise InvalidArgumentError(
                "cannot be decided", where="theta", expected="fewer decimal places"
            )
        return difference > 0


def _cos(x: Decimal) -> Decimal:
    """Return the cosine of 0 <= x <= pi/2 by its series, to the digits of the context."""
    total = term = Decimal(1)
    order = 0
    while abs(term) > Decimal("1e-60"):
        order += 2
        term = -term * x * x / (order * (order - 1))
        total += term
    return total
