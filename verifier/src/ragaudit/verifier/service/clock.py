"""The verifier's clock: the system's, as long as that runs evenly.

What V attests, it attests for good: a cosignature, an activation, a sample drawn too early. A
system clock that is set, by hand or by a time daemon that steps it, must not reach any of these. So
every reading is compared with a clock that nobody sets. After a step there is no time at all until
the system's clock is back; one that stays where it was set, for a minute, is believed.
"""

import threading
import time
from collections.abc import Callable

from ragaudit.verifier.service.errors import ClockError

TOLERANCE_MS = 500  # below any skew
PAUSE_MS = 50  # more between two readings, and they are made again
READINGS = 20
PATIENCE_MS = 60_000
_NANOSECONDS = 1_000_000


def system_clock() -> int:
    """Unix milliseconds of the machine's clock."""
    return time.time_ns() // _NANOSECONDS


def steady_clock() -> int:
    """Milliseconds since some moment, of a clock that nobody sets."""
    # Where there is one, a clock that goes on while the machine sleeps.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // _NANOSECONDS


class EvenClock:
    """Unix milliseconds of a clock that was not set. Safe to use from several threads.

    Args:
        wall: the system's clock. steady: one that nobody sets. Both in milliseconds.
    """

    def __init__(
        self, wall: Callable[[], int] = system_clock, steady: Callable[[], int] = steady_clock
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._lock = threading.Lock()
        now, now_steady = self._read()
        self._offset = now - now_steady
        self._other: tuple[int, int] | None = None  # another offset, and since when

    def __call__(self) -> int:
        """The time.

        Raises:
            ClockError: the clock was set by more than `TOLERANCE_MS`, less than `PATIENCE_MS` ago.
        """
        with self._lock:
            now, steady = self._read()
            offset = now - steady
            if abs(offset - self._offset) > TOLERANCE_MS and not self._stays(offset, steady):
                raise ClockError(
                    f"the clock was set by {offset - self._offset} ms",
                    where="clock",
                    expected=f"the clock set back, or as it is for {PATIENCE_MS // 1000} s",
                )
            # Slow corrections are followed, so that they do not add up to a step.
            self._offset, self._other = offset, None
            return now

    def _read(self) -> tuple[int, int]:
        """Both clocks at one moment: a pause of the process between the readings is no step."""
        for _ in range(READINGS):
            before, now, after = self._steady(), self._wall(), self._steady()
            if after - before <= PAUSE_MS:
                break
        return now, after

    def _stays(self, offset: int, steady: int) -> bool:
        """Whether the clock has stayed where it was set."""
        if self._other is None or abs(offset - self._other[0]) > TOLERANCE_MS:
            self._other = (offset, steady)
        return steady - self._other[1] >= PATIENCE_MS
