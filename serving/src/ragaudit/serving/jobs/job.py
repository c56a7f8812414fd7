"""What a job is, where its large inputs are, and the tables of jobs and results.

A job is input bytes of a kind, and a key that follows from them; the first result of a key stays.
Arrays are in memory where a process does its own jobs, else in files that a machine's workers
share.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InternalError, RefusedError, UnavailableError
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.log.database import (
    insert_of,
    read_transaction,
    refused_statements,
    write_transaction,
)
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    delete,
    select,
    update,
)

__all__ = [
    "ArrayFiles",
    "Arrays",
    "Compute",
    "Job",
    "JobFailed",
    "JobTable",
    "JobTables",
    "JobsStopped",
    "JobsWithdrawn",
    "Kinds",
    "MemoryArrays",
    "Outcome",
    "job_tables",
]

Array = npt.NDArray[Any]
Progress = Callable[[float], bool]
"""Called with the share done, in [0, 1]; False cancels."""


class JobFailed(InternalError):
    """A job cannot be done, whoever tries: its inputs do not allow it, or no worker survives it."""


class JobsWithdrawn(RefusedError):
    """Nobody wants these jobs any more: their window ended while they were worked at."""


class JobsStopped(UnavailableError):
    """The service is shutting down; what is not done is done after its next start."""


class Arrays(Protocol):
    """The large inputs of jobs, by their window and the digest that names them."""

    def put(self, window: str, array: Array) -> str:
        """Keep an array, if it is not kept already, and return the digest that names it.

        Raises:
            UnavailableError: it cannot be written.
        """

    def get(self, window: str, digest: str) -> Array:
        """Return the array of a digest, not to be written to.

        Raises:
            UnavailableError: it is not there, or not what its name says.
        """

    def release(self, window: str) -> None:
        """Let go of what takes this process's memory."""

    def keep(self, windows: Collection[str]) -> None:
        """Remove every array of any other window."""

    def forget(self, window: str) -> None:
        """Remove every array of a window."""


Compute = Callable[[bytes, str, Arrays, Progress], bytes]
"""From a task, its window, the arrays and a progress to a result; errors of ours are its faults."""
Kinds = Mapping[str, Compute]


@dataclass(frozen=True)
class Job:
    """One piece of work.

    Attributes:
        kind: of the `Kinds` of its service.
        window: that wants it; jobs are withdrawn by window.
        name: what it is about, for people.
        task: its inputs but for the arrays that they name. For this window only: it may hold what
            is secret until the window's end, and never a seed or a key.
    """

    kind: str
    window: str
    name: str
    task: bytes = field(repr=False)

    @cached_property
    def key(self) -> str:
        """64 hexadecimal digits that follow from kind, window and inputs, so from the result's."""
        return sha256(enc("job", self.kind, self.window, self.task)).hexdigest()


def digest_of(array: Array) -> str:
    """Return the name of an array: SHA-256 of its type, its shape and its entries."""
    plain = np.ascontiguousarray(array)
    found = sha256(enc("array", plain.dtype.str, ",".join(map(str, plain.shape))))
    found.update(plain.data if plain.size else b"")
    return found.hexdigest()


class MemoryArrays:
    """Arrays of this process, for jobs that do not leave it; nothing is copied."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Array]] = {}

    def put(self, window: str, array: Array) -> str:
        digest = digest_of(array)
        self._kept.setdefault(window, {})[digest] = array
        return digest

    def get(self, window: str, digest: str) -> Array:
        return self._kept[window][digest]

    def release(self, window: str) -> None:
        self._kept.pop(window, None)

    def keep(self, windows: Collection[str]) -> None:
        for window in set(self._kept).difference(windows):
            self.release(window)

    def forget(self, window: str) -> None:
        self.release(window)


class ArrayFiles:
    """One file for each array, written once, mapped by whoever reads it.

    A file is named by the digest of what is in it, and compared with its name by every process that
    opens it, so that a worker never computes with other rows than it was told to. What is mapped is
    in memory once for all workers of a machine.

    Args:
        folder: that service and workers share; made for its owner only.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._opened: dict[tuple[str, str], Array] = {}

    def put(self, window: str, array: Array) -> str:
        digest = digest_of(array)
        path = self._path(window, digest)
        if not path.exists():
            try:
                self._write(path, array)
            except OSError as error:
                raise _unavailable(error, path) from None
        return digest

    def get(self, window: str, digest: str) -> Array:
        with self._lock:
            if (window, digest) not in self._opened:
                self._opened[window, digest] = self._open(self._path(window, digest), digest)
            return self._opened[window, digest]

    def release(self, window: str) -> None:
        with self._lock:
            for key in [key for key in self._opened if key[0] == window]:
                del self._opened[key]

    def keep(self, windows: Collection[str]) -> None:
        places = {self._place(window) for window in windows}
        for place in self._folder.glob("*") if self._folder.is_dir() else ():
            if place not in places:
                shutil.rmtree(place, ignore_errors=True)

    def forget(self, window: str) -> None:
        self.release(window)
        shutil.rmtree(self._place(window), ignore_errors=True)

    def _place(self, window: str) -> Path:
        # An origin has slashes: no name of a window may lead out of the folder.
        return self._folder / sha256(window.encode()).hexdigest()[:32]

    def _path(self, window: str, digest: str) -> Path:
        return self._place(window) / f"{digest}.npy"

    def _write(self, path: Path, array: Array) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)  # mode 600
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.save(file, array, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _open(self, path: Path, digest: str) -> Array:
        try:
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise _unavailable(error, path) from None
        except (ValueError, EOFError):
            raise _altered(path) from None
        if digest_of(array) != digest:
            raise _altered(path)
        return array


def _unavailable(error: OSError, path: Path) -> UnavailableError:
    return UnavailableError(
        f"an array of a job cannot be used: {error.strerror}",
        where=str(path),
        expected="jobs.folder on a disk that the service and all workers share",
    )


def _altered(path: Path) -> UnavailableError:
    return UnavailableError(
        "an array of a job is not what its name says", where=str(path), expected="the file deleted"
    )


_AT_ONCE = 500  # keys in one statement


@dataclass(frozen=True)
class JobTables:
    """The two tables of a service.

    Attributes:
        job: what is still wanted; its row is removed with the task when there is a result.
        result: of a key, or why there is none.
    """

    job: Table
    result: Table


def job_tables(metadata: MetaData, prefix: str = "") -> JobTables:
    """Add the tables of jobs to a service's.

    Args:
        metadata: of the service.
        prefix: of the names of its tables.
    """
    key = ("key", String(64))
    job = Table(
        f"{prefix}job",
        metadata,
        Column(*key, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("window", Text, nullable=False, index=True),
        Column("name", Text, nullable=False),
        Column("task", LargeBinary, nullable=False),
        Column("taken", Integer, nullable=False),  # by workers, of which all but one have died
    )
    result = Table(
        f"{prefix}job_result",
        metadata,
        Column(*key, primary_key=True),
        Column("window", Text, nullable=False, index=True),
        Column("result", LargeBinary),
        Column("fault", Text),
    )
    return JobTables(job, result)


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a result, or the fault of its inputs."""

    result: bytes | None = field(repr=False)
    fault: str | None


class JobTable:
    """Jobs and results in a service's database. Safe to use from several threads and processes."""

    def __init__(self, engine: Engine, tables: JobTables) -> None:
        self.engine = engine
        self._job, self._result = tables.job, tables.result

    def add(self, jobs: Sequence[Job]) -> None:
        """Note that jobs are wanted, those that have no result and are not noted yet."""
        with refused_statements(), write_transaction(self.engine) as connection:
            known = self._outcomes(connection, [job.key for job in jobs])
            rows = [
                {
                    "key": job.key,
                    "kind": job.kind,
                    "window": job.window,
                    "name": job.name,
                    "task": job.task,
                    "taken": 0,
                }
                for job in jobs
                if job.key not in known
            ]
            for row in rows:
                _insert_new(connection, self._job, row)

    def take(self, key: str) -> tuple[Job, int] | None:
        """Return a job and how often it was taken, this time included; None if nobody wants it."""
        table = self._job
        with refused_statements(), write_transaction(self.engine) as connection:
            row = connection.execute(
                update(table)
                .where(table.c.key == key)
                .values(taken=table.c.taken + 1)
                .returning(table.c.kind, table.c.window, table.c.name, table.c.task, table.c.taken)
            ).one_or_none()
        return None if row is None else (Job(*row[:4]), int(row.taken))

    def finish(self, job: Job, outcome: Outcome) -> bool:
        """Store what became of a job; return False if nobody wants it, or it has a result."""
        with refused_statements(), write_transaction(self.engine) as connection:
            # The row is the right to store, and one transaction gets it: what was withdrawn
            # meanwhile, or is done, gets no second result. The task's secrets go with it.
            removed = connection.execute(delete(self._job).where(self._job.c.key == job.key))
            if not removed.rowcount:
                return False
            self._store(connection, job, outcome)
        return True

    def store(self, job: Job, outcome: Outcome) -> None:
        """Store what became of a job that is not in the table, unless its key has a result."""
        with refused_statements(), write_transaction(self.engine) as connection:
            self._store(connection, job, outcome)

    def _store(self, connection: Connection, job: Job, outcome: Outcome) -> None:
        row: dict[str, object] = {
            "key": job.key,
            "window": job.window,
            "result": outcome.result,
            "fault": outcome.fault,
        }
        _insert_new(connection, self._result, row)

    def outcomes(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """Return what is known of some jobs, by key."""
        with refused_statements(), read_transaction(self.engine) as connection:
            return self._outcomes(connection, keys)

    def open_keys(self, keys: Sequence[str]) -> set[str]:
        """Return those of some keys whose jobs still wait for a result."""
        found: set[str] = set()
        with refused_statements(), read_transaction(self.engine) as connection:
            for at in range(0, len(keys), _AT_ONCE):
                part = keys[at : at + _AT_ONCE]
                found.update(
                    connection.scalars(select(self._job.c.key).where(self._job.c.key.in_(part)))
                )
        return found

    def forget(self, window: str) -> None:
        """Remove the jobs of a window and what became of them; workers drop what they hold."""
        with refused_statements(), write_transaction(self.engine) as connection:
            for table in (self._job, self._result):
                connection.execute(delete(table).where(table.c.window == window))

    def keep(self, windows: Collection[str]) -> None:
        """Forget all other windows, and every fault: a restart may be an update that helps."""
        with refused_statements(), write_transaction(self.engine) as connection:
            for table in (self._job, self._result):
                connection.execute(delete(table).where(table.c.window.not_in(windows)))
            connection.execute(delete(self._result).where(self._result.c.fault.is_not(None)))

    def _outcomes(self, connection: Connection, keys: Sequence[str]) -> dict[str, Outcome]:
        table, found = self._result, {}
        for at in range(0, len(keys), _AT_ONCE):
            query = select(table).where(table.c.key.in_(keys[at : at + _AT_ONCE]))
            for row in connection.execute(query):
                found[row.key] = Outcome(row.result, row.fault)
        return found


def _insert_new(connection: Connection, table: Table, row: dict[str, object]) -> None:
    connection.execute(insert_of(connection, table).values(row).on_conflict_do_nothing())
