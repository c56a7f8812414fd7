"""Transactions that change a window's log or an account's counters, of several requests at a time.

One transaction and one fence make the answers of several requests durable. Whoever comes while
nobody commits, commits at once, with all who wait by then; who comes meanwhile waits for that to
end. So one client alone never waits, and many share the two synchronisations of the disk. Nobody
goes on before the transaction *and* the fence (spec 6.10) are durable.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ragaudit.encoding.errors import InternalError, RagauditError, UnavailableError
from ragaudit.ledger.errors import CorruptLog, RestoredBackup, StoreUnavailable
from ragaudit.ledger.log.fence import GROUP_RECORDS, Fence, FenceReader
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tree import TreeHead
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

T = TypeVar("T")
# After these nobody knows what the transaction still holds, or whether the database is the one.
_OF_ALL = (UnavailableError, CorruptLog, RestoredBackup, SQLAlchemyError)


class LogTransaction:
    """One transaction, or a part of it; `OpenWindow.committing` makes it.

    Attributes:
        counters: how many counters accounts have at its end, by pseudonym, of those that moved.
    """

    def __init__(self, connection: Connection, check: Callable[[bytes, int], None]) -> None:
        """Begin with nothing.

        Args:
            connection: of the transaction.
            check: compares an account's counters with the fence, see `WindowFence.check_account`.
        """
        self.connection = connection
        self._check = check
        self.counters: dict[bytes, int] = {}

    def use_counter(self, pseudonym: bytes, used: int, after: int) -> None:
        """Compare an account's counters with the fence, which notes ``after`` once durable.

        Args:
            pseudonym: 32 bytes.
            used: how many counters are logged or promised, as this transaction reads them.
            after: how many are at its end.

        Raises:
            RestoredBackup: the fence knows of more.
        """
        # Before anything is written: a restored database is noticed while nothing has changed.
        self._check(pseudonym, used)
        self.counters[pseudonym] = after

    def part(self) -> "LogTransaction":
        """Return a part, whose counters do not count before `take`."""
        return LogTransaction(self.connection, self._check)

    def take(self, part: "LogTransaction") -> None:
        """Let the counters of a part count: its changes were kept."""
        self.counters |= part.counters


Begin = Callable[[], AbstractContextManager[LogTransaction]]


@dataclass(eq=False)
class _Member:
    """One change that waits to be made durable; ``done`` once it is, or has failed."""

    work: Callable[[LogTransaction], Any]
    result: Any = None
    error: BaseException | None = None
    done: bool = False


class GroupCommit:
    """Makes changes of a window's log durable, several at a time. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[_Member] = []
        self._leading = False

    def run(self, begin: Begin, work: Callable[[LogTransaction], T]) -> T:
        """Return what ``work`` returned, once all that it changed is durable.

        Args:
            begin: opens the transaction, and makes it durable at its end.
            work: changes the log, in the transaction that it is given; a failure of its own
                undoes its changes, and nobody else's.

        Raises: what ``work`` raises, or ``begin``: then nothing of it may be answered.
        """
        member = _Member(work)
        with self._changed:
            self._waiting.append(member)
        while group := self._next(member):
            self._commit(begin, group)
        if member.error is not None:
            raise member.error
        result: T = member.result
        return result

    def _next(self, member: _Member) -> list[_Member]:
        """Wait until a member is done, then return nothing; or until its thread has to commit."""
        with self._changed:
            while self._leading and not member.done:
                self._changed.wait()
            if member.done:
                return []
            self._leading = True
            group, self._waiting = self._waiting[:GROUP_RECORDS], self._waiting[GROUP_RECORDS:]
            return group

    def _commit(self, begin: Begin, group: list[_Member]) -> None:
        try:
            with begin() as transaction:
                if len(group) == 1:
                    group[0].result = group[0].work(transaction)
                else:
                    for member in group:
                        _attempt(member, transaction)
        except BaseException as error:
            for member in group:
                member.error = member.error or error
        finally:
            with self._changed:
                for member in group:
                    member.done = True
                self._leading = False
                self._changed.notify_all()


def _attempt(member: _Member, transaction: LogTransaction) -> None:
    """Do one member's work; undo it, and nothing else, if it fails for reasons of its own.

    Raises: what leaves the whole transaction in doubt.
    """
    own = transaction.part()
    try:
        with transaction.connection.begin_nested():
            member.result = member.work(own)
    except IntegrityError as error:
        reason = f"the database refused a statement: {type(error.orig).__name__}"
        member.error = InternalError(reason, where="store")
    except _OF_ALL:
        raise
    except Exception as error:
        member.error = error
    else:
        transaction.take(own)


@dataclass
class WindowFence:
    """The fence of a window's log, opened again after a write that failed.

    Every method raises RestoredBackup where the database is behind the fence.

    Attributes:
        path: of the fence's file, better on another disk than the database.
        entries: of the window's log.
        records_of: returns an account's number of records or promises, by pseudonym.
        others: returns the files of other processes' fences of this log, on this machine.
        vouched: returns whether another process serves the log now, and so has compared it.
    """

    path: Path
    entries: LogStore
    records_of: Callable[[bytes], int]
    others: Callable[[], Sequence[Path]] = tuple
    vouched: Callable[[], bool] = bool
    _fence: Fence | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        """Open the fence and compare the database with it.

        Raises:
            RestoredBackup: the database is behind, or the fence is missing.
            RefusedError: another process holds it.
            StoreUnavailable: a file cannot be read, or rewritten.
        """
        try:
            self._open()
        except OSError:
            # Opening makes the file anew: on a disk that is still full it cannot.
            raise StoreUnavailable(
                "the fence cannot be opened", where=str(self.path), expected="free disk space"
            ) from None

    def _open(self) -> None:
        origin = self.entries.log_key.name
        # Of other processes, too, whether they run or not: each knows of its own answers only.
        others = [FenceReader(path, origin) for path in self.others()]
        for other in others:
            other.read()
            other.check(self.entries.root, self.records_of)
        # Only an empty log may be without a fence, or one that others serve: a file that is
        # missing otherwise was lost.
        head = self.entries.head()
        is_new = not self.path.exists()
        may_be_new = is_new and (head.size == 0 or bool(others) or self.vouched())
        fence = Fence(self.path, origin, log_is_empty=may_be_new)
        try:
            fence.check(self.entries.root, self.records_of)
            if is_new and head.size:
                fence.advance(head)
        except RagauditError:
            # The lock on the file goes with it, or no later attempt could open the fence.
            fence.close()
            raise
        self._fence = fence

    def check_head(self, connection: Connection) -> TreeHead:
        """Compare the tree that a transaction reads with the fence; return the tree's head.

        Args:
            connection: of the transaction, before it writes.
        """
        # Locked: from here to the commit no other process logs anything, closes the window, or
        # reads a time for a checkpoint; what is read below is what this transaction adds to.
        head = self.entries.lock(connection)

        def root_of(size: int) -> bytes:
            same = size == head.size
            return head.root_hash if same else self.entries.root(size, connection)

        with self._lock:
            self.opened().check_head(root_of)
        return head

    def check_account(self, pseudonym: bytes, used: int) -> None:
        """Compare the counters of an account that a transaction reads with the fence.

        Args:
            pseudonym: 32 bytes.
            used: how many counters are logged or promised.
        """
        with self._lock:
            self.opened().check_account(pseudonym, used)

    def advance(self, head: TreeHead, counters: Mapping[bytes, int]) -> None:
        """Make it durable outside the database that the log reached ``head``.

        Args:
            counters: how many counters of accounts are now logged or promised, by pseudonym, of
                those that moved.

        Raises:
            StoreUnavailable: it is not durable; nothing may be answered.
        """
        with self._lock:
            try:
                self.opened().advance_all(head, counters)
            except (OSError, InternalError):
                # Nobody knows how much of it was written: it is read again before the next use.
                self.close()
                raise StoreUnavailable(
                    "the fence cannot be written", where=str(self.path), expected="free disk space"
                ) from None

    def note(self, head: TreeHead) -> None:
        """Take over what other processes have logged, from time to time.

        Args:
            head: committed.

        Raises: as `advance`.
        """
        if self._fence is not None and self._fence.head.size < head.size:
            self.advance(head, {})

    def opened(self) -> Fence:
        """Return the fence, opened again if a write failed."""
        if self._fence is None:
            self.open()
        assert self._fence is not None
        return self._fence

    def close(self) -> None:
        """Release the fence's file."""
        if self._fence is not None:
            self._fence.close()
            self._fence = None
