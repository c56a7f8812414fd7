"""The executor of one process: each job is computed where its result is waited for."""

from collections.abc import Sequence

from ragaudit.serving.jobs.job import Arrays, Job, Kinds, Progress
from ragaudit.serving.jobs.runner import compute
from ragaudit.serving.jobs.table import JobTable

__all__ = ["InProcess"]


class InProcess:
    """Computes job after job; the compiled core uses every core for each.

    Tasks stay in memory, results are stored: after a restart only the job at hand is done again.
    """

    def __init__(self, table: JobTable, arrays: Arrays, kinds: Kinds) -> None:
        self._table, self._arrays, self._kinds = table, arrays, kinds
        self._jobs: dict[str, Job] = {}

    def submit(self, jobs: Sequence[Job]) -> None:
        self._jobs.update((job.key, job) for job in jobs)

    def open_keys(self, keys: Sequence[str]) -> set[str]:
        return self._jobs.keys() & set(keys)

    def drop(self, window: str) -> None:
        for job in list(self._jobs.values()):
            if job.window == window:
                self._jobs.pop(job.key, None)

    def attend(self, keys: Sequence[str], progress: Progress) -> None:
        job = self._jobs.get(keys[0])
        if job is None:
            return

        def report(share: float) -> bool:
            return progress(share) and job.key in self._jobs

        outcome = compute(self._kinds, job, self._arrays, report)
        if outcome is not None and job.key in self._jobs:
            self._table.store(job, outcome)
        self._jobs.pop(job.key, None)

    def close(self) -> None:
        """There is no engine."""
