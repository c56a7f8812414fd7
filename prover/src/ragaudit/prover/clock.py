"""The prover's clock: the system's, as long as that runs evenly (docs/spec/08-services.md §8.7).

A record's time is evidence against the provider. A system clock that is set, by hand or by a time
daemon that steps it, would put times into the log that the checkpoints around them contradict. So
every reading is compared with a clock that nobody sets, and after a step there is no time at all:
nothing is stamped until the system's clock is back, or the verifier's agrees with the new one.
"""

import threading
import time
from collections.abc import Callable

from ragaudit.encoding.errors import UnavailableError

TOLERANCE_MS = 500  # below any skew of a policy (1 s or more)
_PAUSE_MS = 50  # more between two readings, and they are made again
_READINGS = 20
_NANOSECONDS = 1_000_000


class ClockStepped(UnavailableError):
    """The system's clock was set; no time is given until it is confirmed."""


def wall_milliseconds() -> int:
    """Return the system's clock, Unix milliseconds."""
    return time.time_ns() // _NANOSECONDS


def steady_milliseconds() -> int:
    """Return milliseconds since some moment, of a clock that nobody sets and no sleep stops."""
    # Not on every system; the other one stands still while the machine sleeps, and waking up is
    # then taken for a step, which the verifier's clock confirms.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // _NANOSECONDS


class SystemClock:
    """Unix milliseconds that never go back. Safe to use from several threads."""

    def __init__(
        self,
        wall: Callable[[], int] = wall_milliseconds,
        steady: Callable[[], int] = steady_milliseconds,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._lock = threading.Lock()
        self._offset = self._read()[1]
        self._last = 0

    def __call__(self) -> int:
        """Return the time.

        Raises:
            ClockStepped: the clock was set by more than `TOLERANCE_MS` since the last reading
                that was confirmed, or lies as far before a time that was given.
        """
        with self._lock:
            now, offset = self._read()
            step = offset - self._offset
            if abs(step) > TOLERANCE_MS or now < self._last - TOLERANCE_MS:
                raise ClockStepped(
                    f"the system's clock was set by {step} ms", where="clock",
                    expected="a clock that runs evenly, or agrees with the verifier's",
                )  # fmt: skip
            # Slow corrections are followed, so that they do not add up to a step.
            self._offset = offset
            self._last = max(now, self._last)
            return self._last

    @property
    def stepped(self) -> bool:
        """Whether the clock was set, and was neither set back nor confirmed since."""
        with self._lock:
            return abs(self._read()[1] - self._offset) > TOLERANCE_MS

    def confirm(self, theirs: int, tolerance: int) -> None:
        """Take the time after a step if another party's clock agrees with it.

        Args:
            theirs: the other clock, just now, Unix milliseconds.
            tolerance: milliseconds by which the two may differ.
        """
        with self._lock:
            now, offset = self._read()
            if abs(now - theirs) <= tolerance:
                self._offset = offset

    def _read(self) -> tuple[int, int]:
        """Both clocks at one moment: a pause of the process between the readings is no step."""
        for _ in range(_READINGS):
            before, now, after = self._steady(), self._wall(), self._steady()
            if after - before <= _PAUSE_MS:
                break
        return now, now - after
