"""Secrets are files: one line each, readable by their owner only."""

import stat
from pathlib import Path

from ragaudit.encoding.errors import MalformedSettings

__all__ = ["read_secret_file"]


def read_secret_file(path: Path) -> str:
    """Return the one line of a secret file.

    Args:
        path: of a file that nobody but its owner may read.

    Raises:
        MalformedSettings: it is missing, is not text, or others than its owner may read it.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="ascii")
    except OSError as error:
        raise MalformedSettings(
            f"cannot read a secret file: {error.strerror}",
            where=str(path),
            expected="a file of one line, mode 600, of the user that runs this",
        ) from None
    except UnicodeDecodeError:
        raise MalformedSettings(
            "secret file is not text", where=str(path), expected="one line of ASCII"
        ) from None
    # Refused, not warned of: a key that others may have read signs nothing.
    if mode & 0o077:
        raise MalformedSettings(
            f"others may read a secret file (mode {mode:o})", where=str(path), expected="mode 600"
        )
    return text.strip()
