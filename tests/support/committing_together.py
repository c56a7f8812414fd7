"""Calls that share a transaction of a window's log, made so on purpose."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ragaudit.prover.window.log_transaction import GroupCommit

PATIENCE = 30


def together(
    group: GroupCommit, lock: Any, calls: Sequence[Callable[[], Any]]
) -> list[Future[Any]]:
    """Make the calls so that the first commits alone, and all others in one transaction."""
    pool = ThreadPoolExecutor(len(calls))
    with lock:
        made = []
        for number, call in enumerate(calls):
            made.append(pool.submit(call))
            # The first one has left the queue and waits for the lock; the others wait for it.
            until(lambda n=number: group._leading and len(group._waiting) == n)  # type: ignore[misc]
    pool.shutdown()
    return made


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(10 * PATIENCE):
        if condition():
            return
        pause.wait(0.1)
    raise AssertionError("waited too long")
