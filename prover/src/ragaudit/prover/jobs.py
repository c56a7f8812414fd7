"""The background threads: windows are driven, their logs signed, the store watched."""

import logging
import threading
from collections.abc import Callable

from ragaudit.encoding.errors import RagauditError
from ragaudit.prover.lifecycle.cosigning import CosigningRounds
from ragaudit.prover.lifecycle.driver import Driver
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.lifecycle.refreshing import Refresher
from ragaudit.prover.lifecycle.retention import Retention
from ragaudit.prover.lifecycle.watching import Watcher
from ragaudit.prover.settings import TimingSettings
from ragaudit.prover.store.states import FINAL
from ragaudit.prover.window.windows import Windows
from ragaudit.serving.server import give_back

_log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
RETENTION_SECONDS = 5.0


class Background:
    """Four threads for every window, one that deletes, and one for the store if others write to it.

    Of a window's, one takes its steps, one has its log cosigned, one commits to indexes that became
    stale, and one takes checkpoints to further cosigners.
    """

    def __init__(
        self,
        *,
        windows: Windows,
        open_windows: OpenWindows,
        driver: Driver,
        refresher: Refresher,
        cosigning: CosigningRounds,
        retention: Retention,
        timing: TimingSettings,
        watcher: Watcher | None = None,
        poll_seconds: float = 0,
    ) -> None:
        """Collect the parts; `start` begins.

        Args:
            watcher: compares the store; None where nobody else writes to it.
            poll_seconds: between two comparisons; 0 for none.
        """
        self._cosigning = cosigning
        self._retention = retention
        self._windows = windows
        self._open_windows = open_windows
        self._driver = driver
        self._refresher = refresher
        self._timing = timing
        self._watcher = watcher if poll_seconds else None
        self._poll_seconds = poll_seconds
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._driven: set[str] = set()
        self._guard = threading.Lock()
        self._started = False

    def start(self) -> None:
        """Begin to drive every unfinished window; from now on also those that are added."""
        self._started = True
        for name in self._windows.unfinished():
            self.drive(name)
        works = {"retention": self._run_retention}
        if self._watcher is not None:
            works["watcher"] = self._run_watcher
        for name, work in works.items():
            self._threads.append(threading.Thread(target=work, name=name))
            self._threads[-1].start()

    def quit(self) -> None:
        """Have the threads stop after the step that each is in."""
        self._stopping.set()

    @property
    def ended(self) -> bool:
        """Whether no thread runs any more."""
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Stop the threads and wait for them."""
        self.quit()
        # A step that is half done ends first: the database is closed after this.
        for thread in self._threads:
            thread.join()

    def drive(self, name: str) -> None:
        """Drive a window, if the threads were started and do not drive it yet.

        Args:
            name: of an unfinished window.
        """
        with self._guard:
            if not self._started or self._stopping.is_set() or name in self._driven:
                return
            self._driven.add(name)
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            # Several threads: a step may prove for long, and the log must be cosigned meanwhile.
            works = (self._run, self._run_checkpoints, self._run_refreshes, self._run_cosigners)
            for work in works:
                thread = threading.Thread(target=work, args=(name,), name=f"{work.__name__} {name}")
                thread.start()
                self._threads.append(thread)

    def _run(self, name: str) -> None:
        """Drive a window until it is finished."""
        pause, logged = self._timing.driver_seconds, ""
        while not self._stopping.is_set():
            try:
                moved = self._driver.step(name)
                self._driver.failures.pop(name, None)
                if moved:
                    continue
                window = self._windows.get(name)
                if window.state in FINAL or window.unusable is not None:
                    self._open_windows.forget(name)
                    self._driver.forget(name)
                    give_back()
                    with self._guard:
                        self._driven.discard(name)
                    return
                wait, logged = pause, ""
            except Exception as error:
                # The thread goes on after any error: without it the window would never be closed.
                logged = self._driver.failures[name] = log_once(name, error, logged)
                wait = max(pause, RETRY_SECONDS)
            self._stopping.wait(wait)

    def _run_checkpoints(self, name: str) -> None:
        """Keep the log of a window signed and cosigned while it is served.

        Checkpoints are spaced out: a verifier cosigns a limited number of them in a window.
        """
        logged, due, pause = "", True, self._timing.checkpoint_seconds
        while not self._stopping.is_set():
            wait: Callable[[float], bool] = self._stopping.wait
            try:
                window = self._windows.get(name)
                if window.state in FINAL or window.unusable is not None or window.handed_over:
                    return
                if window.countersignature is not None:
                    live = self._open_windows.get(name)
                    if due or live.log_changed.is_set():
                        due = True
                        # Before the head is read: an entry that comes meanwhile sets it again.
                        live.log_changed.clear()
                        self._driver.checkpoint(name)
                        # Another process may have led meanwhile, and what it signed was older:
                        # after the last entry of all nothing else wakes anybody.
                        due = not live.log.head_is_cosigned()
                        # A log uses up at most half of a window's 400,000 cosignatures (spec 6.4).
                        self._stopping.wait(max(pause, live.policy.checkpoint_spacing))
                    wait = live.log_changed.wait
                logged = ""
            except Exception as error:
                logged = log_once(name, error, logged)
            wait(pause)

    def _run_refreshes(self, name: str) -> None:
        """Commit to stale indexes before each instant, in a window whose policy allows versions."""
        logged = ""
        while not self._stopping.is_set():
            try:
                if not self._refresher.step(name):
                    return
                logged = ""
            except Exception as error:
                logged = log_once(name, error, logged)
                self._stopping.wait(RETRY_SECONDS)
            self._stopping.wait(self._timing.driver_seconds)

    def _run_watcher(self) -> None:
        """Compare the store with the open windows from time to time."""
        assert self._watcher is not None
        logged = ""
        while not self._stopping.wait(self._poll_seconds):
            try:
                self._watcher.step()
                logged = ""
            except Exception as error:
                logged = log_once("of the store", error, logged)

    def _run_retention(self) -> None:
        """Delete what is due, or was begun by a process that ended."""
        logged = ""
        while not self._stopping.is_set():
            try:
                self._retention.step()
                logged = ""
            except Exception as error:
                logged = log_once("whose rows are deleted", error, logged)
            self._stopping.wait(RETENTION_SECONDS)

    def _run_cosigners(self, name: str) -> None:
        """Take the last checkpoint to third parties from time to time, if there are any."""
        logged = ""
        while not self._stopping.is_set():
            try:
                if not self._cosigning.step(name):
                    return
                logged = ""
            except Exception as error:
                logged = log_once(name, error, logged)
            self._stopping.wait(self._cosigning.every_seconds)


def log_once(name: str, error: Exception, logged: str) -> str:
    """Log a failed step of a window unless it failed alike the last time; return its text.

    Args:
        logged: the text that the last failure returned, empty if there was none.
    """
    ours = isinstance(error, RagauditError)
    text = str(error) if ours else type(error).__name__
    if text != logged:
        _log.log(logging.WARNING if ours else logging.ERROR, "window %s: %s", name, text)
    return text
