"""Figures that others have published (docs/benchmarks/published.toml): quoted, never measured."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.suite.tables import table

__all__ = ["load", "render"]

NONE = "Not part of this document."

_MODEL = ("circuit", "rows", "constraints", "prove_seconds", "setup_seconds")
_OTHERS = ("system", "proves", "setting", "figure", "note", "source", "version_date", "opened")


def load(path: Path) -> Mapping[str, Any]:
    """Return the file's tables; nothing if there is no file.

    Args:
        path: docs/benchmarks/published.toml.

    Raises:
        MalformedError: not TOML, or an entry without one of the members that are shown.
    """
    if not path.exists():
        return {}
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise MalformedError(f"published figures: {error}", where=str(path)) from error
    for name, members in (("table1", _MODEL), ("published", _OTHERS)):
        for number, each in enumerate(found.get(name, []), start=1):
            missing = [member for member in members if member not in each]
            if missing:
                where = f"{path}, {name} {number}"
                raise MalformedError(f"no {', '.join(missing)}", where=where)
    return found


def render(figures: Mapping[str, Any], groth16: Sequence[Mapping[str, Any]]) -> str:
    """Return the paper's table beside what its circuits have when built, then others' figures.

    Args:
        figures: of `load`.
        groth16: reports of the comparison, for the circuits as built.
    """
    parts = [
        _model(figures, groth16) if "table1" in figures else "",
        _others(figures["published"]) if "published" in figures else "",
    ]
    return "\n\n".join(part for part in parts if part) or NONE


def _model(figures: Mapping[str, Any], groth16: Sequence[Mapping[str, Any]]) -> str:
    said = figures.get("source_of_table1", {})
    lines = [
        f"{name}: {said[name]}" for name in ("source", "place", "kind", "note") if name in said
    ]
    headings = (
        "circuit", "N", "constraints, published", "built, index free", "index committed",
        "prove, published", "set-up, published",
    )  # fmt: skip
    rows = [
        [
            each["circuit"],
            f"{each['rows']:,}",
            f"{each['constraints']:,.0f}",
            _built(each, groth16, "free"),
            _built(each, groth16, "committed"),
            f"{each['prove_seconds']:g} s",
            f"{each['setup_seconds']:g} s",
        ]
        for each in figures["table1"]
    ]
    about = "\n".join(f"- {_line(line)}" for line in lines)
    return "\n\n".join(part for part in (about, table(headings, rows)) if part)


def _built(each: Mapping[str, Any], groth16: Sequence[Mapping[str, Any]], index: str) -> str:
    """Constraints of the circuit as it was built at d = 384 and K = 5."""
    wanted = (each["circuit"], each["rows"], index, 384, 5)
    for report in groth16:
        of = (report["circuit"], report["rows"], report["index"])
        if (*of, report["dimension"], report["top_k"]) == wanted:
            return f"{report['constraints']:,}"
    return ""


def _others(figures: Sequence[Mapping[str, Any]]) -> str:
    headings = ("system", "what is proved", "setting", "figure", "remark", "source, opened")
    rows = [
        [
            *(_line(str(each[name])) for name in ("system", "proves", "setting", "figure", "note")),
            _line(f"<{each['source']}> of {each['version_date']}; opened {each['opened']}"),
        ]
        for each in figures
    ]
    return table(headings, rows, numbers=False)


def _line(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
