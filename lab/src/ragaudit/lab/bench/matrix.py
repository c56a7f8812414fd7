"""The declared cases (benchmarks/matrix.toml): multiplied out, run, their results stored.

Each case runs in a process of its own; each result is stored at once, with machine, commit, date
and sizes.
"""

import itertools
import json
import math
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import InternalError, MalformedError
from ragaudit.lab.bench.harness import STEP
from scipy.stats import t as student_t

ALL = "all"
_SCENARIOS = ("index", "prove", "verify", "reference", "answer", "answer-http", "audit")
_MEMBERS = ("scenario", "rows", "dimension", "top_k", "sigma", "records", "cores", "runs")
# What every scenario's command has beside; the other options are where they mean something.
_WITH_RECORDS = ("verify", "audit")
_WITHOUT_RUNS = ("audit",)
_WITHOUT_KEEPING = ("answer-http",)


@contextmanager
def reading(what: str, path: Path) -> Iterator[None]:
    """Say of a file that is not as it should be, whatever is wrong with it, which one it is.

    Args:
        what: it holds.
        path: of the file, which is read inside.

    Raises:
        MalformedError: it is not readable, or a member is missing, unknown or of a wrong type.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedError(f"{what}: {error!r}", where=str(path)) from error


@dataclass(frozen=True)
class Case:
    """One call of `ragaudit bench`; ``cores`` is a number."""

    scenario: str
    rows: int
    dimension: int
    top_k: int
    sigma: str
    records: int
    cores: int
    runs: int

    def __str__(self) -> str:
        return (
            f"{self.scenario}: N = {self.rows:,}, sigma = {self.sigma}, R = {self.records}, "
            f"{self.cores} cores"
        )

    def arguments(self, keep: Path, seconds: float | None = None) -> list[str]:
        """Return the command line after ``ragaudit bench``.

        Args:
            keep: folder for rows and commitments, which the cases share.
            seconds: another allowance than the command's own.
        """
        options: dict[str, object] = {
            "--rows": self.rows,
            "--dim": self.dimension,
            "--top-k": self.top_k,
            "--sigma": self.sigma,
            "--cores": self.cores,
        }
        if self.scenario in _WITH_RECORDS:
            options["--records"] = self.records
        if self.scenario not in _WITHOUT_RUNS:
            options["--runs"] = self.runs
            if seconds is not None:
                options["--seconds"] = seconds
        if self.scenario not in _WITHOUT_KEEPING:
            options["--keep"] = keep
        flat = [str(part) for option in options.items() for part in option]
        return [self.scenario, *flat, "--json"]

    def matches(self, report: Mapping[str, Any]) -> bool:
        """Return whether a report is of this case, whatever its number of runs."""
        sizes = report["sizes"]
        return (self.scenario, self.cores) == (report["scenario"], report["cores"]) and all(
            getattr(self, name) == sizes[name]
            for name in ("rows", "dimension", "top_k", "sigma", "records")
        )


def load_cases(path: Path, cores: int, max_rows: int | None = None) -> list[Case]:
    """Return the cases of a matrix, each once, those with few rows first.

    Args:
        cores: number of cores that "all" means; cases that need more are left out.
        max_rows: leave out cases with more rows; None for no limit.

    Raises:
        MalformedError: not readable, or a member missing, unknown or of a wrong type.
    """
    with reading("matrix", path):
        document = tomllib.loads(path.read_text())
    defaults = document.get("defaults", {})
    found = {
        case
        for number, table in enumerate(document.get("case", []), start=1)
        for case in _cases({**defaults, **table}, cores, f"{path.name}, case {number}")
    }
    fitting = [each for each in found if each.cores <= cores]
    return sorted(
        (each for each in fitting if max_rows is None or each.rows <= max_rows),
        key=lambda each: (
            each.rows,
            _SCENARIOS.index(each.scenario),
            -float(each.sigma),
            each.records,
            -each.cores,
        ),
    )


def _cases(table: Mapping[str, Any], cores: int, where: str) -> Iterator[Case]:
    if set(table) != set(_MEMBERS):
        odd = sorted(set(table) ^ set(_MEMBERS))
        raise MalformedError(f"members {', '.join(odd)}", where=where, expected=" ".join(_MEMBERS))
    choices = [value if isinstance(value, list) else [value] for value in map(table.get, _MEMBERS)]
    for values in itertools.product(*choices):
        member = dict(zip(_MEMBERS, values, strict=True))
        if member["cores"] == ALL:
            member["cores"] = cores
        if member["scenario"] not in _SCENARIOS:
            raise MalformedError(f"scenario {member['scenario']!r}", where=where)
        if not isinstance(member["sigma"], str):
            raise MalformedError("sigma is not text", where=where, expected='such as "2"')
        for name in ("rows", "dimension", "top_k", "records", "cores", "runs"):
            if not isinstance(member[name], int) or member[name] < 1:
                raise MalformedError(f"{name} is {member[name]!r}", where=where, expected=">= 1")
        yield Case(**member)


FORMAT = "ragaudit/benchmarks/1"
UNCOMMITTED = "+changes"
"""What follows a commit's hash when the sources were not exactly the commit's."""

# What does not change the program: results and documents are written by measuring.
_NOT_SOURCES = (":!benchmarks/results", ":!docs")


@dataclass(frozen=True)
class Results:
    """What was measured, in the order in which it was.

    Each result is a report of `ragaudit bench` with ``commit`` and ``date`` (UTC, ISO 8601).
    """

    results: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Return the results in a file; none if there is no file.

        Args:
            path: as `save` writes it.

        Raises:
            MalformedError: not such a file.
        """
        if not path.exists():
            return cls()
        with reading("results", path):
            document = json.loads(path.read_text())
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise MalformedError("another format", where=str(path), expected=FORMAT)
        return cls(tuple(document["results"]))

    def save(self, path: Path) -> None:
        """Write all or nothing: an interrupted run leaves the results that were there.

        Args:
            path: of the file; its folder is made if it is missing.
        """
        text = json.dumps({"format": FORMAT, "results": list(self.results)}, indent=1)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when it is whole: results of hours survive an interruption here.
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_text(text + "\n")
        unfinished.replace(path)

    def of(self, case: Case) -> Mapping[str, Any] | None:
        """Return the result of a case; None if it was not measured."""
        return next((each for each in self.results if case.matches(each)), None)

    def has(self, case: Case, commit: str) -> bool:
        """Return whether a case was measured at a commit whose sources nobody changed.

        Args:
            case: to be measured.
            commit: of :func:`commit`; one that is marked as changed is never had.
        """
        found = self.of(case)
        return found is not None and found["commit"] == commit and not commit.endswith(UNCOMMITTED)

    def with_result(self, case: Case, result: Mapping[str, Any]) -> "Results":
        """Return these results with one added, which replaces the case's.

        Args:
            case: what was measured.
            result: its report with ``commit`` and ``date``.
        """
        others = (each for each in self.results if not case.matches(each))
        return Results((*others, result))


def commit(folder: Path) -> str:
    """Return the commit of the sources, marked with `UNCOMMITTED` if they were changed since.

    Args:
        folder: in the repository; outside of one the commit is "unknown", and marked.
    """
    try:
        head = _git(folder, "rev-parse", "HEAD")
        changes = _git(folder, "status", "--porcelain", "--", ".", *_NOT_SOURCES)
    except (OSError, subprocess.CalledProcessError):
        return "unknown" + UNCOMMITTED
    return head + (UNCOMMITTED if changes else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return found.stdout.strip()


Tell = Callable[[str], None]


def run_cases(cases: Sequence[Case], path: Path, commit: str, tell: Tell, folder: Path) -> Results:
    """Measure what is not yet stored for this commit; returns all results.

    Args:
        path: where results are stored, after each case.
        tell: gets a line for each case.
        folder: for rows and commitments that the cases share.

    Raises:
        InternalError: a measurement failed; what was measured before it is stored.
    """
    for number, case in enumerate(cases, start=1):
        # Read again for each case: nothing that was stored meanwhile is overwritten.
        results = Results.load(path)
        place = f"{number}/{len(cases)} {case}"
        if results.has(case, commit):
            tell(f"{place}: stored")
            continue
        begun = datetime.now(UTC)
        report = _measured(case, folder)
        stamped = {
            "commit": commit,
            "date": begun.isoformat(timespec="seconds"),
            **report,
        }
        results.with_result(case, stamped).save(path)
        tell(f"{place}: {(datetime.now(UTC) - begun).total_seconds():.0f} s with set-up")
    return Results.load(path)


def _measured(case: Case, folder: Path) -> dict[str, Any]:
    """Standard error stays the terminal's: progress is shown there."""
    # A process of its own: peak memory, caches and pinned cores begin afresh for each case.
    return printed([sys.executable, "-m", "ragaudit.cli"], ["bench", *case.arguments(folder)])


def printed(program: Sequence[str], arguments: Sequence[str], **how: Any) -> dict[str, Any]:
    """Run a program and return the JSON object that it prints.

    Args:
        program, arguments: the command line.
        how: further settings of the process.

    Raises:
        InternalError: it failed.
        OSError: there is no such program.
    """
    command = [*program, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **how)  # noqa: S603
    if done.returncode != 0:
        raise InternalError(f"exit status {done.returncode}", where=" ".join(arguments))
    report: dict[str, Any] = json.loads(done.stdout)
    return report


UNITS = ("seconds", "seconds a record", "bytes")
_CORES = 2
_DIMENSION = 384
_TOP_K = 5
_MIB_A_GIB = 1024


@dataclass(frozen=True)
class Target:
    """One row of the table: the largest value allowed, by number of rows.

    Attributes:
        what: in words, unique.
        scenario: of `ragaudit bench`.
        measurement: its name there.
        unit: of `UNITS`.
        most: largest value allowed, by number of rows.
        sigma: None where it does not matter.
        records: R.
        memory_gib: largest peak memory allowed, by number of rows.
    """

    what: str
    scenario: str
    measurement: str
    unit: str
    most: Mapping[int, float]
    sigma: str | None = None
    records: int = 1
    memory_gib: Mapping[int, float] = field(default_factory=dict)

    def applies(self, result: Mapping[str, Any]) -> bool:
        """Return whether a result is of this target's sizes, whatever its rows."""
        sizes = result["sizes"]
        wanted = (self.scenario, _CORES, _DIMENSION, _TOP_K, self.records)
        found = (result["scenario"], result["cores"], sizes["dimension"], sizes["top_k"])
        return (*found, sizes["records"]) == wanted and self.sigma in (None, sizes["sigma"])

    def peak(self, result: Mapping[str, Any]) -> float | None:
        """Return the peak memory of a result to which the target applies, in MiB, if it has one."""
        found: float | None = measurement(result, self.measurement)["peak_mib"]
        return found

    def value(self, result: Mapping[str, Any]) -> float:
        """Return the measured value in this target's unit.

        Args:
            result: to which the target applies.

        Raises:
            MalformedError: it has no such measurement.
        """
        found = measurement(result, self.measurement)
        if self.unit == "bytes":
            return float(found["size_bytes"])
        per = found["records"] if self.unit == "seconds a record" else 1
        return float(found["median"]) / per


@dataclass(frozen=True)
class Outcome:
    """A target at one number of rows; ``value`` and the rest are None if it was not measured."""

    target: Target
    rows: int
    most: float
    value: float | None = None
    measurement: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None

    @property
    def met(self) -> bool | None:
        """Whether the value and the peak memory are within what is allowed."""
        if self.value is None or self.measurement is None:
            return None
        memory = self.target.memory_gib.get(self.rows)
        peak = self.measurement["peak_mib"]
        within = memory is None or (peak is not None and peak <= _MIB_A_GIB * memory)
        return self.value <= self.most and within


def load_targets(path: Path) -> list[Target]:
    """Return the targets in a file.

    Args:
        path: benchmarks/targets.toml.

    Raises:
        MalformedError: not readable, or a member missing, unknown or of a wrong type.
    """
    with reading("targets", path):
        return [_target(table) for table in tomllib.loads(path.read_text())["target"]]


def _target(table: Mapping[str, Any]) -> Target:
    if table["unit"] not in UNITS:
        raise ValueError(f"unit {table['unit']!r}, expected one of {', '.join(UNITS)}")
    most = {int(rows): float(value) for rows, value in table["most"].items()}
    memory = {int(rows): float(value) for rows, value in table.get("memory_gib", {}).items()}
    return Target(**{**table, "most": most, "memory_gib": memory})


def outcomes(targets: Sequence[Target], results: Results) -> Iterator[Outcome]:
    """Yield every target at each of its numbers of rows, measured or not.

    Args:
        targets: of :func:`load_targets`.
        results: all that is stored; of several with the same rows the last counts.
    """
    for target in targets:
        measured = {each["sizes"]["rows"]: each for each in results.results if target.applies(each)}
        for rows, most in target.most.items():
            if rows in measured:
                found = measured[rows]
                yield Outcome(
                    target,
                    rows,
                    most,
                    target.value(found),
                    measurement(found, target.measurement),
                    found,
                )
            else:
                yield Outcome(target, rows, most)


def measurement(result: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a measurement of a result.

    Args:
        result: a report of `ragaudit bench`.
        name: of the measurement.

    Raises:
        MalformedError: the result has none of that name.
    """
    for each in result["measurements"]:
        if each["name"] == name:
            found: Mapping[str, Any] = each
            return found
    raise MalformedError(f"no measurement {name!r}", where=result["scenario"])


LEVEL = 0.95

Point = tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """``y = factor · x^exponent``.

    Attributes:
        half_width: of the exponent's 95 % interval, from the scatter around the line (Student's
            t with n - 2 degrees of freedom); None where two points fix the line.
    """

    exponent: float
    factor: float
    half_width: float | None
    points: int


def fit(points: Sequence[Point]) -> Fit | None:
    """Return the least-squares line through (log x, log y).

    Args:
        points: (x, y), all positive.

    Returns:
        The fit; None unless two x differ.

    Raises:
        ValueError: a coordinate is not positive.
    """
    x = [math.log(each) for each, _ in points]
    y = [math.log(each) for _, each in points]
    count = len(points)
    if len(set(x)) < 2:
        return None
    mean_x, mean_y = math.fsum(x) / count, math.fsum(y) / count
    spread = math.fsum((each - mean_x) ** 2 for each in x)
    slope = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    factor = math.exp(mean_y - slope * mean_x)
    if count < 3:
        return Fit(slope, factor, None, count)
    left = (b - mean_y - slope * (a - mean_x) for a, b in zip(x, y, strict=True))
    variance = math.fsum(each**2 for each in left) / (count - 2)
    half_width = float(student_t.ppf((1 + LEVEL) / 2, count - 2)) * math.sqrt(variance / spread)
    return Fit(slope, factor, half_width, count)


def local_exponent(points: Sequence[Point]) -> float | None:
    """Return the slope between the two largest x; None unless there are two.

    Args:
        points: (x, y), all positive, in any order.
    """
    ordered = sorted(points)[-2:]
    found = fit(ordered) if len(ordered) == 2 else None
    return None if found is None else found.exponent


Result = Mapping[str, Any]


@dataclass(frozen=True)
class Series:
    """Points (x, y) with rising x."""

    name: str
    points: tuple[Point, ...]


def against_rows(targets: Sequence[Target], results: Results) -> list[Series]:
    """Return every target's value, in its unit, against N.

    Args:
        targets: those that are stated for one N only are left out.
        results: all that is stored.
    """
    return [
        _series(each.what, results, each.applies, _rows, each.value)
        for each in targets
        if len(each.most) > 1
    ]


def memory_against_rows(targets: Sequence[Target], results: Results) -> list[Series]:
    """Return the peak memory, in MiB, of what every target measures, against N.

    Args:
        targets, results: as of :func:`against_rows`.
    """

    return [
        _series(each.what, results, each.applies, _rows, each.peak)
        for each in targets
        if len(each.most) > 1 and each.unit != "bytes"
    ]


_UNDECIDED = {
    "prove one record": ("prove", "prove one record"),
    "verify one record": ("verify", "verify one batch of records"),
}


def against_undecided(results: Results, rows: int, cores: int) -> list[Series]:
    """Return seconds of one record against |U|: the same index under less and less noise.

    Args:
        results: all that is stored.
        rows: N of those that are taken.
        cores: on which they ran.
    """

    def applies(scenario: str) -> Callable[[Result], bool]:
        wanted = (scenario, rows, 1, cores)
        return lambda result: (
            wanted
            == (
                result["scenario"],
                result["sizes"]["rows"],
                result["sizes"]["records"],
                result["cores"],
            )
        )

    def undecided(name: str) -> Callable[[Result], float]:
        return lambda result: float(measurement(result, name)["details"]["undecided"])

    def seconds(name: str) -> Callable[[Result], float]:
        return lambda result: float(measurement(result, name)["median"])

    return [
        _series(title, results, applies(scenario), undecided(name), seconds(name))
        for title, (scenario, name) in _UNDECIDED.items()
    ]


def against_cores(results: Results) -> list[Series]:
    """Return seconds of everything that was measured with several numbers of cores.

    Baselines and parts of other measurements are left out.
    """
    found: dict[tuple[str, int, str, int], dict[float, float]] = {}
    for result in results.results:
        sizes = result["sizes"]
        for each in result["measurements"]:
            if each["baseline"] is None or each["name"].startswith(STEP):
                continue
            key = (each["name"], sizes["rows"], sizes["sigma"], sizes["records"])
            found.setdefault(key, {})[float(result["cores"])] = each["median"]
    return [
        Series(_titled(*key), tuple(sorted(points.items())))
        for key, points in found.items()
        if len(points) > 1
    ]


def _titled(name: str, rows: int, sigma: str, records: int) -> str:
    batch = f", R = {records}" if records > 1 else ""
    return f"{name} (N = {rows:,}, sigma {sigma}{batch})"


def _rows(result: Result) -> float:
    return float(result["sizes"]["rows"])


def _series(
    name: str,
    results: Results,
    applies: Callable[[Result], bool],
    x: Callable[[Result], float],
    y: Callable[[Result], float | None],
) -> Series:
    pairs = ((x(each), y(each)) for each in results.results if applies(each))
    return Series(name, tuple(sorted((a, b) for a, b in pairs if b is not None)))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """Return a Markdown table.

    Args:
        headings: of the columns.
        rows: cells, as many as headings in each.
        numbers: whether columns but the first stand to the right.
    """
    aligned = ["---", *("---:" if numbers else "---" for _ in headings[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, aligned, *rows))
