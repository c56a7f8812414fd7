"""A clock that nothing waits for."""

import time
from dataclasses import dataclass, field


def machine_seconds() -> int:
    """Return the machine's time in Unix milliseconds, at a whole second."""
    return 1000 * (time.time_ns() // 10**9)


@dataclass
class Clock:
    """Unix milliseconds that only the scenario moves; services and client libraries read them.

    Attributes:
        now: what it shows; the machine's time at first, unless it is said.
        step: milliseconds by which each reading moves it.
    """

    now: int = field(default_factory=machine_seconds)
    step: int = 0

    def __call__(self) -> int:
        self.now += self.step
        return self.now

    def at(self, seconds: int) -> None:
        """Go to a Unix second, or stay where the clock is if that is later: it never goes back.

        Args:
            seconds: Unix time in whole seconds, though the clock itself counts milliseconds.
        """
        self.now = max(self.now, 1000 * seconds)
