"""What is measured beside, or said by others: Groth16 for the same statement, published figures."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragaudit.cli.bench.quantities import digits, duration
from ragaudit.cli.bench.suite.results import Results
from ragaudit.cli.bench.suite.tables import table
from ragaudit.cli.bench.suite.targets import measurement
from ragaudit.encoding.errors import MalformedError

__all__ = ["groth16", "load_groth16", "load_published", "published"]

NONE = "Not part of these results."
SCHEMA = "ragaudit/groth16-comparison/1"
_SIGMA = "2"
_MIB = 2**20

Report = Mapping[str, Any]


def load_groth16(folder: Path) -> list[Report]:
    """The reports of ``groth16-comparison --json`` in a folder, in the order of their sizes.

    Raises:
        MalformedError: a file that is not such a report, or a list of them.
    """
    found = [report for path in sorted(folder.glob("groth16*.json")) for report in _reports(path)]
    return sorted(found, key=lambda each: (each["index"], each["circuit"], each["rows"]))


def _reports(path: Path) -> Iterator[Report]:
    value = _json(path)
    for report in value if isinstance(value, list) else [value]:
        if not isinstance(report, dict) or report.get("schema") != SCHEMA:
            raise MalformedError("another schema", where=str(path), expected=SCHEMA)
        yield report


def groth16(reports: Sequence[Report], results: Results) -> str:
    """The paper's circuits, each beside our argument for a record of the same sizes."""
    if not reports:
        return NONE
    headings = (
        "circuit, index", "N", "d", "constraints", "set-up", "witness and matrices", "prove",
        "of ours", "verify", "of ours", "proof", "proving key", "peak memory, prove", "threads",
    )  # fmt: skip
    return table(headings, [_groth16(each, results) for each in reports])


def _groth16(report: Report, results: Results) -> list[str]:
    start = [
        f"{report['circuit']}, {report['index']}",
        f"{report['rows']:,}",
        str(report["dimension"]),
        f"{report['constraints']:,}",
    ]
    measured = report["measured"]
    if measured is None:
        return [*start, "counted only", *[""] * 8, str(report["threads"])]
    peak = measured["prove_peak_bytes"]
    return [
        *start,
        duration(measured["setup_seconds"]),
        duration(measured["synthesis_seconds"]),
        duration(measured["prove_seconds"]),
        _times(measured["prove_seconds"], _ours(report, results, "prove", "prove one record")),
        duration(measured["verify_seconds"]),
        _times(
            measured["verify_seconds"],
            _ours(report, results, "verify", "verify one batch of records"),
        ),
        f"{measured['proof_bytes']:,} bytes",
        f"{digits(measured['proving_key_bytes'] / _MIB)} MiB",
        "" if peak is None else f"{digits(peak / _MIB)} MiB",
        str(report["threads"]),
    ]


def _ours(report: Report, results: Results, scenario: str, name: str) -> float | None:
    """Seconds of our scenario at the same sizes and cores, one record, sigma 2."""
    wanted = (scenario, report["threads"], report["rows"], report["dimension"], _SIGMA, 1)
    for each in results.results:
        sizes = each["sizes"]
        found = (each["scenario"], each["cores"], sizes["rows"], sizes["dimension"])
        if (*found, sizes["sigma"], sizes["records"]) == wanted:
            return float(measurement(each, name)["median"])
    return None


def _times(theirs: float, ours: float | None) -> str:
    return "" if ours is None else f"{digits(theirs / ours)} ×"


def load_published(path: Path) -> list[Mapping[str, Any]]:
    """Published figures: a list of objects; none if there is no file; MalformedError."""
    if not path.exists():
        return []
    value = _json(path)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise MalformedError("not a list of objects", where=str(path))
    return value


def published(figures: Sequence[Mapping[str, Any]]) -> str:
    """Published figures, a column for each of their members in the order of their appearance."""
    if not figures:
        return NONE
    columns = list(dict.fromkeys(name for each in figures for name in each))
    headings = [name.replace("_", " ") for name in columns]
    return table(headings, [[_cell(each.get(name)) for name in columns] for each in figures])


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise MalformedError(f"not JSON: {error}", where=str(path)) from error
