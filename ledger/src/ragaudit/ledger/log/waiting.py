"""Waiting for a database server that starts, before a process opens anything in it."""

import logging
import time
from collections.abc import Callable

from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import database_errors, open_engine

__all__ = ["WAIT_SECONDS", "await_server"]

_log = logging.getLogger(__name__)

WAIT_SECONDS = 60
"""Default of the services' settings: a server recovers, or another takes over, in less."""
_PAUSE_SECONDS = 0.5
# What no waiting mends, in a server's words; in another language it is waited for, too.
_FINAL = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")


def await_server(
    url: str,
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return once the server of a database takes sessions; with SQLite, which has none, at once.

    Args:
        url: of SQLAlchemy.
        seconds: to wait at most, beside one attempt.
        clock: seconds, rising.
        pause: waits so many of them.

    Raises:
        MalformedError, UnsupportedError: as `open_engine`.
        StoreUnavailable: no session in time, or the server declines for good.
    """
    engine = open_engine(url)
    deadline, told = clock() + seconds, False
    try:
        while engine.name != "sqlite":
            try:
                with database_errors(), engine.connect():
                    return
            except StoreUnavailable as error:
                if clock() >= deadline or any(words in error.what for words in _FINAL):
                    raise
                if not told:
                    _log.warning("waiting at most %d s: %s", seconds, error.what)
                told = True
            pause(_PAUSE_SECONDS)
    finally:
        engine.dispose()
