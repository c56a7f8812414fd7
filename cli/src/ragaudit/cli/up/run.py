"""`ragaudit up` from the first look at the store to the report."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from ragaudit.cli.processes import ServiceProcess
from ragaudit.cli.up.prepare import Parties, prepare
from ragaudit.cli.up.store import Found
from ragaudit.cli.up.window import LocalWindow
from ragaudit.ledger.messages.verdict import Verdict

__all__ = ["Options", "Running", "Shows", "Stop", "run_integrity", "running", "told_to_stop"]

SERVE = [sys.executable, "-m", "ragaudit.cli.up.serve"]
POLL_SECONDS = 0.25
START_SECONDS = 120.0  # a busy machine takes long to import what a service needs


@dataclass(frozen=True)
class Options:
    """What is wanted.

    Attributes:
        folder: empty; everything that both parties write.
        found: the collections to serve.
        backend: section of the prover's settings.
        host, port: of the prover; port 0 takes a free one.
        seconds: after which the window is closed by itself; None: when told to stop.
        overrides: sections of the prover's settings.
        accounts: of each tenant.
    """

    folder: Path
    found: Found
    backend: Mapping[str, Any]
    host: str = "127.0.0.1"
    port: int = 0
    seconds: float | None = None
    overrides: Mapping[str, Any] | None = None
    accounts: int = 1


class Shows(Protocol):
    """Who is shown how it goes."""

    def doing(self, what: str) -> None:
        """What is being done now."""

    def ready(self, parties: Parties, found: Found) -> None:
        """The applications can ask."""

    def event(self, event: Mapping[str, Any]) -> None:
        """A request was answered: an event of the audit stream."""


class Stop:
    """Set by SIGINT, SIGTERM or another thread."""

    def __init__(self) -> None:
        self._set = threading.Event()

    def __call__(self) -> None:
        """Stop."""
        self._set.set()

    def wait(self, seconds: float) -> bool:
        """Wait, and return whether it is time to stop.

        Args:
            seconds: at most.
        """
        return self._set.wait(seconds)


@contextmanager
def told_to_stop(stop: Stop) -> Iterator[None]:
    """Let SIGINT and SIGTERM set ``stop`` within the block; the second of them interrupts.

    Args:
        stop: that is set.
    """

    def told(number: int, _frame: FrameType | None) -> None:
        if stop.wait(0):
            raise KeyboardInterrupt
        stop()

    before = {each: signal.signal(each, told) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Running:
    """Both services, and the window between them."""

    parties: Parties
    window: LocalWindow
    prover: ServiceProcess
    check_alive: Callable[[], None]


@contextmanager
def running(options: Options, shows: Shows, stop: Stop | None = None) -> Iterator[Running]:
    """Set up and start both services, open the window, and end the services with the block.

    Args:
        shows: is shown how it goes.
        stop: interrupts until the window is open: there is nothing to audit yet.

    Raises:
        KeyboardInterrupt: told to stop before the window was open.
        ServiceFailed: a service ended, or did not do its part.
        RagauditError: the folder cannot be written, or the store is not as it was.
    """
    shows.doing("setting up prover and verifier")
    parties = prepare(
        options.folder,
        options.found,
        options.backend,
        host=options.host,
        port=options.port,
        overrides=options.overrides,
        accounts=options.accounts,
    )
    with ExitStack() as stack:
        processes: list[ServiceProcess] = []

        def check_alive() -> None:
            for process in processes:
                process.check_alive()

        def check_opening() -> None:
            check_alive()
            if stop is not None and stop.wait(0):
                raise KeyboardInterrupt

        for name in ("verifier", "prover"):
            shows.doing(f"starting the {name}")
            processes.append(stack.enter_context(parties.process(name, SERVE)))
            processes[-1].wait_ready(START_SECONDS)
        window = stack.enter_context(LocalWindow(parties, check_alive))
        window.open(shows.doing, check_opening)
        yield Running(parties, window, processes[-1], check_alive)


def run_integrity(options: Options, shows: Shows, stop: Stop) -> Verdict:
    """Serve until told to stop; return the signed verdict of what was answered.

    Args:
        shows: is shown how it goes.
        stop: ends the serving.

    Raises:
        RagauditError: as `running`.
    """
    with running(options, shows, stop) as both:
        _show_events(both.window, shows)  # the registrations
        shows.ready(both.parties, options.found)
        _serve(both.window, shows, stop, options.seconds, both.check_alive)
        return both.window.close(shows.doing)


def _serve(
    window: LocalWindow,
    shows: Shows,
    stop: Stop,
    seconds: float | None,
    check_alive: Callable[[], None],
) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while not stop.wait(POLL_SECONDS) and (end is None or time.monotonic() < end):
        check_alive()
        _show_events(window, shows)
    _show_events(window, shows)


def _show_events(window: LocalWindow, shows: Shows) -> None:
    for event in window.events():
        shows.event(event)
