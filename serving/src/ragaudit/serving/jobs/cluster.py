"""The executor of a cluster: Ray, through a process between the service and it.

Ray ends the process that speaks to it when the cluster goes away, and hands on what that process
holds. So it is a process of its own (`ray_driver`): it knows no database and none of the service's
environment, gets tasks, and returns what became of them. Results are stored here. Cluster and
driver are disposable: jobs without a result are given to the next ones.
"""

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from ragaudit.encoding.errors import UnavailableError
from ragaudit.encoding.tagged import decode, enc
from ragaudit.serving.jobs.job import Job, Progress
from ragaudit.serving.jobs.runner import MAX_TAKEN
from ragaudit.serving.jobs.table import JobTable, Outcome

__all__ = ["Cluster", "ClusterAddress", "Order", "Report"]

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_START_SECONDS = 60.0
_AGAIN_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_AHEAD = 2  # jobs at the cluster for each that it works at, so that no worker waits

# What a process needs to run and to find Ray. The rest of the environment is the service's.
_ENVIRONMENT: Final = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")


@dataclass(frozen=True)
class Order:
    """From the service to its driver: do a job, or stop at it.

    Attributes:
        key: of the job.
        kind, window, task: of the job; all empty to stop at it.
    """

    key: str
    kind: str = ""
    window: str = ""
    task: bytes = field(default=b"", repr=False)

    def encode(self) -> bytes:
        """Return it as bytes."""
        return enc("order", self.key, self.kind, self.window, self.task)

    @classmethod
    def parse(cls, data: bytes) -> "Order":
        """Return what `encode` made bytes of; MalformedError for others."""
        key, kind, window, task = decode("order", data, 4)
        return cls(key.decode(), kind.decode(), window.decode(), task)


@dataclass(frozen=True)
class Report:
    """From the driver to its service.

    Attributes:
        what: DONE with a result; FAULT of the inputs, DIED with its worker, or AGAIN, each with a
            reason; READY with the number of jobs that the cluster does at once; REFUSED by the
            cluster, with a reason.
        key: of the job, if it is about one.
        data: result, reason or number.
    """

    DONE = "done"
    FAULT = "fault"
    DIED = "died"
    AGAIN = "again"
    READY = "ready"
    REFUSED = "refused"

    what: str
    key: str
    data: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return it as bytes."""
        return enc("report", self.what, self.key, self.data)

    @classmethod
    def parse(cls, data: bytes) -> "Report":
        """Return what `encode` made bytes of; MalformedError for others."""
        what, key, rest = decode("report", data, 3)
        return cls(what.decode(), key.decode(), rest)


@dataclass(frozen=True)
class ClusterAddress:
    """Where a cluster is, and how a driver is let in.

    Attributes:
        address: HOST:PORT of its head; this machine is one of its nodes.
        token_file: of the cluster's token, mode 600.
        folder: of the arrays, seen by every node.
        cores: that a job takes.
        module: that is run as the driver.
    """

    address: str
    token_file: Path
    folder: Path
    cores: int
    module: str


class Cluster:
    """Jobs at a cluster, through a driver that is started when there is work.

    Args:
        table: of jobs and results.
        where: the cluster.
    """

    def __init__(self, table: JobTable, where: ClusterAddress) -> None:
        self._table, self._where = table, where
        self._lock = threading.RLock()
        self._driver: _Driver | None = None
        self._jobs: dict[str, Job] = {}  # in the order in which they are given to the cluster
        self._given: set[str] = set()
        self._deaths: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._looked = time.monotonic()

    def check(self) -> int:
        """Return how many jobs the cluster does at once.

        Raises:
            UnavailableError: it does not answer, refuses the token, or lets in who has none.
        """
        with self._lock:
            return self._started().slots

    def submit(self, jobs: Sequence[Job]) -> None:
        self._table.add(jobs)
        with self._lock:
            self._started()
            self._jobs.update((job.key, job) for job in jobs if job.key not in self._jobs)

    def open_keys(self, keys: Sequence[str]) -> set[str]:
        return self._table.open_keys(keys)

    def drop(self, window: str) -> None:
        with self._lock:
            self._stop([key for key, job in self._jobs.items() if job.window == window])

    def attend(self, keys: Sequence[str], progress: Progress) -> None:
        if not self._lock.acquire(blocking=False):
            time.sleep(_POLL_SECONDS)  # another thread looks after the jobs of all
            return
        try:
            driver = self._started()
            self._give(driver)
            for report in driver.reports(_POLL_SECONDS):
                self._take(driver, report)
            if time.monotonic() - self._looked > _LOOK_SECONDS:
                self._looked = time.monotonic()
                # Another process of the service may have withdrawn them.
                self._stop(sorted(self._jobs.keys() - self._table.open_keys(list(self._jobs))))
        except (OSError, EOFError):
            _log.warning("the driver of the cluster ended: its jobs are given to another one")
            self._end()
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._end()

    def _started(self) -> "_Driver":
        if self._driver is None:
            self._given.clear()
            self._driver = _Driver(self._where)
        return self._driver

    def _end(self) -> None:
        if self._driver is not None:
            self._driver.end()
            self._driver = None

    def _give(self, driver: "_Driver") -> None:
        room = _AHEAD * driver.slots - len(self._given)
        now = time.monotonic()
        for key, job in self._jobs.items():
            if room <= 0:
                return
            if key not in self._given and self._not_before.get(key, now) <= now:
                driver.send(Order(key, job.kind, job.window, job.task))
                self._given.add(key)
                room -= 1

    def _take(self, driver: "_Driver", report: Report) -> None:
        if report.what == Report.READY:
            driver.slots = int(report.data)
            return
        job = self._jobs.get(report.key)
        self._given.discard(report.key)
        if job is None:
            return
        if report.what == Report.DONE:
            self._finish(job, Outcome(report.data, None))
        elif report.what == Report.FAULT:
            self._finish(job, Outcome(None, report.data.decode()))
        elif report.what == Report.DIED and self._died(job) >= MAX_TAKEN:
            self._finish(job, Outcome(None, f"{MAX_TAKEN} workers ended while they worked at it"))
        else:
            _log.warning("job %.16s is done again: %s", job.key, report.data.decode())
            if report.what == Report.AGAIN:
                self._not_before[job.key] = time.monotonic() + _AGAIN_SECONDS

    def _died(self, job: Job) -> int:
        self._deaths[job.key] = self._deaths.get(job.key, 0) + 1
        return self._deaths[job.key]

    def _finish(self, job: Job, outcome: Outcome) -> None:
        self._table.finish(job, outcome)
        self._forget(job.key)

    def _forget(self, key: str) -> None:
        self._jobs.pop(key, None)
        self._deaths.pop(key, None)
        self._not_before.pop(key, None)

    def _stop(self, keys: Sequence[str]) -> None:
        for key in keys:
            if self._driver is not None and key in self._given:
                # If it ended, nobody works at the job.
                with suppress(OSError):
                    self._driver.send(Order(key))
            self._given.discard(key)
            self._forget(key)


class _Driver:
    """The process between, once the cluster let it in.

    Raises:
        UnavailableError: the cluster does not answer, or is not one to work with.
    """

    def __init__(self, where: ClusterAddress) -> None:
        ours, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                [
                    *(sys.executable, "-m", where.module, str(its.fileno())),
                    *(where.address, str(where.folder), str(where.cores)),
                ],
                env=environment(where.token_file),
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # What a terminal sends the service is not for it.
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        self.slots = self._first(where)

    def _first(self, where: ClusterAddress) -> int:
        reason = "no answer"
        try:
            if self._connection.poll(_START_SECONDS):
                report = Report.parse(self._connection.recv_bytes())
                if report.what == Report.READY:
                    return int(report.data)
                reason = report.data.decode()
        except (OSError, EOFError):
            reason = "its driver ended"
        self.end()
        raise UnavailableError(
            f"the cluster cannot be used: {reason}",
            where=f"jobs.ray_address: {where.address}",
            expected="a Ray cluster with token authentication, of which this machine is a node",
        )

    def send(self, order: Order) -> None:
        self._connection.send_bytes(order.encode())

    def reports(self, seconds: float) -> list[Report]:
        """Wait for a report, but no longer than this; raises EOFError, OSError at its end."""
        found: list[Report] = []
        while self._connection.poll(0 if found else seconds):
            found.append(Report.parse(self._connection.recv_bytes()))
        return found

    def end(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()


def environment(token_file: Path) -> dict[str, str]:
    """Return the environment of a driver: nothing of the service's but where programs are.

    Args:
        token_file: of the cluster's token.
    """
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # TLS and ports of the cluster, but no token beside the file's.
    kept |= {
        name: value
        for name, value in os.environ.items()
        if name.startswith("RAY_") and name != "RAY_AUTH_TOKEN"
    }
    return kept | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token_file),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
