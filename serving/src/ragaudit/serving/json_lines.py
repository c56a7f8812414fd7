"""Log lines as JSON objects; only a service whose settings ask for them loads this.

Of an exception the object has type and place, as the lines of `log_lines`: never its text.
"""

import logging
from typing import Any

import structlog
from ragaudit.serving.exchange import current
from ragaudit.serving.log_lines import where_raised
from structlog.typing import EventDict, Processor

__all__ = ["json_formatter"]


def json_formatter() -> logging.Formatter:
    """Return a formatter that makes one JSON object of a record."""
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


def _request(_logger: Any, _method: str, event: EventDict) -> EventDict:
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


def _exception(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Put type and place of an exception in its place: its text may quote anything."""
    raised = event.pop("exc_info", None)
    error = raised[1] if isinstance(raised, tuple) else raised
    if isinstance(error, BaseException):
        event["exception"] = where_raised(error)
    event.pop("stack_info", None)
    return event
