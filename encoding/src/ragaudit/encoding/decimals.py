"""Decimal strings of policies and reports (docs/spec/01-encoding.md §1.8)."""

import re
from fractions import Fraction

from ragaudit.encoding.errors import MalformedError

MAX_PLACES = 12

_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,12})?", re.ASCII)


def parse_decimal(text: str) -> Fraction:
    """Return the exact value of a decimal string, e.g. ``"0.25"``.

    The grammar is ``(0|[1-9][0-9]{0,8})(\\.[0-9]{1,12})?``: no sign, exponent, spaces or
    leading zeros, so no comparison of two policies' numbers ever meets a binary float.

    Raises:
        MalformedError: ``text`` is not of that form.
    """
    if not isinstance(text, str) or not is_decimal(text):
        raise MalformedError("not a decimal", expected="digits with at most 12 places, as 0.25")
    return Fraction(text)


def is_decimal(text: str) -> bool:
    """Return whether ``text`` is a decimal string of :func:`parse_decimal`'s grammar."""
    return _DECIMAL.fullmatch(text) is not None


def ceil_decimal(value: Fraction, places: int) -> str:
    """Return the least decimal with ``places`` places that is not below ``value``."""
    return _scaled(-((-value * 10**places) // 1), places)


def floor_decimal(value: Fraction, places: int) -> str:
    """Return the greatest decimal with ``places`` places that is not above ``value``."""
    return _scaled(value * 10**places // 1, places)


def _scaled(count: int, places: int) -> str:
    sign = "-" if count < 0 else ""
    whole, part = divmod(abs(count), 10**places)
    return f"{sign}{whole}.{part:0{places}d}" if places else f"{sign}{whole}"
