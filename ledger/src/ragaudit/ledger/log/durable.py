"""Files that are on the disk, with their names, before anything depends on them."""

import os
from pathlib import Path

__all__ = ["replace_file", "synchronise"]


def replace_file(path: Path, data: bytes) -> None:
    """Write a file for its owner alone; whatever ends this leaves all of it, or what was there.

    Args:
        path: in a folder that there is.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    # Without this a loss of power may undo the rename.
    synchronise(path.parent)


def synchronise(folder: Path) -> None:
    """Make the names in a folder durable; OSError if they cannot be."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
