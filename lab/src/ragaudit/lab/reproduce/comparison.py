"""A reproduced number beside the printed and the corrected one, and tables of them."""

import csv
import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ragaudit.encoding.errors import MalformedError, UnavailableError

COLUMNS = ("quantity", "paper", "corrected", "ours", "difference", "reason")

EVALUATED = "*"
"""Stands after a value that the paper does not print."""

NOT_PRINTED = "Nothing under paper: no digits are printed there (a plot, or no such value)."


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number, three times.

    Attributes:
        quantity: what it is, with its unit where it has one.
        paper: the digits that the paper prints, or the value of a formula or claim of it.
        corrected: the digits of a recomputation independent of this code.
        ours: what this code computes.
        reason: why the paper's value differs; empty when it does not.
        tolerance: how far ours may be from the reference; None: one unit of its last digit,
            not half a one, because references are rounded to nearest and ours may be up.
        formula: what of the paper ``paper`` is a value of; empty where the digits are printed.

    Raises:
        MalformedError: neither a printed nor a corrected value, digits that are no number, or a
            formula without a value.
    """

    quantity: str
    paper: str | None
    corrected: str | None
    ours: float
    reason: str = ""
    tolerance: float | None = None
    formula: str = ""

    def __post_init__(self) -> None:
        if self.paper is None and self.corrected is None:
            raise MalformedError("nothing to compare with", where=self.quantity)
        if self.formula and self.paper is None:
            raise MalformedError(f"no value of {self.formula}", where=self.quantity)
        for digits in (self.paper, self.corrected):
            if digits is not None and not Decimal(digits).is_finite():
                raise MalformedError(f"not finite: {digits}", where=self.quantity)

    @property
    def reference(self) -> str:
        """The value that ours has to meet: the corrected one, else the printed one."""
        return self.corrected if self.corrected is not None else str(self.paper)

    @property
    def agrees(self) -> bool:
        """Whether ours meets the reference."""
        reference = Decimal(self.reference)
        allowed = _last_unit(reference) if self.tolerance is None else Decimal(self.tolerance)
        return abs(Decimal(self.ours) - reference) <= allowed

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, or None where the paper has no value."""
        return None if self.paper is None else float(Decimal(self.ours) - Decimal(self.paper))

    def cells(self) -> tuple[str, ...]:
        """Return the columns as text; ours with one digit more than the reference."""
        places = max(0, 1 - _exponent(Decimal(self.reference)))
        ours = _without_rounding_error(self.ours)
        shown = f"{ours:.3e}" if 0 < abs(ours) < 1e-3 else f"{ours:.{places}f}"
        apart = None if self.difference is None else _without_rounding_error(self.difference)
        difference = (
            "" if apart is None else f"{apart:+.0f}" if abs(apart) >= 100 else f"{apart:+.3g}"
        )
        paper = "" if self.paper is None else self.paper + EVALUATED * bool(self.formula)
        return self.quantity, paper, self.corrected or "", shown, difference, self.reason


@dataclass(frozen=True, slots=True)
class Table:
    """Comparisons under one title.

    Attributes:
        name: of its files, lower-case words joined by hyphens.
        title: what it shows.
        source: where the paper has it.
        rows: its comparisons.
        remarks: on the table as a whole, such as what is left out and why.
    """

    name: str
    title: str
    source: str
    rows: tuple[Comparison, ...]
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be known to read it: marks and empty cells explained, then the remarks."""
        formulas = dict.fromkeys(row.formula for row in self.rows if row.formula)
        marks = [f"{EVALUATED} Not printed in the paper, evaluated from it: {'; '.join(formulas)}."]
        empty = [NOT_PRINTED] if any(row.paper is None for row in self.rows) else []
        return (*(marks if formulas else []), *empty, *self.remarks)

    @property
    def disagreements(self) -> tuple[Comparison, ...]:
        """Rows whose own value misses its reference."""
        return tuple(row for row in self.rows if not row.agrees)


def sampling_tolerance(error: float, samples: int) -> float:
    """Return how far a mean of samples in [-1, 1] may be from its expectation.

    Empirical Bernstein (Maurer and Pontil 2009, Theorem 4) at 2e-9 for each side. The second
    term is for what is so rare that few samples, and so their standard error, know nothing of it.

    Args:
        error: the samples' standard error.
        samples: how many, >= 2.
    """
    logarithm = math.log(1e9)
    return math.sqrt(2 * logarithm) * error + 14 * logarithm / (3 * (samples - 1))


def as_text(table: Table, width: int = 100) -> str:
    """Return the table as aligned text; numbered reasons and the notes follow it.

    Args:
        table: what is shown.
        width: of the notes, in columns; rows may be longer.
    """
    reasons: dict[str, int] = {}
    lines = []
    for row in table.rows:
        *cells, reason = row.cells()
        mark = f"[{reasons.setdefault(reason, len(reasons) + 1)}]" if reason else ""
        lines.append([*cells, mark])
    header = list(COLUMNS)
    widths = [max(len(line[i]) for line in (header, *lines)) for i in range(len(header))]
    body = [_aligned(line, widths) for line in (header, *lines)]
    notes = [f"[{number}] {reason}" for reason, number in reasons.items()] + list(table.notes)
    wrapped = [_wrapped(note, width) for note in notes]
    return "\n".join([f"{table.title} ({table.source})", "", *body, "", *wrapped]).rstrip() + "\n"


def as_csv(table: Table) -> str:
    """Return the table as CSV (RFC 4180), numbers of ours in full."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([*COLUMNS, "formula"])
    for row in table.rows:
        difference = "" if row.difference is None else repr(row.difference)
        writer.writerow(
            [row.quantity, row.paper, row.corrected, repr(row.ours), difference, row.reason,
             row.formula]
        )  # fmt: skip
    return out.getvalue()


def as_json(tables: Sequence[Table]) -> dict[str, object]:
    """Return all tables as one JSON object, keyed by name."""
    return {
        table.name: {
            "title": table.title,
            "source": table.source,
            "rows": [
                {
                    "quantity": row.quantity,
                    "paper": row.paper,
                    "corrected": row.corrected,
                    "ours": row.ours,
                    "difference": row.difference,
                    "reason": row.reason,
                    "formula": row.formula,
                    "agrees": row.agrees,
                }
                for row in table.rows
            ],
            "notes": list(table.notes),
        }
        for table in tables
    }


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write files into a folder, which is made if need be; all contents exist beforehand.

    Args:
        folder: made if it is missing.
        files: contents by name.

    Raises:
        UnavailableError: the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise UnavailableError(
            f"cannot write: {error.strerror}", where=str(folder), expected="a writable folder"
        ) from error


def _without_rounding_error(value: float) -> float:
    """The value, and 0 for what is but the rounding error of numbers near 1."""
    return 0.0 if abs(value) < 1e-15 else value


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _last_unit(value: Decimal) -> Decimal:
    return Decimal(1).scaleb(_exponent(value))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers, last = (
        cell.ljust(width) if i in (0, len(widths) - 1) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *numbers, last)).rstrip()


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, subsequent_indent="    ")
