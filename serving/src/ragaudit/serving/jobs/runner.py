"""Having jobs done: the table is asked first, an executor has the rest computed."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from ragaudit.encoding.errors import RagauditError, UnavailableError
from ragaudit.serving.jobs.job import (
    Arrays,
    Job,
    JobFailed,
    JobsStopped,
    JobsWithdrawn,
    JobTable,
    Kinds,
    Outcome,
    Progress,
)

__all__ = ["Executor", "InProcess", "Runner", "attempt", "compute"]

MAX_TAKEN = 5
"""Workers that may die with one job in their hands before it counts as what killed them."""
_ASKED_SECONDS = 1.0  # between two questions whether a job is still wanted

Notify = Callable[[float], bool | None]


class Executor(Protocol):
    """Has jobs computed, and their results stored in the table."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Have jobs computed; one that is submitted already stays as it is."""

    def open_keys(self, keys: Sequence[str]) -> set[str]:
        """Return those of some keys whose jobs still wait for a result."""

    def drop(self, window: str) -> None:
        """Stop working at what a process holds of a window's jobs."""

    def attend(self, keys: Sequence[str], progress: Progress) -> None:
        """Work or wait for a moment, and look after jobs whose worker died.

        Args:
            keys: that have no result yet, in order; at least one.
            progress: called with the share done of the first, where that is known.

        Raises:
            UnavailableError: the engine does not answer.
        """

    def close(self) -> None:
        """Let go of the engine; jobs that are submitted stay there."""


class Runner:
    """Has jobs done and returns their results. Safe to use from several threads.

    Args:
        table: of jobs and results.
        arrays: where jobs find their large inputs.
        executor: that computes them.
    """

    def __init__(self, table: JobTable, arrays: Arrays, executor: Executor) -> None:
        self._table = table
        self.arrays = arrays
        self._executor = executor
        self._stopping = threading.Event()

    def run(self, jobs: Sequence[Job], notify: Notify | None = None) -> Iterator[tuple[Job, bytes]]:
        """Yield each job with its result as soon as there is one, in any order.

        Args:
            jobs: of one window, with distinct keys.
            notify: called with the share done; its False withdraws the window's jobs.

        Raises:
            JobFailed: names the job that cannot be done.
            JobsWithdrawn: their window's jobs were forgotten meanwhile.
            JobsStopped: `stop` was called.
            UnavailableError: table or engine do not answer; nothing is lost, call again.
        """
        waiting = {job.key: job for job in jobs}

        def report(part: float) -> bool:
            done = len(jobs) - len(waiting) + part
            return self._report(jobs[0].window, notify, done / len(jobs))

        submitted = False
        while waiting:
            for key, outcome in self._table.outcomes(list(waiting)).items():
                yield waiting[key], _result(waiting.pop(key), outcome)
            if not waiting:
                return
            keys = list(waiting)
            if not submitted:
                self._executor.submit(list(waiting.values()))
                submitted = True
            report(0)
            self._executor.attend(keys, report)
            self._demand_wanted(keys)

    def results(self, jobs: Sequence[Job], notify: Notify | None = None) -> list[bytes]:
        """Return the results of jobs in their order; arguments and errors as of `run`."""
        found = {job.key: result for job, result in self.run(jobs, notify)}
        return [found[job.key] for job in jobs]

    def done(self, window: str) -> None:
        """Forget results that were taken over into other tables; arrays in files stay."""
        self.release(window)
        self._table.forget(window)

    def release(self, window: str) -> None:
        """Let go of what this process's memory holds of a window; others may go on with it."""
        self._executor.drop(window)
        self.arrays.release(window)

    def withdraw(self, window: str) -> None:
        """Forget jobs, results and arrays of a window that ended; workers stop working at them."""
        self._executor.drop(window)
        self._table.forget(window)
        self.arrays.forget(window)

    def keep(self, windows: Collection[str]) -> None:
        """Forget all that is of other windows, and what failed: when a process begins to drive.

        Args:
            windows: that are not finished.
        """
        self._table.keep(windows)
        self.arrays.keep(windows)

    def stop(self) -> None:
        """Let every `run` end with JobsStopped."""
        self._stopping.set()

    def close(self) -> None:
        """Let go of the engine, after `stop`, when no `run` is left."""
        self._executor.close()

    def _report(self, window: str, notify: Notify | None, share: float) -> bool:
        if self._stopping.is_set():
            raise JobsStopped("the service is shutting down", where=window)
        if notify is not None and notify(share) is False:
            self.withdraw(window)
            raise JobsWithdrawn("its jobs are withdrawn", where=window)
        return True

    def _demand_wanted(self, keys: Sequence[str]) -> None:
        # In this order: a result is stored when, or before, its job is gone.
        gone = set(keys) - self._executor.open_keys(keys)
        if gone - set(self._table.outcomes(sorted(gone))):
            raise JobsWithdrawn("its jobs are withdrawn", where="jobs")


def attempt(
    table: JobTable,
    arrays: Arrays,
    kinds: Kinds,
    key: str,
) -> None:
    """Do the job of a key and store what became of it: what a worker of a queue does.

    Raises:
        UnavailableError: table or arrays do not answer. The job stays as it was.
    """
    taken = table.take(key)
    if taken is None:
        return
    job, times = taken
    if times > MAX_TAKEN:
        fault = f"{MAX_TAKEN} workers ended while they worked at it"
        table.finish(job, Outcome(None, fault))
        return
    asked = time.monotonic()

    def report(_share: float) -> bool:
        nonlocal asked
        if time.monotonic() - asked < _ASKED_SECONDS:
            return True
        asked = time.monotonic()
        return bool(table.open_keys([key]))

    if (outcome := compute(kinds, job, arrays, report)) is not None:
        table.finish(job, outcome)


def compute(kinds: Kinds, job: Job, arrays: Arrays, progress: Progress) -> Outcome | None:
    """Return what becomes of a job; None if its progress cancelled it.

    Raises:
        UnavailableError, OSError, MemoryError: nothing that follows from the job.
    """
    cancelled = False

    def report(share: float) -> bool:
        nonlocal cancelled
        cancelled = cancelled or not progress(share)
        return not cancelled

    if job.kind not in kinds:
        return Outcome(None, f"unknown kind {job.kind!r}: a worker of another release")
    try:
        return Outcome(kinds[job.kind](job.task, job.window, arrays, report), None)
    except (UnavailableError, JobsWithdrawn, OSError, MemoryError):
        raise
    except RagauditError as error:
        return Outcome(None, str(error))
    except Exception as error:
        if cancelled:
            return None
        # Of the compiled core among others; a text may quote what is secret, a name does not.
        return Outcome(None, type(error).__name__)


def _result(job: Job, outcome: Outcome) -> bytes:
    if outcome.result is None:
        raise JobFailed(
            f"{job.kind} cannot be done: {outcome.fault}",
            where=f"{job.window}: {job.name}, job {job.key[:16]}",
            expected="inputs that allow it; a restart of the service tries again",
        )
    return outcome.result


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
