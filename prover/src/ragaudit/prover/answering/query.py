"""A query on its way to its receipt: the order of work of spec 8.7, from the top to the bottom.

    plain      Query -> Admitted -> Described -> Selected -> Logged -> receipt file
    anchored   Query -> Admitted -> Described -> Promised, sent; after the nonce came:
               Query -> Admitted -> Promised -> Selected -> Logged -> receipt file

Each stage holds what was made so far and has the moves to the next one: none can be left out,
since a stage is made by the one before, and none repeated, since `Selected.commit_record` uses up
the counter. What fails before that commit leaves no trace. The methods carry the specification's
step numbers; step 3 is `Stage.selection`, the same on both ways.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.encoding.errors import Conflict, InternalError, RefusedError, UnsupportedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.chains import NONCE_BYTES
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.filters import request_filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Claim, Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import (
    MAX_QUERY_BYTES,
    Answer,
    Openings,
    Request,
    embedding_digest,
    float32_values,
)
from ragaudit.prover.answering.context import Context
from ragaudit.prover.answering.mechanism import Embedding, Mechanism
from ragaudit.prover.answering.receipts import answer_of, receipt_file, ties_that_leave
from ragaudit.prover.errors import (
    AccountAnchored,
    BackendUnavailable,
    MalformedQuery,
    VersionMoved,
    WindowUnusable,
)
from ragaudit.prover.index.committed import VERSION, CommittedIndex
from ragaudit.prover.randomness import EPOCH
from ragaudit.prover.sequencer import aside
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.states import State, check_state
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import (
    INSERT_KEY,
    Asked,
    Delivery,
    LoggedRecord,
    Place,
    RecordOpenings,
    SelectedRow,
    delivery_of,
    find_promise,
    is_revealed,
    key_row,
    note_delivery,
    note_nonce,
    put_promise,
)
from ragaudit.prover.window.registrations import Registered
from ragaudit.serving.exchange import Receipt, note, phase


@dataclass(frozen=True, repr=False, eq=False)
class Stage:
    """A query of an account that was admitted, or that claims what it was promised."""

    context: Context
    window: OpenWindow
    registered: Registered

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        raise NotImplementedError

    @property
    def index(self) -> CommittedIndex:
        """The index of the account's tenant, in the version that the record names."""
        return self.window.index_of(self.registered.tenant, self.version)

    def current(self, transaction: LogTransaction, counter: int) -> Registered:
        """Return the registration as a transaction reads it.

        Args:
            transaction: the one that will use the counter.
            counter: of the query, as it was at its admission.

        Raises:
            Conflict: ``counter`` is not its next one any more.
        """
        name = self.window.name
        current = transaction.registered(self.registered.account)
        if current is None or current.counter != counter:
            raise Conflict("the account's counter moved", where=name)
        return current

    def check_window(self, transaction: LogTransaction, state: State) -> None:
        """Check that the window still answers, and that nothing of it changed unnoticed.

        Args:
            transaction: that holds the log's lock.
            state: in which the window must still be.

        Raises:
            WrongState: it is in another one.
            WindowUnusable: it was stopped for good.
            VersionMoved: an activation or a version of the index is not in memory yet.
        """
        window = self.window
        status = transaction.status(self.context.windows)
        check_state(window.name, status.state, (state,))
        if status.unusable is not None:
            raise WindowUnusable(status.unusable, where=window.name)
        # Of this transaction: what another process put in force is never overlooked.
        if state is State.OPEN and status.generation != window.generation:
            raise VersionMoved("the window moved on", where=window.name)

    def stamp(self, current: Registered, record: Record) -> Record:
        """Return the record with the present time; call it inside `OpenWindow.committing`.

        Whatever the work before took, the checkpoints around an entry then confirm its time.

        Args:
            current: the registration as the same transaction reads it.
            record: complete but for its time, or of a promise without nonce and selection.

        Raises:
            QueryRefused: the window ended meanwhile, or the clock is behind the cosigner's.
            VersionMoved: another version of the index came into force meanwhile.
        """
        window, policy = self.window, self.window.policy
        # Times of one account never go back, whatever the clock does.
        time = max(self.context.clock(), current.last_time)
        if time >= 1000 * policy.end:
            raise self.context.refuse(window, current, "closed")
        # Check 9 of the audit would hold such a time against the provider.
        if time < window.log.known_time - 1000 * policy.clock_skew_seconds:
            raise self.context.refuse(
                window, current, "unavailable", "the clock is behind the cosigner's by the skew"
            )
        index = window.versions.in_force(record.tenant, time)
        # Check 9 of the audit wants the version that is in force at the record's time.
        if index is None or index.version != record.version:
            raise VersionMoved("another version of the index came into force", where=window.name)
        if window.epochs.in_force(time) != record.epoch:
            raise VersionMoved("another seed epoch came into force", where=window.name)
        return replace(record, time=time)

    def selection(
        self, record: Record, request: Request, openings: Openings, nonce: bytes | None
    ) -> "Selected":
        """3. Draw z for all N rows, score, select among those that the filter allows, commit.

        Args:
            record: without nonce and selection.
            nonce: 32 bytes, None for a plain account.

        Raises:
            InternalError: a nonce too many or too few: the noise would not be what check 11 says.
            MalformedQuery: more rows tie than a receipt can name.
        """
        if (nonce is None) != (self.registered.anchor is None):
            raise InternalError(
                "a nonce of a plain account, or none of an anchored one", where="nonce"
            )
        context, window, index = self.context, self.window, self.index
        mechanism, randomness = context.mechanism, window.randomness
        # The embedding that the record's digest opens to, not one that is computed again.
        embedding = np.array(openings.embedding, dtype=np.int16)
        allowed = index.allowed(request_filter(request.filter, window.policy))
        if window.policy.noised:
            select = partial(_noised, mechanism, window, index, embedding, record, nonce, allowed)
            selected = index.pace.call(select)
        else:
            with phase("score"):
                selected = mechanism.exact_selection(index, embedding, record.top_k, allowed)
        # Unique to this query, as `Randomness` demands: no draw of a seeded window is repeated.
        purpose = (window.name, record.pseudonym, record.counter)
        blinding = randomness.scalars(1, "selection", *purpose)[0].tobytes()
        commitment = mechanism.selection_commitment(selected, blinding)
        return context.stages.selected(
            context,
            window,
            self.registered,
            replace(record, nonce=nonce, selection_commitment=commitment),
            RecordOpenings(
                request=request,
                openings=openings,
                selected=selected,
                selection_blinding=blinding,
                salt_r=randomness.draw(SALT_BYTES, "salt_r", *purpose),
            ),
            randomness.draw(SALT_BYTES, "record", *purpose),
        )

    def check_age(self, promised: Record) -> None:
        """Check that a promise can still be kept; a later nonce is for the verifier to judge.

        Args:
            promised: the record as it was promised, with the promise's time.

        Raises:
            Conflict: it is older than the policy's promise life.
        """
        policy = self.window.policy
        if self.context.clock() > promised.time + policy.promise_life:
            life = policy.promise_life_seconds
            raise Conflict("the promise is too old", where="counter", expected=f"within {life} s")


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
        return self.logged(logged, stored or self.delivered_late(place))

    def claimed(self) -> LoggedRecord:
        """Make a claimed record durable at the close of its window, with what leaves for it.

        The account asks for that later, when the documents may be others. Whether they can be had
        now decides nothing: a claim that is not logged would be held against the provider.
        """
        delivery = None
        with suppress(BackendUnavailable):
            delivery = self.delivered()
        return replace(self, delivery=delivery).commit_record(State.CLOSED)

    def delivered_late(self, place: Place) -> Delivery:
        """Return what leaves for a record of which nothing is stored, and store it.

        Args:
            place: of the record.
        """
        delivery = self.delivered()
        asked = self.asked or Asked.of(self.opened.request)
        with self.context.store.write() as connection:
            # Somebody may have asked for the same one meanwhile.
            stored = delivery_of(connection, place)
            if stored is None:
                note_delivery(connection, place, self.registered.account, asked, delivery)
        return stored or delivery

    def logged(self, record: LoggedRecord, delivery: Delivery) -> "Logged":
        """Return the next stage.

        Args:
            record: durable.
            delivery: what leaves for it.
        """
        return self.context.stages.logged(
            self.context, self.window, self.registered, record, self.version, delivery.rows,
            delivery.withdrawn,
        )  # fmt: skip

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
        record, counter = self.record, self.record.counter
        # A window that closed meanwhile takes the records of claims only.
        self.check_window(transaction, state)
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
        private = {"account": account, "counter": counter, "issued": issued, "openings": openings}
        asked = self.asked or Asked.of(self.opened.request)
        if self.delivery is not None:
            # What leaves: a retry gets it again.
            private |= {"request": asked.request, "delivery": self.delivery.encode()}
        position = transaction.append(Record.KIND, self.salt, body, **private)
        transaction.count(current, record.time)
        if self.delivery is not None and asked.key is not None:
            place = Place(window.name, position)
            transaction.later(INSERT_KEY, **key_row(account, asked.key, place))
        return LoggedRecord(position, self.salt, body, self.opened, issued)


@dataclass(frozen=True, repr=False, eq=False)
class Logged(Stage):
    """The record is durable and the fence knows of it: it may be answered.

    Attributes:
        index_version: that the record names; its body is not read for it.
    """

    record: LoggedRecord
    index_version: int
    rows: Sequence[SelectedRow]
    withdrawn: tuple[int, ...] = ()

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        return self.index_version

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


@dataclass(frozen=True, repr=False, eq=False)
class Query:
    """An authenticated account has a query to a window, and holds its lock there."""

    context: Context
    window: OpenWindow
    account: Account

    def admit(self, *, anchored: bool) -> "Admitted":
        """1. Check that account and window allow a query now: registered, open, r not used up.

        Args:
            anchored: whether the call is of the protocol for anchored accounts.

        Raises:
            QueryRefused: budget, closed or unavailable; signed.
            Conflict: the account is not registered, or not ``anchored`` as it should be.
        """
        window, policy = self.window, self.window.policy
        # Not in one transaction: the one that logs the record looks at both of them again.
        status = self.context.windows.status_now(window.name)
        registered = window.registered(self.context.store, self.account.id)
        if status.generation != window.generation:
            aside(window.catch_up)
        if registered is None:
            raise Conflict(
                "the account is not registered", where=window.name, expected="POST .../registration"
            )
        if registered.anchor is not None and not anchored:
            raise AccountAnchored(
                "the account is anchored, and cannot be shown a promise here",
                where=window.name,
                expected="a promise: .../promise, or .../ask with a counter; or a plain account",
            )
        if registered.anchor is None and anchored:
            raise Conflict(
                "the account is plain", where=window.name, expected="a call without a counter"
            )

        # What is refused from here on is signed, and the log must not contradict it (check 14).
        now = self.context.clock()
        refuse = partial(self.context.refuse, window, registered)
        if status.unusable is not None:
            raise refuse("unavailable", "the window was stopped for good")
        start, end = 1000 * policy.start, 1000 * policy.end
        if status.state is not State.OPEN or status.stopped or not start <= now < end:
            raise refuse("closed", again=start if now < start else None)
        if registered.counter >= policy.queries_per_account:
            # Not in this window: the next one begins then, at the earliest.
            raise refuse("budget", again=end)
        # Before its activation the verifier's share of the noise key is unknown (check 9).
        instants = [1000 * policy.release_instant(a) for a in range(1, policy.activations)]
        following = next((instant for instant in instants if instant > now), None)
        epoch = window.epochs.in_force(now)
        if epoch is None:
            raise refuse("unavailable", "restored; a new seed is activated first", again=following)
        index = window.versions.in_force(registered.tenant, now)
        if index is None:
            raise refuse(
                "unavailable", "a new version of the index comes into force", again=now + 1000
            )
        activation = self.activation(registered)
        if activation is not None:
            # It is in force, so it has one.
            later = window.versions.activation(registered.tenant, index.version)
            began = window.epochs.activation(epoch)
            activation = max(activation, later or activation, began or activation)
        if activation is None or now < instants[activation - 1]:
            raise refuse(
                "unavailable", "the registration is activated at the next instant", again=following
            )
        return self.context.stages.admitted(
            self.context, window, registered, activation, index.version, epoch
        )

    def activation(self, registered: Registered) -> int | None:
        """Return the record's a: the later of opening's and registration's, None before it.

        Where the index has a version of its own activation, that counts, too.
        """
        opening = self.window.activation_of(0)
        own = self.window.activation_of(registered.position)
        return None if opening is None or own is None else max(opening, own)


@dataclass(frozen=True, repr=False, eq=False)
class Admitted(Stage):
    """The account may ask now.

    Attributes:
        activation: its record's a, from 1.
        index_version: the version of its tenant's index that is in force.
        epoch: the seed epoch that is in force.
    """

    activation: int
    index_version: int = VERSION
    epoch: int = EPOCH

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        return self.index_version

    def describe(self, request: Request) -> "Described":
        """2. Embed, quantise, sketch.

        Raises:
            MalformedQuery, MalformedError: the query, K or filter, or the query's embedding.
        """
        check_request(request, self.index.count, self.window.policy)
        with phase("embed"):
            openings = self.openings(request)
        record = self.record(request, openings)
        return self.context.stages.described(
            self.context, self.window, self.registered, request, openings, record
        )

    def openings(self, request: Request) -> Openings:
        """Return the values that the record's digests will open to."""
        mechanism, estimator = self.context.mechanism, self.window.policy.estimator
        # A vector of the application's own is not embedded: e is its quantisation, exactly.
        values = (
            np.array(float32_values(request.vector), dtype=np.float32)
            if request.kind == "vector"
            else mechanism.embed(request.query)
        )
        embedding = mechanism.quantise(values, self.window.policy.norm_bound)
        # A salt of its own for each digest: equal queries must not have equal digests.
        purpose = (self.window.name, self.registered.pseudonym, self.registered.counter)
        salts = {
            name: self.window.randomness.draw(SALT_BYTES, name, *purpose)
            for name in ("salt_q", "salt_e", "salt_f", "salt_s")
        }
        return Openings(
            query=request.query,
            vector=request.vector,
            kind=request.kind,
            embedding=tuple(embedding.tolist()),
            filter=request.filter,
            sketch=mechanism.sketch(embedding, estimator.seed, estimator.sketch_bits),
            salt_q=salts["salt_q"],
            salt_e=salts["salt_e"],
            salt_f=salts["salt_f"],
            salt_s=salts["salt_s"],
        )

    def record(self, request: Request, openings: Openings) -> Record:
        """Return the record but for nonce and selection, at the account's last time.

        `stamp` puts the time in when record or promise becomes durable.
        """
        registered = self.registered
        return Record(
            policy_digest=self.window.policy_digest,
            window=self.window.name,
            tenant=registered.tenant,
            version=self.version,
            rows=self.index.count,
            top_k=request.top_k,
            filter_digest=salted(openings.salt_f, openings.filter),
            pseudonym=registered.pseudonym,
            epoch=self.epoch,
            slot=registered.slot,
            counter=registered.counter,
            activation=self.activation,
            time=registered.last_time,
            nonce=None,
            query_digest=salted(openings.salt_q, openings.question.data),
            embedding_digest=embedding_digest(openings.salt_e, openings.embedding),
            sketch_digest=salted(openings.salt_s, openings.sketch),
            selection_commitment=None,
        )

    def promised(self, promise: Promise) -> "Promised":
        """Go on with the promise that the account has for its counter."""
        return self.context.stages.promised(self.context, self.window, self.registered, promise)


@dataclass(frozen=True, repr=False, eq=False)
class Described(Stage):
    """The record is there but for nonce, selection and time."""

    request: Request
    openings: Openings
    record: Record

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        return self.record.version

    def select(self) -> "Selected":
        """Go on without a promise, for a plain account."""
        return self.selection(self.record, self.request, self.openings, None)

    def promise(self, *, superseded: Promise | None) -> "Promised":
        """2, for an anchored account: sign the promise and make it durable.

        It takes its time in the transaction that stores it. A promise for which its account would
        have no time left, or whose claim would be too long, is not made.

        Args:
            superseded: the expired promise for the same counter, if there is one.

        Raises:
            QueryRefused: closed, so near to the end that the promise could not be claimed.
            MalformedQuery: its claim would be too long.
            Conflict: the account's counter moved.
        """
        promise = self.window.commit(
            self.context.store, lambda transaction: self._promise(transaction, superseded)
        )
        return self.context.stages.promised(self.context, self.window, self.registered, promise)

    def _promise(self, transaction: LogTransaction, superseded: Promise | None) -> Promise:
        window, account, counter = self.window, self.registered.account, self.record.counter
        current = self.current(transaction, counter)
        self.check_window(transaction, State.OPEN)
        # Another process may have answered this call meanwhile, if the turn was lost.
        stored = find_promise(transaction.connection, window.name, account, counter)
        revealed = is_revealed(transaction.connection, window.name, account, counter)
        if stored != superseded or revealed:
            raise Conflict("the counter was promised meanwhile", where=window.name)
        # The fence knows of an expired promise already; of any other one it must not.
        before = counter + (superseded is not None)
        transaction.use_counter(current.pseudonym, before, counter + 1)
        record = self.stamp(current, self.record)
        # The account needs the margin to claim it at the verifier (check 12).
        if record.time > window.policy.last_promise:
            raise self.context.refuse(
                window, current, "closed", "no promise is made so near to the end"
            )
        promise = Promise.issue(
            self.context.key,
            origin=window.origin,
            body=record.encode(),
            request=self.request,
            openings=self.openings,
        )
        # Before it is stored: a promise that cannot be claimed does not bind the prover.
        check_claim(promise, window.policy.slots)
        put_promise(
            transaction, window.name, account, counter, promise, superseded=stored is not None
        )
        return promise


@dataclass(frozen=True, repr=False, eq=False)
class Promised(Stage):
    """An anchored account has the promise, and the prover waits for its nonce."""

    promise: Promise

    @property
    def record(self) -> Record:
        """The promised record."""
        record = self.promise.promised
        assert isinstance(record, Record)  # of this channel
        return record

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        return self.record.version

    def send(self) -> Promise:
        """Return the promise, once the fence knows of it: the process may have died before that."""
        self.window.fence.advance(
            self.window.log.entries.head(),
            {self.registered.pseudonym: self.registered.counter + 1},
        )
        return self.promise

    def reveal(self, nonce: bytes) -> "Selected":
        """Take the 32-byte nonce, which is of the account's chain, and go on.

        Raises:
            Conflict: the promise is too old, or of an earlier seed epoch.
        """
        record = self.record
        self.check_age(record)
        # Before the restore it may have been answered already. Claimed, it is kept at the end.
        if record.epoch != self.window.epochs.latest.epoch:
            raise Conflict(
                "the promise was made before a restore",
                where="counter",
                expected="a claim at the verifier",
            )
        # Durable before the noise is drawn: a promise whose noise was seen is never superseded.
        place = (self.window.name, self.registered.account, record.counter)

        def note(transaction: LogTransaction) -> None:
            # Of this transaction: another process may have superseded it, if the turn was lost.
            if find_promise(transaction.connection, *place) != self.promise:
                raise Conflict("the promise was superseded", where="counter")
            note_nonce(transaction, *place, nonce)

        self.window.commit(self.context.store, note)
        return self.select(nonce)

    def select(self, nonce: bytes) -> "Selected":
        """Go on with the 32-byte nonce, revealed to this prover or claimed at the verifier."""
        promise = self.promise
        return self.selection(self.record, promise.asked, promise.openings, nonce)


@dataclass(frozen=True)
class Stages:
    """The class of each stage; who wants a stage to do something else hands in another class."""

    query: type[Query] = Query
    admitted: type[Admitted] = Admitted
    described: type[Described] = Described
    promised: type[Promised] = Promised
    selected: type[Selected] = Selected
    logged: type[Logged] = Logged


def _noised(
    mechanism: Mechanism,
    window: OpenWindow,
    index: CommittedIndex,
    embedding: Embedding,
    record: Record,
    nonce: bytes | None,
    allowed: Sequence[int] | None,
) -> tuple[int, ...]:
    with phase("noise"):
        noise = mechanism.draw_noise(window, index, record, nonce)
    with phase("score"):
        top_k = record.top_k
        return mechanism.noised_selection(window, index, embedding, noise, top_k, allowed)


def check_request(request: Request, rows: int, policy: Policy) -> None:
    """Check a request to an index of ``rows`` rows, before anything is charged (spec 8.7).

    Args:
        rows: N, of the index that is asked.
        policy: bounds K.

    Raises:
        MalformedQuery: its text, K or filter.
    """
    try:
        # In bytes: the specification's bound is of the UTF-8 that the digest covers (spec 5.8).
        length = len(request.query.encode("utf-8"))
    except UnicodeEncodeError:
        raise MalformedQuery("text has lone surrogates", where="query") from None
    if request.kind != "vector" and not 1 <= length <= MAX_QUERY_BYTES:
        raise MalformedQuery(
            f"query of {length} bytes", where="query", expected=f"1..{MAX_QUERY_BYTES}"
        )
    # An answer with all rows would show the whole index, whatever the noise.
    most = min(policy.top_k_max, rows - 1)
    if not 1 <= request.top_k <= most:
        raise MalformedQuery(f"K is {request.top_k}", where="top_k", expected=f"1..{most}")
    try:
        request.check_policy(policy)
    except (MalformedRecord, UnsupportedError) as error:
        raise MalformedQuery(error.what, where=error.where, expected=error.expected) from None


def check_claim(promise: Promise, slots: int) -> None:
    """Check that an account could claim the promise; its library reveals nothing otherwise.

    Args:
        promise: signed, and not stored yet.
        slots: of the policy.

    Raises:
        MalformedQuery: the claim would be too long for any verifier.
    """
    try:
        Claim(promise, bytes(NONCE_BYTES)).encode_within(slots)
    except RefusedError as error:
        # Malformed, not refused: what makes a claim too long is the text of the query.
        raise MalformedQuery(error.what, where="query", expected=error.expected) from error
