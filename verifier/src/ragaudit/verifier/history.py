"""The history of a database that attests, and the fence that tells when part of it is lost.

A database restored from a backup, or a replica that was promoted too early, has forgotten what was
signed, and would attest a second history. So each transaction that attests draws a mark, which
stands in the database with the one before it; before an answer leaves, the mark is in a file
outside (`ragaudit.ledger.log.fence`), with how far each statement of each log has come. Every
transaction compares, and so does the start (docs/spec/06-ledger.md §6.10).
"""

import errno
import hashlib
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, NoReturn

from ragaudit.encoding.errors import InternalError
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.errors import CorruptLog, RestoredBackup, StoreUnavailable
from ragaudit.ledger.log.database import (
    Rows,
    close_engine,
    open_engine,
    read_transaction,
    refused_statements,
)
from ragaudit.ledger.log.fence import Fence
from ragaudit.ledger.log.tree import EMPTY_ROOT, TreeHead
from sqlalchemy import Connection

__all__ = [
    "NEW",
    "AttestingDatabase",
    "Clock",
    "FencePlace",
    "History",
    "HistoryLost",
    "Standing",
    "Statement",
    "reported",
    "statement_key",
]

Clock = Callable[[], int]  # Unix milliseconds
MARK_BYTES = 32
_TAG = "ragaudit/v1/attested"
_WAY_OUT = (
    "stop the service, put back the database as it was when the fence was written, and start; "
    "if that is lost, new keys under a new name and new windows, never this fence with another "
    "database"
)


class HistoryLost(StoreUnavailable):
    """The database is behind the fence: nothing is attested until the service starts beside it."""


class Statement(StrEnum):
    """What is signed of a log: some once, some in steps that are counted."""

    COSIGNATURE = "cosignature"  # counted: size of the largest head
    COUNTERSIGNATURE = "countersignature"
    ACTIVATION = "activation"  # counted: how many
    RECEIPTS_LIST = "receipts-list"
    CHALLENGE = "challenge"
    VERDICT = "verdict"


def statement_key(kind: Statement, origin: str) -> bytes:
    """Return the 32 bytes under which the fence keeps how far a statement of a log has come."""
    return hashlib.sha256(enc(_TAG, kind, origin)).digest()


@dataclass(frozen=True)
class Standing:
    """How far a database has come, as it says itself.

    Attributes:
        writes: number of the last transaction that attested.
        mark: drawn by it, 32 bytes.
        before: the mark of the transaction before it.
    """

    writes: int
    mark: bytes
    before: bytes

    @property
    def head(self) -> TreeHead:
        """As the fence keeps it."""
        return TreeHead(self.writes, self.mark)

    def next(self) -> "Standing":
        """Return that of a transaction that attests now."""
        # Drawn, not counted: a restored database that goes on has the numbers again.
        return Standing(self.writes + 1, secrets.token_bytes(MARK_BYTES), self.mark)


NEW = Standing(0, EMPTY_ROOT, EMPTY_ROOT)
"""Of a database that attested nothing."""


@dataclass(frozen=True)
class FencePlace:
    """Where a service has its fence.

    Attributes:
        path: of the file; its folder is made if there is none.
        name: of the service's keys, so that nobody's fence stands beside another database.
    """

    path: Path
    name: str

    def open(self) -> Fence:
        """Return the fence, made if there is none.

        Raises:
            RefusedError: another process holds it.
            MalformedError: of another service, or damaged.
            StoreUnavailable: it cannot be read or written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return Fence(self.path, self.name, log_is_empty=True)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StoreUnavailable(
                f"the fence cannot be opened: {reason}", where=str(self.path)
            ) from None


class History:
    """The fence of one database, as one process at a time holds it.

    Its caller holds a lock from before `compare` until after `advance`.

    Args:
        place: of the fence.
        standing: of the database at the start.

    Raises:
        RestoredBackup: the database is behind the fence, or the fence is missing.
        RefusedError, MalformedError, StoreUnavailable: as `FencePlace.open`.
    """

    def __init__(self, place: FencePlace, standing: Standing) -> None:
        # Otherwise whoever restores a backup would only have to remove the fence as well.
        if standing.writes and not place.path.exists():
            raise RestoredBackup(
                "the fence is missing",
                where=str(place.path),
                expected=f"the file beside which the service ran; or {_WAY_OUT}",
            )
        self._lost: str | None = None
        self._fence = place.open()
        try:
            self.compare(standing)
        except BaseException:
            self._fence.close()
            raise

    @property
    def head(self) -> TreeHead:
        """The newest of what left, for `compare_read`."""
        return self._fence.head

    def compare(self, standing: Standing) -> None:
        """Check, in a transaction that may attest, that the database has all that left.

        Args:
            standing: read under the lock of the row.

        Raises:
            RestoredBackup: it has not, now or at an earlier call.
            OSError, StoreUnavailable: the fence cannot be written.
        """
        head = self._fence.head
        self.compare_read(head, standing)
        if standing.head == head:
            return
        if standing.writes != head.size + 1:
            self._refuse("the fence is not the one beside which this database ran")
        # One that was committed, and ended before the fence had it: its answer never left. Now, as
        # the next transaction would be two ahead of the fence if it ended so, too.
        self.advance(standing, {})

    def compare_read(self, head: TreeHead, standing: Standing) -> None:
        """Check that the database has all that left, in a transaction that attests nothing.

        Args:
            head: of the fence before the transaction began, so that none that ends meanwhile looks
                like a loss.
            standing: read in the transaction.

        Raises:
            RestoredBackup: it has not, now or at an earlier call.
        """
        if self._lost is not None:
            self._refuse(self._lost)
        if standing.writes < head.size:
            self._refuse("the database is behind the fence: it comes from a backup")
        marks = {standing.writes: standing.mark, standing.writes - 1: standing.before}
        if marks.get(head.size, head.root_hash) != head.root_hash:
            self._refuse("the database holds another history than the fence knows")

    def check(self, key: bytes, count: int) -> None:
        """Check that the database has all of a statement that left, before it goes on.

        Args:
            key: of `statement_key`.
            count: how far the statement has come in the database.

        Raises:
            RestoredBackup: it went further.
        """
        if count < self._fence.records.get(key, 0):
            self._refuse("part of the database is behind the fence: a statement that left is gone")

    def advance(self, standing: Standing, counts: Mapping[bytes, int]) -> None:
        """Make durable what was committed; the answer may leave when this returns.

        Args:
            standing: that was committed.
            counts: how far its statements have come, by key.

        Raises:
            OSError, StoreUnavailable: it could not be; nothing may leave until the next start.
        """
        try:
            self._fence.advance_all(standing.head, counts)
        except InternalError as error:
            raise StoreUnavailable(error.what, where="fence", expected="a new start") from None

    def close(self) -> None:
        """Release the fence; nothing is attested any more."""
        self._fence.close()

    def _refuse(self, what: str) -> NoReturn:
        # For good: a pool may hold connections to both, the file as it was and the one put back.
        self._lost = what
        raise RestoredBackup(what, where="fence", expected=_WAY_OUT)


class AttestingDatabase(ABC):
    """A database that attests, and the fence beside it; safe for use by several threads.

    Attributes:
        STANDINGS: the row that says how far the database has come.

    Args:
        url: SQLAlchemy URL.
        clock: of the service, Unix milliseconds.
        fence: of the service; commands that attest nothing do without.

    Raises:
        RefusedError: another process holds the fence.
        MalformedError, UnsupportedError: not a URL of a database that is supported, or one of
            another revision.
        UnavailableError: it does not answer, or has no tables.
        RestoredBackup: it is behind the fence, or the fence is gone.
    """

    STANDINGS: ClassVar[Rows[Standing]]

    def __init__(self, url: str, clock: Clock, fence: FencePlace | None = None) -> None:
        self._clock = clock
        self._history: History | None = None
        self._engine = open_engine(url)
        self._closed = False
        self._lock = threading.Lock()  # spares the threads of one process the wait for SQLite's
        try:
            self._prepare(fence)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _prepare(self, fence: FencePlace | None) -> None:
        """Look at the tables, and open the fence beside them."""

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a transaction with one consistent reading.

        Raises:
            HistoryLost: the database is behind the fence.
            StoreUnavailable: the database cannot be used.
            InternalError: it refused a statement.
        """
        history = self._history
        head = None if history is None else history.head
        with reported(), read_transaction(self._engine) as connection:
            if history is not None and head is not None:
                history.compare_read(head, self._standing(connection))
            yield connection

    def close(self) -> None:
        """Close the connections and release the fence, once no transaction writes any more."""
        # A tick that a shutdown abandoned may still write: never into a fence of another process.
        with self._lock:
            if self._closed:
                return
            self._closed = True
            close_engine(self._engine)
            if self._history is not None:
                self._history.close()

    def _standing(self, connection: Connection) -> Standing:
        """Return how far the database has come."""
        stored = self.STANDINGS.find(connection)
        if stored is None:
            raise CorruptLog("the clock has no row", where="store")
        return stored


@contextmanager
def reported(*, start: bool = False) -> Iterator[None]:
    """Say in errors of ours what is wrong with database, fence or disk.

    Args:
        start: a database behind its fence is a refusal then; of a service that runs: not now, and
            why.
    """
    try:
        with refused_statements():
            yield
    except RestoredBackup as error:
        if start:
            raise
        raise HistoryLost(error.what, where=error.where, expected=error.expected) from None
    except (StoreUnavailable, CorruptLog) as error:
        raise StoreUnavailable(error.what, where=error.where, expected=error.expected) from None
    except OSError as error:  # of the fence, or of a temporary file on the way to a row
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise StoreUnavailable(
            f"a file cannot be written: {name}", expected="a disk with room"
        ) from None
