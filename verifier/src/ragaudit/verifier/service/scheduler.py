"""The work that an instant makes due, found again at every tick and after every start."""

import logging

from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.verifier.service import challenge, quotas, windows
from ragaudit.verifier.service.audit_runner import AuditRunner
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.database import Database
from ragaudit.verifier.service.windows import Window

HOUR_MS = 3_600_000

_log = logging.getLogger(__name__)


class Scheduler:
    """Signs receipts lists, draws challenges and starts audits when they are due."""

    def __init__(self, database: Database, sampler: Sampler, runner: AuditRunner) -> None:
        self._database = database
        self._sampler = sampler
        self._runner = runner
        self._forget_at = 0

    def tick(self) -> None:
        """Do what is due for every window; one window's trouble does not stop the others.

        Raises:
            ClockStepped: the clock was set; nothing is due until it is known what time it is.
        """
        self._database.now()
        self._forget()
        with self._database.read() as connection:
            waiting = windows.undecided(connection)
        for window in waiting:
            try:
                self._advance(window)
            except RagauditError as error:
                _log.error("window %s: %s", window.origin, error)

    def _forget(self) -> None:
        """Once an hour: what nobody will countersign any more."""
        if self._database.now() < self._forget_at:
            return
        with self._database.write() as transaction:
            for origin in quotas.forget_expired(transaction):
                _log.info("window %s was never countersigned: forgotten", origin)
        self._forget_at = self._database.now() + HOUR_MS

    def _advance(self, window: Window) -> None:
        with self._database.read() as connection:
            instant = windows.policy(connection, window).sampling_instant
        if self._database.now() < 1000 * instant:
            return
        self._sampler.sign_list(window.origin)
        if challenge.complete(window) and window.challenged is None and window.sealed is None:
            try:
                self._sampler.draw(window.origin)
            except MalformedError as error:
                # Check 5 fails on the same record; there is nothing to wait for.
                _log.warning("window %s: no challenge: %s", window.origin, error)
                self._runner.start(window.origin)
                return
        with self._database.read() as connection:
            current = windows.get(connection, window.origin)
        if self._runner.due(current):
            self._runner.start(window.origin)
