"""Disks and folders that the service writes to."""

import os
from pathlib import Path

from ragaudit.ledger.errors import StoreUnavailable

__all__ = ["check_folder", "check_space"]


def check_folder(folder: Path) -> None:
    """Make a folder for its owner only, and return if files can be made in it.

    Args:
        folder: made with mode 700 if it is missing.

    Raises:
        StoreUnavailable: they cannot.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Tried, not asked for: permissions do not show a disk that is mounted read-only.
        probe = folder / f".writable.{os.getpid()}"
        probe.touch(mode=0o600)
        probe.unlink()
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write: {error.strerror}", where=str(folder), expected="a writable folder"
        ) from None


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
