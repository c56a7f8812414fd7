"""Printing: JSON without infinities, and numbers as people read them."""

import json
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

import typer

__all__ = ["as_json", "down", "json_text", "nearest", "up"]

_PLACES: Final = Decimal("0.000001")
_DIGITS: Final = 7
_LARGE: Final = 1e15
"""From here on numbers are shown with an exponent."""


def as_json(value: Any) -> None:
    """Print one JSON object; infinite numbers become the strings "inf" and "-inf"."""
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """Return one JSON object; infinite numbers become the strings "inf" and "-inf"."""
    return json.dumps(_plain(value), allow_nan=False)


def up(value: float) -> str:
    """Return a number with six decimals, rounded up: for upper limits."""
    return _shown(value, ROUND_CEILING)


def down(value: float) -> str:
    """Return a number with six decimals, rounded down: for lower limits."""
    return _shown(value, ROUND_FLOOR)


def nearest(value: float) -> str:
    """Return a number with six decimals, rounded to the nearest: for estimates."""
    return _shown(value, ROUND_HALF_EVEN)


def _shown(value: float, rounding: str) -> str:
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if abs(value) >= _LARGE:
        return f"{Context(prec=_DIGITS, rounding=rounding).create_decimal(value):e}"
    # Rounding of binary numbers, below 1e-12, is no reason for another last digit.
    nudge = {ROUND_CEILING: Decimal("-1e-12"), ROUND_FLOOR: Decimal("1e-12")}.get(rounding, 0)
    shown = (Decimal(value) + nudge).quantize(_PLACES, rounding)
    return f"{shown + 0:f}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
