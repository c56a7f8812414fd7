"""The cosigner's database: the logs that it knows, and of each the last head it cosigned.

A decision is made in one writing transaction, which holds the lock of the row ``state`` (SQLite: of
the whole database) from before the head is read until the new one is committed; nothing is
answered before that, and before the fence has the head.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from ragaudit.encoding.errors import ClockStepped, RefusedError, UnsupportedError
from ragaudit.ledger.log.database import (
    Rows,
    make_private,
    write_transaction,
)
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tree import TreeHead
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
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    select,
    update,
)

SCHEMA_VERSION = 1
metadata = MetaData()

_STATE = Table(
    "cosigner_state",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("schema", Integer, nullable=False),
    Column("latest", BigInteger, nullable=False),  # of the last cosignature, Unix milliseconds
    Column("writes", BigInteger, nullable=False),  # these three: `Standing`
    Column("mark", LargeBinary(32), nullable=False),
    Column("before", LargeBinary(32), nullable=False),
)
_LOG = Table(
    "cosigner_log",
    metadata,
    Column("origin_hash", LargeBinary(32), primary_key=True),
    Column("origin", Text, nullable=False),
    Column("verifier_key", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("root_hash", LargeBinary(32), nullable=False),
    Column("note", LargeBinary, nullable=False),  # cosigned; empty while nothing was
)
_ID = 1  # of the only row of the state


@dataclass(frozen=True)
class KnownLog:
    """A log that is cosigned.

    Attributes:
        origin: its name.
        verifier_key: its vkey.
        size, root_hash: of the last head that was cosigned.
        note: that checkpoint, with the log's line and ours; empty while nothing was cosigned.
    """

    origin: str
    verifier_key: str
    size: int
    root_hash: bytes
    note: bytes

    @property
    def key(self) -> VerifierKey:
        """The log's key."""
        return VerifierKey.parse(self.verifier_key)

    @property
    def head(self) -> TreeHead | None:
        """The last head that was cosigned."""
        return TreeHead(self.size, self.root_hash) if self.note else None


_LOGS, _STANDING = Rows(KnownLog, _LOG), Rows(Standing, _STATE)


class Store(AttestingDatabase):
    """The cosigner's database."""

    STANDINGS = _STANDING

    def add(self, key: VerifierKey) -> bool:
        """Take up a log, and return whether it is new.

        Args:
            key: of type 0x01; its name is the origin.

        Raises:
            RefusedError: the origin is known with another key: two logs of one name would be
                cosigned as one.
            StoreUnavailable: the database cannot be used.
        """
        with reported(), write_transaction(self._engine) as connection:
            self._take(connection)
            known = _find(connection, origin_hash(key.name))
            if known is None:
                fresh = KnownLog(key.name, str(key), 0, bytes(32), b"")
                _LOGS.insert(connection, fresh, origin_hash=origin_hash(key.name))
            elif known.verifier_key != str(key):
                raise RefusedError(
                    "the origin is known with another key",
                    where=key.name,
                    expected=known.verifier_key,
                )
        return known is None

    def logs(self) -> list[KnownLog]:
        """Return all logs, by origin."""
        with self.read() as connection:
            return _LOGS.all(connection, _LOGS.select().order_by(_LOG.c.origin))

    def find(self, digest: bytes) -> KnownLog | None:
        """Return the log whose origin has this SHA-256, or None."""
        with self.read() as connection:
            return _find(connection, digest)

    @contextmanager
    def deciding(self, origin: str) -> Iterator["Decision"]:
        """Yield a decision on one log; what it keeps is durable when this returns.

        Args:
            origin: of the log, which may be unknown.

        Raises:
            HistoryLost: the database is behind the fence.
            StoreUnavailable: database or fence cannot be written; nothing may be answered.
        """
        # Held until the fence is written: marks reach it in their order.
        with self._lock, reported():
            with write_transaction(self._engine) as connection:
                latest = self._take(connection)
                standing = self._standing(connection)
                log = _find(connection, origin_hash(origin))
                if self._history is not None:
                    self._history.compare(standing)
                    if log is not None:
                        self._history.check(_key(log.origin), log.size)
                decision = Decision(connection, log, self._clock, latest, standing.next())
                yield decision
            # After the commit: a fence ahead of a commit that failed would refuse an honest
            # database at the next start. Before the answer: written later, it could miss one.
            if decision.kept is not None and self._history is not None:
                self._history.advance(decision.standing, {_key(origin): decision.kept})

    def check(self) -> None:
        """Check that the database can be written, and has all that was cosigned.

        Raises:
            HistoryLost: it is behind the fence.
            StoreUnavailable: it cannot be written.
        """
        with self._lock, reported(), write_transaction(self._engine) as connection:
            self._take(connection)
            if self._history is not None:
                self._compare(self._history, connection)
            connection.execute(update(_STATE).values(schema=SCHEMA_VERSION))

    def _take(self, connection: Connection) -> int:
        """Take the row of the state, and return the time of the last cosignature."""
        query = select(_STATE.c.latest).where(_STATE.c.id == _ID).with_for_update()
        return int(connection.execute(query).scalar_one())

    def _compare(self, history: History, connection: Connection) -> None:
        history.compare(self._standing(connection))
        for log in _LOGS.all(connection, _LOGS.select()):
            history.check(_key(log.origin), log.size)

    def _prepare(self, fence: FencePlace | None) -> None:
        with reported(start=True):
            make_private(self._engine)
            with write_transaction(self._engine) as connection:
                metadata.create_all(connection)
                version = connection.scalar(select(_STATE.c.schema))
                if version is None:
                    more = {"id": _ID, "schema": SCHEMA_VERSION, "latest": 0}
                    _STANDING.insert(connection, NEW, **more)
                elif version != SCHEMA_VERSION:
                    raise UnsupportedError(
                        f"database of version {version}",
                        where="store",
                        expected=f"version {SCHEMA_VERSION}",
                    )
                if fence is not None:
                    self._history = History(fence, self._standing(connection))
                    self._compare(self._history, connection)


class Decision:
    """An open decision on one log.

    Attributes:
        log: what is known of it, None if it is unknown.
        standing: of the database, once something is kept.
        kept: size of the head that was kept; None if none was.
    """

    def __init__(
        self,
        connection: Connection,
        log: KnownLog | None,
        clock: Callable[[], int],
        latest: int,
        standing: Standing,
    ) -> None:
        self.log = log
        self.standing = standing
        self.kept: int | None = None
        self._connection = connection
        self._clock = clock
        self._latest = latest

    def now(self) -> int:
        """Return the time, Unix milliseconds.

        Raises:
            ClockStepped: it is before that of an earlier cosignature.
        """
        now = self._clock()  # read under the lock: times order as decisions do
        if now < self._latest:
            raise ClockStepped("the clock went back", expected="a time already attested")
        return now

    def keep(self, head: TreeHead, note: bytes, time: int) -> None:
        """Store a head as the last one that was cosigned.

        Args:
            head: consistent with the one before.
            note: with our cosignatures.
            time: of `now`.
        """
        assert self.log is not None
        columns = {"size": head.size, "root_hash": head.root_hash, "note": note}
        mine = _LOG.c.origin_hash == origin_hash(self.log.origin)
        self._connection.execute(update(_LOG).where(mine).values(**columns))
        self._connection.execute(update(_STATE).values(latest=time, **asdict(self.standing)))
        self.kept = head.size


def origin_hash(origin: str) -> bytes:
    """Return SHA-256 of an origin, by which tlog-witness names a log in its paths."""
    return hashlib.sha256(origin.encode()).digest()


def _find(connection: Connection, digest: bytes) -> KnownLog | None:
    return _LOGS.find(connection, _LOG.c.origin_hash == digest)


def _key(origin: str) -> bytes:
    return statement_key(Statement.COSIGNATURE, origin)
