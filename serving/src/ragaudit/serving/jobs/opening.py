"""Who does the long work of a service: settings, the runner they ask for, the queue behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field
from ragaudit.encoding.errors import UnavailableError, UnsupportedError
from ragaudit.ledger.log.database import close_engine, open_engine
from ragaudit.serving.jobs.job import ArrayFiles, JobTable, JobTables, Kinds, MemoryArrays
from ragaudit.serving.jobs.runner import InProcess, Runner
from ragaudit.serving.settings import Section
from sqlalchemy import URL, Engine

if TYPE_CHECKING:
    from ragaudit.serving.jobs.queue import Queue

__all__ = [
    "PROCESS",
    "PROCRASTINATE",
    "JobService",
    "JobSettings",
    "check_jobs",
    "make_queue",
    "open_queue",
    "open_runner",
    "work",
]

PROCESS = "process"
PROCRASTINATE = "procrastinate"


class JobSettings(Section):
    """Who proves, verifies and commits.

    Attributes:
        executor: "process" for the service itself; "procrastinate" for workers that take jobs from
            a queue in the service's PostgreSQL database.
        folder: folder of the arrays that jobs name, on a disk that service and workers share.
        stalled_seconds: a worker without a sign of life for this long counts as dead, and its job
            is given to another one.
    """

    executor: Literal["process", "procrastinate"] = "process"
    folder: Path = Path("jobs")
    stalled_seconds: float = Field(default=30.0, ge=1, le=3600)


@dataclass(frozen=True)
class JobService:
    """What is a service's own about its jobs.

    Attributes:
        tables: of jobs and results, in its database.
        kinds: what its workers can do.
        queue: name of its queue, an SQL name.
    """

    tables: JobTables
    kinds: Kinds
    queue: str


def open_runner(settings: JobSettings, service: JobService, engine: Engine) -> Runner:
    """Return the runner of a service.

    Args:
        settings: say which executor.
        service: whose jobs.
        engine: of the service's database.

    Raises:
        UnsupportedError: the executor is not installed, or not for this database.
    """
    table = JobTable(engine, service.tables)
    if settings.executor == PROCESS:
        memory = MemoryArrays()
        return Runner(table, memory, InProcess(table, memory, service.kinds))
    return Runner(table, ArrayFiles(settings.folder), _queue(settings, service, engine))


@contextmanager
def open_queue(settings: JobSettings, service: JobService, url: str) -> Iterator[Queue]:
    """Yield the queue of a service.

    Args:
        settings: of its jobs.
        service: whose queue.
        url: SQLAlchemy's, of its database.

    Raises:
        UnsupportedError: the settings name no queue, or it is not installed or not for this
            database.
    """
    _demand_queue(settings)
    engine = open_engine(url)
    queue = _queue(settings, service, engine)
    try:
        yield queue
    finally:
        queue.close()
        close_engine(engine)


def make_queue(settings: JobSettings, service: JobService, url: str) -> None:
    """Make the queue of a service anew, if its settings ask for one; arguments as `open_queue`."""
    if settings.executor == PROCRASTINATE:
        with open_queue(settings, service, url) as queue:
            queue.create()


def check_jobs(settings: JobSettings, service: JobService, url: str) -> None:
    """Check that somebody would do the jobs of a service; arguments as `open_queue`.

    Raises:
        UnsupportedError: the executor is not installed, or not for this database.
        UnavailableError: the queue has no tables, or no worker is alive.
    """
    if settings.executor == PROCESS:
        return
    with open_queue(settings, service, url) as queue:
        if not queue.state().workers:
            raise UnavailableError(
                "no worker is alive: nothing would be proven",
                where="jobs.executor",
                expected="a worker, or executor: process",
            )


def work(settings: JobSettings, service: JobService, engine: Engine) -> None:
    """Work at a service's jobs until SIGTERM; arguments and errors as of `open_runner`."""
    _demand_queue(settings)
    with open_queue(settings, service, _text(engine.url)) as queue:
        queue.check()
    from ragaudit.serving.jobs.queue import serve  # noqa: PLC0415 - an extra

    serve(
        engine.url,
        service.queue,
        JobTable(engine, service.tables),
        ArrayFiles(settings.folder),
        service.kinds,
        settings.stalled_seconds,
    )


def _queue(settings: JobSettings, service: JobService, engine: Engine) -> Queue:
    for needed in ("procrastinate", "psycopg_pool"):
        if find_spec(needed) is None:
            raise UnsupportedError(
                f"{needed} is not installed",
                where="jobs.executor",
                expected="the extra procrastinate, or executor: process",
            )
    from ragaudit.serving.jobs.queue import Queue  # noqa: PLC0415

    table = JobTable(engine, service.tables)
    return Queue(table, engine.url, service.queue, settings.stalled_seconds)


def _demand_queue(settings: JobSettings) -> None:
    if settings.executor != PROCRASTINATE:
        raise UnsupportedError(
            f"executor {settings.executor} has no queue",
            where="jobs.executor",
            expected=PROCRASTINATE,
        )


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
