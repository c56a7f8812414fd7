"""A clock that the stage moves; both services and nothing else read it."""

import time


class Clock:
    """Unix milliseconds. It starts at the machine's time, as client libraries use that one."""

    def __init__(self) -> None:
        self.now = 1000 * (time.time_ns() // 10**9)

    def __call__(self) -> int:
        return self.now

    def at(self, seconds: int) -> None:
        """Go to a Unix second; never back."""
        self.now = max(self.now, 1000 * seconds)
