"""One window of two services that are processes, on a clock that the test moves on."""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
from invariants import check_prover, check_verifier
from prover_process import PATIENCE, Setting
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.windows import Window, Windows
from verifier_process import VerifierProcess

_DIGITS = 20
_MOVED = """
import os, time
ahead, wall, steady = os.open({path!r}, os.O_RDONLY), time.time_ns, time.clock_gettime_ns
def moved():
    return 10**6 * int(os.pread(ahead, {digits}, 0))
time.time_ns = lambda: wall() + moved()
time.clock_gettime_ns = lambda clock: steady(clock) + moved()
"""


class MovedClock:
    """The machine's clock, ahead by what a file says.

    Attributes:
        prelude: Python code that has a process use it.
    """

    def __init__(self, path: Path) -> None:
        path.write_text("0" * _DIGITS)
        self._path = path
        self.prelude = _MOVED.format(path=str(path), digits=_DIGITS)

    def __call__(self) -> int:
        """Return the time, Unix milliseconds."""
        return time.time_ns() // 10**6 + int(self._path.read_text())

    def reach(self, seconds: int) -> None:
        """Move on to an instant, Unix seconds; one that has passed changes nothing."""
        missing = 1000 * seconds - self()
        if missing > 0:
            ahead = int(self._path.read_text()) + missing
            # In one write of one width: who reads sees the old number or the new one.
            descriptor = os.open(self._path, os.O_WRONLY)
            os.pwrite(descriptor, f"{ahead:0{_DIGITS}d}".encode(), 0)
            os.close(descriptor)


LONG = {
    "opens_after_seconds": 1200,
    "length_seconds": 3600,
    "activation_every_seconds": 1200,
    "sampling_after_seconds": 1200,
    "merge_delay_seconds": 600,
    "release_seconds": 600,
    "audit": {"mode": "A", "deadline_seconds": 6000},
}
"""Times that no machine is too slow for: what is waited for is what the services do."""


class MovedWindow:
    """Prover and verifier, whose processes are forked, and a window between them."""

    def __init__(self, folder: Path, **verifier: Any) -> None:
        """``verifier``: more of its settings."""
        (folder / "verifier").mkdir()
        self.clock = MovedClock(folder / "clock")
        self.verifier = VerifierProcess(folder / "verifier", tick_seconds=0.1, **verifier)
        self.setting = Setting(folder, self.verifier)
        self.prover = self.setting.prover
        self.verifier.prelude = self.prover.prelude = self.clock.prelude

    def start(self) -> None:
        """Start the services."""
        self.verifier.fork()
        self.prover.fork()
        self.verifier.start()
        self.prover.start()

    def begin(self, **overrides: Any) -> None:
        """Have the window countersigned, and what was registered cosigned."""
        self.start()
        self.setting.register(**LONG, **overrides)
        self.until(lambda: self.cosigned() == 1 + len(self.setting.keys))

    def finish(self) -> None:
        """Go on from an open window to its verdict."""
        policy = self.policy()
        self.clock.reach(policy.end)
        self.until(lambda: self.window().handed_over)
        self.clock.reach(policy.sampling_instant)
        self.until(lambda: self.prover.state() == "challenged")
        self.clock.reach(policy.release_time // 1000 + 1)
        self.until(lambda: self.prover.state() == "archived")

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for what services say that may be away again and again."""
        end = time.monotonic() + 600
        while time.monotonic() < end:
            try:
                if condition():
                    return
            except (httpx.HTTPError, AssertionError):
                pass
            self.look()
            time.sleep(PATIENCE)
        raise AssertionError(f"waited too long: {self.prover.log.read_text()}")

    def look(self) -> None:
        """Raise if it is no use to wait any longer."""

    def cosigned(self) -> int:
        """Entries under the last cosigned checkpoint."""
        shown = self.prover.http.get("/v1/windows/w1/log/checkpoint")
        assert shown.is_success, shown.text
        return int(shown.text.split("\n")[1])

    def window(self) -> Window:
        """The window as the prover has stored it."""
        with closing(Store.open(self.setting.settings.store.url)) as store:
            return Windows(store).get("w1")

    def policy(self) -> Policy:
        """Of the window."""
        return Policy.parse(self.window().policy)

    def shown(self, what: str = "") -> httpx.Response:
        """What the verifier shows of the window."""
        url = f"{self.verifier.url}/v1/windows/w1{what}"
        return httpx.get(url, timeout=60, trust_env=False)

    def check(self, answered: Iterable[dict[str, Any]]) -> None:
        """Check what both have stored, of which all of this was told; nobody serves it any more."""
        settings, public = self.setting.settings, list(answered)
        standing = check_prover(settings, public, ())
        heads = check_verifier(self.verifier.path, standing).heads
        check_prover(settings, public, heads)

    def close(self) -> None:
        """Stop what runs."""
        self.setting.stop()
        for service in (self.prover, self.verifier):
            if service.forks is not None:
                service.forks.close()
                service.forks = None
