"""Runs the audit of a window in a worker thread, once its evidence is complete.

Sealing writes everything that the evidence derives from rows (activations, checkpoints, receipts
and so on) as items; from then on the evidence does not change, whatever happens to the process.
"""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import ClockStepped, Conflict, InternalError, RefusedError
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.items import Clock
from ragaudit.verifier import evidence as names
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import (
    activation,
    challenge,
    cosigner,
    disputes,
    handover,
    items,
    submissions,
    windows,
)
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.disputes import Disputes
from ragaudit.verifier.service.windows import Window
from sqlalchemy import Connection

_log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0

LISTS = {
    names.RECEIPTS: (submissions.RECEIPT, submissions.UNCOSIGNED),
    names.REFUSALS: (submissions.REFUSAL,),
    names.CLAIMS: (submissions.CLAIM,),
    names.STATEMENTS: (submissions.STATEMENT,),
}


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
    ) -> None:
        self._database = database
        self._keys = keys
        self._auditor = auditor
        self._sampler = sampler
        self._disputes = open_disputes
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="audit")
        self._lock = threading.Lock()
        self._running: dict[Origin, Progress] = {}
        self._failed: set[Origin] = set()
        self._stopping = threading.Event()

    def due(self, window: Window) -> bool:
        """Whether a window past its sampling instant has nothing more to wait for."""
        if window.decided is not None or window.listed is None:
            return False
        if window.sealed is not None or not challenge.complete(window):
            return True
        if window.challenged is None or window.deadline is None:
            return False
        if self._database.now() > window.deadline:
            return True
        return self._answered(window) and not self._disputes.pending(window)

    def start(self, origin: Origin, *, again: bool = False) -> None:
        """Queue the audit of a window unless it is queued or, without ``again``, has failed."""
        with self._lock:
            if origin in self._running or (origin in self._failed and not again):
                return
            self._failed.discard(origin)
            self._running[origin] = Progress("queued", 0, 0)
        self._pool.submit(self._run, origin)

    def request(self, origin: Origin) -> None:
        """Start the audit for the auditor.

        Raises:
            NotFound: no such window. Conflict: it is not due, or refused.
        """
        with self._database.read() as connection:
            window = windows.demand_countersigned(windows.get(connection, origin))
        if window.decided is None and not self.due(window):
            raise Conflict(
                f"the window is {window.state}",
                where=origin,
                expected="the sampling instant, and all responses or the deadline",
            )
        if window.decided is None:
            self.start(origin, again=True)

    def progress(self, origin: Origin) -> Progress:
        """Where the audit of a window stands."""
        with self._lock:
            if origin in self._failed:
                return Progress("failed; see the service's log", 0, 0)
            return self._running.get(origin, Progress("", 0, 0))

    def busy(self) -> bool:
        """Whether an audit runs or is queued."""
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
                seal(transaction, self._keys, window)
            now = transaction.now
        verdict = self._auditor.audit(
            stored_evidence(self._database, origin),
            now,
            lambda step, done, total: self._report(origin, step, done, total),
        )
        while not self._decide(origin, verdict):
            if self._stopping.wait(RETRY_SECONDS):
                raise Stopped("the service is shutting down", where=origin)
        self._sampler.forget(origin)
        _log.info("audit of %s: %s", origin, self._auditor.result(verdict))

    def _decide(self, origin: Origin, verdict: bytes) -> bool:
        """Store the verdict; False while the clock does not say when that is."""
        try:
            with self._database.write() as transaction:
                items.put(transaction, origin, items.VERDICT, verdict)
                windows.mark(transaction, origin, decided=transaction.now)
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
            given = items.listed(connection, window.origin, names.RESPONSES)
            return len(given) == len(self._sampler.sample(connection, window.origin))


def seal(transaction: Transaction, keys: VerifierKeys, window: Window) -> None:
    """Write what the evidence derives from rows; nothing is added to the window afterwards."""
    connection, origin = transaction.connection, window.origin
    instants = windows.policy(connection, window).activation_instants
    released = [
        activation.ensure(transaction, keys, window, instants, a) for a in range(1, len(instants))
    ]
    notes = [each.note.decode() for each in cosigner.all_of(connection, origin)]
    derived = {
        names.ACTIVATIONS: _array(released),
        names.CHECKPOINTS: canonical_json.dumps(notes),
        names.CLOCK: _clock(connection, window),
        names.DISPUTES: _array(disputes.kept(connection, origin)),
        names.JUDGED: _array(disputes.judged(connection, origin)),
    }
    for item, kinds in LISTS.items():
        found = (submissions.documents(connection, origin, kind) for kind in kinds)
        derived[item] = _array([document for documents in found for document in documents])
    if window.records is None:
        derived[names.ENTRIES] = _given_entries(connection, origin)
    for item, content in derived.items():
        items.put(transaction, origin, item, content)
    windows.mark(transaction, origin, sealed=transaction.now)


def stored_evidence(database: Database, origin: Origin) -> Evidence:
    """The items of a window as evidence, each read when it is asked for."""
    with database.read() as connection:
        held = [
            item.name for item in items.listed(connection, origin) if item.name != items.VERDICT
        ]

    def read(item: str) -> bytes:
        with database.read() as connection:
            content = items.content(connection, origin, item)
        if content is None:
            raise InternalError("an item is missing", where=f"{origin}: {item}")
        return content

    return Evidence(held, read)


def _array(documents: Sequence[bytes]) -> bytes:
    """The canonical JSON array of canonical JSON documents."""
    return b"[" + b",".join(documents) + b"]"


def _clock(connection: Connection, window: Window) -> bytes:
    responses = {
        int(item.name.removeprefix(names.RESPONSES).removesuffix(".bin")): item.received
        for item in items.listed(connection, window.origin, names.RESPONSES)
    }
    claims = submissions.received(connection, window.origin, submissions.CLAIM)
    return Clock(responses, claims, window.closed, window.records).encode()


def _given_entries(connection: Connection, origin: Origin) -> bytes:
    given = handover.entries_of(connection, origin)
    listed = [Entry(index, *given[index]).to_json() for index in sorted(given)]
    return canonical_json.dumps(listed)
