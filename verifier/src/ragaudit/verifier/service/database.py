"""Database of the service: tables, transactions, and the clock that never goes back.

SQLite runs in WAL mode with synchronous=FULL: what was committed survives a power cut. Every
writing transaction first takes the row of the table ``clock`` (SQLite: the whole database), so
check-and-persist steps are atomic among threads and processes.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ragaudit.encoding.errors import InternalError
from ragaudit.verifier.service.errors import ClockError
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    insert,
    select,
    update,
)

Clock = Callable[[], int]  # Unix milliseconds

SCHEMA_VERSION = 1
BUSY_SECONDS = 30
_BEGIN = "ragaudit_begin"

metadata = MetaData()

clock_table = Table(
    "clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("schema", Integer, nullable=False),
    Column("latest", BigInteger, nullable=False),
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
    Column("name", String(64), primary_key=True),
    Column("provider", String(64), nullable=False),
    Column("origin", String(160), nullable=False, unique=True),
    Column("origin_hash", LargeBinary(32), nullable=False, unique=True),
    Column("policy_digest", LargeBinary(32), nullable=False),
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
)
items = Table(
    "item",
    metadata,
    Column("window", String(64), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("received", BigInteger, nullable=False),
)
chunks = Table(
    "chunk",
    metadata,
    Column("window", String(64), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
checkpoints = Table(
    "checkpoint",
    metadata,
    Column("window", String(64), primary_key=True),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("root", LargeBinary(32), nullable=False),
    Column("time", BigInteger, nullable=False),  # seconds, as cosigned
    Column("note", LargeBinary, nullable=False),
)
entries = Table(
    "entry",
    metadata,
    Column("window", String(64), primary_key=True),
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("salt", LargeBinary(32), nullable=False),
    Column("body", LargeBinary, nullable=False),
)
activations = Table(
    "activation",
    metadata,
    Column("window", String(64), primary_key=True),
    Column("a", Integer, primary_key=True, autoincrement=False),
    Column("message", LargeBinary, nullable=False),
)
# Receipts, refusals, claims and disputes: canonical JSON under what identifies it.
submissions = Table(
    "submission",
    metadata,
    Column("window", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("identity", LargeBinary(64), primary_key=True),
    Column("received", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
)


def system_clock() -> int:
    """Unix milliseconds of the machine's clock."""
    return time.time_ns() // 1_000_000


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

    Raises:
        InternalError: the database was made by another version of the service.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        self._engine = _engine(url)
        self._writer = self._engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        self._lock = threading.Lock()  # spares the threads of one process the wait for SQLite's
        self._prepare()

    def now(self) -> int:
        """The clock, unguarded: for refusals and displays, never for what is attested."""
        return self._clock()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent snapshot."""
        with self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A writing transaction; commits at the end of the block, durable when it returns.

        Raises:
            ClockError: the clock is behind the time of an earlier transaction.
        """
        with self._lock, self._writer.begin() as connection:
            query = select(clock_table.c.latest).where(clock_table.c.id == 1).with_for_update()
            latest = connection.execute(query).scalar_one()
            now = self._clock()  # read under the lock: times order as transactions do
            if now < latest:
                raise ClockError("the clock went back", expected="a time already attested")
            connection.execute(update(clock_table).values(latest=now))
            yield Transaction(connection, now)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _prepare(self) -> None:
        with self._lock, self._writer.begin() as connection:
            metadata.create_all(connection)
            stored = connection.execute(select(clock_table.c.schema)).scalar_one_or_none()
            if stored is None:
                connection.execute(
                    insert(clock_table).values(id=1, schema=SCHEMA_VERSION, latest=0)
                )
            elif stored != SCHEMA_VERSION:
                raise InternalError(
                    f"database of schema {stored}", expected=f"schema {SCHEMA_VERSION}"
                )


def _engine(url: str) -> Engine:
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


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
