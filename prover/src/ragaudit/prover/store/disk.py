"""Disks and folders that the service writes to."""

import os
from contextlib import suppress
from pathlib import Path

from ragaudit.ledger.errors import StoreUnavailable

__all__ = ["check_folder", "check_space", "check_writing"]


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
