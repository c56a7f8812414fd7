"""The verifier's database: the ledger's transactions, and the clock that never goes back.

Every writing transaction first takes the row of the table ``clock`` (SQLite: the whole database),
so check-and-persist steps are atomic among threads and processes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NewType, TypeVar

from ragaudit.encoding.errors import ClockStepped, InternalError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import (
    Rows,
    make_private,
    open_engine,
    write_transaction,
)
from ragaudit.serving.revisions import Schema, Upgrade
from ragaudit.verifier.history import (
    NEW,
    AttestingDatabase,
    FencePlace,
    History,
    Standing,
    Statement,
    reported,
    statement_key,
)
from ragaudit.verifier.service import tables
from sqlalchemy import Connection, Engine, func, select, update

Origin = NewType("Origin", str)
"""Origin of a window's log, `<provider>/ragaudit/<window>`: the window's key in every table."""
T = TypeVar("T")

SCHEMA = Schema(
    tables.metadata,
    table="verifier_revision",
    scripts=Path(__file__).parent / "migrations",
    command="ragaudit verifier migrate",
)
_ID = 1  # of the only clock row
_STANDING = Rows(Standing, tables.clock)


@dataclass(frozen=True)
class Transaction:
    """An open writing transaction.

    Attributes:
        now: the verifier's clock when the transaction took the lock, Unix milliseconds; never
            before that of an earlier transaction.
        history: of the service; commands, which attest nothing, have none.
        counts: how far statements have come with this transaction, by key.
    """

    connection: Connection
    now: int
    history: History | None = None
    counts: dict[bytes, int] = field(default_factory=dict)

    def attest(self, kind: Statement, origin: Origin, *, before: int = 0, after: int = 1) -> None:
        """Note that this transaction signs a statement; to be called before it is signed.

        Args:
            before: how far it had come, by what the database holds.
            after: how far it comes.

        Raises:
            RestoredBackup: it went further than ``before``, and what left is lost.
            InternalError: no fence would know of it.
        """
        if self.history is None:
            raise InternalError("nothing is attested without a fence", where=origin)
        key = statement_key(kind, origin)
        self.history.check(key, before)
        self.counts[key] = after


class Database(AttestingDatabase):
    """The service's database."""

    STANDINGS = _STANDING

    @property
    def engine(self) -> Engine:
        """The connections, for tables that attest nothing: those of jobs."""
        return self._engine

    def now(self) -> int:
        """Return the time, unguarded: for refusals and displays, never for what is attested."""
        return self._clock()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Yield a writing transaction; it commits at the end, and is durable when this returns.

        Raises:
            ClockStepped: the clock is behind the time of an earlier transaction.
            HistoryLost: the database is behind the fence.
            StoreUnavailable: the database cannot be used, or was closed; or the fence could not be
                written, and what was committed must not be answered for.
            InternalError: the database refused a statement.
        """
        with self._lock, reported():  # held until the fence is written: marks reach it in order
            if self._closed:
                raise StoreUnavailable("the database was closed", expected="a service that runs")
            with write_transaction(self._engine) as connection:
                now, standing = self._advance(connection)
                transaction = Transaction(connection, now, self._history)
                yield transaction
            # After the commit: a fence ahead of a commit that failed would refuse an honest
            # database at the next start. Before the answer: written later, it could miss what was
            # attested.
            if self._history is not None:
                self._history.advance(standing, transaction.counts)

    def _advance(self, connection: Connection) -> tuple[int, Standing]:
        """Take the lock row, compare with the fence, and move time and mark on."""
        query = select(tables.clock.c.latest).where(tables.clock.c.id == _ID).with_for_update()
        latest = connection.execute(query).scalar_one()
        standing = self._standing(connection)
        if self._history is not None:
            self._history.compare(standing)
            standing = standing.next()
        now = self._clock()  # read under the lock: times order as transactions do
        # A time that was attested binds: nothing of later may look as if it had been before it.
        if now < latest:
            raise ClockStepped("the clock went back", expected="a time already attested")
        connection.execute(update(tables.clock).values(latest=now, **asdict(standing)))
        return now, standing

    def check(self) -> None:
        """Check that something can be attested, and that nothing that was is lost.

        Raises:
            ClockStepped, HistoryLost, StoreUnavailable, InternalError: as `write`.
        """
        with self.write() as transaction:
            if transaction.history is not None:
                _compare_heads(transaction.history, transaction.connection)

    def _prepare(self, fence: FencePlace | None) -> None:
        with self._lock, reported(start=True):
            make_private(self._engine)
            with write_transaction(self._engine) as connection:
                SCHEMA.demand(connection)
                standing = self._standing(connection)
                if fence is not None:
                    self._history = History(fence, standing)
                    _compare_heads(self._history, connection)


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
        with reported(start=True):
            make_private(engine)
            with write_transaction(engine) as connection:
                done = change(connection)
                if _STANDING.find(connection) is None:
                    _STANDING.insert(connection, NEW, id=_ID, latest=0)
                return done
    finally:
        engine.dispose()


def _compare_heads(history: History, connection: Connection) -> None:
    """Check that the largest head of each log that was cosigned is there."""
    window, head = tables.window.c, tables.checkpoint.c
    joined = tables.window.outerjoin(tables.checkpoint, window.origin == head.window)
    query = select(window.origin, func.max(head.size)).select_from(joined).group_by(window.origin)
    for origin, size in connection.execute(query):
        history.check(statement_key(Statement.COSIGNATURE, origin), size or 0)
