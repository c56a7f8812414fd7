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
from dataclasses import dataclass, field
from functools import partial

from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.encoding.errors import Conflict
from ragaudit.ledger.messages.merkle_commitments import content_digest
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request, embedding_digest
from ragaudit.prover.answering.stage import Context, Stage, check_claim, check_request
from ragaudit.prover.errors import BackendUnavailable
from ragaudit.prover.index import VERSION, part
from ragaudit.prover.randomness import EPOCH
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.states import State, check_state
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import (
    LoggedRecord,
    RecordOpenings,
    SelectedRow,
    append_entry,
    insert_record,
    note_nonce,
    put_promise,
    receipt_file,
)
from ragaudit.prover.window.registrations import Registered, count_record, find

__all__ = ["Admitted", "Described", "Logged", "Promised", "Query", "Selected", "Stages"]


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
        with self.context.store.read() as connection:
            status = self.context.windows.status(connection, window.name)
            registered = find(connection, window.name, self.account.name)
        if registered is None:
            raise Conflict(
                "the account is not registered", where=window.name, expected="POST .../registration"
            )
        if anchored != (registered.anchor is not None):
            raise Conflict(
                "the account is anchored" if registered.anchor else "the account is plain",
                where=window.name,
                expected=".../promise and .../reveal" if registered.anchor else ".../query",
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
        activation = self.activation(registered)
        if activation is None or now < 1000 * policy.activation_instants[activation - 1]:
            instants = (1000 * instant for instant in policy.activation_instants[:-1])
            raise refuse(
                "unavailable",
                "the registration is activated at the next instant",
                again=next((instant for instant in instants if instant > now), None),
            )
        return self.context.stages.admitted(self.context, window, registered, activation)

    def activation(self, registered: Registered) -> int | None:
        """Return the record's a: the later of opening's and registration's, None before it."""
        opening = self.window.activation_of(0)
        own = self.window.activation_of(registered.position)
        return None if opening is None or own is None else max(opening, own)


@dataclass(frozen=True, repr=False, eq=False)
class Admitted(Stage):
    """The account may ask now. ``activation`` is its record's a, from 1."""

    activation: int

    def describe(self, request: Request) -> "Described":
        """2. Embed, quantise, sketch.

        Raises:
            MalformedQuery, MalformedError: the query, K or filter, or the query's embedding.
        """
        check_request(request, self.index.count, self.window.policy)
        openings = self.openings(request)
        record = self.record(request, openings)
        return self.context.stages.described(
            self.context, self.window, self.registered, request, openings, record
        )

    def openings(self, request: Request) -> Openings:
        """Return the values that the record's digests will open to."""
        mechanism, estimator = self.context.mechanism, self.window.policy.estimator
        embedding = mechanism.quantise(mechanism.embed(request.query))
        # A salt of its own for each digest: equal queries must not have equal digests.
        purpose = (self.window.name, self.registered.pseudonym, self.registered.counter)
        salts = {
            name: self.window.randomness.draw(SALT_BYTES, name, *purpose)
            for name in ("salt_q", "salt_e", "salt_f", "salt_s")
        }
        return Openings(
            query=request.query,
            embedding=tuple(embedding.tolist()),
            filter=request.filter,
            sketch=mechanism.sketch(embedding, estimator.seed, estimator.sketch_bits),
            **salts,
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
            version=VERSION,
            rows=self.index.count,
            top_k=request.top_k,
            filter_digest=salted(openings.salt_f, openings.filter),
            pseudonym=registered.pseudonym,
            epoch=EPOCH,
            slot=registered.slot,
            counter=registered.counter,
            activation=self.activation,
            time=registered.last_time,
            nonce=None,
            query_digest=salted(openings.salt_q, openings.query),
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
        window, account, counter = self.window, self.registered.account, self.record.counter
        with window.committing(self.context.store) as transaction:
            current = self.current(transaction, counter)
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
            check_claim(promise)
            put_promise(transaction.connection, window.name, account, counter, promise)
        return self.context.stages.promised(self.context, window, self.registered, promise)


@dataclass(frozen=True, repr=False, eq=False)
class Promised(Stage):
    """An anchored account has the promise, and the prover waits for its nonce."""

    promise: Promise

    def send(self) -> Promise:
        """Return the promise, once the fence knows of it: the process may have died before that."""
        self.window.fence.advance(
            self.window.log.entries.head(), self.registered.pseudonym, self.registered.counter + 1
        )
        return self.promise

    def reveal(self, nonce: bytes) -> "Selected":
        """Take the 32-byte nonce, which is of the account's chain, and go on.

        Raises:
            Conflict: the promise is too old.
        """
        record = self.promise.record
        self.check_age(record)
        # Durable before the noise is drawn: a promise whose noise was seen is never superseded.
        with self.window.committing(self.context.store) as transaction:
            note_nonce(
                transaction.connection,
                self.window.name,
                self.registered.account,
                record.counter,
                nonce,
            )
        return self.select(nonce)

    def select(self, nonce: bytes) -> "Selected":
        """Go on with the 32-byte nonce, revealed to this prover or claimed at the verifier."""
        promise = self.promise
        return self.selection(promise.record, promise.request, promise.openings, nonce)


@dataclass(frozen=True, repr=False, eq=False)
class Selected(Stage):
    """The record is whole, but for a plain account's time. ``salt`` is its leaf's, 32 bytes."""

    record: Record
    opened: RecordOpenings
    salt: bytes = field(repr=False)

    def log(self) -> "Logged":
        """4. Make the record durable; the documents are fetched before, as that may fail.

        Raises:
            StoreUnavailable, BackendUnavailable: nothing was answered; try again.
        """
        # First: once the counter is used up, a missing document could not be made good.
        rows = self.documents()
        logged = self.commit_record(State.OPEN)
        return self.context.stages.logged(self.context, self.window, self.registered, logged, rows)

    def again(self, logged: LoggedRecord) -> "Logged":
        """Go on with what is logged already: the first answer may never have arrived.

        Nor may the fence know of it, if the process died after the commit.
        """
        self.window.fence.advance(
            self.window.log.entries.head(), self.registered.pseudonym, self.record.counter + 1
        )
        return self.context.stages.logged(
            self.context, self.window, self.registered, logged, self.documents()
        )

    def documents(self) -> list[SelectedRow]:
        """Return the selected rows with their documents, in row order, as committed.

        Raises:
            BackendUnavailable: a document is gone, or is not the committed one any more.
        """
        index, selected = self.index, self.opened.selected
        documents = self.context.backend.fetch(index.tenant, [index.ids[at] for at in selected])
        for at, document in zip(selected, documents, strict=True):
            # A row that was served changed would fail step 8 of its receipt.
            if content_digest(document.content) != part(index.content_digests, at):
                raise BackendUnavailable(
                    "a document changed after the commitment", where=f"row {at}"
                )
        return [SelectedRow(*pair) for pair in zip(selected, documents, strict=True)]

    def commit_record(self, state: State) -> LoggedRecord:
        """Store counter, time, leaf and openings in one durable transaction; then the fence.

        Args:
            state: in which the window must still be; CLOSED for a claim, which nobody answers.

        Raises:
            WrongState: the window is in another state.
            Conflict: the account's counter moved, or the promise is too old.
            QueryRefused: the window ended meanwhile, or the clock is behind the cosigner's.
            WindowUnusable, StoreUnavailable: nothing may be answered.
        """
        window, account, context = self.window, self.registered.account, self.context
        record, counter = self.record, self.record.counter
        with window.committing(context.store) as transaction:
            connection = transaction.connection
            # A window that closed meanwhile takes the records of claims only.
            now = context.windows.status(connection, window.name).state
            check_state(window.name, now, (state,))
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
                openings=self.opened,
                issued=issued,
            )
            count_record(connection, window.name, account, record.time)
        return LoggedRecord(position, self.salt, body, self.opened, issued)


@dataclass(frozen=True, repr=False, eq=False)
class Logged(Stage):
    """The record is durable and the fence knows of it: it may be answered."""

    record: LoggedRecord
    rows: Sequence[SelectedRow]

    def answer(self) -> ReceiptFile:
        """5. Return the receipt file, which is the answer: both halves of the receipt."""
        return receipt_file(
            self.record,
            self.index,
            self.rows,
            self.answer_documents(),
            origin=self.window.origin,
            key=self.context.key,
        )

    def answer_documents(self) -> Answer:
        """Return the answer: documents in row order, without scores."""
        return Answer(
            tuple(
                Document(row.position, row.document.id, row.document.content) for row in self.rows
            )
        )


@dataclass(frozen=True)
class Stages:
    """The class of each stage; who wants a stage to do something else hands in another class."""

    query: type[Query] = Query
    admitted: type[Admitted] = Admitted
    described: type[Described] = Described
    promised: type[Promised] = Promised
    selected: type[Selected] = Selected
    logged: type[Logged] = Logged
