"""A clock that can be moved on: both services of one machine read how far from one file.

A window lasts until its end, and is sampled some time after it. Whoever tries the software alone
is both parties, and need not wait: the clocks of both are moved on together, by the same amount and
at once, so that no party sees a step. Nothing that two parties run reads such a file.
"""

import os
from pathlib import Path

from ragaudit.serving.clock import EvenClock, Rule, steady_clock, system_clock

__all__ = ["SharedClock"]

_DIGITS = 20


class SharedClock:
    """The system's clock, ahead by the milliseconds that a file says."""

    def __init__(self, path: Path) -> None:
        """Open the file, which is made with nothing ahead if it is missing."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    @property
    def ahead(self) -> int:
        """Milliseconds by which it is ahead."""
        return int(os.pread(self._descriptor, _DIGITS, 0) or b"0")

    def __call__(self) -> int:
        """Return the time, Unix milliseconds."""
        return system_clock() + self.ahead

    def steady(self) -> int:
        """Return milliseconds of a clock that nobody sets, and that is moved on like the other."""
        return steady_clock() + self.ahead

    def reach(self, instant: int) -> None:
        """Move on to an instant; one that has passed changes nothing.

        Args:
            instant: Unix milliseconds.
        """
        missing = instant - self()
        if missing > 0:
            # In one write, at a fixed width: a reader sees the old number or the new one.
            text = f"{self.ahead + missing:0{_DIGITS}d}"
            os.pwrite(self._descriptor, text.encode(), 0)

    def even(self, rule: Rule) -> EvenClock:
        """Return the clock of a service, which follows and sees no step.

        Args:
            rule: the service's, for steps of the system's clock.
        """
        return EvenClock(rule, self, self.steady)
