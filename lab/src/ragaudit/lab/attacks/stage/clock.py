"""A clock that the stage moves; services and client libraries read it."""

import time


class Clock:
    """Unix milliseconds. It starts at the machine's time."""

    def __init__(self) -> None:
        self.now = 1000 * (time.time_ns() // 10**9)

    def __call__(self) -> int:
        return self.now

    def at(self, seconds: int) -> None:
        """Go to a Unix second; never back."""
        self.now = max(self.now, 1000 * seconds)
