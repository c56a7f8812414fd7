"""The services as separate processes on loopback: started, awaited, shown when they fail, ended."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from ragaudit.encoding.errors import UnavailableError

_POLL_SECONDS = 0.02
_GRACE_SECONDS = 8.0
_TAIL_LINES = 25


class ServiceFailed(UnavailableError):
    """A service ended or did not become ready; the message shows the end of its log."""


class ServiceProcess:
    """One service, its log in a file; a context manager that ends the process."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        url: str = "",
        environment: Mapping[str, str] | None = None,
        held: bool = False,
    ) -> None:
        """Start ``command``, whose HTTP service will answer at ``url``.

        Args:
            held: it waits for a line on its standard input, which `go` writes.
        """
        self.name = name
        self.url = url
        self.log = log
        with log.open("ab") as output:
            # In a session of its own: Ctrl-C reaches the command, which then ends it.
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                list(command),
                stdin=subprocess.PIPE if held else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def __enter__(self) -> "ServiceProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self, url: str) -> None:
        """Let a process that is held go on.

        Args:
            url: where its service will answer.
        """
        self.url = url
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended: `check_alive` shows its log
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def wait_ready(self, seconds: float = 60.0, path: str = "/readyz") -> None:
        """Wait until the service says that it is ready.

        Args:
            seconds: how long at most.
            path: that it says so by, with status 200.

        Raises:
            ServiceFailed: the process ended, or is not ready in time.
        """
        import httpx
        from ragaudit.http import HttpClient

        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.check_alive()
            with contextlib.suppress(httpx.HTTPError), HttpClient(self.url, timeout=5.0) as http:
                if http.request("GET", path).status_code == 200:
                    return
            time.sleep(_POLL_SECONDS)
        raise ServiceFailed(f"not ready after {seconds:.0f} s\n{self.tail()}", where=self.name)

    def check_alive(self) -> None:
        """Raise ServiceFailed if the process has ended."""
        status = self._process.poll()
        if status is not None:
            raise ServiceFailed(f"ended with status {status}\n{self.tail()}", where=self.name)

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the last lines of the log, or words that say that there is none.

        Args:
            lines: how many at most.
        """
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(f"    | {line}" for line in text.splitlines()[-lines:]) or "(empty log)"

    def kill(self) -> None:
        """End the process at once, without a chance to tidy up."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Ask the process to end, and end it if it does not within a few seconds."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def free_port() -> int:
    """Return a port on loopback that was free a moment ago.

    It may be taken before the service binds it; then the service ends with a message and
    the caller, which sees ServiceFailed, takes another one.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
