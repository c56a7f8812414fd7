"""Timing: medians of repeated runs, peak memory of each, and the ratio against a baseline."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragaudit.lab.bench.memory import peak_memory_mib, reset_peak
from ragaudit.lab.bench.sampling import sampled

__all__ = ["ALLOWANCE", "STEP", "Measurement", "measure", "measure_once", "summarise", "together"]

ALLOWANCE = 20.0
"""Seconds under the clock after which no further run is begun."""

STEP = "of it: "
"""How the names of measurements begin that are a part of the one before them."""


@dataclass(frozen=True)
class Measurement:
    """What was measured, how long its median run took, and beside which baseline.

    Attributes:
        name: what ran.
        median, lowest, highest: seconds of one run.
        runs: number of runs that count.
        warmed_up: whether a run that does not count went before. A first run that is longer
            than the allowance counts, and is the only one.
        records: number of records that one run treats.
        baseline: None, or the name of the measurement that it is compared with.
        ratio: this median over the baseline's, each divided by its number of records.
        size_bytes: size of what the run made, if it made bytes worth naming; of several, the
            median.
        peak_mib: largest resident size of the process during the runs, None if not measured.
        peak_of_process: whether the peak is that since the start of the process, because the
            system could not forget it.
        details: further numbers of the workload, by name.
    """

    name: str
    median: float
    lowest: float
    highest: float
    runs: int
    warmed_up: bool = True
    records: int = 1
    baseline: str | None = None
    ratio: float | None = None
    size_bytes: int | None = None
    peak_mib: float | None = None
    peak_of_process: bool = False
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def per_record(self) -> float:
        """Seconds of the median run for each of its records."""
        return self.median / self.records

    def beside(
        self,
        baseline: "Measurement",
        size_bytes: int | None = None,
        details: Mapping[str, float] | None = None,
    ) -> "Measurement":
        """Return this measurement with its ratio against another one.

        Args:
            baseline: of which a record is what a record is here.
            size_bytes: as of the attribute; what there is already stays if it is not given.
            details: added to those that there are.
        """
        return replace(
            self,
            baseline=baseline.name,
            ratio=self.per_record / baseline.per_record,
            size_bytes=self.size_bytes if size_bytes is None else size_bytes,
            details={**self.details, **(details or {})},
        )


def measure(
    name: str,
    action: Callable[[], object],
    runs: int,
    *,
    records: int = 1,
    allowance: float = ALLOWANCE,
) -> Measurement:
    """Run ``action`` once to warm up and up to ``runs`` times under the clock.

    If the first run, which warms up, takes longer than the allowance, it is the one that counts.

    Args:
        name: of the measurement; perf samples it if its name is the one that is wanted.
        action: what runs; its result is dropped.
        runs: under the clock, at most; one always counts.
        records: that one run treats.
        allowance: seconds under the clock after which no further run is begun.
    """
    gc.collect()
    forgot = reset_peak()
    with sampled(name):
        first = _seconds(action)
        warmed_up = first <= allowance
        seconds = [] if warmed_up else [first]
        while warmed_up and len(seconds) < runs and sum(seconds) < allowance:
            seconds.append(_seconds(action))
    return _with_peak(summarise(name, seconds), warmed_up, records, forgot)


def measure_once(name: str, action: Callable[[], object], *, records: int = 1) -> Measurement:
    """Run ``action`` once, under the clock: what is long, or cannot be repeated.

    Args:
        name, action, records: as of `measure`.
    """
    gc.collect()
    forgot = reset_peak()
    with sampled(name):
        seconds = [_seconds(action)]
    return _with_peak(summarise(name, seconds), False, records, forgot)


def _with_peak(found: Measurement, warmed_up: bool, records: int, forgot: bool) -> Measurement:
    return replace(
        found,
        warmed_up=warmed_up,
        records=records,
        peak_mib=round(peak_memory_mib(), 1),
        peak_of_process=not forgot,
    )


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def summarise(name: str, seconds: Sequence[float]) -> Measurement:
    """Return the measurement of runs that were timed elsewhere.

    Args:
        name: of the measurement.
        seconds: of each run; at least one.
    """
    runs = len(seconds)
    return Measurement(name, statistics.median(seconds), min(seconds), max(seconds), runs)


def together(name: str, parts: Sequence[Measurement]) -> Measurement:
    """Return the measurement of what runs one part after the other.

    Medians and extremes are added up; a sum of medians is itself no median.

    Args:
        name: of the whole.
        parts: at least one.
    """
    return Measurement(
        name,
        median=sum(each.median for each in parts),
        lowest=sum(each.lowest for each in parts),
        highest=sum(each.highest for each in parts),
        runs=min(each.runs for each in parts),
        warmed_up=all(each.warmed_up for each in parts),
        peak_mib=max(each.peak_mib or 0.0 for each in parts),
        peak_of_process=any(each.peak_of_process for each in parts),
    )
