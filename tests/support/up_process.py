"""`ragaudit up` as a process: its lines as they come, each waited for with a deadline."""

from __future__ import annotations

import queue
import re
import signal
import subprocess
import sys
import threading
import time
from types import TracebackType

PATIENCE = 240.0


class UpProcess:
    """A run of the command; ends it if the test does not."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ragaudit.cli", "up", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> UpProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def until(self, pattern: str) -> re.Match[str]:
        """Return the first line, old or new, that a pattern is found in."""
        for earlier in self.lines:
            if found := re.search(pattern, earlier):
                return found
        deadline = time.monotonic() + PATIENCE
        while True:
            line = self._next(deadline)
            assert line is not None, f"{pattern} not found in:\n{self.text}"
            if found := re.search(pattern, line):
                return found

    def stop(self) -> int:
        """Send what Ctrl-C sends; return the exit status, once all lines are there."""
        self._process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self) -> int:
        """Return the exit status, once all lines are there."""
        deadline = time.monotonic() + PATIENCE
        while self._next(deadline) is not None:
            pass
        return self._process.wait(60)

    @property
    def text(self) -> str:
        """All lines so far."""
        return "".join(self.lines)

    def _next(self, deadline: float) -> str | None:
        try:
            line = self._new.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"nothing more after:\n{self.text}") from None
        if line is not None:
            self.lines.append(line)
        return line

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._new.put(line)
        self._new.put(None)
