"""How much of Python's memory some work takes.

What other threads of this process take meanwhile is counted too, and only ever added: the least of
several runs counts.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

RUNS = 3


def peak(work: Callable[[], object], enough: int = 0) -> int:
    """Bytes that were taken at most while something was done, its result kept to the end.

    It is not done again once it took no more than ``enough``.
    """
    least = _taken(work)[1]
    for _ in range(RUNS - 1):
        if least <= enough:
            break
        least = min(least, _taken(work)[1])
    return least


def held(work: Callable[[], object]) -> int:
    """Bytes that the result of something takes."""

    def collected() -> object:
        kept = work()
        gc.collect()  # parsing leaves cycles
        return kept

    return min(_taken(collected)[0] for _ in range(RUNS))


def _taken(work: Callable[[], object]) -> tuple[int, int]:
    """Bytes at the end and at most."""
    tracemalloc.start()
    try:
        kept = work()
        taken = tracemalloc.get_traced_memory()
        del kept
        return taken
    finally:
        tracemalloc.stop()
