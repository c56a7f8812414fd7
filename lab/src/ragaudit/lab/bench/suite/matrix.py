"""The declared cases (benchmarks/matrix.toml), multiplied out."""

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError

__all__ = ["Case", "load"]

ALL = "all"
_SCENARIOS = ("index", "prove", "verify", "reference", "answer", "answer-http", "audit")
_MEMBERS = ("scenario", "rows", "dimension", "top_k", "sigma", "records", "cores", "runs")
# What every scenario's command has beside; the other options are where they mean something.
_WITH_RECORDS = ("verify", "audit")
_WITHOUT_RUNS = ("audit",)
_WITHOUT_KEEPING = ("answer-http",)


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


def load(path: Path, cores: int, max_rows: int | None = None) -> list[Case]:
    """Return the cases of a matrix, each once, those with few rows first.

    Args:
        cores: number of cores that "all" means; cases that need more are left out.
        max_rows: leave out cases with more rows; None for no limit.

    Raises:
        MalformedError: not readable, or a member missing, unknown or of a wrong type.
    """
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MalformedError(f"matrix: {error}", where=str(path)) from error
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
