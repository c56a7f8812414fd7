"""The audit of a window: the procedure with V's keys, the thread that runs it, and when it is due.

Once the evidence is complete it is sealed, and does not change any more, whatever happens to the
process: an audit that was cut off is done again from the same items.
"""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ragaudit.encoding.errors import (
    ClockStepped,
    Conflict,
    MalformedError,
    RagauditError,
    RefusedError,
    TooEarly,
)
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.items import RESPONSES, ROWS
from ragaudit.verifier.history import Statement
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import challenge, evidence, providers, windows
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.database import Database, Origin
from ragaudit.verifier.service.disputes import Disputes
from ragaudit.verifier.service.retention import Retention
from ragaudit.verifier.service.windows import State, Window

RETRY_SECONDS = 1.0
HOUR_MS = 3_600_000

_log = logging.getLogger(__name__)


class Stopped(RefusedError):
    """The service is shutting down; the audit starts again with it."""


@dataclass(frozen=True)
class Progress:
    """Where an audit stands: the step that runs, and how many of its parts are done."""

    step: str
    done: int
    total: int


class AuditRunner:
    """One audit at a time, in a thread of its own."""

    def __init__(
        self,
        database: Database,
        keys: VerifierKeys,
        auditor: Auditor,
        sampler: Sampler,
        open_disputes: Disputes,
        stamp_roots: bytes = b"",
    ) -> None:
        """Collect the parts.

        Args:
            stamp_roots: PEM, of the time-stamping authorities that are trusted.
        """
        self._stamp_roots = stamp_roots
        self._database = database
        self._keys = keys
        self._auditor = auditor
        self._sampler = sampler
        self._disputes = open_disputes
        # One: each holds the noise of a batch of records, about 512 MiB (`sample_checks`).
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="audit")
        self._lock = threading.Lock()
        self._running: dict[Origin, Progress] = {}
        self._failed: set[Origin] = set()
        self._stopping = threading.Event()

    def due(self, window: Window) -> bool:
        """Return whether a window past its sampling instant has nothing more to wait for."""
        if window.decided is not None or window.listed is None:
            return False
        if window.sealed is not None:
            return True
        if not challenge.complete(window):
            return self._released(window)
        if window.challenged is None or window.deadline is None:
            return False
        if self._database.now() > window.deadline:
            return True
        return self._answered(window) and not self._disputes.pending(window)

    def _released(self, window: Window) -> bool:
        """Whether every activation is released, or can be: sealing writes them all."""
        with self._database.read() as connection:
            policy = windows.policy(connection, window)
            pending = range(challenge.next_release(connection, window, policy), policy.activations)
        try:
            for a in pending if policy.beacon is not None else ():
                challenge.due_round(policy, self._sampler.rounds, a, self._database.now())
        except TooEarly:
            return False
        return True

    def start(self, origin: Origin, *, again: bool = False) -> None:
        """Queue the audit of a window unless it is queued, or has failed.

        Args:
            again: also if it has failed.
        """
        with self._lock:
            # A failed one would fail at every tick: only the auditor has it run again.
            if origin in self._running or (origin in self._failed and not again):
                return
            self._failed.discard(origin)
            self._running[origin] = Progress("queued", 0, 0)
        self._pool.submit(self._run, origin)

    def request(self, origin: Origin) -> None:
        """Start the audit for the auditor.

        Raises:
            NotFound: no such window.
            Conflict: it is not due, or refused.
        """
        with self._database.read() as connection:
            window = windows.demand_countersigned(windows.get(connection, origin))
            policy = windows.policy(connection, window)
        if window.decided is None and not self.due(window):
            raise Conflict(
                f"the audit is not due, the window is {window.state}",
                where=origin,
                expected=_due_from(window, policy.sampling_instant),
            )
        if window.decided is None:
            self.start(origin, again=True)

    def progress(self, origin: Origin) -> Progress:
        """Return where the audit of a window stands."""
        with self._lock:
            if origin in self._failed:
                return Progress("failed; see the service's log", 0, 0)
            return self._running.get(origin, Progress("", 0, 0))

    def busy(self) -> bool:
        """Return whether an audit runs or is queued."""
        with self._lock:
            return bool(self._running)

    def close(self) -> None:
        """Stop at the audit's next step; what it did is done again at the next start."""
        self._stopping.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, origin: Origin) -> None:
        failed = False
        try:
            self._audit(origin)
        except Stopped:
            _log.info("audit of %s stopped", origin)
        except ClockStepped as error:
            _log.error("audit of %s waits: %s", origin, error)  # the next tick starts it again
        except Exception:
            failed = True
            _log.exception("audit of %s failed", origin)
        with self._lock:
            del self._running[origin]
            if failed:
                self._failed.add(origin)

    def _audit(self, origin: Origin) -> None:
        with self._database.write() as transaction:
            window = windows.get(transaction.connection, origin)
            if window.decided is not None:
                return
            if window.sealed is None:
                # What arrives before this transaction is evidence, what comes after is refused.
                evidence.seal(
                    transaction, self._keys, self._sampler.rounds, window, self._stamp_roots
                )
            now = transaction.now
        verdict = self._auditor.audit(
            evidence.stored(self._database, origin),
            now,
            lambda step, done, total: self._report(origin, step, done, total),
        )
        # The audit may have taken hours: it waits for the clock rather than be done again.
        while not self._decide(origin, verdict):
            if self._stopping.wait(RETRY_SECONDS):
                raise Stopped("the service is shutting down", where=origin)
        self._sampler.forget(origin)
        _log.info("audit of %s: %s", origin, self._auditor.result(verdict))

    def _decide(self, origin: Origin, verdict: bytes) -> bool:
        """Store the verdict; return False while the clock does not say when that is."""
        try:
            with self._database.write() as transaction:
                transaction.attest(Statement.VERDICT, origin)
                windows.put_item(transaction, origin, windows.VERDICT, verdict)
                windows.advance(transaction, origin, State.DECIDED)
        except ClockStepped as error:
            _log.error("the verdict on %s waits: %s", origin, error)
            return False
        return True

    def _report(self, origin: Origin, step: str, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise Stopped("the service is shutting down", where=origin)
        with self._lock:
            self._running[origin] = Progress(step, done, total)

    def _answered(self, window: Window) -> bool:
        with self._database.read() as connection:
            sampled = self._sampler.sampled(connection, window.origin)
            wanted = {RESPONSES: len(sampled.entries), ROWS: len(sampled.rows)}
            return all(
                windows.count_items(connection, window.origin, folder) == count
                for folder, count in wanted.items()
            )


def shown_progress(database: Database, runner: AuditRunner, origin: Origin) -> dict[str, Any]:
    """Return where the audit of a window stands, as JSON.

    Returns:
        Body of `GET /v1/windows/{w}/progress` (docs/spec/08-services.md §8.3).
    """
    with database.read() as connection:
        window = windows.get(connection, origin)
    current = runner.progress(origin)
    return {
        "state": window.state,
        "step": current.step,
        "done": current.done,
        "total": current.total,
    }


class Scheduler:
    """Signs receipts lists, draws challenges, starts audits and deletes when it is due."""

    def __init__(
        self, database: Database, sampler: Sampler, runner: AuditRunner, retention: Retention
    ) -> None:
        self._database = database
        self._retention = retention
        self._sampler = sampler
        self._runner = runner
        self._forget_at = 0
        self._waits: dict[Origin, str] = {}  # what was said of them
        self._instants: dict[Origin, int] = {}  # of a countersigned policy, which stays

    def tick(self) -> None:
        """Do what is due for every window; one window's trouble does not stop the others.

        Raises:
            ClockStepped: the clock was set; nothing is due until it is known what time it is.
        """
        self._database.now()  # for what it raises
        self._forget()
        with self._database.read() as connection:
            waiting = windows.undecided(connection)
        for window in waiting:
            try:
                self._advance(window)
            except RagauditError as error:
                _log.error("window %s: %s", window.origin, error)

    def _forget(self) -> None:
        """Once an hour: what nobody will countersign any more, and what is kept no longer."""
        if self._database.now() < self._forget_at:
            return
        with self._database.write() as transaction:
            for origin in providers.forget_expired(transaction):
                _log.info("window %s was never countersigned: forgotten", origin)
        self._retention.apply()
        self._forget_at = self._database.now() + HOUR_MS

    def _advance(self, window: Window) -> None:
        if window.origin not in self._instants:
            with self._database.read() as connection:
                policy = windows.policy(connection, window)
            self._instants[window.origin] = policy.sampling_instant
        if self._database.now() < 1000 * self._instants[window.origin]:
            return
        # First: the list commits to the receipts before n_A, and with it the sample, is out (8.4).
        self._sampler.sign_list(window.origin)
        if challenge.complete(window) and window.challenged is None and window.sealed is None:
            try:
                self._sampler.draw(window.origin)
            except TooEarly as error:
                if self._waits.get(window.origin) != error.what:
                    _log.warning("window %s: no sample yet: %s", window.origin, error.what)
                    self._waits[window.origin] = error.what
                return
            except MalformedError as error:
                # Check 5 fails on the same record; there is nothing to wait for.
                _log.warning("window %s: no challenge: %s", window.origin, error)
                self._runner.start(window.origin)
                return
        with self._database.read() as connection:
            current = windows.get(connection, window.origin)
        if self._runner.due(current):
            self._runner.start(window.origin)


def _due_from(window: Window, sampling_instant: int) -> str:
    """From when an audit is due."""
    if window.challenged is None or window.deadline is None:
        return f"{rfc3339(1000 * sampling_instant)} or later: the sampling instant"
    return f"all responses, or {rfc3339(window.deadline)} or later: their deadline"
