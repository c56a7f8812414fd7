"""Log lines of a service, text or JSON: one line a record, each with its time, never a secret.

An exception is one line too: its type and where it was raised. Its text is left out, because a
foreign exception may quote anything.
"""

import logging
import sys
import time
import traceback
from pathlib import PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ragaudit.serving.exchange import current

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

__all__ = ["LEVELS", "LineFormatter", "configure", "json_formatter", "where_raised"]

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
    return json_formatter()


def json_formatter() -> logging.Formatter:
    """Return a formatter that makes one JSON object of a record."""
    import structlog  # noqa: PLC0415 - few services need it

    before: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _request,
        _exception,
    ]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ],
    )


def _request(_logger: Any, _method: str, event: "EventDict") -> "EventDict":
    """Add the ids of the request that is being worked on, its receipts' among them."""
    exchange = current()
    if exchange is None:
        return event
    event["request"] = exchange.id
    if exchange.trace:
        event["trace"] = exchange.trace
    if exchange.receipts:
        event["receipts"] = [str(each) for each in exchange.receipts]
    return event


def _exception(_logger: Any, _method: str, event: "EventDict") -> "EventDict":
    """Put type and place of an exception in its place: its text may quote anything."""
    raised = event.pop("exc_info", None)
    error = raised[1] if isinstance(raised, tuple) else raised
    if isinstance(error, BaseException):
        event["exception"] = where_raised(error)
    event.pop("stack_info", None)
    return event
