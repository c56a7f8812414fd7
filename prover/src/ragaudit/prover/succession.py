"""Leading and following: what a process does beside answering, on a database of several.

Every process answers. One of them leads: it drives the windows, signs, talks to verifier and
cosigners, watches the store. The others take over what it stored, and its place once it is gone.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from ragaudit.encoding.errors import RagauditError
from ragaudit.prover.jobs import Background, log_once
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.leadership import Leadership
from ragaudit.prover.store.states import FINAL
from ragaudit.prover.window.windows import Windows
from ragaudit.serving.jobs.runner import Runner

__all__ = ["Succession"]

_log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0


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
