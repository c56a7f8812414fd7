"""The declared cases (benchmarks/matrix.toml): multiplied out, run, their results stored.

Each case runs in a process of its own; each result is stored at once, with machine, commit, date
and sizes.
"""

import itertools
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import InternalError, MalformedError

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
    command = [sys.executable, "-m", "ragaudit.cli", "bench", *case.arguments(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise InternalError(f"exit status {done.returncode}", where=" ".join(command[3:]))
    report: dict[str, Any] = json.loads(done.stdout)
    return report
