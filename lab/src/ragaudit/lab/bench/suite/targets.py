"""The sizes to reach (benchmarks/targets.toml), beside what was measured."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.suite.results import Results

__all__ = ["Outcome", "Target", "load", "measurement", "outcomes"]

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


def load(path: Path) -> list[Target]:
    """Return the targets in a file.

    Args:
        path: benchmarks/targets.toml.

    Raises:
        MalformedError: not readable, or a member missing, unknown or of a wrong type.
    """
    try:
        tables = tomllib.loads(path.read_text())["target"]
        return [_target(table) for table in tables]
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise MalformedError(f"targets: {error!r}", where=str(path)) from error


def _target(table: Mapping[str, Any]) -> Target:
    if table["unit"] not in UNITS:
        raise ValueError(f"unit {table['unit']!r}, expected one of {', '.join(UNITS)}")
    most = {int(rows): float(value) for rows, value in table["most"].items()}
    memory = {int(rows): float(value) for rows, value in table.get("memory_gib", {}).items()}
    return Target(**{**table, "most": most, "memory_gib": memory})


def outcomes(targets: Sequence[Target], results: Results) -> Iterator[Outcome]:
    """Yield every target at each of its numbers of rows, measured or not.

    Args:
        targets: of :func:`load`.
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
