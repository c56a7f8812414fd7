"""The life of a question, whichever channel it is asked in (spec 8.7, 11.9).

    plain      admitted, logged, answered
    anchored   admitted, promised; after the nonce came: logged, answered

A `Channel` says what differs. A promise is durable before it is sent, and the fence knows of it, so
that no restart and no restored backup makes the prover promise two different things for one
counter.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import ClassVar, Generic, TypeVar

from ragaudit.encoding.errors import Conflict, TooEarly, TooMany
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.missing import VoidedCharge
from ragaudit.ledger.messages.promises import Claim, Promise
from ragaudit.ledger.messages.receipts import GenerationRequest, LoggedEntry, ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.context import Context, seconds_until
from ragaudit.prover.answering.query import Admitted, Logged
from ragaudit.prover.errors import ChargeVoided, PromisePending, VersionMoved
from ragaudit.prover.sequencer import Lookup, aside
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.charges import (
    StoredAnswer,
    StoredCharge,
    answer_of_charge,
    charge_of,
    put_void,
)
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import (
    Asked,
    LoggedRecord,
    find_identical_each,
    find_keyed,
    find_promise,
    is_revealed,
    note_key,
    record_at,
    record_of,
)
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.serving.exchange import phase

Q = TypeVar("Q", Request, GenerationRequest)
T = TypeVar("T")


class Channel(ABC, Generic[Q, T]):
    """What accounts ask in: Q is a question, T its entry once that is durable, to be answered.

    Safe to use from several threads.

    Attributes:
        supersedes: whether an expired promise of a query gives way to a new one.
        occupied, way_out: what is said of a promise that does not, and what it waits for.
        missing: what is said where there is no promise to keep.
    """

    supersedes: ClassVar[bool]
    occupied: ClassVar[str]
    way_out: ClassVar[str]
    missing: ClassVar[str]

    def __init__(self, context: Context) -> None:
        self.context = context

    def take(self, live: OpenWindow, account: Account, request: Q, asked: Asked | None = None) -> T:
        """Take a plain account's question up to its durable entry, and return that.

        What was asked before, as `before` says, is not charged again.

        Args:
            live: the window that is asked, whatever its state: `Query.admit` judges it.
            account: authenticated; plain in this window.
            request: without a counter, which a plain account does not choose (spec 5.8).
            asked: digests of this request and of the key that came with it.

        Raises:
            MalformedQuery, MalformedError: the question, K or filter, or its embedding.
            QueryRefused: budget, closed or unavailable; signed.
            Conflict: the account is not registered, or is anchored, or used the key for another
                request.
            StoreUnavailable, BackendUnavailable: nothing was answered; try again.
            RagauditError: as `log`.
        """
        asked = asked or Asked.of(request)
        with live.account_lock(account.id):
            with phase("admit"):
                before = self.before(live, account, asked)
            return before or self._taken(live, account, request, asked)

    def _taken(self, live: OpenWindow, account: Account, request: Q, asked: Asked) -> T:
        """Take the steps of a plain account's question, again if the window moved on the way."""
        for last in (False, True):
            try:
                with phase("admit"):
                    admitted = self.admit(live, account, anchored=False)
                return self.log(admitted, request, asked)
            except VersionMoved:
                # Nothing was logged, and nothing left: the same counter is used again.
                if last:
                    raise
        raise AssertionError("unreachable")

    def admit(self, live: OpenWindow, account: Account, *, anchored: bool) -> Admitted:
        """Return the account's admission, see `Query.admit`; call it under the account's lock."""
        return self.context.stages.query(self.context, live, account).admit(anchored=anchored)

    @abstractmethod
    def before(self, live: OpenWindow, account: Account, asked: Asked) -> T | None:
        """Return the entry of which a retry wants the answer again, None if this is no retry."""

    @abstractmethod
    def log(self, admitted: Admitted, request: Q, asked: Asked) -> T:
        """Make the entry of an admitted question durable."""

    @abstractmethod
    def promise(self, admitted: Admitted, request: Q, superseded: Promise | None) -> Promise:
        """Return a promise to an anchored account, durable and known to the fence.

        Args:
            superseded: the expired promise for the same counter, if there is one.
        """

    @abstractmethod
    def keep(self, live: OpenWindow, account: Account, promise: Promise, nonce: bytes) -> T:
        """Make the entry of a promise durable, with its nonce; the same one when repeated.

        Args:
            account: anchored, as whoever holds its lock has seen.
            promise: as it is stored.
            nonce: 32 bytes, verified.
        """

    @abstractmethod
    def keep_claimed(self, live: OpenWindow, registered: Registered, claim: Claim) -> None:
        """Keep a promise whose nonce its account gave to the verifier.

        Args:
            registered: the anchored account that was promised.
            claim: verified, of this window.

        Raises:
            Conflict: it cannot be kept.
        """


class Retrieval(Channel[Request, Logged]):
    """Documents by their nearness, with noise or, where the policy has none, exactly."""

    supersedes = True
    # Two promises that differ for one counter fail check 12.
    occupied = "the counter has a promise for another request"
    way_out = "the nonce of that promise"
    missing = "no promise for this counter"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._identical = Lookup(partial(find_identical_each, context.store))

    def before(self, live: OpenWindow, account: Account, asked: Asked) -> Logged | None:
        """Return the record that a key or the policy's `retry_seconds` make the same request."""
        store, policy = self.context.store, live.policy
        # Under the account's lock: two requests at once must not both find nothing.
        repeats = policy.retrieval.retry_seconds > 0
        keyed = place = None
        if asked.key is not None:
            with store.look() as connection:
                keyed = place = find_keyed(connection, account.id, asked)
        if place is None and repeats:
            since = self.context.clock() - 1000 * policy.retrieval.retry_seconds
            place = self._identical.get((live.name, account.id, asked.request, since))
        if place is None or place.window != live.name:
            return None
        with store.read() as connection:
            registered = find(connection, live.name, account.id)
            logged = record_at(connection, live.name, place.position)
        if not keyed and asked.key is not None:
            # A client may make a key for each attempt: its next one may come much later.
            with store.write() as connection:
                note_key(connection, account.id, asked, place)
        assert registered is not None and logged is not None  # the tables refer to each other
        return self.repeated(live, registered, logged)

    def log(self, admitted: Admitted, request: Request, asked: Asked) -> Logged:
        """Select, and make the record durable."""
        return admitted.describe(request).select().log(asked)

    def promise(self, admitted: Admitted, request: Request, superseded: Promise | None) -> Promise:
        """Promise the record; its selection follows from the nonce."""
        return admitted.describe(request).promise(superseded=superseded).promise

    def keep(self, live: OpenWindow, account: Account, promise: Promise, nonce: bytes) -> Logged:
        """Select with the nonce, and make the record durable.

        Raises:
            Conflict: the promise is too old.
            QueryRefused: the window is closed or unavailable.
        """
        counter = promise.promised.counter
        with self.context.store.read() as connection:
            registered = find(connection, live.name, account.id)
            logged = record_of(connection, live.name, account.id, counter)
        if logged is not None and registered is not None:
            return self.repeated(live, registered, logged)
        return self.admit(live, account, anchored=True).promised(promise).reveal(nonce).log()

    def keep_claimed(self, live: OpenWindow, registered: Registered, claim: Claim) -> None:
        """Log the record, at the window's end."""
        counter = claim.promise.promised.counter
        with self.context.store.read() as connection:
            # It was answered after all, or logged by an earlier run.
            if record_of(connection, live.name, registered.account, counter) is not None:
                return
        # As at a query: nothing else of this account may use its counters meanwhile.
        with live.account_lock(registered.account):
            promised = self.context.stages.promised(self.context, live, registered, claim.promise)
            promised.select(claim.nonce).claimed()

    @contextmanager
    def room(self, live: OpenWindow, account: Account, batch: Sequence[Asked]) -> Iterator[None]:
        """Keep an account's budget for a batch: within, all of its queries are charged or none is.

        Args:
            account: authenticated; who is not registered is refused query by query.
            batch: digests of the requests that are asked within. What was answered before, and what
                comes twice within the policy's `retry_seconds`, is charged once.

        Raises:
            TooMany: the account has fewer queries left than the batch needs.
            Conflict: the account used one of the keys for another request.
        """
        if len(batch) < 2:
            yield
            return
        # Held over all of them: another call of the account could use what was counted here.
        with live.account_lock(account.id):
            self._check_room(live, account, batch)
            yield

    def _check_room(self, live: OpenWindow, account: Account, batch: Sequence[Asked]) -> None:
        with self.context.store.read() as connection:
            registered = find(connection, live.name, account.id)
        if registered is None:
            return
        left = live.policy.queries_per_account - registered.counter
        fresh = [asked for asked in batch if self.before(live, account, asked) is None]
        repeats = live.policy.retrieval.retry_seconds > 0
        charged = len({asked.request for asked in fresh}) if repeats else len(fresh)
        # Not a refusal of the budget, which is signed: it is not used up (check 14).
        if 0 < left < charged:
            expected = f"at most {left}, which the account has left"
            raise TooMany(f"a batch of {charged} queries", where=live.name, expected=expected)

    def repeated(self, live: OpenWindow, registered: Registered, logged: LoggedRecord) -> Logged:
        """Return the last stage of a record that is logged already.

        Args:
            logged: the record as stored; answer and receipt are made of it alone.
        """
        stages = self.context.stages
        return stages.selected(
            self.context, live, registered, logged.record, logged.openings, logged.salt
        ).again(logged)


class Promises:
    """Promises to anchored accounts, and keeping them. Safe to use from several threads."""

    def __init__(self, *, retrieval: Retrieval, verifier: VerifierClient) -> None:
        self._retrieval = retrieval
        self._store = retrieval.context.store
        self._clock = retrieval.context.clock
        self._verifier = verifier

    def promise(self, live: OpenWindow, account: Account, request: Request) -> Promise:
        """Return the signed promise for a query; as `promise_in`."""
        return self.promise_in(self._retrieval, live, account, request)

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        """Keep the promise of a query; as `keep_in`. The same receipt file when repeated."""
        return self.keep_in(self._retrieval, live, account, counter, nonce).answer()

    def promise_in(
        self, channel: Channel[Q, T], live: OpenWindow, account: Account, request: Q
    ) -> Promise:
        """Return the signed promise for a request; the stored one if it was asked before.

        A stored one that has expired is superseded, unless its nonce is known or it was claimed.

        Args:
            account: authenticated; anchored in this window.
            request: with the counter that the account expects (spec 5.8).

        Raises:
            PromisePending: the counter was promised to another request, or a charge of the account
                has no answer yet. Two different promises for one counter would be evidence against
                the prover.
            Conflict: not the account's next counter, not registered, plain, or promised for good.
            ChargeVoided, TooEarly: a charge had this counter, and its nonce was not revealed in
                time; the second one until that is proven.
            QueryRefused, MalformedQuery, MalformedError: as for a query; closed also so near to
                the end that a promise could not be claimed.
            VerifierUnreachable: the promise expired, and whether it was claimed is not known.
        """
        with live.account_lock(account.id):
            charged = self._pending_charge(live, account, request.counter)
            if charged is not None:
                if charged.request != request:
                    raise self._pending(live, charged, "an earlier promise has no answer yet")
                # The process may have died before the fence knew of it.
                charge = charged.promised
                live.fence.advance(live.log.entries.head(), {charge.pseudonym: charge.counter + 1})
                return charged
            with phase("admit"):
                admitted = channel.admit(live, account, anchored=True)
            counter = admitted.registered.counter
            # A promise for any other counter could not be logged: counters have no gaps (check 8).
            if request.counter != counter:
                raise Conflict(
                    f"counter {request.counter}",
                    where="counter",
                    expected=f"{counter}, the account's next one",
                )
            with self._store.read() as connection:
                pending = find_promise(connection, live.name, account.id, counter)
            expired = None
            if pending is not None and channel.supersedes and self._expired(live, pending):
                self._check_unclaimed(live, account, pending)
                pending, expired = None, pending
            if pending is None:
                return channel.promise(admitted, request, expired)
            # Its record may still be logged, or claimed: nothing else may take its counter.
            if pending.request != request:
                raise self._pending(live, pending, channel.occupied, channel.way_out)
            return admitted.promised(pending).send()

    def keep_in(
        self,
        channel: Channel[Q, T],
        live: OpenWindow,
        account: Account,
        counter: int,
        nonce: bytes,
    ) -> T:
        """Keep a promise; return its entry, durable, to be answered. It may be called again.

        Args:
            counter: of the promised question.
            nonce: the account's, 32 bytes.

        Raises:
            Conflict: there is no promise for this counter.
            ChainRejected: not the nonce of the account's chain.
            RagauditError: as `Channel.keep`.
        """
        with live.account_lock(account.id):
            with self._store.read() as connection:
                registered = find(connection, live.name, account.id)
                promise = find_promise(connection, live.name, account.id, counter)
            if registered is None or promise is None or registered.anchor is None:
                raise Conflict(channel.missing, where="counter")
            # Before anything is drawn: an entry with another nonce would fail check 11.
            verify_nonce(live.name, registered.pseudonym, registered.anchor, counter, nonce)
            return channel.keep(live, account, promise, nonce)

    def _pending_charge(
        self, live: OpenWindow, account: Account, counter: int | None
    ) -> Promise | None:
        """Return the account's unanswered promise of a charge; None if there is none.

        One that nobody has revealed, and that nobody can claim any more, is voided.

        Args:
            counter: of the request that is being promised.

        Raises:
            ChargeVoided, TooEarly: the charge with this counter has no answer and gets none.
            VerifierUnreachable: its promise expired, and whether it was claimed is not known.
        """
        with self._store.read() as connection:
            registered = find(connection, live.name, account.id)
            if registered is None or registered.counter == 0:
                return None
            last = registered.counter - 1
            charge = charge_of(connection, live.name, account.id, last)
            if charge is None:
                return None
            answer = answer_of_charge(connection, live.name, charge.entry.index)
            promise = find_promise(connection, live.name, account.id, last)
        if answer is None and promise is not None:
            answer = self._void(live, charge, promise)
            if answer is None:
                return promise
        if counter == last and answer is not None and answer.answer is None:
            raise voided(live, charge, answer)
        return None

    def _void(
        self, live: OpenWindow, charge: StoredCharge, promise: Promise
    ) -> StoredAnswer | None:
        """Void a promised charge if it has expired and nobody revealed or claimed its nonce."""
        if not self._expired(live, promise):
            return None
        place = (live.name, charge.account, charge.body.counter)
        with self._store.read() as connection:
            if is_revealed(connection, *place):
                return None
        # None means that the promise may still be claimed: that is as bad as claimed.
        if aside(self._verifier.claimed, live.name, promise.promised) is not False:
            return None
        with live.committing(self._store) as transaction:
            connection = transaction.connection
            # Of this transaction: whoever revealed meanwhile has the answer.
            if is_revealed(connection, *place):
                return None
            put_void(transaction, live, charge, self._clock())
        with self._store.read() as connection:
            return answer_of_charge(connection, live.name, charge.entry.index)

    def _pending(
        self,
        live: OpenWindow,
        promise: Promise,
        what: str,
        expected: str = "the nonce of that promise",
    ) -> PromisePending:
        """Return the error that shows an account the promise which it has to end first."""
        return PromisePending(
            what,
            promise=promise.to_json(),
            retry_after=seconds_until(promise.superseded_from(live.policy), self._clock()),
            expected=expected,
        )

    def _expired(self, live: OpenWindow, promise: Promise) -> bool:
        """Return whether nobody can claim the promise any more, by any clock within the skew."""
        return self._clock() >= promise.superseded_from(live.policy)

    def _check_unclaimed(self, live: OpenWindow, account: Account, promise: Promise) -> None:
        """Check that nobody has seen the noise of a promise, so that another may be made.

        Once the nonce is known, another promise would be a second draw of the noise.
        """
        record = promise.promised
        with self._store.read() as connection:
            revealed = is_revealed(connection, live.name, account.id, record.counter)
        # None means that the promise may still be claimed: that is as bad as claimed.
        if revealed or aside(self._verifier.claimed, live.name, record) is not False:
            raise Conflict(
                "the promise for this counter has expired, and its nonce was revealed",
                where="counter",
                expected="the record at the window's end, if it was claimed",
            )


def voided(live: OpenWindow, charge: StoredCharge, void: StoredAnswer) -> ChargeVoided | TooEarly:
    """Return the error that shows an account its void; TooEarly until both are proven.

    The account does not go on without the proofs: it would have nothing but our word.
    """
    proven = list[LoggedEntry]()
    for entry in (charge.entry, void.entry):
        proof = live.log.checkpoints.tlog_proof(entry.index)
        if proof is None:
            return TooEarly(
                "the charge of this counter was voided, under no cosigned checkpoint yet",
                where="counter",
            )
        proven.append(entry.with_proof(proof))
    return ChargeVoided(
        "the charge of this counter was voided",
        voided=VoidedCharge(*proven).to_json(),
        expected=f"{charge.body.counter + 1}",
    )
