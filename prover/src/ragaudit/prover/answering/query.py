"""A query on its way to its receipt: the order of work of spec 8.7, from the top to the bottom.

    plain      Query -> Admitted -> Described -> Selected -> Logged -> receipt file
    anchored   Query -> Admitted -> Described -> Promised, sent; after the nonce came:
               Query -> Admitted -> Promised -> Selected -> Logged -> receipt file

Each stage holds what was made so far and has the moves to the next one: none can be left out,
since a stage is made by the one before, and none repeated, since `Selected.commit_record` uses up
the counter. What fails before that commit leaves no trace. The methods carry the specification's
step numbers; step 3 is `Stage.selection`, the same on both ways.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.encoding.errors import Conflict
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Openings, Request, embedding_digest
from ragaudit.ledger.messages.vectors import float32_values
from ragaudit.prover.answering.selected import Logged, Selected
from ragaudit.prover.answering.stage import Context, Stage, check_claim, check_request
from ragaudit.prover.errors import AccountAnchored
from ragaudit.prover.index.committed import VERSION
from ragaudit.prover.randomness import EPOCH
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.states import State
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.promised import find_promise, is_revealed, note_nonce, put_promise
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.serving.exchange import phase

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
        # Not in one transaction: the one that logs the record reads both of them again.
        with self.context.store.look() as connection:
            status = self.context.windows.status(connection, window.name)
            registered = find(connection, window.name, self.account.id)
        if status.generation != window.generation:
            window.catch_up()
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
        window, account, counter = self.window, self.registered.account, self.record.counter
        with window.committing(self.context.store) as transaction:
            current = self.current(transaction, counter)
            self.check_window(transaction.connection, State.OPEN)
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
            check_claim(promise)
            put_promise(transaction.connection, window.name, account, counter, promise)
        return self.context.stages.promised(self.context, window, self.registered, promise)


@dataclass(frozen=True, repr=False, eq=False)
class Promised(Stage):
    """An anchored account has the promise, and the prover waits for its nonce."""

    promise: Promise

    @property
    def version(self) -> int:
        """The version of the index that the record names."""
        return self.promise.record.version

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
        record = self.promise.record
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
        with self.window.committing(self.context.store) as transaction:
            # Of this transaction: another process may have superseded it, if the turn was lost.
            if find_promise(transaction.connection, *place) != self.promise:
                raise Conflict("the promise was superseded", where="counter")
            note_nonce(transaction.connection, *place, nonce)
        return self.select(nonce)

    def select(self, nonce: bytes) -> "Selected":
        """Go on with the 32-byte nonce, revealed to this prover or claimed at the verifier."""
        promise = self.promise
        return self.selection(promise.record, promise.asked, promise.openings, nonce)


@dataclass(frozen=True)
class Stages:
    """The class of each stage; who wants a stage to do something else hands in another class."""

    query: type[Query] = Query
    admitted: type[Admitted] = Admitted
    described: type[Described] = Described
    promised: type[Promised] = Promised
    selected: type[Selected] = Selected
    logged: type[Logged] = Logged
