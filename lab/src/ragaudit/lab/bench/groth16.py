"""The Groth16 comparison (circuits/rust/groth16-comparison): run, stored, shown beside ours."""

import itertools
import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.lab.bench.harness import digits, duration, machine
from ragaudit.lab.bench.matrix import UNCOMMITTED, Results, measurement, printed, reading, table

NONE = "Not part of these results."
SCHEMA = "ragaudit/groth16-comparison/1"
CRATE = Path("circuits") / "rust" / "groth16-comparison"
_SIGMA = "2"
_MIB = 2**20
_MEMBERS = ("circuit", "index", "rows", "dimension", "top_k", "threads")

Report = Mapping[str, Any]


@dataclass(frozen=True)
class Circuit:
    """One run of ``groth16-comparison``."""

    circuit: str
    index: str
    rows: int
    dimension: int
    top_k: int
    threads: int

    def arguments(self) -> list[str]:
        """Return the command line of the comparison."""
        named = {
            "--circuit": self.circuit,
            "--index": self.index,
            "--rows": self.rows,
            "--dim": self.dimension,
            "--top-k": self.top_k,
        }
        return [str(part) for option in named.items() for part in option] + ["--json"]

    def matches(self, report: Report) -> bool:
        """Return whether a report is of this run."""
        return all(getattr(self, name) == report[name] for name in _MEMBERS)


def circuits(path: Path) -> list[Circuit]:
    """Return the runs that a matrix declares in ``[[groth16]]``, lists multiplied out.

    Args:
        path: the matrix, a TOML file.

    Raises:
        MalformedError: not readable, or a member missing or unknown.
    """
    with reading("matrix, [[groth16]]", path):
        declared = tomllib.loads(path.read_text()).get("groth16", [])
        return [
            Circuit(**dict(zip(each, values, strict=True)))
            for each in declared
            for values in itertools.product(
                *(value if isinstance(value, list) else [value] for value in each.values())
            )
        ]


def load(path: Path) -> list[Report]:
    """Return stored reports; none if there is no file.

    Args:
        path: a JSON list of reports.

    Raises:
        MalformedError: another layout than `SCHEMA`.
    """
    if not path.exists():
        return []
    with reading("reports", path):
        reports: list[Report] = json.loads(path.read_text())
    if not isinstance(reports, list) or any(
        not isinstance(each, dict) or each.get("schema") != SCHEMA for each in reports
    ):
        raise MalformedError("another layout", where=str(path), expected=f"a list of {SCHEMA}")
    return reports


def run(
    several: Sequence[Circuit], path: Path, root: Path, commit: str, tell: Callable[[str], None]
) -> None:
    """Measure what is not stored for this commit; each report is stored at once.

    Args:
        root: of the repository, with the crate and its sources.

    Raises:
        UnsupportedError: there is no crate, or no cargo.
        InternalError: a run failed; the reports before it are stored.
    """
    for number, each in enumerate(several, start=1):
        place = f"groth16 {number}/{len(several)} {each.circuit}, {each.index}, N = {each.rows:,}"
        reports = load(path)
        stored = next((report for report in reports if each.matches(report)), None)
        if stored and stored["commit"] == commit and not commit.endswith(UNCOMMITTED):
            tell(f"{place}: stored")
            continue
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        report = {**_measured(each, root), "commit": commit, "date": begun, "machine": machine()}
        others = [one for one in reports if not each.matches(one)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([*others, report], indent=1) + "\n")
        tell(place)


def _measured(circuit: Circuit, root: Path) -> dict[str, Any]:
    """Run from the crate's folder: its cargo configuration compiles for this processor."""
    cargo = ["cargo", "run", "--release", "--locked", "--quiet"]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(circuit.threads)}
    try:
        return printed(cargo, ["--", *circuit.arguments()], cwd=root / CRATE, env=environment)
    except OSError as error:
        raise UnsupportedError(
            f"groth16-comparison: {error}", expected="cargo, and the crate in this repository"
        ) from error


def render(reports: Sequence[Report], results: Results) -> str:
    """Return the paper's circuits as a table, each beside our argument for the same sizes.

    Args:
        reports: of the comparison; `NONE` stands for the table if there are none.
        results: ours, of which those with the same sizes, cores and one record are taken.
    """
    if not reports:
        return NONE
    headings = (
        "circuit, index", "N", "d", "rows whose score is checked", "constraints", "set-up",
        "witness and matrices", "prove", "a constraint", "of ours", "verify", "of ours", "proof",
        "proving key", "peak memory, prove", "threads",
    )  # fmt: skip
    ordered = sorted(reports, key=lambda each: (each["index"], each["circuit"], each["rows"]))
    return table(headings, [_row(each, results) for each in ordered])


def _row(report: Report, results: Results) -> list[str]:
    start = [
        f"{report['circuit']}, {report['index']}",
        f"{report['rows']:,}",
        str(report["dimension"]),
        f"{report['rows_checked']:,}",
        f"{report['constraints']:,}",
    ]
    measured = report["measured"]
    if measured is None:
        return [*start, "counted only", *[""] * 9, str(report["threads"])]
    peak = measured["prove_peak_bytes"]
    proving = _ours(report, results, "prove", "prove one record")
    checking = _ours(report, results, "verify", "verify one batch of records")
    return [
        *start,
        duration(measured["setup_seconds"]),
        duration(measured["synthesis_seconds"]),
        duration(measured["prove_seconds"]),
        f"{digits(measured['prove_microseconds_per_constraint'])} µs",
        _times(measured["prove_seconds"], proving),
        duration(measured["verify_seconds"]),
        _times(measured["verify_seconds"], checking),
        f"{measured['proof_bytes']:,} bytes",
        f"{digits(measured['proving_key_bytes'] / _MIB)} MiB",
        "" if peak is None else f"{digits(peak / _MIB)} MiB",
        str(report["threads"]),
    ]


def _ours(report: Report, results: Results, scenario: str, name: str) -> float | None:
    """Seconds of our scenario at the same sizes and cores, one record, sigma 2."""
    wanted = (
        scenario,
        report["threads"],
        report["rows"],
        report["dimension"],
        report["top_k"],
        _SIGMA,
        1,
    )
    for each in results.results:
        sizes = each["sizes"]
        of = [sizes[member] for member in ("rows", "dimension", "top_k", "sigma", "records")]
        if (each["scenario"], each["cores"], *of) == wanted:
            return float(measurement(each, name)["median"])
    return None


def _times(theirs: float, ours: float | None) -> str:
    return "" if ours is None else f"{digits(theirs / ours)} ×"
