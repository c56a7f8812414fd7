"""Processes of one program that have its imports done: each is forked from one that only waits.

For tests that start a service dozens of times: what takes its start long is loading modules. What
is forked has no thread, no connection and no state yet; it is killed and waited for like any other.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_WAITS = """
import json, os, sys
{imports}
while line := sys.stdin.readline():
    pid = os.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        exec(json.loads(line))
        break
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Forked:
    """A process that was forked, with what tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, told: int) -> None:
        """Watch a process.

        Args:
            told: descriptor on which its exit code comes.
        """
        self.pid = pid
        self._told = told
        self._code: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        if self._code is None and self._lock.acquire(blocking=False):
            try:
                if self._code is None and select.select([self._told], [], [], 0)[0]:
                    self._code = int(_line(self._told))
            finally:
                self._lock.release()
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended."""
        with self._lock:
            if self._code is None:
                ended = select.select([self._told], [], [], timeout)[0]
                assert ended, "it does not end"
                self._code = int(_line(self._told))
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)


class Forks:
    """A program whose processes are forked, one after the other.

    Args:
        modules: that it loads.
        arguments: of its processes, which end in theirs.
        environment: of its processes.
        log: what they write to standard output and error.
    """

    def __init__(
        self,
        modules: Sequence[str],
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
    ) -> None:
        imports = "\n".join(f"import {module}" for module in modules)
        with log.open("ab") as stream:
            self._waiting = subprocess.Popen(
                [sys.executable, "-c", _WAITS.format(imports=imports), *arguments],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                bufsize=0,
            )

    def launch(self, script: str) -> Forked:
        """Start a process; the one before has ended.

        Args:
            script: Python code.
        """
        assert self._waiting.stdin is not None and self._waiting.stdout is not None
        self._waiting.stdin.write(json.dumps(script).encode() + b"\n")
        told = self._waiting.stdout.fileno()
        return Forked(int(_line(told)), told)

    def close(self) -> None:
        """End what waits; no process runs any more."""
        self._waiting.communicate()


def _line(descriptor: int) -> bytes:
    """Read a line, and not a byte more."""
    read = bytearray()
    while not read.endswith(b"\n"):
        more = os.read(descriptor, 1)
        assert more, "what waits has ended"
        read += more
    return bytes(read)
