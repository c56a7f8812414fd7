"""Exact fractions of one spelling, as policies have them (docs/spec/11-generation.md §11.8)."""

import re
from fractions import Fraction

from ragaudit.ledger.messages.fields import Fields

__all__ = ["read_ratio"]

_RATIO = re.compile(r"(0|[1-9][0-9]{0,11})(?:/([1-9][0-9]{0,11}))?", re.ASCII)
_EXPECTED = "a fraction in lowest terms, as 1/10"


def read_ratio(f: Fields, name: str, *, least: Fraction | None = None) -> Fraction:
    """Return an exact fraction of one spelling, above 0 or at least ``least``; MalformedPolicy."""
    text = f.raw(name)
    match = _RATIO.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise f.error(name, "not a fraction", _EXPECTED)
    value = Fraction(int(match[1]), int(match[2] or 1))
    if str(value) != text:
        raise f.error(name, "not in lowest terms", _EXPECTED)
    if value < least if least is not None else value <= 0:
        raise f.error(name, "out of range", "above 0" if least is None else f"at least {least}")
    return value
