"""The tables of jobs and of their results: the first result of a key stays."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ragaudit.ledger.log.database import read_transaction, refused_statements, write_transaction
from ragaudit.serving.jobs.job import Job
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
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["JobTable", "JobTables", "Outcome", "job_tables"]

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
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(insert(table).values(row).on_conflict_do_nothing())
