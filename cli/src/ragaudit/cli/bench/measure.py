"""Timing: medians of repeated runs, peak memory, and the ratio against a baseline."""

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Measurement", "measure", "peak_memory_mib", "summarise"]


@dataclass(frozen=True)
class Measurement:
    """What was measured, how long its median run took, and beside which baseline.

    Attributes:
        name: what ran.
        median, lowest, highest: seconds of one run.
        runs: number of runs, after one that was not counted.
        baseline: None, or the name of the measurement that it is compared with.
        ratio: this median over the baseline's.
        size_bytes: size of what the run made, if it made bytes worth naming.
    """

    name: str
    median: float
    lowest: float
    highest: float
    runs: int
    baseline: str | None = None
    ratio: float | None = None
    size_bytes: int | None = None

    def beside(self, baseline: "Measurement", size_bytes: int | None = None) -> "Measurement":
        """This measurement with its ratio against ``baseline``."""
        return Measurement(
            self.name,
            self.median,
            self.lowest,
            self.highest,
            self.runs,
            baseline.name,
            self.median / baseline.median,
            size_bytes,
        )


def measure(name: str, action: Callable[[], object], runs: int) -> Measurement:
    """Run ``action`` once to warm up and ``runs`` times under the clock."""
    action()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return summarise(name, seconds)


def summarise(name: str, seconds: Sequence[float]) -> Measurement:
    """The measurement of runs that were timed elsewhere; at least one."""
    runs = len(seconds)
    return Measurement(name, statistics.median(seconds), min(seconds), max(seconds), runs)


def peak_memory_mib() -> float:
    """Largest resident size of this process so far, in MiB (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
