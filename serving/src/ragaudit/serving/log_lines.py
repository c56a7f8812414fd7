"""Log lines of a service: one line a record, each with its time, never a secret.

An exception is one line too: its type and where it was raised. Its text is left out, because a
foreign exception may quote anything.
"""

import logging
import sys
import time
import traceback
from pathlib import PurePath
from types import TracebackType

__all__ = ["LEVELS", "LineFormatter", "configure", "where_raised"]

LEVELS = ("debug", "info", "warning", "error")
_FRAMES = 4

_ExceptionInfo = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class LineFormatter(logging.Formatter):
    """``2026-11-22T08:52:09.123Z INFO logger: message``, in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        # A newline in a message would let its author write log lines of any content.
        return " | ".join(filter(None, super().format(record).splitlines()))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time of the record as RFC 3339 in UTC, with milliseconds."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"

    def formatException(self, ei: _ExceptionInfo) -> str:
        """Return type and innermost frames, innermost first."""
        kind, _, trace = ei
        return _frames(kind.__name__ if kind is not None else "exception", trace)


def where_raised(error: BaseException) -> str:
    """Return type and innermost frames of an exception, without its text.

    Args:
        error: as it was caught, with its traceback.
    """
    return _frames(type(error).__name__, error.__traceback__)


def _frames(name: str, trace: TracebackType | None) -> str:
    frames = [
        f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(trace)
    ]
    return f"{name} at {' < '.join(reversed(frames[-_FRAMES:])) or 'unknown place'}"


class _StandardError(logging.Handler):
    """Writes to standard error as it is at that moment, not as it was when logging began."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def configure(level: str, form: str = "text") -> None:
    """Write the log of this process to standard error.

    Args:
        level: one of `LEVELS`.
        form: ``text``, or ``json`` for one object a line.
    """
    handler = _StandardError()
    handler.setFormatter(_formatter(form))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # httpx logs the URLs of calls, and some of them hold pseudonyms (spec 8.3).
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # Faults and hang-ups of peers are not logged: anybody could fill the disk with them.
    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _formatter(form: str) -> logging.Formatter:
    if form == "text":
        return LineFormatter()
    from ragaudit.serving.json_lines import json_formatter  # noqa: PLC0415 - few services need it

    return json_formatter()
