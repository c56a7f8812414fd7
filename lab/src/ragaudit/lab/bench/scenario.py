"""What every scenario gets: the workload, how often to run, and where to say what it is at."""

from collections.abc import Callable
from dataclasses import dataclass

from ragaudit.lab.bench.measure import ALLOWANCE, Measurement, measure
from ragaudit.lab.bench.workload import Workload

__all__ = ["Notify", "Task", "silent"]

Notify = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done and out of how much (0: unknown)."""


def silent(what: str, done: int, total: int) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Task:
    """One scenario to be run.

    Attributes:
        runs: runs under the clock, at most.
        allowance: seconds under the clock after which no further run is begun.
    """

    work: Workload
    runs: int
    notify: Notify = silent
    allowance: float = ALLOWANCE

    def stage(self, what: str, done: int = 0, total: int = 0) -> None:
        """Say what is being done."""
        self.notify(what, done, total)

    def measure(self, name: str, action: Callable[[], object], records: int = 1) -> Measurement:
        """Measure ``action``, saying so."""
        self.stage(name)
        return measure(name, action, self.runs, records=records, allowance=self.allowance)
