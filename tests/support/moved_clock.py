"""A clock of several processes that a test moves on: nobody waits for a window's instants.

Wall clock and steady clock are moved together and for all at once, so that no service sees a step.
"""

import os
import time
from pathlib import Path

_DIGITS = 20
_MOVED = """
import os, time
ahead, wall, steady = os.open({path!r}, os.O_RDONLY), time.time_ns, time.clock_gettime_ns
def moved():
    return 10**6 * int(os.pread(ahead, {digits}, 0))
time.time_ns = lambda: wall() + moved()
time.clock_gettime_ns = lambda clock: steady(clock) + moved()
"""


class MovedClock:
    """The machine's clock, ahead by what a file says.

    Attributes:
        prelude: Python code that has a process use it.
    """

    def __init__(self, path: Path) -> None:
        path.write_text("0" * _DIGITS)
        self._path = path
        self.prelude = _MOVED.format(path=str(path), digits=_DIGITS)

    def __call__(self) -> int:
        """Return the time, Unix milliseconds."""
        return time.time_ns() // 10**6 + int(self._path.read_text())

    def reach(self, seconds: int) -> None:
        """Move on to an instant, Unix seconds; one that has passed changes nothing."""
        missing = 1000 * seconds - self()
        if missing > 0:
            ahead = int(self._path.read_text()) + missing
            # In one write of one width: who reads sees the old number or the new one.
            descriptor = os.open(self._path, os.O_WRONLY)
            os.pwrite(descriptor, f"{ahead:0{_DIGITS}d}".encode(), 0)
            os.close(descriptor)
