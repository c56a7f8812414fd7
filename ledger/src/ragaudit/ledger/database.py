"""Engines and transactions: SQLite now, PostgreSQL by another URL.

A transaction that writes locks before it reads. SQLite: BEGIN IMMEDIATE, a write-ahead log,
synchronous=FULL, so that a commit that returned survives a loss of power. PostgreSQL: the writer
takes a row lock (`store.LogStore`), and synchronous_commit is on whatever the cluster's default.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ragaudit.encoding.errors import InternalError, UnsupportedError
from ragaudit.ledger.errors import CorruptLog, StoreUnavailable
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError, OperationalError

LOCK_SECONDS = 30
_WRITES = "ragaudit_writes"


def open_engine(url: str) -> Engine:
    """An engine for ``url``; SQLite needs a file, in-memory databases are refused.

    Statement parameters never appear in errors or logs: they hold salts and bodies.

    Raises:
        UnsupportedError: another database, or an SQLite one without a file.
    """
    parsed = make_url(url)
    dialect = parsed.get_backend_name()
    if dialect == "postgresql":
        engine = create_engine(parsed, hide_parameters=True, pool_pre_ping=True)
        event.listen(engine, "begin", _begin_postgresql)
        return engine
    if dialect != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise UnsupportedError(
            "database not supported",
            where="database URL",
            expected="sqlite:///<file> or postgresql+<driver>://...",
        )
    engine = create_engine(parsed, hide_parameters=True, connect_args={"timeout": LOCK_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction that may write; commits at the end, rolls back on any exception.

    Raises:
        StoreUnavailable: the database is locked, full or gone. Whether a failed *commit* took
            effect is then unknown to us: read the state again, never continue from memory.
        CorruptLog: the database itself says that its file is damaged.
    """
    with _errors_of_ours(), engine.connect() as plain:
        connection = plain.execution_options(**{_WRITES: True})
        with connection.begin():
            yield connection


@contextmanager
def read_transaction(engine: Engine) -> Iterator[Connection]:
    """One consistent reading of what is committed. Raises as `write_transaction`."""
    options = {"isolation_level": "REPEATABLE READ"} if engine.name == "postgresql" else {}
    with _errors_of_ours(), engine.connect() as plain:
        connection = plain.execution_options(**options)
        with connection.begin():
            yield connection


@contextmanager
def _errors_of_ours() -> Iterator[None]:
    """Tell failures of the database in its own words, without statements and parameters."""
    try:
        yield
    except OperationalError as error:
        reason = str(error.orig).partition("\n")[0]
        raise StoreUnavailable(f"the database failed: {reason}", where="ledger") from None
    except DatabaseError as error:
        if type(error) is not DatabaseError:  # IntegrityError and such are the caller's
            raise
        reason = str(error.orig).partition("\n")[0]
        raise CorruptLog(f"the database is damaged: {reason}", where="ledger") from None


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own
    try:
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"the database failed: {error}", where="SQLite") from None
    except sqlite3.DatabaseError as error:
        raise CorruptLog(f"the database is damaged: {error}", where="SQLite") from None
    if mode != "wal":
        raise UnsupportedError(f"journal mode {mode}", where="SQLite", expected="wal")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    if connection.get_execution_options().get(_WRITES, False):
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")


def demand_writer(connection: Connection) -> None:
    """Check that ``connection`` belongs to `write_transaction`: it locks before it reads.

    Raises:
        InternalError: any other connection, whose reading could be out of date when it writes.
    """
    if not connection.get_execution_options().get(_WRITES, False):
        raise InternalError("not a writing transaction", where="ledger", expected="transaction()")
