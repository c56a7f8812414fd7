"""Answering accounts: plain ones at once; anchored ones after a promise and their nonce (spec 8.7).

A promise is durable before it is sent, and the fence knows of it, so that no restart and no
restored backup makes the prover promise two different things for one counter.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ragaudit.encoding.errors import Conflict, TooEarly, TooMany
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.generated import LoggedEntry
from ragaudit.ledger.messages.missing import VoidedCharge
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.context import Context, seconds_until
from ragaudit.prover.answering.query import Logged, Promised, Query
from ragaudit.prover.errors import ChargeVoided, PromisePending, VersionMoved
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
    find_identical,
    find_keyed,
    find_promise,
    is_revealed,
    note_key,
    record_at,
    record_of,
)
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.serving.exchange import phase


class PromisedCharges:
    """Finds the promised charge of an account, and ends it when its time is over."""

    def __init__(self, context: Context, verifier: VerifierClient) -> None:
        self._context = context
        self._verifier = verifier

    def pending(self, live: OpenWindow, account: Account, counter: int | None) -> Promise | None:
        """Return the account's unanswered promise of a charge; None if there is none.

        One that nobody has revealed, and that nobody can claim any more, is voided.

        Args:
            account: whose lock is held.
            counter: of the request that is being promised.

        Raises:
            ChargeVoided, TooEarly: the charge with this counter has no answer and gets none.
            VerifierUnreachable: its promise expired, and whether it was claimed is not known.
        """
        with self._context.store.read() as connection:
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
            raise self.voided(live, charge, answer)
        return None

    def check_none(self, live: OpenWindow, account: Account, counter: int | None) -> None:
        """Check that the account has no unanswered promise of a charge.

        Args:
            account, counter: as of `pending`.

        Raises:
            PromisePending: it has.
            ChargeVoided, TooEarly, VerifierUnreachable: as `pending`.
        """
        if (promise := self.pending(live, account, counter)) is not None:
            raise self.refusal(live, promise)

    def refusal(self, live: OpenWindow, promise: Promise) -> PromisePending:
        """Return the error that shows an account the promise which it has to end first."""
        again = promise.superseded_from(live.policy)
        return PromisePending(
            "an earlier promise has no answer yet",
            promise=promise.to_json(),
            retry_after=seconds_until(again, self._context.clock()),
            expected="the nonce of that promise",
        )

    def voided(
        self, live: OpenWindow, charge: StoredCharge, void: StoredAnswer
    ) -> ChargeVoided | TooEarly:
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

    def _void(
        self, live: OpenWindow, charge: StoredCharge, promise: Promise
    ) -> StoredAnswer | None:
        """Void a promised charge if it has expired and nobody revealed or claimed its nonce."""
        if self._context.clock() < promise.superseded_from(live.policy):
            return None
        place = (live.name, charge.account, charge.body.counter)
        with self._context.store.read() as connection:
            if is_revealed(connection, *place):
                return None
        # None means that the promise may still be claimed: that is as bad as claimed.
        if self._verifier.claimed(live.name, promise.promised) is not False:
            return None
        with live.committing(self._context.store) as transaction:
            connection = transaction.connection
            # Of this transaction: whoever revealed meanwhile has the answer.
            if is_revealed(connection, *place):
                return None
            put_void(connection, live, charge, self._context.clock())
        with self._context.store.read() as connection:
            return answer_of_charge(connection, live.name, charge.entry.index)


class Answering:
    """Answers queries of open windows. Safe to use from several threads."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def query(self, live: OpenWindow, account: Account) -> Query:
        """Return the first stage of a query; call it under the lock of the account.

        Args:
            live: the window that is asked, whatever its state: `Query.admit` judges it.
        """
        # No check is made yet: the stage reads the account's status in `admit`, under the lock.
        return self.context.stages.query(self.context, live, account)

    def answer(
        self, live: OpenWindow, account: Account, request: Request, asked: Asked | None = None
    ) -> ReceiptFile:
        """Answer a plain account; return the receipt file, which holds answer and receipt.

        Args:
            account, request, asked: as of `logged`.

        Raises: as `logged`.
        """
        # Outside of the lock: what is logged does not change any more, and signing takes time.
        return self.logged(live, account, request, asked).answer()

    def logged(
        self, live: OpenWindow, account: Account, request: Request, asked: Asked | None = None
    ) -> Logged:
        """Take a plain account's query up to its durable record, and return that stage.

        A request that was answered already, as ``asked`` or the policy's `retry_seconds` say, gets
        the stored answer again, and nothing is charged.

        Args:
            account: authenticated; plain in this window.
            request: without a counter, which a plain account does not choose (spec 5.8).
            asked: digests of this request and of the key that came with it.

        Raises:
            MalformedQuery, MalformedError: the query, K or filter, or the query's embedding.
            QueryRefused: budget, closed or unavailable; signed.
            Conflict: the account is not registered, or is anchored, or used the key for another
                request.
            StoreUnavailable, BackendUnavailable: nothing was answered; try again.
        """
        asked = asked or Asked.of(request)
        with live.account_lock(account.id):
            with phase("admit"):
                logged = self._answered(live, account, asked)
            return logged or self._logged(live, account, request, asked)

    def _logged(self, live: OpenWindow, account: Account, request: Request, asked: Asked) -> Logged:
        """Take the steps of a plain account's query, again if the index changed on the way."""
        for last in (False, True):
            try:
                with phase("admit"):
                    admitted = self.query(live, account).admit(anchored=False)
                return admitted.describe(request).select().log(asked)
            except VersionMoved:
                # Nothing was logged, and nothing left: the same counter is used again.
                if last:
                    raise
        raise AssertionError("unreachable")

    def _answered(self, live: OpenWindow, account: Account, asked: Asked) -> Logged | None:
        """Return the record that a retry asks for again, None if this is none."""
        store, policy = self.context.store, live.policy
        # Under the account's lock: two requests at once must not both find nothing.
        repeats = policy.retrieval.retry_seconds > 0
        if asked.key is None and not repeats:
            return None
        with store.look() as connection:
            keyed = place = find_keyed(connection, account.id, asked)
            if place is None and repeats:
                since = self.context.clock() - 1000 * policy.retrieval.retry_seconds
                place = find_identical(connection, live.name, account.id, asked, since)
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
        fresh = [asked for asked in batch if self._answered(live, account, asked) is None]
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

    def claimed(self, live: OpenWindow, registered: Registered, promise: Promise) -> Promised:
        """Return the stage of a promise that was claimed: it is kept after the window's end.

        Args:
            registered: the anchored account that was promised.
            promise: verified as this provider's own.
        """
        return self.context.stages.promised(self.context, live, registered, promise)


class Promises:
    """Promises to anchored accounts, and keeping them. Safe to use from several threads."""

    def __init__(self, *, answering: Answering, verifier: VerifierClient) -> None:
        self._answering = answering
        self._store = answering.context.store
        self._clock = answering.context.clock
        self._verifier = verifier
        self._charges = PromisedCharges(answering.context, verifier)

    def promise(self, live: OpenWindow, account: Account, request: Request) -> Promise:
        """Return the signed promise for a request; the stored one if it was asked before.

        A stored one that has expired is superseded, unless its nonce is known or it was claimed.

        Args:
            account: authenticated; anchored in this window.
            request: with the counter that the account expects (spec 5.8).

        Raises:
            PromisePending: the counter was promised to another request, or a charge of the account
                has no answer yet. Two different promises
                for one counter would be evidence against the prover.
            Conflict: not the account's next counter, not registered, plain, or promised for good.
            ChargeVoided, TooEarly: a charge had this counter, and its nonce was not revealed in
                time.
            QueryRefused, MalformedQuery, MalformedError: as for a query; closed also so near to
                the end that a promise could not be claimed.
            VerifierUnreachable: the promise expired, and whether it was claimed is not known.
        """
        with live.account_lock(account.id):
            self._charges.check_none(live, account, request.counter)
            admitted = self._answering.query(live, account).admit(anchored=True)
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
            if pending is not None and self._expired(live, pending):
                self._check_unclaimed(live, account, pending.record)
                pending, expired = None, pending
            if pending is None:
                return admitted.describe(request).promise(superseded=expired).send()
            # Two promises that differ for one counter fail check 12.
            if pending.request != request:
                raise PromisePending(
                    "the counter has a promise for another request",
                    promise=pending.to_json(),
                    retry_after=self._expires(live, pending),
                    expected="the nonce of that promise",
                )
            return admitted.promised(pending).send()

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        """Keep a promise; a repeated call gives the same answer and receipt again.

        Args:
            counter: of the promised query.
            nonce: the account's, 32 bytes.

        Raises:
            Conflict: there is no promise for this counter, or it is too old.
            ChainRejected: not the nonce of the account's chain.
            QueryRefused: the window is closed or unavailable.
        """
        with live.account_lock(account.id):
            with self._store.read() as connection:
                registered = find(connection, live.name, account.id)
                logged = record_of(connection, live.name, account.id, counter)
                promise = find_promise(connection, live.name, account.id, counter)
            if registered is None or promise is None or registered.anchor is None:
                raise Conflict("no promise for this counter", where="counter")
            # Before any noise is drawn: a record with another nonce would fail check 11.
            verify_nonce(live.name, registered.pseudonym, registered.anchor, counter, nonce)
            if logged is not None:
                return self._answering.repeated(live, registered, logged).answer()
            admitted = self._answering.query(live, account).admit(anchored=True)
            answer = admitted.promised(promise).reveal(nonce).log()
        return answer.answer()

    def _expired(self, live: OpenWindow, promise: Promise) -> bool:
        """Return whether nobody can claim the promise any more, by any clock within the skew."""
        return self._clock() >= promise.superseded_from(live.policy)

    def _check_unclaimed(self, live: OpenWindow, account: Account, record: Record) -> None:
        """Check that nobody has seen the noise of a promise, so that another may be made.

        Once the nonce is known, another promise would be a second draw of the noise.
        """
        with self._store.read() as connection:
            revealed = is_revealed(connection, live.name, account.id, record.counter)
        # None means that the promise may still be claimed: that is as bad as claimed.
        if revealed or self._verifier.claimed(live.name, record) is not False:
            raise Conflict(
                "the promise for this counter has expired, and its nonce was revealed",
                where="counter",
                expected="the record at the window's end, if it was claimed",
            )

    def _expires(self, live: OpenWindow, promise: Promise) -> int:
        """Return the seconds until a promise may be superseded."""
        return seconds_until(promise.superseded_from(live.policy), self._clock())
