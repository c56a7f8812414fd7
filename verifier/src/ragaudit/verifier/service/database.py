"""Database of the service: tables, transactions, and the clock that never goes back.

SQLite runs in WAL mode with synchronous=FULL: what was committed survives a power cut. Every
writing transaction first takes the row of the table ``clock`` (SQLite: the whole database), so
check-and-persist steps are atomic among threads and processes.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NewType

from ragaudit.encoding.errors import ClockStepped, InternalError, MalformedError, UnsupportedError
from ragaudit.ledger.errors import RestoredBackup, StoreUnavailable
from ragaudit.verifier.service.fence import Fence
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    exc,
    insert,
    select,
    update,
)

Clock = Callable[[], int]  # Unix milliseconds
Origin = NewType("Origin", str)
"""Origin of a window's log, `<provider>/ragaudit/<window>`: the window's key in every table."""

SCHEMA_VERSION = 4
BUSY_SECONDS = 30
ORIGIN_LENGTH = 160
_BEGIN = "ragaudit_begin"

metadata = MetaData()

clock_table = Table(
    "clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("schema", Integer, nullable=False),
    Column("latest", BigInteger, nullable=False),
    Column("fenced", Integer, nullable=False),  # 1 once a fence has guarded the database
)
providers = Table(
    "provider",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("key", LargeBinary(32), nullable=False),
    Column("added", BigInteger, nullable=False),
)
windows = Table(
    "window",
    metadata,
    Column("origin", String(ORIGIN_LENGTH), primary_key=True),
    Column("provider", String(64), nullable=False),
    Column("name", String(64), nullable=False, index=True),  # anyone else's window may have it
    Column("origin_hash", LargeBinary(32), nullable=False, unique=True),
    Column("policy_digest", LargeBinary(32), nullable=False),
    Column("log_key", LargeBinary(32)),  # none if check 1 will not read it
    Column("chain_salt", LargeBinary(32), nullable=False),
    Column("registered", BigInteger, nullable=False),
    Column("countersigned", BigInteger),
    Column("refused", BigInteger),
    Column("records", BigInteger),
    Column("closed", BigInteger),
    Column("listed", BigInteger),
    Column("challenged", BigInteger),
    Column("deadline", BigInteger),
    Column("sealed", BigInteger),
    Column("decided", BigInteger),
    UniqueConstraint("provider", "log_key"),
)
items = Table(
    "item",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("received", BigInteger, nullable=False),
)
chunks = Table(
    "chunk",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
checkpoints = Table(
    "checkpoint",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("root", LargeBinary(32), nullable=False),
    Column("time", BigInteger, nullable=False),  # seconds, as cosigned
    Column("note", LargeBinary, nullable=False),
)
entries = Table(
    "entry",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("salt", LargeBinary(32), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("pseudonym", LargeBinary(32)),  # of a registration
    Index("entry_pseudonym", "window", "pseudonym"),
)
activations = Table(
    "activation",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("a", Integer, primary_key=True, autoincrement=False),
    Column("message", LargeBinary, nullable=False),
)
# Receipts, refusals, claims and statements: canonical JSON under what identifies it.
submissions = Table(
    "submission",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("identity", LargeBinary(64), primary_key=True),
    Column("account", LargeBinary(32), nullable=False),  # whose share it counts against
    Column("held", Boolean, nullable=False),  # whether that account signed for it
    Column("received", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
)

disputes = Table(
    "dispute",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("identity", LargeBinary(32), primary_key=True),
    Column("pseudonym", LargeBinary(32), nullable=False),
    Column("position", BigInteger, nullable=False),  # leaf index of the record
    Column("answer_digest", LargeBinary(32), nullable=False),
    Column("file_digest", LargeBinary(32), nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("public", LargeBinary),  # of the file, once it was judged
    Column("file", LargeBinary),  # of an upheld dispute about a record that was not sampled
    Column("finding", LargeBinary),
    Column("step", Integer),  # that fails; 0: dismissed; absent: not judged
    Index("dispute_account", "window", "pseudonym"),
    Index("dispute_record", "window", "position"),
)


@dataclass(frozen=True)
class Transaction:
    """An open writing transaction; `now` (Unix milliseconds) is never before an earlier one's."""

    connection: Connection
    now: int


class Database:
    """The service's database; safe for use by several threads.

    Args:
        url: SQLAlchemy URL.
        clock: the verifier's clock.
        fence: of the service; commands that attest nothing do without.

    Raises:
        InternalError: the database was made by another version of the service.
        RestoredBackup: it is behind the fence.
    """

    def __init__(self, url: str, clock: Clock, fence: Fence | None = None) -> None:
        self._clock = clock
        self._fence = fence
        self._engine = _engine(url)
        self._writer = self._engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        self._lock = threading.Lock()  # spares the threads of one process the wait for SQLite's
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def now(self) -> int:
        """The clock, unguarded: for refusals and displays, never for what is attested."""
        return self._clock()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent snapshot; StoreUnavailable if the database cannot be used."""
        with _spoken(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A writing transaction; commits at the end of the block, durable when it returns.

        Raises:
            ClockStepped: the clock is behind the time of an earlier transaction.
            StoreUnavailable: the database cannot be used; or the fence could not be written, and
                what was committed must not be answered for.
        """
        with self._lock, _spoken():  # held until the fence is written: times reach it in order
            with self._writer.begin() as connection:
                transaction = Transaction(connection, self._advance(connection))
                yield transaction
            if self._fence is not None:
                self._fence.advance(transaction.now)

    def _advance(self, connection: Connection) -> int:
        """Take the lock row and move the latest time on to now."""
        query = select(clock_table.c.latest).where(clock_table.c.id == 1).with_for_update()
        latest = connection.execute(query).scalar_one()
        now = self._clock()  # read under the lock: times order as transactions do
        if now < latest:
            raise ClockStepped("the clock went back", expected="a time already attested")
        connection.execute(update(clock_table).values(latest=now))
        return now

    def close(self) -> None:
        """Close the connections and release the fence."""
        self._engine.dispose()
        if self._fence is not None:
            self._fence.close()

    def _prepare(self) -> None:
        with self._lock, _spoken(), self._writer.begin() as connection:
            metadata.create_all(connection)
            stored = connection.execute(select(clock_table)).one_or_none()
            if stored is None:
                row = {"id": 1, "schema": SCHEMA_VERSION, "latest": 0, "fenced": 0}
                connection.execute(insert(clock_table).values(row))
            elif stored.schema != SCHEMA_VERSION:
                raise InternalError(
                    f"database of schema {stored.schema}", expected=f"schema {SCHEMA_VERSION}"
                )
            if self._fence is not None:
                latest, fenced = (stored.latest, stored.fenced) if stored else (0, 0)
                _check_fence(self._fence, latest, fenced=bool(fenced))
                connection.execute(update(clock_table).values(fenced=1))


def _check_fence(fence: Fence, latest: int, *, fenced: bool) -> None:
    if latest < fence.latest:
        raise RestoredBackup("the database is behind the fence", expected="the database as it was")
    if fenced and not fence.existed:
        raise RestoredBackup("the fence is missing", expected="the file beside which it ran")


@contextmanager
def _spoken() -> Iterator[None]:
    """Say what is wrong with the database without its statements and their parameters."""
    try:
        yield
    except (exc.IntegrityError, exc.ProgrammingError, exc.DataError) as error:
        raise InternalError(f"the database refused a statement: {_reason(error)}") from None
    except (exc.DBAPIError, exc.TimeoutError) as error:
        what = f"the database cannot be used: {_reason(error)}"
        raise StoreUnavailable(what, expected="a database that answers, with room left") from None
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise StoreUnavailable(
            f"a file cannot be written: {name}", expected="a disk with room"
        ) from None


def _reason(error: exc.SQLAlchemyError) -> str:
    """The driver's error by name; its text may quote what was stored."""
    original = getattr(error, "orig", None) or error
    return str(getattr(original, "sqlite_errorname", type(original).__name__))


def _engine(url: str) -> Engine:
    try:
        engine = create_engine(url, pool_pre_ping=True)  # a server may have been restarted
    except ImportError as error:
        raise UnsupportedError(
            f"no driver for this database: {error.name}", where="database"
        ) from None
    except (exc.ArgumentError, ValueError):
        # Never the URL: it holds the password.
        raise MalformedError(
            "not a database URL", where="database", expected="sqlite:/// or postgresql+psycopg://"
        ) from None
    if engine.dialect.name == "sqlite":
        _private(engine.url.database)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _private(path: str | None) -> None:
    """Make the file of a database one that nobody else reads; its journals follow it."""
    if not path or path == ":memory:":
        return
    with _spoken():
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)


def _configure_sqlite(connection: object, _record: object) -> None:
    # sqlite3's own transaction handling would delay BEGIN; see SQLAlchemy's pysqlite page.
    connection.isolation_level = None  # type: ignore[attr-defined]
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={BUSY_SECONDS * 1000}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))
