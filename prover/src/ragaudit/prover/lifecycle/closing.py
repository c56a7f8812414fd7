"""Closing a window: claims, close entry, final checkpoint, handover (spec 8.3)."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from ragaudit import core
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import Conflict, MalformedError, RejectedError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.checkpoints import SignedCheckpoint
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.entries import Accounts, Charge, Close, Documents, Record
from ragaudit.ledger.messages.handover import PART_ENTRIES, Entry, write_handover
from ragaudit.ledger.messages.promises import Claim
from ragaudit.privacy import coalition
from ragaudit.privacy.coalition import estimate_direction
from ragaudit.prover.answering.answering import Retrieval
from ragaudit.prover.answering.generation import Generation
from ragaudit.prover.store.database import Store
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.lists import account_index, document_list
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import (
    LoggedSketch,
    count_records,
    entries,
    sketches,
)
from ragaudit.prover.window.registrations import find_pseudonym
from sqlalchemy import Connection

_log = logging.getLogger(__name__)


class Closing:
    """Finishes the log of a closed window and hands it over. Every step may be repeated."""

    def __init__(
        self,
        *,
        store: Store,
        retrieval: Retrieval,
        generation: Generation,
        verifier: VerifierClient,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._retrieval = retrieval
        self._generation = generation
        self._verifier = verifier
        self._clock = clock

    def finish_log(self, live: OpenWindow) -> bool:
        """Log outstanding claims, voids and the close entry; return False before the window's end.

        Raises:
            VerifierUnreachable, VerifierRefused: no claims this time; call again.
        """
        # By an earlier run that ended before the handover.
        if live.log.entries.is_frozen():
            return True
        after: bytes | None = b""
        while after is not None:  # all accounts' claims may be more than one answer holds
            page = self._verifier.claims(live.name, after)
            if page is None:
                return False
            self.log_claims(live, page.claims)
            after = page.next
        self._generation.settle(live)
        self._log_close(live)
        return True

    def log_claims(self, live: OpenWindow, claims: Sequence[Any]) -> None:
        """Log the promised records that were revealed to the verifier and never answered.

        Args:
            claims: as JSON. One that is not a claim to a promise of this window is dropped.
        """
        valid = []
        for value in claims:
            try:
                valid.append(self._read_claim(live, value))
            except (MalformedError, RejectedError) as error:
                # Whatever the verifier hands on: only what we promised is logged.
                _log.warning("window %s: a claim was dropped: %s", live.name, error)
        # An account's counters must rise in the log without a gap (check 8).
        for claim in sorted(valid, key=lambda claim: claim.promise.promised.counter):
            try:
                self._log_claim(live, claim)
            except Conflict as error:
                _log.error("window %s: a claim cannot be logged: %s", live.name, error)

    def coalition_claim(self, live: OpenWindow, logged: Iterable[coalition.Record]) -> int:
        """Return k-hat, by the estimate that the policy names (spec 7.2 or 7.5).

        Without noise there is no coalition to bound, and it is 0.

        Args:
            live: its policy has the estimator's parameters.
            logged: all records of the window, of every tenant.
        """
        policy = live.policy
        if not policy.noised:
            return 0
        if policy.by_direction:
            return estimate_direction(logged, limit=policy.queries_per_account).k_hat
        estimate = coalition.estimate(
            logged,
            tau=policy.link_time,
            life=policy.promise_life,
            threshold=policy.estimator.hamming_threshold,
            link=core.link_accounts,
        )
        return estimate.k_hat

    def handover(self, live: OpenWindow, part: int) -> bytes:
        """Return a part of all entries in order, with salts, bodies, and the records' sketches.

        Args:
            part: its number, from 0.

        Returns:
            The frames of docs/spec/08-services.md §8.3; texts and other openings stay here.
            Nothing after the log's end.
        """
        start, end = part * PART_ENTRIES, (part + 1) * PART_ENTRIES
        with self._store.read() as connection:
            shown = {
                sketch.position: sketch for sketch in sketches(connection, live.name, start, end)
            }
            return write_handover(
                _with_sketch(entry, shown.get(entry.index))
                for entry in entries(connection, live.name, start, end)
            )

    def hand_over(self, live: OpenWindow, final: SignedCheckpoint) -> None:
        """Give the verifier all bodies and the final checkpoint: bodies first, then it checks.

        Part by part, so that neither side holds the whole, and after an interruption only what the
        verifier does not have is sent again.

        Args:
            final: cosigned, of the whole log.

        Raises:
            VerifierUnreachable, VerifierRefused: not taken; both calls may be repeated.
        """
        held, digest, number = self._verifier.held_parts(live.name), sha256(), 0
        while part := self.handover(live, number):
            digest.update(part)
            if number >= held.parts and not held.complete:
                self._verifier.put_part(live.name, number, part)
            number += 1
        # Over all of it: what the verifier holds from an earlier run must be these very bytes.
        self._verifier.put_parts(live.name, number, digest.digest())
        self._verifier.close_window(live.name, final.encode())

    def _read_claim(self, live: OpenWindow, value: Any) -> Claim:
        claim = Claim.from_json(value)
        promise = claim.promise
        # Everything is verified again: a logged record is evidence against us, not the verifier.
        if promise.origin != live.origin:
            raise ReceiptRejected("a promise of another window", where="claim")
        promise.verify(live.policy.keys.provider)
        entry = promise.promised
        with self._store.read() as connection:
            registered = find_pseudonym(connection, live.name, entry.pseudonym)
        if registered is None or registered.anchor is None:
            raise ReceiptRejected("a promise to nobody registered", where="claim")
        verify_nonce(live.name, entry.pseudonym, registered.anchor, entry.counter, claim.nonce)
        return claim

    def _log_claim(self, live: OpenWindow, claim: Claim) -> None:
        entry = claim.promise.promised
        with self._store.read() as connection:
            registered = find_pseudonym(connection, live.name, entry.pseudonym)
        assert registered is not None  # `_read_claim` found it
        charged = isinstance(entry, Charge)
        channel = self._generation.charging if charged else self._retrieval
        channel.keep_claimed(live, registered, claim)

    def _log_close(self, live: OpenWindow) -> None:
        # Before the transaction: nobody else may wait while a large window is counted.
        with self._store.read() as reading:
            head = live.log.entries.head(reading)
            count = count_records(reading, live.name)
            k_hat = self.coalition_claim(live, map(_asked, sketches(reading, live.name)))
            ends: list[Documents | Accounts] = []
            if live.policy.owners is not None:
                ends += self.documents(reading, live)
            if live.policy.account_index:
                ends.append(self.accounts(reading, live))
        with live.committing(self._store) as transaction:
            connection = transaction.connection
            # Only claims are logged now, and all of them were: nothing is missing from either.
            if live.log.entries.head(connection) != head:
                raise Conflict("the log grew meanwhile", where=live.name, expected="another step")
            # Before the close and in its transaction, so that they count all that the log ever has.
            for body in ends:
                self._append(transaction, live, body)
            self._append(transaction, live, Close(live.name, count, k_hat, self._clock()))
            transaction.flush()
            # In the same transaction: nothing may follow the close entry (check 5).
            live.log.entries.freeze(connection)

    def accounts(self, connection: Connection, live: OpenWindow) -> Accounts:
        """Return the entry that commits to every account's records (spec 5.14).

        Args:
            connection: reads what the closing transaction ends.
        """
        return account_index(connection, live.name).entry

    def documents(self, connection: Connection, live: OpenWindow) -> list[Documents]:
        """Return the entries that list every tenant's documents, in policy order (spec 5.16).

        Args:
            connection: reads what the closing transaction ends.
        """
        lists = (document_list(connection, live.name, tenant) for tenant in live.policy.tenants)
        return [each.entry for each in lists]

    def _append(
        self, transaction: LogTransaction, live: OpenWindow, body: Documents | Accounts | Close
    ) -> None:
        place = (body.tenant,) if isinstance(body, Documents) else ()
        salt = live.randomness.draw(SALT_BYTES, body.KIND, live.name, *place)
        transaction.append(body.KIND, salt, body.encode())


def _asked(logged: LoggedSketch) -> coalition.Record:
    record = Record.parse(logged.body)
    anchored = record.nonce is not None
    return coalition.Record(record.pseudonym, record.time, logged.sketch, anchored)


def _with_sketch(entry: Entry, shown: LoggedSketch | None) -> Entry:
    return entry if shown is None else replace(entry, salt_s=shown.salt_s, sketch=shown.sketch)
