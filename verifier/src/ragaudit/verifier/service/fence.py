"""The fence: the latest attested time, durable outside the database.

A database restored from a backup has forgotten cosignatures and releases, and would attest a
second history. So before an answer leaves, its transaction's time is written here and synchronised;
at the start the database must not be behind. Keep the file out of every backup.

It is not the ledger's fence (`ragaudit.ledger.log.fence`), which guards one log by its tree head
and counters, written by several threads in any order: here one time orders all windows, and
writers come one after the other under the database's lock.

Two records of 24 bytes, written in turn: time (8, little endian), SHA-256 of it, cut to 16. One
that a crash cut short was never answered for; the other one holds.
"""

import fcntl
import hashlib
import os
from pathlib import Path

from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.durable import synchronise

RECORD_BYTES = 24
_TIME_BYTES = 8


class Fence:
    """The fence of one database; one process at a time. Calls of `advance` come in order.

    Args:
        path: of the file; its folder is made if there is none.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            RefusedError: another process holds it.
            StoreUnavailable: the file cannot be opened or made.
        """
        self.existed = path.exists()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if not self.existed:
                # Before the database says that it is guarded: if a loss of power took the file's
                # name, the next start would take an honest database for a restored one.
                synchronise(path.parent)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StoreUnavailable(
                f"the fence cannot be opened: {reason}", where=str(path)
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise RefusedError("another process serves this database", where=str(path)) from None
        times = [_parse(os.pread(self._file, RECORD_BYTES, at)) for at in (0, RECORD_BYTES)]
        self.latest = max(times)
        # The older record is overwritten next: a crash in the middle leaves the newer one whole.
        self._next = times.index(min(times))
        self._broken = False

    def advance(self, time: int) -> None:
        """Make it durable that ``time`` was attested.

        Args:
            time: Unix milliseconds, of the transaction that was just committed; not below an
                earlier one.

        Raises:
            OSError, StoreUnavailable: it could not be made durable; every later call fails, too.
        """
        if self._broken:
            raise StoreUnavailable("closed, or an earlier write failed: start again", where="fence")
        self._broken = True  # until the write is known to be on the disk
        written = os.pwrite(self._file, _record(time), self._next * RECORD_BYTES)
        if written != RECORD_BYTES:
            raise OSError(f"fence: only {written} bytes were written")
        os.fsync(self._file)
        self._broken = False
        self.latest, self._next = time, 1 - self._next

    def close(self) -> None:
        """Release the file; every later call of `advance` fails."""
        self._broken = True  # the system gives the descriptor to the next file that is opened
        os.close(self._file)


def _record(time: int) -> bytes:
    data = time.to_bytes(_TIME_BYTES, "little")
    return data + hashlib.sha256(data).digest()[: RECORD_BYTES - _TIME_BYTES]


def _parse(data: bytes) -> int:
    """Return the time of a record; 0 for one that is absent or was cut short."""
    time = int.from_bytes(data[:_TIME_BYTES], "little")
    return time if data == _record(time) else 0
