"""The folder of fences: each process on a machine has files of its own in it.

The first process has the folder itself, further ones have ``process-2``, ``process-3`` and so on
below it: the first place that nobody holds. Nobody's files are ever another window's or prover's.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.durable import replace_file

MOST_PROCESSES = 256
_LOCK = "process.lock"
_DELETION = ".deletion"


def check_folder(folder: Path) -> None:
    """Make a folder for its owner only, and return if files can be written in it.

    Args:
        folder: made with mode 700 if it is missing.

    Raises:
        StoreUnavailable: they cannot.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None
    check_writing(folder)


def check_writing(folder: Path) -> None:
    """Return if a file in a folder that there is can be written and made durable.

    Args:
        folder: left as it was.

    Raises:
        StoreUnavailable: it cannot, or there is no such folder.
    """
    # Tried, not asked for: permissions show no disk that is full, broken or mounted read-only.
    probe = folder / f".writable.{os.getpid()}"
    try:
        with probe.open("wb", buffering=0) as file:
            file.write(b"\n")
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(folder, error) from None
    finally:
        with suppress(OSError):
            probe.unlink()


def _unwritable(folder: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"cannot write: {error.strerror}", where=str(folder), expected="a writable folder"
    )


def check_space(path: Path | None, least: int) -> None:
    """Return if the disk under a file or folder has at least ``least`` bytes left for us.

    A database can go on for a while within the blocks that it holds, so that a write which
    succeeds does not show a full disk.

    Args:
        path: None, or something that does not exist: nothing is checked.

    Raises:
        StoreUnavailable: it has less.
    """
    if path is None or not path.exists():
        return
    try:
        found = os.statvfs(path)
    except OSError as error:
        raise StoreUnavailable(f"cannot be read: {error.strerror}", where=str(path)) from None
    # Of what is free to us: the blocks that are reserved for root do not count.
    free = found.f_bavail * found.f_frsize
    if free < least:
        raise StoreUnavailable(
            f"the disk is full: {free} bytes are left", where=str(path), expected=f"{least}"
        )


class FenceFolder:
    """A process's place in the folder of fences."""

    def __init__(self, folder: Path) -> None:
        """Have the folder itself, until `take` finds the place that is free."""
        self._folder = folder
        self._own = folder
        self._lock: int | None = None

    def take(self) -> None:
        """Take the first place that no other process has, until `release`.

        Raises:
            StoreUnavailable: the folder cannot be written, or every place is taken.
        """
        if self._lock is not None:
            return
        check_folder(self._folder)
        try:
            for place in self._places():
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._lock = _try_lock(place / _LOCK)
                if self._lock is not None:
                    self._own = place
                    return
        except OSError as error:
            raise StoreUnavailable(
                f"cannot write: {error.strerror}", where=str(self._folder)
            ) from None
        raise StoreUnavailable(
            "every place is taken", where=str(self._folder), expected=f"{MOST_PROCESSES} processes"
        )

    def release(self) -> None:
        """Give the place back; the files stay."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def check(self) -> None:
        """Return if this process could write to a fence now.

        Raises:
            StoreUnavailable: it could not, so that nothing can be answered.
        """
        # Without a place nothing is served, and no folder is made for a question.
        if self._lock is not None:
            check_writing(self._own)

    def path(self, window: str) -> Path:
        """Return the file of this process's fence of a window."""
        return self._own / f"{window}.fence"

    def others(self, window: str) -> list[Path]:
        """Return the files of other places' fences of a window, held by a process or not."""
        paths = (place / f"{window}.fence" for place in self._places() if place != self._own)
        return [path for path in paths if path.exists()]

    def deletions(self) -> dict[str, Path]:
        """Return the files of the deletions that were stated, by window, whoever stated them."""
        return {path.stem: path for path in self._folder.glob(f"*{_DELETION}")}

    def state_deletion(self, window: str, statement: bytes) -> bytes:
        """Make a statement durable; return it, or the one that was there already.

        Raises:
            StoreUnavailable: the folder cannot be written.
        """
        path = self._folder / f"{window}{_DELETION}"
        try:
            if not path.exists():
                replace_file(path, statement)
            return path.read_bytes()
        except OSError as error:
            raise StoreUnavailable(f"cannot write: {error.strerror}", where=str(path)) from None

    def make(self) -> None:
        """Make this process's folder, if it is missing."""
        self._own.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _places(self) -> list[Path]:
        further = (self._folder / f"process-{number}" for number in range(2, MOST_PROCESSES + 1))
        return [self._folder, *further]


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
