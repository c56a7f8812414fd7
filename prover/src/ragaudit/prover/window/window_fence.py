"""The fence of a window's log, as the prover keeps it (spec 6.10)."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.fence import Fence, FenceReader
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tree import TreeHead
from sqlalchemy import Connection

__all__ = ["WindowFence"]


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
