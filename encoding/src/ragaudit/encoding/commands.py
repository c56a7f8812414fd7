"""Common to all commands: one exit code for one kind of fault, one way to print it.

The table is docs/operations.md, "Exit codes". Standard library only, so that every member can use
it; nothing here knows the command-line library.
"""

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from ragaudit.encoding.errors import (
    MalformedError,
    RagauditError,
    RefusedError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.encoding.printable import printable
from ragaudit.encoding.problems import problem_name

__all__ = [
    "Escaping",
    "ExitCode",
    "NotJudged",
    "Unwritable",
    "escaped_output",
    "exit_code",
    "failing",
    "loading",
    "new_file",
    "of_file",
    "report_error",
    "verdict_code",
]


class ExitCode(IntEnum):
    """How a command ended. 64 and more are the shell's and the system's."""

    DONE = 0
    """It was done; what was judged holds (PASS, a good receipt, a verdict that stands)."""
    FALSE = 1
    """What was judged is false: FAIL, a rejected receipt, another verdict, a refuted claim."""
    BAD_INPUT = 2
    """Options, settings, files, or an optional part that is not installed."""
    UNAVAILABLE = 3
    """A service, database, file system or key file cannot be used now; try again."""
    REFUSED = 4
    """Understood and declined by a rule, a state or a budget; also a verdict REFUSED."""
    INCOMPLETE = 5
    """Nothing was found false, and not everything that was asked for could be judged."""
    EXCEEDED = 6
    """A verdict EXCEEDED."""
    CONDITIONAL = 7
    """A verdict CONDITIONAL: proven but for what is the provider's word."""
    INTERNAL = 70
    """A fault of this software (EX_SOFTWARE of sysexits.h)."""
    INTERRUPTED = 130
    """Stopped by SIGINT."""


class Unwritable(UnavailableError):
    """Standard output or standard error takes nothing: a full disk, or nobody who reads."""


class NotJudged(RefusedError):
    """Nothing was found false, and what was asked for cannot be judged."""


# The first family that fits decides.
_FAMILIES: tuple[tuple[type[RagauditError], ExitCode], ...] = (
    (NotJudged, ExitCode.INCOMPLETE),
    (MalformedError, ExitCode.BAD_INPUT),
    (UnsupportedError, ExitCode.BAD_INPUT),
    (RejectedError, ExitCode.FALSE),
    (UnavailableError, ExitCode.UNAVAILABLE),
    (RefusedError, ExitCode.REFUSED),
)


_VERDICTS = {
    "PASS": ExitCode.DONE,
    "FAIL": ExitCode.FALSE,
    "REFUSED": ExitCode.REFUSED,
    "EXCEEDED": ExitCode.EXCEEDED,
    "CONDITIONAL": ExitCode.CONDITIONAL,
}


def verdict_code(result: str) -> ExitCode:
    """Return the exit code of a verdict.

    Args:
        result: of docs/spec/10-verdict.md, as PASS.
    """
    return _VERDICTS[result]


def exit_code(error: RagauditError) -> ExitCode:
    """Return the exit code of an error: that of its family, INTERNAL if it has none."""
    return next((code for kind, code in _FAMILIES if isinstance(error, kind)), ExitCode.INTERNAL)


def report_error(error: RagauditError, *, as_json: bool = False) -> ExitCode:
    """Print an error; return its exit code.

    Args:
        error: to print.
        as_json: one object ``{"problem": kebab-case name, "detail": text}`` on standard output;
            otherwise one line ``error: ...`` on standard error.
    """
    if as_json:
        document = {"problem": problem_name(type(error)), "detail": str(error)}
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        sys.stderr.write(f"error: {error}\n")
    return exit_code(error)


@contextmanager
def failing(as_json: bool = False) -> Iterator[None]:
    """Turn an error of ours inside the block into one message and an exit code.

    Args:
        as_json: as for `report_error`.

    Raises:
        SystemExit: the code of `exit_code`, instead of the error.
    """
    try:
        yield
    except RagauditError as error:
        raise SystemExit(int(report_error(error, as_json=as_json))) from None


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage inside the block, which imports: modules stay, and it takes a seventh."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """Name a file in what is malformed inside the block.

    Args:
        path: of the file that is parsed there.

    Raises:
        MalformedError: as inside; its ``where`` begins with the file.
    """
    try:
        yield
    except MalformedError as error:
        if error.where.startswith(str(path)):
            raise
        where = f"{path}: {error.where}" if error.where else str(path)
        raise MalformedError(error.what, where=where, expected=error.expected) from error


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file of mode 0600 that did not exist, to write and read; gone again on any failure.

    Raises:
        RefusedError: there is a file of this name.
        MalformedError: it cannot be made.
        UnavailableError: it cannot be written: a full disk, say.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RefusedError("the file exists", where=str(path), expected="a new file") from None
    except OSError as error:
        raise MalformedError("cannot be written", where=str(path)) from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UnavailableError("cannot be written", where=str(path)) from error
        raise


class Escaping:
    """A text stream to which everything is written as `printable` text.

    Attributes:
        plain: the stream below, for what styles text and escapes by itself.
    """

    def __init__(self, plain: TextIO) -> None:
        """Stand before a stream.

        Args:
            plain: a text stream; all but writing is left to it.
        """
        self.plain = plain

    def write(self, text: str) -> int:
        """Write text; return its length.

        Raises:
            Unwritable: the disk is full, or nobody reads any more.
        """
        try:
            self.plain.write(printable(text))
        except OSError as error:
            raise _unwritable(error) from None
        return len(text)

    def flush(self) -> None:
        """Have all that was written leave.

        Raises:
            Unwritable: as `write`.
        """
        try:
            self.plain.flush()
        except OSError as error:
            raise _unwritable(error) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


@contextmanager
def escaped_output() -> Iterator[None]:
    """Have standard output and standard error escaped inside the block."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (Escaping(each) for each in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _unwritable(error: OSError) -> Unwritable:
    return Unwritable(f"cannot be written: {error.strerror}", where="output")
