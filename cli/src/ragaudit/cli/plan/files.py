"""Writing several files into a folder: all of them or none."""

import errno
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import UnavailableError

__all__ = ["Plots", "check_folder", "write"]


@dataclass(frozen=True)
class Plots:
    """What was drawn.

    Attributes:
        files: written, in the order of their names.
        left_out: plot that could not be drawn -> why.
    """

    files: list[Path]
    left_out: dict[str, str]


def check_folder(folder: Path) -> None:
    """Check that plots could be written into a folder, which need not exist yet.

    Raises:
        UnavailableError: it is no folder, or nothing can be written there.
    """
    try:
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    except OSError:
        writable = False  # not even allowed to look
    if not writable:
        raise UnavailableError(
            f"cannot write into {folder}", where="plots", expected="a folder that can be written"
        )


def write(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write all files and return their paths; on a failure none is written.

    Args:
        folder: made if it is missing.
        files: name -> content; files of the same names are replaced.

    Raises:
        UnavailableError: the folder cannot be made or written.
    """
    missing: list[Path] = []
    try:
        missing = [path for path in (folder, *folder.absolute().parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        if folders := [name for name in files if (folder / name).is_dir()]:
            raise IsADirectoryError(errno.EISDIR, f"{folders[0]} is a folder")
        # In the folder itself, so that moving a file to its place cannot fail half-way.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".plan-") as draft:
            for name, content in files.items():
                (Path(draft) / name).write_bytes(content)
            for name in files:
                (Path(draft) / name).replace(folder / name)
    except OSError as error:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        raise UnavailableError(
            f"cannot write the plots: {error.strerror}", where="plots", expected="another folder"
        ) from error
    return [folder / name for name in sorted(files)]
