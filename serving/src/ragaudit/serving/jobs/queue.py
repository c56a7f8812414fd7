"""The executor of workers that take jobs from a queue: procrastinate, in the service's PostgreSQL.

The queue holds keys only. What is to be done, and what came of it, is in the service's own tables:
a queue that is lost is made anew, and a job that two workers do has the first one's result.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from procrastinate import App, PsycopgConnector, RetryStrategy, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.sql import queries
from psycopg.errors import ForeignKeyViolation
from ragaudit.encoding.errors import UnavailableError, UnsupportedError
from ragaudit.serving.jobs.job import Arrays, Job, JobTable, Kinds, Progress
from ragaudit.serving.jobs.runner import attempt
from sqlalchemy import URL

__all__ = ["Queue", "QueueState", "serve"]

_log = logging.getLogger(__name__)

_TASK = "ragaudit.job"
_POLL_SECONDS = 0.2
_AGAIN_SECONDS = 5
_OPEN = (
    "SELECT queueing_lock AS key FROM procrastinate_jobs"
    " WHERE status IN ('todo', 'doing') AND queueing_lock = ANY(%(keys)s)"
)
_WORKERS = (
    "SELECT count(*) AS workers FROM procrastinate_workers"
    " WHERE last_heartbeat > now() - make_interval(secs => %(seconds)s)"
)
_JOBS = "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"


@dataclass(frozen=True)
class QueueState:
    """What is in a queue now.

    Attributes:
        workers: that gave a sign of life lately.
        jobs: that wait, or are worked at.
    """

    workers: int
    jobs: int


class Queue:
    """A queue of keys in a PostgreSQL schema of its own.

    Args:
        table: of jobs and results.
        url: SQLAlchemy's, of the service's database.
        name: of the queue and its schema, an SQL name.
        stalled_seconds: after which a worker without a sign of life is dead.

    Raises:
        UnsupportedError: the database is no PostgreSQL.
    """

    def __init__(self, table: JobTable, url: URL, name: str, stalled_seconds: float) -> None:
        self._table, self._name, self._stalled = table, name, stalled_seconds
        self._app = App(connector=SyncPsycopgConnector(**_pool(url, name)))
        self._opened = False
        self._looked = time.monotonic()

    def create(self) -> None:
        """Make the queue's tables, in the place of older ones: what they held is queued again."""
        with self._errors():
            connector = self._open().connector.get_sync_connector()
            connector.execute_query(f"DROP SCHEMA IF EXISTS {self._name} CASCADE")
            connector.execute_query(f"CREATE SCHEMA {self._name}")
            self._app.schema_manager.apply_schema()

    def check(self) -> None:
        """Return if the queue can be used.

        Raises:
            UnavailableError: the database does not answer, or the queue has no tables.
        """
        with self._errors():
            there = self._open().check_connection()
        if not there:
            raise UnavailableError(
                "the queue of jobs has no tables", where="jobs.executor", expected="migrate"
            )

    def state(self) -> QueueState:
        """Return what is in the queue now; raises as `check`."""
        self.check()
        with self._errors():
            connector = self._app.connector.get_sync_connector()
            workers = connector.execute_query_one(_WORKERS, seconds=self._stalled)
            jobs = connector.execute_query_one(_JOBS)
        return QueueState(workers["workers"], jobs["jobs"])

    def submit(self, jobs: Sequence[Job]) -> None:
        self._table.add(jobs)
        self._queue([job.key for job in jobs])

    def open_keys(self, keys: Sequence[str]) -> set[str]:
        return self._table.open_keys(keys)

    def drop(self, window: str) -> None:
        """Workers find that the table's row is gone."""

    def _queue(self, keys: Sequence[str]) -> None:
        self.check()
        with self._errors():
            connector = self._app.connector.get_sync_connector()
            rows = connector.execute_query_all(_OPEN, keys=list(keys))
            queued = {row["key"] for row in rows}
            for key in keys:
                if key not in queued:
                    task = self._app.configure_task(_TASK, queue=self._name, queueing_lock=key)
                    # Another process of the service was faster.
                    with suppress(AlreadyEnqueued):
                        task.defer(key=key)

    def attend(self, keys: Sequence[str], progress: Progress) -> None:
        time.sleep(_POLL_SECONDS)
        if time.monotonic() - self._looked < self._stalled / 3:
            return
        self._looked = time.monotonic()
        self._requeue_stalled()
        # What the queue lost, for whatever reason, is in our table still.
        self._queue(keys)

    def close(self) -> None:
        if self._opened:
            self._app.close()

    def _requeue_stalled(self) -> None:
        """Give the jobs of workers that died to others."""
        with self._errors():
            connector = self._app.connector.get_sync_connector()
            stalled = connector.execute_query_all(
                queries["select_stalled_jobs_by_heartbeat"],
                queue=self._name,
                task_name=_TASK,
                seconds_since_heartbeat=self._stalled,
            )
            for row in stalled:
                _log.warning("a worker died over job %.16s: queued again", row["args"]["key"])
                self._app.job_manager.retry_job_by_id(row["id"], datetime.now(UTC))

    def _open(self) -> App:
        if not self._opened:
            self._app.open()
            self._opened = True
        return self._app

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ConnectorException as error:
            # The name alone: a server's text may quote the statement.
            name = type(error.__cause__ or error).__name__
            raise UnavailableError(f"the queue of jobs failed: {name}", where="jobs") from None


def serve(
    url: URL,
    name: str,
    table: JobTable,
    arrays: Arrays,
    kinds: Kinds,
    stalled_seconds: float,
) -> None:
    """Work at jobs of a queue until SIGTERM or SIGINT; the job at hand is finished first.

    Args:
        url, name, stalled_seconds: of the queue, as for `Queue`.
        table: of jobs and results.
        arrays: that tasks name.
        kinds: what can be done here.

    Raises:
        UnavailableError: the database does not answer.
    """

    async def run() -> None:
        app = App(connector=PsycopgConnector(**_pool(url, name)))

        # Only what does not follow from the job is raised: it may succeed later, or elsewhere.
        @app.task(name=_TASK, retry=RetryStrategy(wait=_AGAIN_SECONDS))
        def work(key: str) -> None:
            attempt(table, arrays, kinds, key)

        async with app.open_async():
            await app.run_worker_async(
                queues=[name],
                delete_jobs="always",
                fetch_job_polling_interval=1.0,
                update_heartbeat_interval=stalled_seconds / 4,
                stalled_worker_timeout=stalled_seconds,
            )

    while True:
        try:
            return asyncio.run(run())
        except ConnectorException as error:
            if not isinstance(error.__cause__, ForeignKeyViolation):
                reason = type(error.__cause__ or error).__name__
                raise UnavailableError(
                    f"the queue of jobs failed: {reason}", where="jobs"
                ) from None
            # It stood still for so long that another one took it off the list of workers. What it
            # did meanwhile is in the table of results, or was done by another one.
            _log.warning("this worker counted as dead: it joins again")


def _pool(url: URL, name: str) -> dict[str, Any]:
    if url.get_backend_name() != "postgresql":
        raise UnsupportedError(
            f"a queue of jobs in {url.get_backend_name()}",
            where="jobs.executor",
            expected="process, or a PostgreSQL database",
        )
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    # Beside our tables, not among them: the whole schema can be dropped and made again.
    return {
        "conninfo": plain,
        "kwargs": {"options": f"-c search_path={name}"},
        "min_size": 1,
        "max_size": 4,
    }
