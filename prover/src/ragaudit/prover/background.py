"""The background threads: windows are driven, their logs signed, the store and the clock watched.

Every process on a database answers. One of them leads: it drives the windows, signs, talks to
verifier and cosigners, watches the store. The others take over what it stored, and its place once
it is gone.

A machine that starts with a wrong clock would stamp records that no checkpoint confirms, and the
window would fail (docs/spec/08 §8.7). So a process that finds a window to answer in stamps nothing
until the verifier's clock agrees. What was agreed on holds for as long as the machine runs: a
process that starts again while the verifier is away goes on, by a file that says the offset between
the system's clock and the one that nobody sets, and of which start of the machine.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.log.durable import replace_file
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import ClocksDiffer
from ragaudit.prover.lifecycle.cosigning import CosigningRounds
from ragaudit.prover.lifecycle.driver import Driver
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.lifecycle.refreshing import Refresher, Watcher
from ragaudit.prover.lifecycle.retention import Retention
from ragaudit.prover.settings import Settings, TimingSettings
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.leadership import Leadership
from ragaudit.prover.store.states import FINAL
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.windows import Window, Windows
from ragaudit.serving.clock import TOLERANCE_MS, EvenClock
from ragaudit.serving.jobs.runner import Runner
from ragaudit.serving.server import give_back

_log = logging.getLogger(__name__)

CLOCK_SECONDS = 1.0
_CLOCK_FILE = "clock"
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # Linux's; elsewhere every start asks
_MOVED_MS = TOLERANCE_MS // 5  # slow corrections, after which the file is written again
RETRY_SECONDS = 2.0
RETENTION_SECONDS = 5.0
BEAT_SECONDS = 1.0


class ClockWatch:
    """A thread that has the clock confirmed; with any other than an `EvenClock` it does nothing.

    Args:
        clock: of the service.
        verifier: is asked for its time.
        windows: those that are answered in, and their policies' skew.
        settings: of the service; the file is in the folder of the fences, which no back-up holds.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        verifier: VerifierClient,
        windows: Windows,
        settings: Settings,
    ) -> None:
        self._clock = clock if isinstance(clock, EvenClock) else None
        self._verifier = verifier
        self._windows = windows
        self._path = settings.store.fence_folder / _CLOCK_FILE
        self._skew = settings.window.clock_skew_seconds  # where no window says it
        self._compared = False
        self._written = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock")

    def start(self) -> None:
        """Doubt the clock if there is a window to answer in and no word that it is right."""
        if self._clock is None:
            return
        self._compared = self._known(self._clock.offset)
        if not self._compared and any(each.countersignature for each in self._unfinished()):
            self._clock.doubt()
            self._attempt("")  # here, so that an answering service is not declined for a moment
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        logged = ""
        while not self._stopping.is_set():
            logged = self._attempt(logged)
            self._stopping.wait(CLOCK_SECONDS)

    def _attempt(self, logged: str) -> str:
        """Take a step; return what was logged of it, once."""
        try:
            self.step()
        except Exception as error:
            # The thread goes on after any error: without it the clock would stay in doubt.
            if str(error) != logged:
                _log.warning("the clock cannot be compared: %s", error)
            return str(error)
        return ""

    def step(self) -> None:
        """Ask the verifier if there is something to ask, and note what it confirmed.

        Raises:
            ClocksDiffer: nothing is stamped until they agree.
            VerifierUnreachable, VerifierRefused, VerifierMessageRejected: it does not say; what was
                in doubt stays in doubt.
            StoreUnavailable, OSError: the windows cannot be read, or the file not be written.
        """
        clock = self._clock
        if clock is None:
            return
        if not self._compared or clock.stepped:
            theirs, skew = self._verifier.keys().time, self._least_skew()
            # After a step half of it: the clocks must not use up on the first day what they may
            # differ by. At a start what a window is begun with.
            if clock.confirm(theirs, (500 if self._compared else 1000) * skew):
                self._compared = True
            elif not self._compared:
                clock.doubt()
                raise ClocksDiffer(
                    f"this machine's clock is more than {skew} s from the verifier's",
                    where="clock",
                    expected="both synchronised; until then nothing is stamped",
                )
        if self._compared and not clock.stepped and abs(clock.offset - self._written) > _MOVED_MS:
            self._note(clock.offset)

    def _unfinished(self) -> list[Window]:
        return [each for each in self._windows.all() if each.state not in FINAL]

    def _least_skew(self) -> int:
        policies = [Policy.parse(each.policy) for each in self._unfinished()]
        return min((each.clock_skew_seconds for each in policies), default=self._skew)

    def _known(self, offset: int) -> bool:
        """Whether the clock is as it was confirmed since this machine started."""
        try:
            boot, written = self._path.read_text(encoding="ascii").split()
            known = boot == _boot() and abs(offset - int(written)) <= TOLERANCE_MS
        except (OSError, ValueError):  # none yet, or one that a crash cut short
            return False
        self._written = int(written)
        return known

    def _note(self, offset: int) -> None:
        boot = _boot()
        if boot is not None:
            replace_file(self._path, f"{boot} {offset}\n".encode("ascii"))
        self._written = offset


def _boot() -> str | None:
    """Return what names this start of the machine, None where it is not told."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None


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


class Succession:
    """Two threads: one holds or seeks the lead, one follows what others did."""

    def __init__(
        self,
        *,
        store: Store,
        leadership: Leadership,
        windows: Windows,
        open_windows: OpenWindows,
        runner: Runner,
        background: Callable[[], Background],
    ) -> None:
        """Collect the parts.

        Args:
            background: returns new threads of a leader, not started.
        """
        self._store = store
        self._leadership = leadership
        self._windows = windows
        self._open_windows = open_windows
        self._runner = runner
        self.new_background = background
        self.background: Background | None = None  # of a leader, also while it still ends
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin; a process that leads already begins to drive the windows."""
        if self._leadership.leads:
            self._lead()
        for work in (self._beat, self._follow):
            self._threads.append(threading.Thread(target=work, name=work.__name__))
            self._threads[-1].start()

    def stop(self) -> None:
        """Stop all threads and wait for them; then let go of the lead."""
        self._stopping.set()
        # First the steps in progress: nobody else begins the same one meanwhile.
        for thread in self._threads:
            thread.join()
        if self.background is not None:
            self.background.stop()
        self._leadership.resign()

    def drive(self, name: str) -> None:
        """Begin to drive a window that was made now; another process that leads will find it.

        Args:
            name: of an unfinished window.
        """
        background = self.background
        if background is not None and self._leadership.leads:
            background.drive(name)

    def _lead(self) -> None:
        # Whatever was compared before: another process may have signed since.
        self._open_windows.compare_again()
        # Jobs of windows that ended without their leader there to forget them, and what failed.
        self._runner.keep(self._windows.unfinished())
        self.background = self.new_background()
        self.background.start()

    def _beat(self) -> None:
        logged = ""
        while not self._stopping.wait(BEAT_SECONDS):
            try:
                self._store.hold()
                self._keep_or_seek()
                logged = ""
            except Exception as error:
                logged = log_once("of the lead", error, logged)

    def _keep_or_seek(self) -> None:
        background = self.background
        if background is not None:
            if self._leadership.leads:
                return
            # Its steps end by themselves: what they would write is refused.
            background.quit()
            if not background.ended:
                return
            self.background = None
            _log.warning("this process does not lead any more")
        if self._leadership.attempt():
            _log.warning("this process leads from now on")
            self._lead()

    def _follow(self) -> None:
        logged: dict[str, str] = {}
        while not self._stopping.wait(BEAT_SECONDS):
            with suppress(RagauditError):  # the next turn, or whoever asks, finds the same
                for window in self._windows.all():
                    if window.state in FINAL or window.unusable is not None:
                        if not self._leadership.leads:
                            self._open_windows.forget(window.name)
                            self._runner.release(window.name)
                        continue
                    self.drive(window.name)
                    if window.countersignature is None or window.handed_over:
                        continue
                    try:
                        self._open_windows.follow(window.name)
                        logged.pop(window.name, None)
                    except Exception as error:
                        last = logged.get(window.name, "")
                        logged[window.name] = log_once(window.name, error, last)
