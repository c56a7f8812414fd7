"""What the C library keeps of freed memory: bounded, and given back when much was let go."""

import ctypes

__all__ = ["bound_heaps", "give_back"]

_M_ARENA_MAX, _ARENAS = -8, 2  # glibc's malloc.h


def bound_heaps() -> None:
    """Let all threads share a few heaps, where the C library has one for each of them.

    Each one keeps what its thread needed at its busiest moment, so that memory grows for an hour.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return to the system what was freed, where the C library would keep it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
