"""The verifier's database: the ledger's transactions, and the clock that never goes back.

Every writing transaction first takes the row of the table ``clock`` (SQLite: the whole database),
so check-and-persist steps are atomic among threads and processes.
"""

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NewType, TypeVar

from ragaudit.encoding.errors import ClockStepped
from ragaudit.ledger.errors import CorruptLog, RestoredBackup, StoreUnavailable
from ragaudit.ledger.log.database import (
    close_engine,
    make_private,
    open_engine,
    read_transaction,
    refused_statements,
    write_transaction,
)
from ragaudit.ledger.log.rows import Rows
from ragaudit.serving.revisions import Upgrade
from ragaudit.verifier.service import tables
from ragaudit.verifier.service.fence import Fence
from ragaudit.verifier.service.schema import SCHEMA
from sqlalchemy import Connection, Engine, select, update

Clock = Callable[[], int]  # Unix milliseconds
Origin = NewType("Origin", str)
"""Origin of a window's log, `<provider>/ragaudit/<window>`: the window's key in every table."""
T = TypeVar("T")

_AS_IT_WAS = "the database as it was; if that is lost, new keys and new windows (docs/regulator.md)"
_ID = 1  # of the only clock row


@dataclass(frozen=True)
class ClockRow:
    """The only row of the table ``clock``.

    Attributes:
        latest: time of the last writing transaction, Unix milliseconds.
        fenced: 1 once a fence has guarded the database, else 0.
    """

    latest: int
    fenced: int


_CLOCK = Rows(ClockRow, tables.clock)


@dataclass(frozen=True)
class Transaction:
    """An open writing transaction.

    Attributes:
        now: the verifier's clock when the transaction took the lock, Unix milliseconds; never
            before that of an earlier transaction.
    """

    connection: Connection
    now: int


class Database:
    """The service's database; safe for use by several threads.

    Args:
        url: SQLAlchemy URL.
        clock: the verifier's clock, Unix milliseconds.
        fence: of the service; commands that attest nothing do without.

    Raises:
        MalformedError, UnsupportedError: not a URL of a database that is supported.
        UnsupportedError: the database is of another revision.
        UnavailableError: it does not answer, or has no tables.
        RestoredBackup: it is behind the fence.
    """

    def __init__(self, url: str, clock: Clock, fence: Fence | None = None) -> None:
        self._clock = clock
        self._fence = fence
        self._engine = open_engine(url)
        self._closed = False
        self._lock = threading.Lock()  # spares the threads of one process the wait for SQLite's
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def engine(self) -> Engine:
        """The connections, for tables that attest nothing: those of jobs."""
        return self._engine

    def now(self) -> int:
        """Return the time, unguarded: for refusals and displays, never for what is attested."""
        return self._clock()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a transaction with one consistent reading.

        Raises:
            StoreUnavailable: the database cannot be used.
            InternalError: it refused a statement.
        """
        with _reported(), read_transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Yield a writing transaction; it commits at the end, and is durable when this returns.

        Raises:
            ClockStepped: the clock is behind the time of an earlier transaction.
            StoreUnavailable: the database cannot be used, or was closed; or the fence could not be
                written, and what was committed must not be answered for.
            InternalError: the database refused a statement.
        """
        with self._lock, _reported():  # held until the fence is written: times reach it in order
            if self._closed:
                raise StoreUnavailable("the database was closed", expected="a service that runs")
            with write_transaction(self._engine) as connection:
                transaction = Transaction(connection, self._advance(connection))
                yield transaction
            # After the commit: a fence ahead of a commit that failed would refuse an honest
            # database at the next start. Before the answer: written later, it could miss what was
            # attested.
            if self._fence is not None:
                self._fence.advance(transaction.now)

    def _advance(self, connection: Connection) -> int:
        """Take the lock row and move the latest time on to now."""
        latest_column = tables.clock.c.latest
        query = select(latest_column).where(tables.clock.c.id == _ID).with_for_update()
        latest = connection.execute(query).scalar_one()
        now = self._clock()  # read under the lock: times order as transactions do
        # A time that was attested binds: nothing of later may look as if it had been before it.
        if now < latest:
            raise ClockStepped("the clock went back", expected="a time already attested")
        connection.execute(update(tables.clock).values(latest=now))
        return now

    def close(self) -> None:
        """Close the connections and release the fence, once no transaction writes any more."""
        # A tick that a shutdown abandoned may still write: never into a fence of another process.
        with self._lock:
            self._closed = True
            close_engine(self._engine)
            if self._fence is not None:
                self._fence.close()

    def _prepare(self) -> None:
        with self._lock, _reported():
            make_private(self._engine)
            with write_transaction(self._engine) as connection:
                stored = _clock(connection)
                if self._fence is not None:
                    _check_fence(self._fence, stored)
                    connection.execute(update(tables.clock).values(fenced=1))


def create_tables(url: str) -> None:
    """Make the tables in a database that has none; it may have them already.

    Args:
        url: SQLAlchemy URL; the folder of an SQLite file exists.

    Raises:
        MalformedError, UnsupportedError: not a URL of a database that is supported.
        UnsupportedError: it has tables of another revision.
        StoreUnavailable: it cannot be written.
    """
    _change(url, SCHEMA.create)


def migrate_tables(url: str) -> Upgrade:
    """Make the tables, or bring those of an earlier release to this one; say what was found.

    Args:
        url: SQLAlchemy URL, of a database that nobody serves meanwhile.

    Raises:
        MalformedError, UnsupportedError: not a URL of a database that is supported.
        UnsupportedError: its revision is not known, so of a newer release.
        StoreUnavailable: it cannot be written.
    """
    return _change(url, SCHEMA.upgrade)


def _change(url: str, change: Callable[[Connection], T]) -> T:
    engine = open_engine(url)
    try:
        with _reported():
            make_private(engine)
            with write_transaction(engine) as connection:
                done = change(connection)
                if _CLOCK.find(connection) is None:
                    _CLOCK.insert(connection, ClockRow(latest=0, fenced=0), id=_ID)
                return done
    finally:
        engine.dispose()


def _clock(connection: Connection) -> ClockRow:
    """Return the clock row.

    Raises:
        UnsupportedError: the tables are of another revision.
        StoreUnavailable: there are none.
    """
    SCHEMA.demand(connection)
    stored = _CLOCK.find(connection)
    if stored is None:
        raise CorruptLog("the clock has no row", where="store")
    return stored


def _check_fence(fence: Fence, stored: ClockRow) -> None:
    if stored.latest < fence.latest:
        raise RestoredBackup("the database is behind the fence", expected=_AS_IT_WAS)
    # Otherwise whoever restores a backup would only have to remove the fence as well.
    if stored.fenced and not fence.existed:
        raise RestoredBackup(
            "the fence is missing", expected=f"the file beside which it ran, or {_AS_IT_WAS}"
        )


@contextmanager
def _reported() -> Iterator[None]:
    """Say in the service's errors what is wrong with database or disk, in the ledger's words."""
    try:
        with refused_statements():
            yield
    except (StoreUnavailable, CorruptLog) as error:
        raise StoreUnavailable(error.what, where=error.where, expected=error.expected) from None
    except OSError as error:  # of the fence, or of a temporary file on the way to a row
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise StoreUnavailable(
            f"a file cannot be written: {name}", expected="a disk with room"
        ) from None
