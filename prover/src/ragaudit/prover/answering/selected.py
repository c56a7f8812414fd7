"""A query whose rows are selected: its documents, its record, its receipt (spec 8.7, 4 and 5)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Answer
from ragaudit.prover.answering.stage import Stage
from ragaudit.prover.errors import BackendUnavailable
from ragaudit.prover.store.states import State
from ragaudit.prover.window.answered import (
    Asked,
    Delivery,
    Place,
    SelectedRow,
    delivery_of,
    note_answered,
    note_served,
)
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.receipts import answer_of, receipt_file, ties_that_leave
from ragaudit.prover.window.records import LoggedRecord, RecordOpenings, append_entry, insert_record
from ragaudit.prover.window.registrations import count_record
from ragaudit.serving.exchange import Receipt, note, phase
from sqlalchemy import Connection


@dataclass(frozen=True, repr=False, eq=False)
class Selected(Stage):
    """The record is whole, but for a plain account's time. ``salt`` is its leaf's, 32 bytes."""

    record: Record
    opened: RecordOpenings
    salt: bytes = field(repr=False)
    asked: Asked | None = None
    delivery: Delivery | None = None

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        return self.record.version

    def log(self, asked: Asked | None = None) -> "Logged":
        """4. Make the record durable; the documents are fetched before, as that may fail.

        Args:
            asked: by what the same request will be known again; None: by its digest alone.

        Raises:
            StoreUnavailable, BackendUnavailable: nothing was answered; try again.
        """
        # First: once the counter is used up, a missing document could not be made good.
        delivery = self.delivered()
        # Stored with the record: the answer to a retry must not depend on the backend's state.
        ready = replace(self, asked=asked, delivery=delivery)
        with phase("commit"):
            logged = ready.commit_record(State.OPEN)
        return self.logged(logged, delivery)

    def again(self, logged: LoggedRecord) -> "Logged":
        """Go on with what is logged already: the first answer may never have arrived.

        Nor may the fence know of it, if the process died after the commit.
        """
        window = self.window
        window.fence.advance(
            window.log.entries.head(), {self.registered.pseudonym: self.record.counter + 1}
        )
        place = Place(window.name, logged.position)
        with self.context.store.read() as connection:
            stored = delivery_of(connection, place)
        return self.logged(logged, stored or self.delivered_late(place, logged.issued))

    def claimed(self) -> LoggedRecord:
        """Make a claimed record durable at the close of its window, with what leaves for it.

        The account asks for that later, when the documents may be others. Whether they can be had
        now decides nothing: a claim that is not logged would be held against the provider.
        """
        delivery = None
        with suppress(BackendUnavailable):
            delivery = self.delivered()
        return replace(self, delivery=delivery).commit_record(State.CLOSED)

    def delivered_late(self, place: Place, issued: int) -> Delivery:
        """Return what leaves for a record of which nothing is stored, and store it.

        Args:
            place: of the record.
            issued: the receipt's time, Unix milliseconds.
        """
        ready = replace(self, delivery=self.delivered())
        assert ready.delivery is not None
        with self.context.store.write() as connection:
            # Somebody may have asked for the same one meanwhile.
            stored = delivery_of(connection, place)
            if stored is None:
                ready.note(connection, place, issued)
        return stored or ready.delivery

    def logged(self, record: LoggedRecord, delivery: Delivery) -> "Logged":
        """Return the next stage.

        Args:
            record: durable.
            delivery: what leaves for it.
        """
        return self.context.stages.logged(
            self.context, self.window, self.registered, record, delivery.rows, delivery.withdrawn
        )

    def delivered(self) -> Delivery:
        """Return what of the selection can be given out, and what is withdrawn.

        Raises:
            BackendUnavailable: as `documents`.
        """
        with phase("fetch"):
            rows = self.documents()
        found = {row.position for row in rows}
        withdrawn = sorted(at for at in self.answer_positions() if at not in found)
        return Delivery(tuple(rows), tuple(withdrawn))

    def answer_positions(self) -> Sequence[int]:
        """Return the selected rows that the answer shows, in its order, whatever the store holds.

        With noise they are all of T, in row order: an order by score would tell what noise hides.
        Without, they are its first K, the best first.
        """
        if self.window.policy.noised:
            return self.opened.selected
        mechanism = self.context.mechanism
        embedding = np.array(self.opened.openings.embedding, dtype=np.int16)
        ordered = mechanism.order(self.index, embedding, self.opened.selected)
        return [position for position, _ in ordered[: self.record.top_k]]

    def documents(self) -> list[SelectedRow]:
        """Return the rows of the answer with their documents as they were committed.

        A document that is gone or changed is left out, in neither form.

        Raises:
            BackendUnavailable: the backend cannot be asked.
        """
        index, positions = self.index, self.answer_positions()
        documents = self.context.backend.fetch(index.tenant, [index.ids[at] for at in positions])
        rows = []
        for at, document in zip(positions, documents, strict=True):
            # A row that was served changed would fail step 8 of its receipt.
            if document is not None and index.holds(at, document, self.window.form):
                rows.append(SelectedRow(at, document))
        return rows

    def commit_record(self, state: State) -> LoggedRecord:
        """Store counter, time, leaf and openings in a durable transaction; then the fence.

        Answers of other requests may share the transaction.

        Args:
            state: in which the window must still be; CLOSED for a claim, which nobody answers.

        Raises:
            WrongState: the window is in another state.
            VersionMoved: an activation or a version came that is not in memory.
            Conflict: the account's counter moved, or the promise is too old.
            QueryRefused: the window ended meanwhile, or the clock is behind the cosigner's.
            WindowUnusable, StoreUnavailable: nothing may be answered.
        """
        # Outside of the transaction, in which others wait.
        encoded = self.opened.encode()
        return self.window.commit(
            self.context.store, lambda transaction: self._commit(transaction, state, encoded)
        )

    def _commit(self, transaction: LogTransaction, state: State, openings: bytes) -> LoggedRecord:
        window, account, context = self.window, self.registered.account, self.context
        record, counter, connection = self.record, self.record.counter, transaction.connection
        # A window that closed meanwhile takes the records of claims only.
        self.check_window(connection, state)
        # Read again: the work since `admit` was done outside the transaction.
        current = self.current(transaction, counter)
        # The fence counts a promise as used: an anchored account's counter is in it already.
        promised = self.registered.anchor is not None
        transaction.use_counter(current.pseudonym, counter + promised, counter + 1)
        if not promised:
            record = self.stamp(current, record)
        elif state is State.OPEN:
            # However long the work took: a checkpoint made meanwhile would contradict it.
            self.check_age(record)
        if self.delivery is not None and not window.policy.noised:
            record = replace(record, withheld=len(self.delivery.withdrawn))
        body, issued = record.encode(), context.clock()
        position = append_entry(
            connection, window.log.entries, window.name, Record.KIND, self.salt, body
        )
        insert_record(
            connection,
            window.name,
            position,
            account=account,
            counter=counter,
            openings=openings,
            issued=issued,
        )
        count_record(connection, window.name, account, record.time)
        self.note(connection, Place(window.name, position), issued)
        return LoggedRecord(position, self.salt, body, self.opened, issued)

    def note(self, connection: Connection, place: Place, issued: int) -> None:
        """Store what leaves, so that a retry gets it again.

        Args:
            connection: of the transaction that logs the record.
            place: of the record.
            issued: the receipt's time, Unix milliseconds.
        """
        delivery, account = self.delivery, self.registered.account
        if delivery is None:
            return
        asked = self.asked or Asked.of(self.opened.request)
        note_answered(
            connection, place, account=account, asked=asked, issued=issued, delivery=delivery
        )
        note_served(connection, place.window, account, self.record.version, delivery.rows)


@dataclass(frozen=True, repr=False, eq=False)
class Logged(Stage):
    """The record is durable and the fence knows of it: it may be answered."""

    record: LoggedRecord
    rows: Sequence[SelectedRow]
    withdrawn: tuple[int, ...] = ()

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        return self.record.record.version

    def answered(self) -> Answer:
        """5. Return the answer alone; its receipt can be made of what is stored at any time.

        A ties opening is proven and stored now, while its index is in memory.
        """
        note(receipt=Receipt(self.window.name, self.record.position))
        with phase("sign"):
            self.ties(Delivery(tuple(self.rows), self.withdrawn))
            return self.answer_documents()

    def answer(self) -> ReceiptFile:
        """5. Return the receipt file, which is the answer: both halves of the receipt."""
        delivery = Delivery(tuple(self.rows), self.withdrawn)
        note(receipt=Receipt(self.window.name, self.record.position))
        with phase("sign"):
            return receipt_file(
                self.record,
                self.index,
                delivery,
                self.answer_documents(),
                policy=self.window.policy,
                key=self.context.key,
                ties=self.ties(delivery),
            )

    def ties(self, delivery: Delivery) -> bytes | None:
        """Return the proof that the answer holds the first rows of T, None where none is needed.

        Args:
            delivery: what leaves.
        """
        return ties_that_leave(
            self.context.store, self.window.policy, self.index, self.record, delivery
        )

    def answer_documents(self) -> Answer:
        """Return the answer: documents in its order, with scores where there is no noise."""
        return answer_of(self.window.policy, self.index, self.record, self.rows)
