"""The generators of positions in a file, for the compiled engine: constants that take long."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError, UnavailableError, UnsupportedError

__all__ = ["use_positions", "write_positions"]


def write_positions(path: Path) -> None:
    """Write the generators of positions that `use_positions` reads: 32 MiB, a minute of work.

    Args:
        path: the file, which is replaced where it exists.

    Raises:
        UnsupportedError: without the compiled core.
        UnavailableError: the file cannot be written.
    """
    core = _compiled()
    try:
        path.write_bytes(core.position_encodings())
    except OSError as error:
        raise UnavailableError(f"cannot write: {error.strerror}", where=str(path)) from error


def use_positions(path: Path) -> None:
    """Let the compiled engine decode the generators of positions from a file.

    They are constants with a known digest: a wrong file is refused, whoever wrote it.

    Args:
        path: as `write_positions` wrote it.

    Raises:
        UnsupportedError: without the compiled core.
        MalformedError: the file cannot be read, or is not the one.
    """
    core = _compiled()
    try:
        core.use_positions(path.read_bytes())
    except OSError as error:
        raise MalformedError(f"cannot read: {error.strerror}", where=str(path)) from error
    except core.MalformedInput as error:
        raise MalformedError(str(error), where=str(path)) from error


def _compiled() -> Any:
    if find_spec("ragaudit.core") is None:
        raise UnsupportedError("positions are kept by the compiled core, which is not installed")
    return import_module("ragaudit.core")
