"""The scenarios by name; what each gets: the workload, how often to run, where to say so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from ragaudit.lab.bench.measure import ALLOWANCE, Measurement, measure
from ragaudit.lab.bench.workload import Workload

__all__ = ["SCENARIOS", "Notify", "Scenario", "Task", "find", "silent"]

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
        """Say what is being done.

        Args:
            what: in words.
            done, total: how much of it is done, and out of how much; 0 for unknown.
        """
        self.notify(what, done, total)

    def measure(self, name: str, action: Callable[[], object], records: int = 1) -> Measurement:
        """Measure ``action`` with this task's runs and allowance, saying so.

        Args:
            name, action, records: as of `ragaudit.lab.bench.measure.measure`.
        """
        self.stage(name)
        return measure(name, action, self.runs, records=records, allowance=self.allowance)


Scenario = Callable[[Task], list[Measurement]]

SCENARIOS: Final[Mapping[str, tuple[str, str]]] = {
    "index": ("proofs", "index"),
    "prove": ("proofs", "prove"),
    "verify": ("proofs", "verify"),
    "reference": ("proofs", "reference"),
    "answer": ("answering", "answer"),
    "answer-http": ("answering_http", "answer_http"),
    "audit": ("auditing", "audit"),
}
"""Module of this package, and function; imported when it is run, since some need every member."""


def find(name: str) -> Scenario:
    """Return the scenario of a name of `SCENARIOS`."""
    module, function = SCENARIOS[name]
    return cast(Scenario, getattr(import_module(f"ragaudit.lab.bench.{module}"), function))
