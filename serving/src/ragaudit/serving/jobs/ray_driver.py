"""The process between a service and a cluster of Ray: `main` of the module that a service names.

Ray gets the function of a kind by its name, the task, and the folder of the arrays; nothing else
is known here. A task is tried once: what is done again, the service decides.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import ray
from ragaudit.encoding.errors import UnavailableError
from ragaudit.serving.jobs import ray_probe
from ragaudit.serving.jobs.arrays import ArrayFiles
from ragaudit.serving.jobs.cluster import Order, Report
from ragaudit.serving.jobs.job import Compute, Job, JobsWithdrawn, Kinds
from ragaudit.serving.jobs.runner import compute
from ray._raylet import GcsClient
from ray.exceptions import (
    AuthenticationError,
    NodeDiedError,
    OutOfMemoryError,
    RayError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)

__all__ = ["main", "work"]

_CONNECT_SECONDS = 5.0
_WAIT_SECONDS = 0.1
_SLOTS_WAITS = 100  # between two looks at the size of the cluster


def main(kinds: Kinds) -> None:
    """Do a service's jobs at a cluster until the service closes the connection.

    The arguments of the process are the connection's descriptor, the cluster's address, the folder
    of the arrays and the cores of a job.

    Args:
        kinds: what can be done, functions that Ray's workers can import.
    """
    connection = Connection(int(sys.argv[1]))
    address, folder, cores = sys.argv[2], sys.argv[3], int(sys.argv[4])
    try:
        _demand_authentication(address)
        ray.init(address, log_to_driver=False, configure_logging=False, logging_level="ERROR")
    except (UnavailableError, RayError, OSError, ValueError, RuntimeError) as error:
        reason = str(error) if isinstance(error, UnavailableError) else type(error).__name__
        connection.send_bytes(Report(Report.REFUSED, "", reason.encode()).encode())
        return
    try:
        _Loop(connection, kinds, folder, cores).run()
    except (EOFError, OSError):
        return  # the service ended, and Ray ends what it wanted


def work(
    function: Compute, order: tuple[str, str, bytes], folder: str, cores: int
) -> tuple[str, bytes]:
    """Do a job, on a worker of the cluster; return what a `Report` says of it.

    Args:
        function: of the job's kind.
        order: kind, window and task.
        folder: of the arrays.
        cores: that the job may use.
    """
    os.environ.setdefault("RAYON_NUM_THREADS", str(cores))  # before the core makes its threads
    kind, window, task = order
    try:
        # Whoever wants it no more has Ray end this process.
        outcome = compute(
            {kind: function}, Job(kind, window, "", task), _arrays(folder), lambda _share: True
        )
    except (UnavailableError, JobsWithdrawn) as error:
        return Report.AGAIN, str(error).encode()
    except (OSError, MemoryError) as error:
        return Report.AGAIN, type(error).__name__.encode()
    if outcome is None:
        return Report.AGAIN, b"cancelled"
    if outcome.result is None:
        return Report.FAULT, (outcome.fault or "").encode()
    return Report.DONE, outcome.result


@cache
def _arrays(folder: str) -> ArrayFiles:
    return ArrayFiles(Path(folder))


class _Loop:
    """Orders in, reports out, and what Ray works at between them."""

    def __init__(self, connection: Connection, kinds: Kinds, folder: str, cores: int) -> None:
        self._connection, self._kinds = connection, kinds
        self._folder, self._cores = folder, cores
        # A worker that ended may have been ended by the task: the service counts.
        self._work = ray.remote(num_cpus=cores, max_retries=0)(work)
        self._keys: dict[Any, str] = {}

    def run(self) -> None:
        slots, waits = -1, 0
        while True:
            if waits % _SLOTS_WAITS == 0 and (found := self._slots()) != slots:
                slots = found
                self._report(Report.READY, "", str(slots).encode())
            waits += 1
            self._orders(0 if self._keys else _WAIT_SECONDS)
            if self._keys:
                done, _ = ray.wait(list(self._keys), timeout=_WAIT_SECONDS)
                for reference in done:
                    self._finish(reference)

    def _orders(self, seconds: float) -> None:
        while self._connection.poll(seconds):
            seconds = 0
            order = Order.parse(self._connection.recv_bytes())
            if order.kind:
                self._start(order)
            else:
                self._stop(order.key)

    def _start(self, order: Order) -> None:
        if order.kind not in self._kinds:
            self._report(Report.FAULT, order.key, f"unknown kind {order.kind!r}".encode())
            return
        reference = self._work.remote(
            self._kinds[order.kind],
            (order.kind, order.window, order.task),
            self._folder,
            self._cores,
        )
        self._keys[reference] = order.key

    def _stop(self, key: str) -> None:
        for reference in [found for found, kept in self._keys.items() if kept == key]:
            del self._keys[reference]
            ray.cancel(reference, force=True)

    def _finish(self, reference: Any) -> None:
        key = self._keys.pop(reference)
        try:
            what, data = ray.get(reference)
        except TaskCancelledError:
            return
        except (WorkerCrashedError, NodeDiedError, OutOfMemoryError) as error:
            what, data = Report.DIED, type(error).__name__.encode()
        except RayTaskError as error:
            # The name alone: what was raised may quote a task.
            what, data = Report.AGAIN, type(error.cause).__name__.encode()
        except RayError as error:
            what, data = Report.AGAIN, type(error).__name__.encode()
        self._report(what, key, data)

    def _slots(self) -> int:
        # Of each node: what two of them have left together, no job can have.
        nodes: Sequence[Mapping[str, Any]] = [node for node in ray.nodes() if node["Alive"]]
        return sum(int(node["Resources"].get("CPU", 0)) // self._cores for node in nodes)

    def _report(self, what: str, key: str, data: bytes) -> None:
        self._connection.send_bytes(Report(what, key, data).encode())


def _demand_authentication(address: str) -> None:
    """Raise UnavailableError unless the cluster lets in this token, and nobody without one."""
    host, _, port = address.rpartition(":")
    try:
        # Ray would try for a long time.
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        GcsClient(address=address)
    except AuthenticationError:
        raise UnavailableError("it refuses the token") from None
    except (RayError, OSError, OverflowError):
        raise UnavailableError("no answer") from None
    kept = {name: value for name, value in os.environ.items() if "RAY_AUTH" not in name}
    # In a process of its own: Ray reads the mode once.
    probe = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-m", ray_probe.__name__, address],
        env={**kept, "RAY_AUTH_MODE": "disabled"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if probe.returncode != ray_probe.REFUSED:
        raise UnavailableError("it answers without a token")
