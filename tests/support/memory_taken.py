"""How much of Python's memory some work takes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

RUNS = 3


def peak(work: Callable[[], object], enough: int = 0) -> int:
    """Bytes that were taken at most while something was done, its result kept to the end.

    What other threads of this process take meanwhile is counted too, and only ever added: the least
    of several runs counts, or the first that takes no more than ``enough``.
    """
    return _least(work, 1, enough)


def held(work: Callable[[], object]) -> int:
    """Bytes that the result of something takes, also the least of several runs."""
    return _least(work, 0, 0)


def _least(work: Callable[[], object], which: int, enough: int) -> int:
    least = None
    for _ in range(RUNS):
        taken = _taken(work)[which]
        least = taken if least is None else min(least, taken)
        if least <= enough:
            break
    assert least is not None
    return least


def _taken(work: Callable[[], object]) -> tuple[int, int]:
    """Bytes held by the result, and at most."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = work()
        most = tracemalloc.get_traced_memory()[1]
        gc.collect()  # parsing leaves cycles
        now = tracemalloc.get_traced_memory()[0]
        del kept
        return now, most
    finally:
        tracemalloc.stop()
