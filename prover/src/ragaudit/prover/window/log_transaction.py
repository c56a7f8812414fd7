"""Transactions that change a window's log or an account's counters, of several requests at a time.

One transaction and one fence make the answers of several requests durable. Whoever comes while
nobody commits, commits at once, with all who wait by then; who comes meanwhile waits for that to
end. So one client alone never waits, and many share the statements and the two synchronisations of
the disk. Nobody goes on before the transaction *and* the fence (spec 6.10) are durable.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import InternalError, RagauditError, UnavailableError
from ragaudit.ledger.errors import (
    CorruptLog,
    RestoredBackup,
    StatementRefused,
    StoreUnavailable,
)
from ragaudit.ledger.log.database import Prepared
from ragaudit.ledger.log.fence import GROUP_RECORDS, Fence, FenceReader
from ragaudit.ledger.log.store import HeadRow, LogStore
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.prover.sequencer import together
from ragaudit.prover.store import tables
from ragaudit.prover.window.registrations import ADVANCE_TIME, COUNT, Registered, find
from ragaudit.prover.window.windows import Status, Windows
from sqlalchemy import Connection, insert
from sqlalchemy.exc import SQLAlchemyError

T = TypeVar("T")
# After these nobody knows what the transaction still holds, or whether the database is the one.
_OF_ALL = (UnavailableError, CorruptLog, RestoredBackup, SQLAlchemyError)
_INSERT_ENTRY = Prepared(insert(tables.entry))
_PUBLIC = dict.fromkeys(column.name for column in tables.entry.c)


class Standings:
    """A window's registrations as they stood when its log had ``head``, each of them read once.

    Whatever changes one appends to the log: the head tells whether what was read still stands.
    Guarded by the lock around transactions; `last` may be asked at any time.
    """

    def __init__(self) -> None:
        self._head: TreeHead | None = None
        self._found: dict[str, Registered] = {}

    def at(self, head: TreeHead) -> dict[str, Registered]:
        """Return those that were read and stand at a head, by account; more may be added."""
        if head != self._head:
            self._head, self._found = head, {}
        return self._found

    def last(self, account: str) -> Registered | None:
        """Return what was read last, None if nothing was."""
        return self._found.get(account)

    def moved(self, head: TreeHead, changed: Mapping[str, Registered]) -> None:
        """Take over what a transaction that is durable has changed, and the head after it."""
        self._found.update(changed)
        self._head = head


@dataclass
class LockedLog:
    """A window's log in a transaction that holds its lock.

    Attributes:
        window: by name.
        row: the head, before anything is appended.
        standing: registrations that are known to stand at that head, by account.
        check: compares an account's counters with the fence, see `WindowFence.check_account`.
        status: the window's, once it was read.
    """

    connection: Connection
    window: str
    entries: LogStore
    row: HeadRow
    standing: dict[str, Registered] = field(default_factory=dict)
    check: Callable[[bytes, int], None] = lambda _who, _used: None
    status: Status | None = None


class LogTransaction:
    """What one transaction does to a window's log, or a part of it; see `OpenWindow.committing`.

    Rows are collected, and written by `flush`: whatever the number of requests that share the
    transaction, each statement runs once.

    Attributes:
        connection: of the transaction. What is written by it directly is written at once.
        counters: how many counters accounts have at its end, by pseudonym, of those that moved.
        changed: registrations as they are at its end, by account, of those that changed.
    """

    def __init__(self, log: LockedLog, size: int | None = None) -> None:
        """Begin with nothing.

        Args:
            size: of the log, with what is appended before this; the head's if None.
        """
        self.connection = log.connection
        self.counters: dict[bytes, int] = {}
        self.changed: dict[str, Registered] = {}
        self._log = log
        self._size = log.row.head.size if size is None else size
        self._head = log.row.head
        self._leaves: list[bytes] = []
        self._rows: dict[Prepared, list[dict[str, Any]]] = {}

    @classmethod
    def alone(cls, connection: Connection, entries: LogStore, window: str) -> Self:
        """Return a transaction of a log that nobody answers from: no fence is compared.

        Args:
            connection: of `LogStore.transaction`; whoever calls this calls `flush` at its end.
        """
        return cls(LockedLog(connection, window, entries, entries.lock(connection)))

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
        self._log.check(pseudonym, used)
        self.counters[pseudonym] = after

    def status(self, windows: Windows) -> Status:
        """Return the window's status, read once for all that share the transaction."""
        if self._log.status is None:
            self._log.status = windows.status(self.connection, self._log.window)
        return self._log.status

    def registered(self, account: str) -> Registered | None:
        """Return an account's registration as this transaction leaves it, None without one."""
        found = self.changed.get(account) or self._log.standing.get(account)
        if found is None:
            found = find(self.connection, self._log.window, account)
            if found is not None:
                self._log.standing[account] = found
        return found

    def count(self, registered: Registered, time: int) -> None:
        """Consume one query of an account's budget.

        Args:
            registered: as `registered` returns it.
            time: of the record, Unix milliseconds.
        """
        account, counter = registered.account, registered.counter + 1
        self.changed[account] = replace(registered, counter=counter, last_time=time)
        self.later(COUNT, of_window=self._log.window, of_account=account, time=time)

    def next_time(self, account: str, now: int) -> int:
        """Return the time of an account's entry that is logged now: not before its last one's.

        Args:
            now: the clock's, Unix milliseconds, which another process's may be ahead of.
        """
        registered = self.registered(account)
        return now if registered is None else max(now, registered.last_time)

    def advance_time(self, account: str, time: int) -> None:
        """Let nothing more of an account be dated before ``time``, whichever process has the clock.

        Args:
            time: Unix milliseconds, of an entry that is appended.
        """
        registered = self.registered(account)
        if registered is not None and registered.last_time < time:
            self.changed[account] = replace(registered, last_time=time)
            self.later(ADVANCE_TIME, of_window=self._log.window, of_account=account, time=time)

    def append(self, kind: str, salt: bytes, body: bytes, **private: Any) -> int:
        """Append an entry to the log, with what its leaf is made of; return its position, from 0.

        Args:
            salt: 32 bytes.
            private: further columns, of a record.
        """
        position = self._size
        self._size += 1
        self._leaves.append(leaf_data(salt, kind, body))
        row = {"window": self._log.window, "position": position, "kind": kind, "salt": salt}
        self.later(_INSERT_ENTRY, **{**_PUBLIC, **row, "body": body, **private})
        return position

    def later(self, statement: Prepared, **values: Any) -> None:
        """Have a statement that writes run at the end, after those that were named before it.

        Args:
            values: of its parameters, by name.
        """
        self._rows.setdefault(statement, []).append(values)

    def flush(self) -> TreeHead:
        """Write what was collected; return the log's head then.

        Raises:
            LogFrozen: something was appended to a log that is closed.
        """
        if self._leaves:
            # One transaction: of a leaf without its body nothing could ever be handed over.
            self._head = self._log.entries.grow(self.connection, self._log.row, self._leaves)
            self._leaves = []
        for statement, rows in self._rows.items():
            statement.change_each(self.connection, rows)
        self._rows = {}
        return self._head

    def part(self) -> "LogTransaction":
        """Return a part, of which nothing counts before `take`."""
        part = LogTransaction(self._log, self._size)
        part.changed = dict(self.changed)
        return part

    def take(self, part: "LogTransaction") -> None:
        """Let a part count."""
        self.counters |= part.counters
        self.changed = part.changed
        self._size = part._size
        self._leaves += part._leaves
        for statement, rows in part._rows.items():
            self._rows.setdefault(statement, []).extend(rows)


Begin = Callable[[], AbstractContextManager[LogTransaction]]


class _Member:
    """One change that waits to be made durable; ``done`` once it is, or has failed."""

    def __init__(self, begin: Begin, work: Callable[[LogTransaction], Any]) -> None:
        self.begin = begin
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._woken = threading.Lock()
        self._woken.acquire()

    def wait(self) -> None:
        """Return once `wake` was called, which it is once: done, or to commit with those behind."""
        self._woken.acquire()

    def wake(self) -> None:
        """Let the thread of this member go on."""
        self._woken.release()


class GroupCommit:
    """Makes changes of a window's log durable, several at a time. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
        member = _Member(begin, work)
        together(self._make_durable, member)
        if member.error is not None:
            raise member.error
        result: T = member.result
        return result

    def _make_durable(self, members: Sequence[_Member]) -> None:
        """Return once all of these are done, which one thread has."""
        with self._lock:
            self._waiting.extend(members)
            waits, self._leading = self._leading, True
        for member in members:
            if waits:
                member.wait()
            if not member.done:
                self._lead(member.begin)
            waits = True

    def _lead(self, begin: Begin) -> None:
        """Commit those that have waited longest, and let the first one behind them go on."""
        with self._lock:
            group, self._waiting = self._waiting[:GROUP_RECORDS], self._waiting[GROUP_RECORDS:]
        try:
            _together(begin, group)
        finally:
            # Whoever leads is the first of its group, and waits for nobody.
            for member in group:
                member.done = True
            for member in group[1:]:
                member.wake()
            with self._lock:
                self._leading = bool(self._waiting)
                if self._leading:
                    self._waiting[0].wake()


def _together(begin: Begin, group: list[_Member]) -> None:
    """Do the work of all members in one transaction, or of each in one of its own."""
    try:
        with begin() as transaction:
            for member in group:
                _attempt(member, transaction)
    except StatementRefused as error:
        # Nothing of it stands, and nobody knows whose statement it was.
        for member in group:
            if len(group) > 1:
                _together(begin, [member])
            else:
                member.error = error
    except BaseException as error:
        for member in group:
            member.error = member.error or error


def _attempt(member: _Member, transaction: LogTransaction) -> None:
    """Do one member's work, of which nothing counts if it fails for reasons of its own.

    Raises: what leaves the whole transaction in doubt.
    """
    own = transaction.part()
    member.error = None
    try:
        member.result = member.work(own)
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

    def check_head(self, connection: Connection) -> HeadRow:
        """Compare the tree that a transaction reads with the fence; return the log's head row.

        Args:
            connection: of the transaction, before it writes.
        """
        # Locked: from here to the commit no other process logs anything, closes the window, or
        # reads a time for a checkpoint; what is read below is what this transaction adds to.
        row = self.entries.lock(connection)

        def root_of(size: int) -> bytes:
            same = size == row.head.size
            return row.head.root_hash if same else self.entries.root(size, connection)

        with self._lock:
            self.opened().check_head(root_of)
        return row

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
