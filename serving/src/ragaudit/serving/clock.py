"""The clock of both services: the system's, as long as that runs evenly (docs/spec/08 §8.3, §8.7).

What a service attests, it attests for good: a record's time, a cosignature, a sample drawn too
early. A system clock that is set, by hand or by a time daemon that steps it, must not reach any of
these. So every reading is compared with a clock that nobody sets, and after a step there is no time
at all: nothing is stamped until the system's clock is back, or a `Rule` lets the new one be
believed.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ragaudit.encoding.errors import ClockStepped

__all__ = [
    "PATIENCE_MS",
    "TOLERANCE_MS",
    "UNTIL_CONFIRMED",
    "UNTIL_IT_STAYS",
    "EvenClock",
    "Rule",
    "system_clock",
]

TOLERANCE_MS = 500  # below any skew of a policy (1 s or more)
PATIENCE_MS = 60_000
_PAUSE_MS = 50  # more between two readings, and they are made again
_READINGS = 20
_NANOSECONDS = 1_000_000


@dataclass(frozen=True)
class Rule:
    """When a clock that was set is believed.

    Attributes:
        patience: milliseconds for which it stays where it was set; None if no time is enough.
        rising: no time that was given is followed by an earlier one.
        expected: what would be right, in words.
    """

    patience: int | None
    rising: bool
    expected: str


UNTIL_CONFIRMED = Rule(None, True, "a clock that runs evenly, or agrees with the verifier's")
"""The prover's: another party's clock has to agree (`EvenClock.confirm`)."""

UNTIL_IT_STAYS = Rule(
    PATIENCE_MS, False, f"the clock set back, or as it is for {PATIENCE_MS // 1000} s"
)
"""The verifier's: it has nobody to ask."""


def system_clock() -> int:
    """Return the system's clock, Unix milliseconds."""
    return time.time_ns() // _NANOSECONDS


def steady_clock() -> int:
    """Return milliseconds since some moment, of a clock that nobody sets and no sleep stops."""
    # Not on every system; the other one stands still while the machine sleeps, and waking up is
    # then taken for a step.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // _NANOSECONDS


class EvenClock:
    """Unix milliseconds of a clock that was not set. Safe to use from several threads.

    Args:
        rule: when a step is believed.
        wall, steady: the system's clock, and one that nobody sets. Both in milliseconds.
    """

    def __init__(
        self,
        rule: Rule,
        wall: Callable[[], int] = system_clock,
        steady: Callable[[], int] = steady_clock,
    ) -> None:
        self._rule = rule
        self._wall = wall
        self._steady = steady
        self._lock = threading.Lock()
        self._offset = self._read()[1]
        self._doubted = False
        self._other: tuple[int, int] | None = None  # another offset, and since when
        self._last = 0

    def __call__(self) -> int:
        """Return the time.

        Raises:
            ClockStepped: the clock was set by more than `TOLERANCE_MS` and is not believed yet, or
                lies as far before a time that was given, if times have to rise; or it is in doubt.
        """
        with self._lock:
            now, offset = self._read()
            if self._doubted:
                raise ClockStepped(
                    "the clock was not compared since the start, or is another one",
                    where="clock",
                    expected=self._rule.expected,
                )
            step = offset - self._offset
            doubted = abs(step) > TOLERANCE_MS and not self._stays(offset, now - offset)
            if doubted or now < self._last - TOLERANCE_MS:
                raise ClockStepped(
                    f"the clock was set by {step} ms", where="clock", expected=self._rule.expected
                )
            # Slow corrections are followed, so that they do not add up to a step.
            self._offset, self._other = offset, None
            if not self._rule.rising:
                return now
            self._last = max(now, self._last)
            return self._last

    @property
    def stepped(self) -> bool:
        """Whether the clock was set, and was neither set back nor believed since, or is doubted."""
        with self._lock:
            return self._doubted or abs(self._read()[1] - self._offset) > TOLERANCE_MS

    @property
    def offset(self) -> int:
        """Milliseconds from the clock that nobody sets to the system's."""
        with self._lock:
            return self._read()[1]

    def doubt(self) -> None:
        """Give no time until `confirm` finds another party's clock to agree."""
        with self._lock:
            self._doubted = True

    def confirm(self, theirs: int, tolerance: int) -> bool:
        """Believe the clock, after a step or a doubt, if another party's agrees with it.

        Args:
            theirs: the other clock, just now, Unix milliseconds.
            tolerance: milliseconds by which the two may differ.

        Returns:
            Whether they agree.
        """
        with self._lock:
            now, offset = self._read()
            # Only the offset is believed, never the other clock's time: what is stamped stays our
            # own.
            agree = abs(now - theirs) <= tolerance
            if agree:
                self._offset, self._doubted = offset, False
            return agree

    def _stays(self, offset: int, steady: int) -> bool:
        """Whether the clock has stayed where it was set for as long as the rule demands."""
        if self._other is None or abs(offset - self._other[0]) > TOLERANCE_MS:
            self._other = (offset, steady)
        patience = self._rule.patience
        return patience is not None and steady - self._other[1] >= patience

    def _read(self) -> tuple[int, int]:
        """The time and its offset, at one moment: a pause between two readings is no step."""
        for _ in range(_READINGS):
            before, now, after = self._steady(), self._wall(), self._steady()
            if after - before <= _PAUSE_MS:
                break
        return now, now - after
