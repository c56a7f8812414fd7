"""Exact fractions of one spelling, as policies have them (docs/spec/11-generation.md §11.8)."""

from fractions import Fraction

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import parse_ratio
from ragaudit.ledger.messages.fields import Fields

__all__ = ["read_ratio"]


def read_ratio(f: Fields, name: str, *, least: Fraction | None = None) -> Fraction:
    """Return an exact fraction of one spelling, above 0 or at least ``least``; MalformedPolicy."""
    text = f.raw(name)
    try:
        value = parse_ratio(text if isinstance(text, str) else "")
    except MalformedError as error:
        raise f.error(name, error.what, error.expected or "") from error
    if value < least if least is not None else value <= 0:
        raise f.error(name, "out of range", "above 0" if least is None else f"at least {least}")
    return value
