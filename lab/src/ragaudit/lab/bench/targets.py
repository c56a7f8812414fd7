"""The sizes to reach (benchmarks/targets.toml), and how each cost grows against N, |U| or cores.

Growth is a power law: the exponent is fitted by least squares on logarithms.
"""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.harness import STEP
from ragaudit.lab.bench.matrix import Results, reading
from scipy.stats import t as student_t

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

    def peak(target: Target) -> Callable[[Result], float | None]:
        def of(result: Result) -> float | None:
            found: float | None = measurement(result, target.measurement)["peak_mib"]
            return found

        return of

    return [
        _series(each.what, results, each.applies, _rows, peak(each))
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
