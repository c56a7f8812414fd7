"""Printing: JSON without infinities, numbers as people read them, and how far a computation is."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

import typer

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


@contextmanager
def counted(function: Callable[[float], float], quiet: bool) -> Iterator[Callable[[float], float]]:
    """Show the number of a function's evaluations while they last.

    Args:
        function: of which the evaluations are counted.
        quiet: show nothing, as on a standard error that is no terminal.

    Returns:
        A context manager that yields the function to call instead.
    """
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        SpinnerColumn(),
        TextColumn("inverting: evaluation {task.completed}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    silent = quiet or not console.is_terminal
    with Progress(*columns, console=console, disable=silent, transient=True) as progress:
        task = progress.add_task("inverting", total=None)

        def watched(value: float) -> float:
            found = function(value)
            progress.advance(task)
            return found

        yield watched


@contextmanager
def advancing(total: int, what: str, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show how many of a known number are done.

    Args:
        total: of all.
        what: is done, in a word.
        quiet: show nothing, as on a standard error that is no terminal.

    Returns:
        A context manager that yields the function to call with every further number done.
    """
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(stderr=True)
    silent = quiet or not console.is_terminal
    with Progress(console=console, disable=silent, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)
