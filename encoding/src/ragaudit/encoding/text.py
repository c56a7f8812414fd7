"""Bytes, decimal numbers and times as text (docs/spec/01-encoding.md §1.5, §1.8)."""

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import groupby
from typing import Final
from unicodedata import ucd_3_2_0

from ragaudit.encoding.errors import MalformedError

__all__ = ["LONGEST_WORD", "words"]

DECIMAL = r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,12})?"
"""The grammar of decimal numbers: no sign, exponent, spaces or leading zeros."""

MAX_PLACES = 12

# Lower case only: keys and digests are compared as text too, and have one spelling.
_HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)
_DECIMAL = re.compile(DECIMAL, re.ASCII)
_RATIO = re.compile(r"(0|[1-9][0-9]{0,11})(?:/([1-9][0-9]{0,11}))?", re.ASCII)
_MOST_RATIO = 10**12 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hex_encode(data: bytes) -> str:
    """Return ``data`` in lower-case hexadecimal."""
    return data.hex()


def hex_decode(text: str, length: int | None = None) -> bytes:
    """Return the bytes of lower-case hexadecimal ``text``.

    Args:
        text: an even number of the digits 0-9a-f, nothing else.
        length: the number of bytes required, if fixed.

    Raises:
        MalformedError: any other character or another length.
    """
    if _HEX.fullmatch(text) is None:
        raise MalformedError("not lower-case hexadecimal", expected="pairs of 0-9a-f")
    return _sized(bytes.fromhex(text), length)


def b64_encode(data: bytes) -> str:
    """Return ``data`` in base64 with padding (RFC 4648 §4)."""
    return base64.b64encode(data).decode("ascii")


def b64_decode(text: str, length: int | None = None) -> bytes:
    """Return the bytes of canonical base64 ``text``; the inverse of :func:`b64_encode`.

    Args:
        text: RFC 4648 §4, with padding.
        length: the number of bytes required, if fixed.

    Raises:
        MalformedError: another alphabet, missing padding, non-zero trailing bits, spaces, or
            another length than ``length``.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedError("not base64", expected="RFC 4648 §4") from error
    # The decoder ignores trailing bits: several texts would stand for the same bytes.
    if b64_encode(data) != text:
        raise MalformedError("base64 is not canonical", expected="RFC 4648 §4 with zero bits")
    return _sized(data, length)


def _sized(data: bytes, length: int | None) -> bytes:
    if length is not None and len(data) != length:
        raise MalformedError("wrong length", expected=f"{length} bytes")
    return data


def parse_decimal(text: str) -> Fraction:
    """Return the exact value of a decimal string, e.g. ``"0.25"``.

    The value is a fraction, so no comparison of two policies' numbers ever meets a binary float.

    Args:
        text: of the grammar `DECIMAL`.

    Raises:
        MalformedError: ``text`` is not of that form.
    """
    if not isinstance(text, str) or not is_decimal(text):
        raise MalformedError("not a decimal", expected="digits with at most 12 places, as 0.25")
    return Fraction(text)


def is_decimal(text: str) -> bool:
    """Return whether ``text`` is a decimal string of :func:`parse_decimal`'s grammar."""
    return _DECIMAL.fullmatch(text) is not None


def parse_ratio(text: str) -> Fraction:
    """Return the exact value of a fraction of one spelling, e.g. ``"1/10"``.

    Args:
        text: numerator and denominator of at most 12 digits, in lowest terms; ``"3"``, not
            ``"3/1"``.

    Raises:
        MalformedError: ``text`` is not of that form.
    """
    found = _RATIO.fullmatch(text)
    value = found and Fraction(int(found[1]), int(found[2] or 1))
    # Python's own reader takes exponents: a few characters would be a number of gigabytes.
    if value is None or str(value) != text:
        raise MalformedError("not a fraction", expected="one in lowest terms, as 1/10")
    return value


def floor_ratio(value: Fraction) -> Fraction:
    """Return a fraction that `parse_ratio` reads and that is not above ``value``.

    It is ``value`` itself where that can be written, else less by at most 10^-11, or by a part in
    10^11, whichever is more.

    Args:
        value: 0 to 10^12 - 1; what is granted, so that it is never granted too large.
    """
    if max(value.numerator, value.denominator) <= _MOST_RATIO:
        return value
    scale = 10**11
    while value * scale > _MOST_RATIO:
        scale //= 10
    return Fraction(value * scale // 1, scale)


def ceil_decimal(value: Fraction, places: int) -> str:
    """Return the least decimal with ``places`` places that is not below ``value``.

    Args:
        value: what is promised, so that it is never promised too small.
        places: after the point, 0 or more.
    """
    return _scaled(-((-value * 10**places) // 1), places)


def floor_decimal(value: Fraction, places: int) -> str:
    """Return the greatest decimal with ``places`` places that is not above ``value``.

    Args:
        value: what is granted, so that it is never granted too large.
        places: after the point, 0 or more.
    """
    return _scaled(value * 10**places // 1, places)


def _scaled(count: int, places: int) -> str:
    sign = "-" if count < 0 else ""
    whole, part = divmod(abs(count), 10**places)
    return f"{sign}{whole}.{part:0{places}d}" if places else f"{sign}{whole}"


def rfc3339(milliseconds: int) -> str:
    """Return a time as ``2026-11-22T08:54:43Z``, with ``.123`` where milliseconds are left over.

    Args:
        milliseconds: since the Unix epoch, any integer; what lies outside the years 1 to 9999
            (a provider may log it) is given as a number, ``253402300800000 ms``.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    exact = milliseconds % 1000 != 0
    text = moment.isoformat(timespec="milliseconds" if exact else "seconds")
    return text.removesuffix("+00:00") + "Z"


LONGEST_WORD: Final = 64
"""Characters: a longer run is no word."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text: runs of letters and digits, normalised and case-folded.

    Args:
        text: any.
    """
    # Before it is folded: what later versions fold would depend on the version at hand.
    known = "".join(each if ucd_3_2_0.category(each) != "Cn" else " " for each in text)
    folded = ucd_3_2_0.normalize("NFKC", known).casefold()
    runs = ("".join(run) for letters, run in groupby(folded, _in_word) if letters)
    return frozenset(run for run in runs if len(run) <= LONGEST_WORD)


def _in_word(character: str) -> bool:
    return ucd_3_2_0.category(character)[0] in "LN"
