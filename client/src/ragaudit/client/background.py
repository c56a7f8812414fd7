"""One event loop in a daemon thread, on which all blocking clients of a process run.

A blocking call is the asynchronous one, awaited here: there is one implementation of the
protocol, and a deadline cancels it wherever it waits. A socket timeout alone could not: it bounds
each read, and a peer that sends a byte a second never exceeds it.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run"]

T = TypeVar("T")


class _Background:
    """Starts the thread at the first call."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="ragaudit-client", daemon=True
                ).start()
            return self._loop


_background = _Background()
# A forked child has no such thread, and starts its own at its first call.
os.register_at_fork(after_in_child=_background.__init__)  # type: ignore[misc]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, run to its end on the loop of all blocking clients.

    Args:
        coroutine: started now; cancelled if the caller is interrupted.

    Raises:
        BaseException: whatever the coroutine raises.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _background.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # an interrupt of the caller; no effect on what is done already
        raise
