"""How each cost grows: the points of one measurement against N, |U| or the number of cores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragaudit.lab.bench.measure import STEP
from ragaudit.lab.bench.suite.fitting import Point
from ragaudit.lab.bench.suite.results import Results
from ragaudit.lab.bench.suite.targets import Target, measurement

__all__ = ["Series", "against_cores", "against_rows", "against_undecided", "memory_against_rows"]

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
