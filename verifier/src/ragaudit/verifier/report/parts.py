"""Parts of a report: labelled values, tables, and values as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Row", "Table", "shown_text"]


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled value with an explanation; ``level`` is its indentation."""

    label: str
    value: str
    note: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under headings; the first column names the row."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def shown_text(value: object) -> str:
    """Return a JSON value as people read it, on one line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(map(shown_text, value))
    if isinstance(value, Mapping):
        return "; ".join(
            f"{key.replace('_', ' ')}: {shown_text(item)}" for key, item in value.items()
        )
    return str(value)
