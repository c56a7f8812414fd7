"""A reproduced number beside the printed and the corrected one, and tables of them."""

import csv
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ragaudit.encoding.errors import MalformedError, RefusedError

__all__ = ["COLUMNS", "Comparison", "Table", "as_csv", "as_json", "as_text", "write_files"]

COLUMNS = ("quantity", "paper", "corrected", "ours", "difference", "reason")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number, three times.

    Attributes:
        quantity: what it is, with its unit where it has one.
        paper: the digits that the paper prints, or the value of the formula that it prints.
        corrected: the digits of a recomputation independent of this code.
        ours: what this code computes.
        reason: why the paper's value differs; empty when it does not.
        tolerance: how far ours may be from the reference; None: one unit of its last digit,
            not half a one, because references are rounded to nearest and ours may be up.

    Raises:
        MalformedError: neither a printed nor a corrected value, or digits that are no number.
    """

    quantity: str
    paper: str | None
    corrected: str | None
    ours: float
    reason: str = ""
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.paper is None and self.corrected is None:
            raise MalformedError("nothing to compare with", where=self.quantity)
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
        """The columns as text; ours with one digit more than the reference."""
        places = max(0, 1 - _exponent(Decimal(self.reference)))
        scientific = 0 < abs(self.ours) < 1e-3
        shown = f"{self.ours:.3e}" if scientific else f"{self.ours:.{places}f}"
        apart = self.difference
        difference = (
            "" if apart is None else f"{apart:+.0f}" if abs(apart) >= 100 else f"{apart:+.3g}"
        )
        return (
            self.quantity, self.paper or "", self.corrected or "", shown, difference, self.reason,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """Comparisons under one title.

    Attributes:
        name: of its files, lower-case words joined by hyphens.
        title: what it shows.
        source: where the paper has it.
        rows: its comparisons.
    """

    name: str
    title: str
    source: str
    rows: tuple[Comparison, ...]

    @property
    def disagreements(self) -> tuple[Comparison, ...]:
        """Rows whose own value misses its reference."""
        return tuple(row for row in self.rows if not row.agrees)


def as_text(table: Table, width: int = 100) -> str:
    """Return the table as aligned text; reasons are numbered and follow it."""
    reasons: dict[str, int] = {}
    lines = []
    for row in table.rows:
        *cells, reason = row.cells()
        mark = f"[{reasons.setdefault(reason, len(reasons) + 1)}]" if reason else ""
        lines.append([*cells, mark])
    header = list(COLUMNS)
    widths = [max(len(line[i]) for line in (header, *lines)) for i in range(len(header))]
    body = [_aligned(line, widths) for line in (header, *lines)]
    notes = [_wrapped(f"[{number}] {reason}", width) for reason, number in reasons.items()]
    return "\n".join([f"{table.title} ({table.source})", "", *body, "", *notes]).rstrip() + "\n"


def as_csv(table: Table) -> str:
    """Return the table as CSV (RFC 4180), numbers of ours in full."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in table.rows:
        difference = "" if row.difference is None else repr(row.difference)
        writer.writerow(
            [row.quantity, row.paper, row.corrected, repr(row.ours), difference, row.reason]
        )
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
                    "agrees": row.agrees,
                }
                for row in table.rows
            ],
        }
        for table in tables
    }


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write files into a folder, which is made if need be; all contents exist beforehand.

    Raises:
        RefusedError: the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise RefusedError(
            f"cannot write: {error.strerror}", where=str(folder), expected="a writable folder"
        ) from error


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
