"""The clock, compared with the verifier's: at each start, and after a step (docs/spec/08 §8.7).

A machine that starts with a wrong clock would stamp records that no checkpoint confirms, and the
window would fail. So a process that finds a window to answer in stamps nothing until the verifier's
clock agrees. What was agreed on holds for as long as the machine runs: a process that starts again
while the verifier is away goes on, by a file that says the offset between the system's clock and
the one that nobody sets, and of which start of the machine.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from ragaudit.ledger.log.durable import replace_file
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import ClocksDiffer
from ragaudit.prover.settings import Settings
from ragaudit.prover.store.states import FINAL
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.windows import Window, Windows
from ragaudit.serving.clock import TOLERANCE_MS, EvenClock

__all__ = ["ClockWatch"]

_log = logging.getLogger(__name__)

SECONDS = 1.0
_FILE = "clock"
_BOOT = Path("/proc/sys/kernel/random/boot_id")  # Linux's; elsewhere every start asks
_MOVED_MS = TOLERANCE_MS // 5  # slow corrections, after which the file is written again


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
        self._path = settings.store.fence_folder / _FILE
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
            self._stopping.wait(SECONDS)

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
