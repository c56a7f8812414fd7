"""The one way in for numbers: every public function reads its arguments here.

    exact(value, "epsilon")     any kind of number as the rational that it is
    real(value, "epsilon")      the nearest binary number, for numerical code
    decimal(value, "mu")        80 digits, for accounting
    count(value, "records")     a whole number
    instance(value, Kind, "x")  an object of a kind

Errors name the argument, and say whether its type or its range is wrong.
"""

import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, Final, TypedDict, TypeVar, Unpack

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.normal import decimal_of

Number = int | float | str | Fraction | Decimal
"""What :func:`exact` reads. A float stands for the binary number that it is."""

Bound = int | Fraction
"""An end of a range: exact, so that it compares with every kind of number."""


class Range(TypedDict, total=False):
    """The ends of a range: ``>= least``, ``> above``, ``<= most`` and ``< below``."""

    least: Bound
    above: Bound
    most: Bound
    below: Bound


_ENDS: Final[dict[str, tuple[str, Callable[[Any, Any], bool]]]] = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}

LARGEST_COUNT: Final = 10**15
"""Whole numbers up to here are binary numbers too, and so are their quotients."""

# A short text may name a number of 10^9 digits: what is computed with it would never end.
_LARGEST_EXPONENT: Final = 10_000
_LARGEST_BITS: Final = 33_220
_LONGEST_TEXT: Final = 1_000
_LONGEST_SHOWN: Final = 40
# No nan, no underscores, no exponent of six digits: Decimal and Fraction read more than that.
_TEXT: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?|[+-]?[0-9]+/[0-9]+", re.ASCII
)
_KINDS: Final = "an int, float, str, Decimal or Fraction"

T = TypeVar("T")


def exact(value: object, where: str, **ends: Unpack[Range]) -> Fraction:
    """Return a finite number as the rational that it is.

    Args:
        value: an int, float, Fraction, Decimal, a number of NumPy, or text such as "0.25", "1e-6"
            or "1/3"; never a bool.
        where: the argument's name, for the error.
        ends: of the range, each may be left out.

    Raises:
        InvalidArgumentError: another type, text that is no number, NaN, infinite, beyond
            10^±10000, or out of range.
    """
    number = value if type(value) is Fraction else _exact(value, where)
    _check_range(number, value, where, ends)
    return number


def real(value: object, where: str, **ends: Unpack[Range]) -> float:
    """Return a number as the nearest binary one.

    Args:
        value, where, ends: as for :func:`exact`.

    Raises:
        InvalidArgumentError: as for :func:`exact`, and for a number beyond all binary ones.
    """
    # Already the binary number that is wanted: by way of a fraction it would be the same.
    if type(value) is float and math.isfinite(value):
        number = value
    else:
        try:
            number = float(_exact(value, where))
        except OverflowError:
            raise InvalidArgumentError(
                "beyond all binary numbers", where=where, expected="at most 1e308"
            ) from None
    _check_range(number, value, where, ends)
    return number


def decimal(value: object, where: str, **ends: Unpack[Range]) -> Decimal:
    """Return a number to 80 digits, a Decimal as it is.

    Args:
        value, where, ends: as for :func:`exact`.

    Raises:
        InvalidArgumentError: as for :func:`exact`.
    """
    if isinstance(value, Decimal) and value.is_finite():
        number = value  # as it is: internal values may be smaller than what is read from outside
    else:
        number = decimal_of(_exact(value, where))
    _check_range(number, value, where, ends)
    return number


def count(value: object, where: str, *, least: int = 1, most: int | None = LARGEST_COUNT) -> int:
    """Return a whole number of [least, most] as an int.

    Args:
        value: an int, or an integer of NumPy; never a bool, a float or text.
        where: the argument's name, for the error.
        least, most: both included; None for no upper end.

    Raises:
        InvalidArgumentError: another type, or out of range.
    """
    # A whole float is refused, too: it may be the rounding of a number that is not whole.
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InvalidArgumentError(
            f"not a whole number: type {type(value).__name__}", where=where, expected="an int"
        )
    number = int(value)
    if number < least or (most is not None and number > most):
        expected = f"at least {least}" if most is None else f"{least} to {most}"
        raise InvalidArgumentError(
            f"{shown(number)} is out of range", where=where, expected=expected
        )
    return number


def instance(value: object, kind: type[T] | tuple[type[Any], ...], where: str) -> None:
    """Check that an object is of a kind.

    Args:
        value: the argument.
        kind: a class, or several of which one is enough.
        where: the argument's name, for the error.

    Raises:
        InvalidArgumentError: an object of another type; ``where`` is the argument's name.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise InvalidArgumentError(
            f"wrong type: {type(value).__name__}",
            where=where,
            expected=" or ".join(expected_kind.__name__ for expected_kind in kinds),
        )


def sequence(value: object, where: str) -> list[Any]:
    """Return the items of a list, a tuple, or another finite ordered collection.

    Args:
        value: the argument.
        where: its name, for the error.

    Raises:
        InvalidArgumentError: text, a mapping or set, or what cannot be iterated over.
    """
    # Text and mappings can be iterated over, and the items would be read as numbers.
    if isinstance(value, str | bytes | dict | set | frozenset):
        raise InvalidArgumentError(
            f"wrong type: {type(value).__name__}", where=where, expected="a list or a tuple"
        )
    try:
        return [*value]  # type: ignore[misc]
    except TypeError:
        raise InvalidArgumentError(
            f"wrong type: {type(value).__name__}", where=where, expected="a list or a tuple"
        ) from None


def shown(value: object) -> str:
    """Return a value for an error message, cut to 40 characters.

    Args:
        value: of any kind, also a hostile one: no number is printed with all its digits.
    """
    # Printing a number takes time that is quadratic in its digits.
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    if (
        isinstance(value, Fraction)
        and max(value.numerator.bit_length(), value.denominator.bit_length()) > 128
    ):
        return "a long fraction"
    text = str(value) if isinstance(value, int | float | Fraction | Decimal) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _exact(value: object, where: str) -> Fraction:
    match value:
        # A bool is a Rational: True would be an epsilon of 1.
        case bool():
            raise _wrong_type(value, where)
        case str():
            return _of_text(value, where)
        case Decimal():
            return _of_decimal(value, where)
        case Rational():
            numerator, denominator = int(value.numerator), int(value.denominator)
            if max(numerator.bit_length(), denominator.bit_length()) > _LARGEST_BITS:
                raise _too_long(where)
            return Fraction(numerator, denominator)
        case Real():
            number = float(value)
            if not math.isfinite(number):
                raise _not_finite(number, where)
            return Fraction(number)
        case _:
            raise _wrong_type(value, where)


def _of_decimal(value: Decimal, where: str) -> Fraction:
    if not value.is_finite():
        raise _not_finite(value, where)
    digits, exponent = len(value.as_tuple().digits), value.adjusted() if value else 0
    # Before the conversion: 1e999999999 as a fraction would fill the memory.
    if max(digits, abs(exponent)) > _LARGEST_EXPONENT:
        raise _too_long(where)
    return Fraction(value)


def _of_text(text: str, where: str) -> Fraction:
    # The length first: the cost of a match must not be the sender's to choose.
    if len(text) > _LONGEST_TEXT or _TEXT.fullmatch(text) is None:
        raise InvalidArgumentError(
            f"not a number: {shown(text)}", where=where, expected="as 0.25, 1e-6 or 1/3"
        )
    if "/" not in text:
        return _of_decimal(Decimal(text), where)
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidArgumentError(
            f"not a number: {shown(text)}", where=where, expected="as 0.25, 1e-6 or 1/3"
        ) from None


def _wrong_type(value: object, where: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"not a number: type {type(value).__name__}", where=where, expected=_KINDS
    )


def _not_finite(value: object, where: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"not finite: {value}", where=where, expected="a finite number")


def _too_long(where: str) -> InvalidArgumentError:
    return InvalidArgumentError("a number too long", where=where, expected="10^-10000 to 10^10000")


def _check_range(number: Any, value: object, where: str, ends: Range) -> None:
    if not all(_ENDS[name][1](number, end) for name, end in ends.items()):
        # All ends at once, so that a corrected argument does not meet the next error.
        expected = ", ".join(f"{_ENDS[name][0]} {shown(end)}" for name, end in ends.items())
        raise InvalidArgumentError(
            f"{shown(value)} is out of range", where=where, expected=expected
        )
