"""Engines, their pools, transactions and rows: SQLite now, PostgreSQL by another URL.

A transaction that writes locks before it reads. SQLite: BEGIN IMMEDIATE, a write-ahead log,
synchronous=FULL, so that a commit that returned survives a loss of power. PostgreSQL: the writer
takes a row lock (`store.LogStore`), waits for it as long as on SQLite, and synchronous_commit is on
whatever the cluster's default.
"""

import fcntl
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_type_hints

from ragaudit.encoding.errors import InternalError, MalformedError, RefusedError, UnsupportedError
from ragaudit.ledger.errors import CorruptLog, StatementRefused, StoreUnavailable
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
    Executable,
    Select,
    Table,
    bindparam,
    create_engine,
    event,
    insert,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DBAPIError,
    InvalidatePoolError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import InternalError as DatabaseInternalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

if TYPE_CHECKING:
    from sqlalchemy.dialects import sqlite

__all__ = [
    "KEPT",
    "LOCK_SECONDS",
    "WAIT_SECONDS",
    "DatabaseLock",
    "Prepared",
    "Row",
    "Rows",
    "Several",
    "T",
    "await_server",
    "close_engine",
    "cut_journal",
    "database_errors",
    "database_file",
    "demand_writer",
    "insert_of",
    "make_private",
    "open_engine",
    "overwrite_deleted",
    "ping_rested",
    "read_transaction",
    "refused_statements",
    "single_statements",
    "take_database",
    "write_transaction",
]

T = TypeVar("T")
Row = tuple[Any, ...]
_Processor = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A statement in one dialect.

    Attributes:
        text: SQL.
        names: parameters in the statement's order, None if the driver takes them by name.
        constants: values of the parameters that the statement itself sets.
        results: a converter to Python for each column; None where no column needs one.
    """

    text: str
    names: Sequence[str] | None
    constants: dict[str, Any]
    results: tuple[_Processor | None, ...] | None

    def parameters(self, values: dict[str, Any]) -> Any:
        """Return what the driver takes for the values of the parameters, by name."""
        named = {**self.constants, **values}
        return named if self.names is None else [named[name] for name in self.names]


class Prepared:
    """One statement. Its parameters are integers, texts, bytes or None."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[Dialect, _Compiled] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        """Run a query and return its rows.

        Args:
            connection: in whose transaction it runs.
            values: of the statement's parameters, by name.

        Raises:
            DBAPIError: as `Connection.execute` raises it.
        """
        fetched, compiled = self._run(connection, values, _fetch)
        rows: list[Row] = [tuple(row) for row in fetched]
        if compiled.results is None:
            return rows
        return [
            tuple(
                value if process is None else process(value)
                for process, value in zip(compiled.results, row, strict=True)
            )
            for row in rows
        ]

    def row(self, connection: Connection, **values: Any) -> Row | None:
        """Run a query of at most one row and return it, or None.

        Args:
            connection, values: as of `rows`.

        Raises:
            InternalError: several rows; other errors as `rows`.
        """
        rows = self.rows(connection, **values)
        if len(rows) > 1:
            raise InternalError("more than one row", where="database")
        return rows[0] if rows else None

    def change(self, connection: Connection, **values: Any) -> int:
        """Run a statement that writes; return how many rows it changed. Raises as `rows`.

        Args:
            connection, values: as of `rows`.
        """
        changed, _ = self._run(connection, values, _count)
        return changed

    def change_each(self, connection: Connection, many: Sequence[dict[str, Any]]) -> None:
        """Run a statement that writes, once for each of many sets of values. Raises as `rows`.

        Args:
            connection: as of `rows`.
            many: values of the statement's parameters, by name.
        """
        if many:
            self._run(connection, many, _nothing)

    def _run(
        self,
        connection: Connection,
        values: dict[str, Any] | Sequence[dict[str, Any]],
        take: Callable[[Any], T],
    ) -> tuple[T, _Compiled]:
        """Run the statement and return what ``take`` reads from the cursor.

        SQLite runs most of a query only while its rows are fetched, so ``take`` is called in here.
        """
        dialect = connection.dialect
        compiled = self._compiled.get(dialect)
        if compiled is None:
            compiled = self._compiled[dialect] = _compile(self._statement, dialect)
        driver = connection.connection.driver_connection
        assert driver is not None and dialect.loaded_dbapi is not None
        try:
            cursor = driver.cursor()
            if isinstance(values, dict):
                cursor.execute(compiled.text, compiled.parameters(values))
            else:
                cursor.executemany(compiled.text, [compiled.parameters(each) for each in values])
            result = take(cursor)
            cursor.close()
        except dialect.loaded_dbapi.Error as error:
            if dialect.is_disconnect(error, driver, None):
                connection.invalidate()
            # No statement and no parameters in the error: they hold salts and bodies.
            raise DBAPIError.instance(
                None, None, error, dialect.loaded_dbapi.Error, hide_parameters=True,
                dialect=dialect,
            ) from None  # fmt: skip
        return result, compiled


class Several:
    """A query for several values of one column."""

    def __init__(self, query: Select[Any], column: ColumnElement[Any]) -> None:
        """Take a query, to which the condition on ``column`` is added."""
        self._query = query
        self._column = column
        self._prepared: dict[int, Prepared] = {}

    def rows(self, connection: Connection, values: Sequence[Any], **others: Any) -> list[Row]:
        """Return the rows with any of some values, in no order.

        Args:
            connection: in whose transaction it runs.
            values: one or more, at most some hundreds.
            others: further parameters, by name.

        Raises: as `Prepared.rows`.
        """
        # Of few widths, the last value repeated: each is a statement of its own to the database.
        width = 1 << (len(values) - 1).bit_length()
        padded = [*values, *[values[-1]] * (width - len(values))]
        prepared = self._prepared.get(width)
        if prepared is None:
            names: list[Any] = [bindparam(f"value{number}") for number in range(width)]
            prepared = Prepared(self._query.where(self._column.in_(names)))
            self._prepared[width] = prepared
        named = {f"value{number}": value for number, value in enumerate(padded)}
        return prepared.rows(connection, **named, **others)


def _fetch(cursor: Any) -> Sequence[Sequence[Any]]:
    rows: Sequence[Sequence[Any]] = cursor.fetchall()
    return rows


def _nothing(_cursor: Any) -> None:
    return None


def _count(cursor: Any) -> int:
    return int(cursor.rowcount)


def _compile(statement: Executable, dialect: Dialect) -> _Compiled:
    compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
    columns = getattr(statement, "selected_columns", ())
    results = tuple(column.type.dialect_impl(dialect) for column in columns)
    processors = tuple(column.result_processor(dialect, None) for column in results)
    return _Compiled(
        text=str(compiled),
        names=compiled.positiontup if compiled.positional else None,
        constants={name: value for name, value in compiled.params.items() if value is not None},
        results=processors if any(processors) else None,
    )


KEPT: Final[dict[str, Any]] = {"pool_size": 10, "max_overflow": 16, "pool_use_lifo": True}
"""Of an engine: as many stay open as threads answer; opening one costs more than a transaction."""

# No server restarts within it: a connection that was used so lately lives, or nobody's does.
_FRESH_SECONDS = 0.05


def ping_rested(engine: Engine) -> None:
    """Have connections that rested asked for a sign of life before their next use.

    After a restart of the server each of them would fail once otherwise. SQLAlchemy's own ping is
    made at every use, and costs more than most of the statements that follow.

    Args:
        engine: of a server.
    """
    driver = engine.dialect.loaded_dbapi
    assert driver is not None

    def used(_connection: object, record: Any) -> None:
        record.info["used"] = time.monotonic()

    def taken(connection: Any, record: Any, _proxy: object) -> None:
        if time.monotonic() - record.info.get("used", -math.inf) < _FRESH_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except driver.Error as error:
            # All others are as old, or older.
            raise InvalidatePoolError from error

    for name in ("connect", "checkin"):
        event.listen(engine, name, used)
    event.listen(engine, "checkout", taken)


LOCK_SECONDS = 30
_WRITES, _SILENT = "ragaudit_writes", "ragaudit_silent_seconds"
_BEGIN, _BEGIN_WRITING = Prepared(text("BEGIN")), Prepared(text("BEGIN IMMEDIATE"))
_ADVISORY_KEY = 0x7261676175646974  # "ragaudit"
_TRY_ALONE = text("SELECT pg_try_advisory_lock(:key)")
_TRY_TOGETHER = text("SELECT pg_try_advisory_lock_shared(:key)")
_MISSING = frozenset({"42P01", "3F000"})  # undefined_table, invalid_schema_name
_DAMAGED = frozenset({"XX001", "XX002"})  # PostgreSQL's data_corrupted, index_corrupted


def open_engine(url: str) -> Engine:
    """Return an engine for ``url``; SQLite needs a file, in-memory databases are refused.

    Statement parameters never appear in errors or logs: they hold salts and bodies.

    Args:
        url: ``sqlite:///<file>`` or ``postgresql+<driver>://...``.

    Raises:
        MalformedError: not a database URL; its text is not repeated.
        UnsupportedError: another database, an SQLite one without a file, a driver that is missing.
    """
    supported = "sqlite:///<file> or postgresql+<driver>://..."
    try:
        parsed = make_url(url)
        dialect = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        # Never the URL itself: it may hold a password.
        raise MalformedError(
            "not a database URL", where="database URL", expected=supported
        ) from None
    if dialect == "postgresql":
        engine = _postgresql(parsed)
        event.listen(engine, "begin", _begin_postgresql)
        ping_rested(engine)
        return engine
    if dialect != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise UnsupportedError("database not supported", where="database URL", expected=supported)
    try:
        engine = create_engine(
            parsed, hide_parameters=True, connect_args={"timeout": LOCK_SECONDS}, **KEPT
        )
    except (ArgumentError, NoSuchModuleError, TypeError, ValueError):
        raise MalformedError(
            "not an SQLite URL", where="database URL", expected="sqlite:///<file>"
        ) from None
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql(url: URL) -> Engine:
    try:
        return create_engine(url, hide_parameters=True, **KEPT)
    except NoSuchModuleError:
        raise UnsupportedError(
            "no such PostgreSQL driver", where="database URL", expected="postgresql+psycopg://..."
        ) from None
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"the PostgreSQL driver {error.name} is not installed",
            where="database URL",
            expected="pip install 'psycopg[binary]' and postgresql+psycopg://...",
        ) from None
    except (ArgumentError, TypeError, ValueError):
        raise MalformedError("not a PostgreSQL URL", where="database URL") from None


def close_engine(engine: Engine) -> None:
    """Close the connections of an engine; those in use are closed when they are given back.

    Args:
        engine: that a thread may still read with, as one that a shutdown did not wait for.
    """
    # The pool as it is now: after this it would keep what is given back, open, for nobody.
    event.listen(engine.pool, "checkin", _close_returned)
    engine.dispose()


def _close_returned(_connection: object, record: Any) -> None:
    record.invalidate()


def database_file(engine: Engine) -> Path | None:
    """Return the file of an SQLite database, None for a server."""
    return Path(str(engine.url.database)) if engine.name == "sqlite" else None


class DatabaseLock:
    """The right of one process to serve a database; ends with the process at the latest.

    Attributes:
        release: gives the right back.
        renew: takes it again if the server has forgotten it; raises as `take_database`.
    """

    def __init__(
        self, release: Callable[[], None], renew: Callable[[], None] = lambda: None
    ) -> None:
        self.release = release
        self.renew = renew


def take_database(engine: Engine, *, alone: bool = True) -> DatabaseLock:
    """Take the right to serve a database and return it.

    Args:
        alone: no other process may serve it; otherwise others that are not alone may serve the
            same database of a server. A file is always served alone.

    Raises:
        RefusedError: another process has it.
        StoreUnavailable: the lock file cannot be made, or the server does not answer.
    """
    file = database_file(engine)
    if file is not None:
        # On a file beside it: SQLite locks the database file itself, and closing any descriptor of
        # that would drop SQLite's own locks.
        descriptor = _open_lock(file.with_name(file.name + ".lock"))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise _served() from None
        return DatabaseLock(lambda: os.close(descriptor))
    session = _Session(engine, alone=alone)
    return DatabaseLock(session.close, session.renew)


class _Session:
    """A session of PostgreSQL with the lock of a process that serves a database."""

    def __init__(self, engine: Engine, *, alone: bool) -> None:
        self._engine = engine
        self._try = _TRY_ALONE if alone else _TRY_TOGETHER
        self._guard = threading.Lock()
        self._connection = self._take()

    def renew(self) -> None:
        """Take the lock again if its session ended, as with every restart of the server."""
        with self._guard:
            try:
                self._connection.exec_driver_sql("SELECT 1")
                self._connection.commit()
                return
            except SQLAlchemyError:
                self._connection.close()
            self._connection = self._take()

    def close(self) -> None:
        """Give the lock back and end the session."""
        with self._guard:
            # The server ends a session some time after it was told to: who comes next must not find
            # the lock taken until then.
            with suppress(SQLAlchemyError):
                self._connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
                self._connection.commit()
            self._connection.close()

    def _take(self) -> Connection:
        with database_errors():
            connection = self._engine.connect()
            connection.detach()  # closing it ends the session, and the lock with it
            free = connection.scalar(self._try, {"key": _ADVISORY_KEY})
            connection.commit()
        if not free:
            connection.close()
            raise _served()
        return connection


def _served() -> RefusedError:
    return RefusedError(
        "another process serves this database", where="database", expected="one at a time"
    )


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write: {error.strerror}", where=str(path), expected="a writable folder"
        ) from None


@contextmanager
def write_transaction(engine: Engine, *, silent_seconds: int | None = None) -> Iterator[Connection]:
    """Yield a transaction that may write; it commits at the end, rolls back on any exception.

    Args:
        silent_seconds: after which a server ends a transaction whose process asks for nothing
            more, so that one that stands still keeps no lock; None: it waits.

    Raises:
        StoreUnavailable: the database is locked, full or gone. Whether a failed *commit* took
            effect is then unknown to us: read the state again, never continue from memory.
        CorruptLog: the database itself says that its file is damaged.
    """
    with database_errors(), engine.connect() as plain:
        connection = plain.execution_options(**{_WRITES: True, _SILENT: silent_seconds})
        with connection.begin():
            yield connection


@contextmanager
def read_transaction(engine: Engine) -> Iterator[Connection]:
    """Yield a transaction with one consistent reading of what is committed.

    Raises:
        StoreUnavailable, CorruptLog: as `write_transaction`.
    """
    options = {"isolation_level": "REPEATABLE READ"} if engine.name == "postgresql" else {}
    with database_errors(), engine.connect() as plain:
        connection = plain.execution_options(**options)
        with connection.begin():
            yield connection


@contextmanager
def single_statements(engine: Engine) -> Iterator[Connection]:
    """Yield a connection for statements that read, each of them what is committed at that moment.

    A transaction around one of them would tell no more, and take several times as long.

    Raises:
        StoreUnavailable, CorruptLog: as `write_transaction`.
    """
    # SQLite's driver begins nothing by itself.
    options = {"isolation_level": "AUTOCOMMIT"} if engine.name == "postgresql" else {}
    with database_errors(), engine.connect() as plain:
        yield plain.execution_options(**options)


@contextmanager
def database_errors() -> Iterator[None]:
    """Raise failures of the database as our errors, without statements and parameters.

    Raises:
        StoreUnavailable: it is locked, full or gone.
        CorruptLog: it says that its file is damaged.
    """
    try:
        yield
    except OperationalError as error:
        raise StoreUnavailable(
            f"the database failed: {_reason(error.orig)}", where="store"
        ) from None
    except PoolTimeoutError:
        raise StoreUnavailable("the database failed: no free connection", where="store") from None
    except DatabaseError as error:
        damaged = type(error) is DatabaseError or _state(error) in _DAMAGED
        # A table that is gone is a database that cannot be used; SQLite's error is operational.
        missing = _state(error) in _MISSING
        if not damaged and not missing and not isinstance(error, DatabaseInternalError):
            raise  # IntegrityError and such are the caller's: see `refused_statements`
        reason = _reason(error.orig)
        if damaged:
            raise CorruptLog(f"the database is damaged: {reason}", where="store") from None
        raise StoreUnavailable(f"the database failed: {reason}", where="store") from None


def insert_of(database: Engine | Connection, table: Table) -> "sqlite.Insert":
    """Return an insert that can say what becomes of a row that is there (``on_conflict_...``).

    Args:
        database: whose own kind of insert it is; PostgreSQL's has the same methods.
        table: that is inserted into.
    """
    # Of two dialects only the one that is in use is loaded.
    kind = import_module(f"sqlalchemy.dialects.{database.dialect.name}")
    made: sqlite.Insert = kind.insert(table)
    return made


@contextmanager
def refused_statements() -> Iterator[None]:
    """Raise what a database refuses, a key twice or a value too long, as a fault of ours.

    Raises:
        StatementRefused: with the error's name only, as its text quotes what was to be stored.
    """
    try:
        yield
    except SQLAlchemyError as error:
        name = _name(error.orig if isinstance(error, DBAPIError) else error)
        raise StatementRefused(f"the database refused a statement: {name}", where="store") from None


def make_private(engine: Engine) -> None:
    """Make the file of an SQLite database its owner's only; its journals follow it.

    To be called before the first connection, which would make the file readable for others.

    Raises:
        StoreUnavailable: the file cannot be made, or is another user's.
    """
    file = database_file(engine)
    if file is None:
        return
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A file that was there before keeps the mode it had, whatever `open` was told.
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write: {error.strerror}", where=str(file), expected="a writable folder"
        ) from None


def _reason(error: BaseException | None) -> str:
    """Return the first line of what a driver says, and the error's name.

    Of an error with an SQLSTATE the name alone: a server's text may quote the statement.
    """
    if getattr(error, "sqlstate", None):
        return _name(error)
    return f"{str(error).partition(chr(10))[0]} ({_name(error)})"


def _name(error: BaseException | None) -> str:
    return str(getattr(error, "sqlite_errorname", type(error).__name__))


def _state(error: DatabaseError) -> str | None:
    """Return PostgreSQL's SQLSTATE."""
    return getattr(error.orig, "sqlstate", None)


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own
    try:
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"the database failed: {_reason(error)}", where="SQLite") from None
    except sqlite3.DatabaseError as error:
        raise CorruptLog(f"the database is damaged: {_reason(error)}", where="SQLite") from None
    if mode != "wal":
        raise UnsupportedError(f"journal mode {mode}", where="SQLite", expected="wal")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    (_BEGIN_WRITING if writes else _BEGIN).change(connection)


def _begin_postgresql(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get(_WRITES, False):
        # A cluster's default may let a commit return before it is on the disk: an index would be
        # told and then be given out again.
        # And who waits for another writer gives up as on SQLite, instead of never.
        settings = {"synchronous_commit": "on", "lock_timeout": f"{LOCK_SECONDS}s"}
        if options.get(_SILENT) is not None:
            settings["idle_in_transaction_session_timeout"] = f"{options[_SILENT]}s"
        connection.exec_driver_sql(
            "; ".join(f"SET LOCAL {name} TO '{value}'" for name, value in settings.items())
        )


def demand_writer(connection: Connection) -> None:
    """Check that ``connection`` belongs to `write_transaction`: it locks before it reads.

    Raises:
        InternalError: any other connection, whose reading could be out of date when it writes.
    """
    if not connection.get_execution_options().get(_WRITES, False):
        raise InternalError("not a writing transaction", where="ledger", expected="transaction()")


_log = logging.getLogger(__name__)

WAIT_SECONDS = 60
"""Default of the services' settings: a server recovers, or another takes over, in less."""
_PAUSE_SECONDS = 0.5
# What no waiting mends, in a server's words; in another language it is waited for, too.
_FINAL = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")


def await_server(
    url: str,
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return once the server of a database takes sessions; with SQLite, which has none, at once.

    Args:
        url: of SQLAlchemy.
        seconds: to wait at most, beside one attempt.
        clock: seconds, rising.
        pause: waits so many of them.

    Raises:
        MalformedError, UnsupportedError: as `open_engine`.
        StoreUnavailable: no session in time, or the server declines for good.
    """
    engine = open_engine(url)
    deadline, told = clock() + seconds, False
    try:
        while engine.name != "sqlite":
            try:
                with database_errors(), engine.connect():
                    return
            except StoreUnavailable as error:
                if clock() >= deadline or any(words in error.what for words in _FINAL):
                    raise
                if not told:
                    _log.warning("waiting at most %d s: %s", seconds, error.what)
                told = True
            pause(_PAUSE_SECONDS)
    finally:
        engine.dispose()


def overwrite_deleted(connection: Connection) -> None:
    """Have SQLite overwrite with zeros what is deleted from here on; a server leaves it to itself.

    Args:
        connection: of a transaction that writes.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete=ON")


def cut_journal(engine: Engine) -> None:
    """Empty SQLite's write-ahead log, which holds rows that were deleted, if nobody reads it now.

    Raises:
        StoreUnavailable: the database does not answer.
    """
    if engine.name != "sqlite":
        return
    with database_errors(), engine.connect() as connection:
        # By the driver: within a transaction there would be somebody who reads.
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


class Rows(Generic[T]):
    """The rows of a table as instances of ``kind``, each field of which is a column's name.

    Fields of an enumeration are read as its members. Binary columns are bytes, whatever the driver
    gives: SQLAlchemy's `LargeBinary` sees to that.

    Attributes:
        columns: of the fields, in their order.
    """

    def __init__(self, kind: type[T], table: Table) -> None:
        hints = get_type_hints(kind)
        self._kind = kind
        self._table = table
        self._names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        self._enums = {
            name: hints[name] for name in self._names if _is_enumeration(hints[name])
        }  # looked up once: rows are built in every answer
        self.columns = [table.c[name] for name in self._names]

    def select(self, *conditions: ColumnElement[bool]) -> Select[Any]:
        """Return the query of the rows for which all conditions hold."""
        return select(*self.columns).where(*conditions)

    def of(self, values: Sequence[Any]) -> T:
        """Return the instance of a row's values, in the order of `columns`.

        Args:
            values: as the driver gives them.
        """
        if not self._enums:
            return self._kind(*values)
        named = dict(zip(self._names, values, strict=True))
        return self._kind(**named | {name: kind(named[name]) for name, kind in self._enums.items()})

    def find(self, connection: Connection, *conditions: ColumnElement[bool]) -> T | None:
        """Return the only row for which all conditions hold, or None.

        Args:
            connection: in whose transaction it is read.
            conditions: that hold for one row at most.

        Raises:
            MultipleResultsFound: several do.
        """
        row = connection.execute(self.select(*conditions)).one_or_none()
        return None if row is None else self.of(row)

    def all(self, connection: Connection, query: Select[Any]) -> list[T]:
        """Return the rows of a query that `select` began, in its order.

        Args:
            connection: in whose transaction it is read.
            query: of `select`, perhaps with an order and a limit.
        """
        return [self.of(row) for row in connection.execute(query)]

    def insert(self, connection: Connection, row: T, **further: Any) -> None:
        """Insert a row.

        Args:
            further: values of columns that are no fields, such as whose row it is.
        """
        values = {name: getattr(row, name) for name in self._names}
        connection.execute(insert(self._table).values(**values, **further))


def _is_enumeration(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)
