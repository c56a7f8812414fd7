"""The normal law in decimal arithmetic: the same digits on every machine.

Reports are compared for equality when somebody re-checks them, so nothing in them may depend
on a platform's math library. ``decimal`` is exactly specified (General Decimal Arithmetic;
``exp``, ``ln`` and ``sqrt`` are correctly rounded), and 80 digits leave room to round up.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

DIGITS = 80
CONTEXT = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)

PI = Decimal(
    "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253"
)

# Below this the Taylor series serves, from there on the continued fraction.
_SERIES_END = Decimal(6)

P = ParamSpec("P")
T = TypeVar("T")


def precise(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, run under the 80-digit context whatever the caller's context is.

    Args:
        function: pure; its result must not depend on the caller's precision.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        # In a caller's context of 28 digits the stated error bounds would not hold.
        with localcontext(CONTEXT):
            return function(*args, **kwargs)

    return run


@precise
def decimal_of(value: Fraction) -> Decimal:
    """Return a rational to 80 digits.

    Args:
        value: any rational; its size is not bounded here.
    """
    return Decimal(value.numerator) / Decimal(value.denominator)


@precise
def root_up(square: Fraction) -> Decimal:
    """Return a square root to 80 digits, rounded up by a relative 1e-70 if it is not exact.

    Args:
        square: >= 0.
    """
    root = decimal_of(square).sqrt()
    # Checked exactly: a root that is too small would make mu too small.
    return root if Fraction(root) ** 2 >= square else root * (1 + Decimal("1e-70"))


@precise
def density(x: Decimal) -> Decimal:
    """Return ``exp(-x²/2) / sqrt(2 π)``; zero is never returned by underflow.

    Args:
        x: any finite number.
    """
    return (-x * x / 2).exp() / (2 * PI).sqrt()


@precise
def tail(x: Decimal) -> Decimal:
    """Return ``P[N(0,1) > x]`` with a relative error below 1e-60 for |x| <= 10^6.

    Args:
        x: in [-10^6, 10^6] for that error; beyond it fewer digits hold.
    """
    if x < 0:
        # The reflected tail is at most one half: taken from 1, it costs no digits.
        return 1 - tail(-x)
    return mills(x) * density(x)


@precise
def cdf(x: Decimal) -> Decimal:
    """Return ``P[N(0,1) <= x]``.

    Args:
        x: as for :func:`tail`, with the same error.
    """
    return tail(-x)


@precise
def mills(x: Decimal) -> Decimal:
    """Return Mills' ratio ``tail(x) / density(x)`` for x >= 0.

    Below 6: ``sqrt(π/2) exp(x²/2) - sum x^(2k+1)/(2k+1)!!``, which loses 9 digits at most.
    From 6 on: Laplace's continued fraction ``1/(x + 1/(x + 2/(x + 3/(x + ...))))``, whose
    consecutive convergents enclose the value; 9000/x² + 60 terms leave less than 1e-70.

    Args:
        x: >= 0.
    """
    # The series loses all digits for large x, the fraction converges too slowly for small ones.
    if x >= _SERIES_END:
        value = x
        terms = int(9000 / (x * x)) + 60
        for term in range(terms, 0, -1):
            value = x + term / value
        return 1 / value
    total = Decimal(0)
    term_value = x
    odd = 1
    while term_value > Decimal("1e-90"):
        total += term_value
        odd += 2
        term_value = term_value * x * x / odd
    return (PI / 2).sqrt() * (x * x / 2).exp() - total


@lru_cache(maxsize=256)
@precise
def quantile(probability: Decimal) -> Decimal:
    """Return x with ``tail(x) = probability`` to 40 places, for 0 < probability < 1.

    Args:
        probability: strictly between 0 and 1.

    Raises:
        ValueError: a probability outside (0, 1).
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability {probability} is not inside (0, 1)")
    if probability == Decimal("0.5"):
        return Decimal(0)
    # By symmetry: Newton's method below needs an x that is not negative.
    if probability > Decimal("0.5"):
        return -quantile(1 - probability)
    # ln(tail) is concave and falls: Newton's first step passes the root, the others approach it.
    goal = probability.ln()
    x = Decimal(0)
    while True:
        ratio = mills(x)
        step = ratio * (ratio.ln() - x * x / 2 - (2 * PI).ln() / 2 - goal)
        x += step
        if abs(step) < Decimal("1e-45"):
            return x
