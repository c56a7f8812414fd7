"""Connections that are kept: how many, and which of them are asked for a sign of life."""

import math
import time
from typing import Any, Final

from sqlalchemy import Engine, event
from sqlalchemy.exc import InvalidatePoolError

__all__ = ["KEPT", "ping_rested"]

KEPT: Final[dict[str, Any]] = {"pool_size": 10, "max_overflow": 16, "pool_use_lifo": True}
"""Of an engine: as many stay open as threads answer; opening one costs more than a transaction."""

# No server restarts within it: a connection that was used so lately lives, or nobody's does.
_FRESH_SECONDS = 0.05


def ping_rested(engine: Engine) -> None:
    """Have connections that rested asked for a sign of life before their next use.

    After a restart of the server each of them would fail once otherwise. SQLAlchemy's own ping is
    made at every use, and costs more than most of the statements that follow.

    Args:
        engine: of a server.
    """
    driver = engine.dialect.loaded_dbapi
    assert driver is not None

    def used(_connection: object, record: Any) -> None:
        record.info["used"] = time.monotonic()

    def taken(connection: Any, record: Any, _proxy: object) -> None:
        if time.monotonic() - record.info.get("used", -math.inf) < _FRESH_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except driver.Error as error:
            # All others are as old, or older.
            raise InvalidatePoolError from error

    for name in ("connect", "checkin"):
        event.listen(engine, name, used)
    event.listen(engine, "checkout", taken)
