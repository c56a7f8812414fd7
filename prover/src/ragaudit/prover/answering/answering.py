"""Answering a query: noise first, then selection, then the log, then the answer (spec 8.7).

The order of work is fixed: authenticate and admit; embed, quantise, sketch; draw noise for all N
rows; select; commit to the selection; append the record, its openings and the account's counter
in one durable transaction; advance the fence; only then answer. What fails before the
transaction leaves no trace, and what fails after it has consumed the counter.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from ragaudit.embedders.base import Embedder
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.openings import Openings
from ragaudit.ledger.messages.promises import Reason
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Request
from ragaudit.prover.answering.mechanism import Embedding, Mechanism, Scores
from ragaudit.prover.answering.refusals import BUDGET, CLOSED, UNAVAILABLE, Refusals
from ragaudit.prover.backends.base import Backend
from ragaudit.prover.errors import Conflict, MalformedQuery
from ragaudit.prover.index.index_commitment import VERSION
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State, check_state
from ragaudit.prover.window import receipts
from ragaudit.prover.window.entries import insert_entry, insert_record
from ragaudit.prover.window.live import LiveWindow, LogTransaction
from ragaudit.prover.window.openings import QueryDigests, RecordOpenings
from ragaudit.prover.window.receipts import LoggedRecord, SelectedRow
from ragaudit.prover.window.registrations import Registered, count_record, find
from ragaudit.prover.window.seed_commitment import EPOCH
from ragaudit.prover.window.windows import Windows

__all__ = ["Answering", "Embedding", "Scores"]


class Answering(Mechanism):
    """Answers queries of open windows. Safe to use from several threads."""

    def __init__(
        self,
        *,
        store: Store,
        windows: Windows,
        backend: Backend,
        embedder: Embedder,
        refusals: Refusals,
        key: PrivateKey,
        clock: Callable[[], int],
    ) -> None:
        super().__init__(backend=backend, embedder=embedder)
        self._store = store
        self._windows = windows
        self._refusals = refusals
        self._key = key
        self._clock = clock

    def answer(self, live: LiveWindow, account: Account, request: Request) -> ReceiptFile:
        """Answer a plain account; returns the receipt file.

        Raises:
            MalformedQuery, MalformedError: the query, K or filter, or the query's embedding.
            QueryRefused: budget, closed or unavailable; signed.
            Conflict: the account is not registered, or is anchored.
            StoreUnavailable, BackendUnavailable: nothing was answered; try again.
        """
        with live.account_lock(account.name):
            registered = self.admit(live, account, anchored=False)
            openings = self.open_query(live, registered, request)
            record = self.describe(live, registered, request, openings)
            logged, rows = self.log(live, registered, record, request, openings)
        return self.respond(live, registered, logged, rows)

    def admit(self, live: LiveWindow, account: Account, *, anchored: bool) -> Registered:
        """Return the registration of an account that may query now."""
        with self._store.read() as connection:
            window = self._windows.standing(connection, live.name)
            registered = find(connection, live.name, account.name)
        if registered is None:
            raise Conflict(
                "the account is not registered", where=live.name, expected="POST .../registration"
            )
        if anchored != (registered.anchor is not None):
            raise Conflict(
                "the account is anchored" if registered.anchor else "the account is plain",
                where=live.name,
                expected=".../promise and .../reveal" if registered.anchor else ".../query",
            )
        now = self._clock()
        if window.unusable is not None:
            raise self._refuse(live, registered, UNAVAILABLE, "the window was stopped for good")
        inside = 1000 * live.policy.start <= now < 1000 * live.policy.end
        if window.state is not State.OPEN or window.stopped or not inside:
            opens = 1000 * live.policy.start
            raise self._refuse(live, registered, CLOSED, again=opens if now < opens else None)
        if registered.counter >= live.policy.queries_per_account:
            # Not in this window: the next one begins then, at the earliest.
            raise self._refuse(live, registered, BUDGET, again=1000 * live.policy.end)
        activation = self.activation(live, registered)
        if activation is None or now < 1000 * live.policy.activation_instants[activation - 1]:
            instants = (1000 * each for each in live.policy.activation_instants[:-1])
            raise self._refuse(
                live, registered, UNAVAILABLE, "the registration is activated at the next instant",
                again=next((each for each in instants if each > now), None),
            )  # fmt: skip
        return registered

    def activation(self, live: LiveWindow, registered: Registered) -> int | None:
        """Return the record's a: the later of the opening's and the registration's."""
        opening, own = live.activation_of(0), live.activation_of(registered.position)
        return None if opening is None or own is None else max(opening, own)

    def open_query(self, live: LiveWindow, registered: Registered, request: Request) -> Openings:
        """Check a request and return the values that the record's digests will open to."""
        self._check(live, registered, request)
        embedding = self.quantise(self.embed(request.query))
        estimator = live.policy.estimator
        purpose = (live.name, registered.pseudonym, registered.counter)
        salts = {
            name: live.randomness.draw(SALT_BYTES, name, *purpose)
            for name in ("salt_q", "salt_e", "salt_f", "salt_s")
        }
        return Openings(
            query=request.query,
            embedding=tuple(embedding.tolist()),
            filter=request.filter,
            sketch=self.sketch(embedding, estimator.seed, estimator.sketch_bits),
            **salts,
        )

    def describe(
        self,
        live: LiveWindow,
        registered: Registered,
        request: Request,
        openings: Openings,
    ) -> Record:
        """Return the record but for nonce and selection, at the account's last time.

        `stamp` puts the time in when record or promise becomes durable: whatever the work before
        that takes, the checkpoints around an entry then confirm its time.
        """
        activation = self.activation(live, registered)
        assert activation is not None  # `admit` refused otherwise
        digests = QueryDigests.of(openings)
        return Record(
            policy_digest=live.policy_digest,
            window=live.name,
            tenant=registered.tenant,
            version=VERSION,
            rows=live.indexes[registered.tenant].count,
            top_k=request.top_k,
            filter_digest=digests.filter,
            pseudonym=registered.pseudonym,
            epoch=EPOCH,
            slot=registered.slot,
            counter=registered.counter,
            activation=activation,
            time=registered.last_time,
            nonce=None,
            query_digest=digests.query,
            embedding_digest=digests.embedding,
            sketch_digest=digests.sketch,
            selection_commitment=None,
        )

    def stamp(self, live: LiveWindow, registered: Registered, record: Record) -> Record:
        """Return the record with the present time; call it inside `LiveWindow.committing`.

        Raises:
            QueryRefused: the window ended meanwhile, or the clock is behind the cosigner's.
        """
        # Times of one account never go back, whatever the clock does.
        time = max(self._clock(), registered.last_time)
        if time >= 1000 * live.policy.end:
            raise self._refuse(live, registered, CLOSED)
        if time < live.log.cosigned_time - 1000 * live.policy.clock_skew_seconds:
            raise self._refuse(
                live, registered, UNAVAILABLE, "the clock is behind the cosigner's by the skew"
            )
        return replace(record, time=time)

    def check_age(self, live: LiveWindow, promised: Record) -> None:
        """Check that a promise lives; a nonce that comes later is for the verifier to judge."""
        if self._clock() > promised.time + live.policy.promise_life:
            life = live.policy.promise_life_seconds
            raise Conflict("the promise is too old", where="counter", expected=f"within {life} s")

    def check_margin(self, live: LiveWindow, registered: Registered, promised: Record) -> None:
        """Refuse a promise that its account would have no time to claim."""
        if promised.time > live.policy.last_promise:
            raise self._refuse(live, registered, CLOSED, "no promise is made so near to the end")

    def log(
        self,
        live: LiveWindow,
        registered: Registered,
        record: Record,
        request: Request,
        openings: Openings,
        *,
        nonce: bytes | None = None,
        state: State = State.OPEN,
        serve: bool = True,
    ) -> tuple[LoggedRecord, list[SelectedRow]]:
        """Draw, select, and make the record durable; returns it and the rows to serve.

        Args:
            nonce: the revealed nonce of an anchored account; its record is the promised one.
            state: the state in which the window must still be.
            serve: whether the rows will be served; otherwise none are fetched.
        """
        index = live.indexes[registered.tenant]
        embedding = np.array(openings.embedding, dtype=np.int16)
        noise = self.draw_noise(live, index, record, nonce)
        selected = self.noised_selection(live, index, embedding, noise, record.top_k)
        purpose = (live.name, registered.pseudonym, registered.counter)
        blinding = live.randomness.scalars(1, "selection", *purpose)[0].tobytes()
        commitment = self.selection_commitment(selected, blinding)
        rows = self.served_documents(index, selected) if serve else []
        record = replace(record, nonce=nonce, selection_commitment=commitment)
        opened = RecordOpenings(
            request=request,
            openings=openings,
            selected=selected,
            selection_blinding=blinding,
            salt_r=live.randomness.draw(SALT_BYTES, "salt_r", *purpose),
        )
        salt = live.randomness.draw(SALT_BYTES, "record", *purpose)
        logged = self._commit(live, registered, record, salt, opened, state)
        return logged, rows

    def _commit(
        self,
        live: LiveWindow,
        registered: Registered,
        record: Record,
        salt: bytes,
        opened: RecordOpenings,
        state: State,
    ) -> LoggedRecord:
        with live.committing(self._store) as transaction:
            connection, counter = transaction.connection, record.counter
            check_state(live.name, self._windows.standing(connection, live.name).state, (state,))
            current = self.current(transaction, live, registered, counter)
            promised = registered.anchor is not None
            transaction.use_counter(current.pseudonym, counter + promised, counter + 1)
            if not promised:
                record = self.stamp(live, current, record)
            elif state is State.OPEN:
                # However long the work took: a checkpoint made meanwhile would contradict it.
                self.check_age(live, record)
            body, issued = self.record_body(record), self._clock()
            position = self.append(connection, live, salt, body)
            insert_entry(connection, live.name, position, Record.KIND, salt, body)
            insert_record(
                connection,
                live.name,
                position,
                account=registered.account,
                counter=counter,
                openings=opened,
                issued=issued,
            )
            count_record(connection, live.name, registered.account, record.time)
        return LoggedRecord(position, salt, body, opened, issued)

    def current(
        self, transaction: LogTransaction, live: LiveWindow, registered: Registered, counter: int
    ) -> Registered:
        """Return the registration as a transaction reads it, with ``counter`` its next one."""
        current = find(transaction.connection, live.name, registered.account)
        if current is None or current.counter != counter:
            raise Conflict("the account's counter moved", where=live.name)
        return current

    def respond(
        self,
        live: LiveWindow,
        registered: Registered,
        logged: LoggedRecord,
        rows: Sequence[SelectedRow],
    ) -> ReceiptFile:
        """Return the receipt file of a logged record, which is the answer."""
        index = live.indexes[registered.tenant]
        answer = self.answer_documents(rows)
        private = receipts.private_half(logged, index, rows)
        public = receipts.public_half(
            logged, origin=live.origin, answer=answer, private=private, key=self._key
        )
        return ReceiptFile(logged.openings.request, answer, public, private)

    def _check(self, live: LiveWindow, registered: Registered, request: Request) -> None:
        try:
            length = len(request.query.encode("utf-8"))
        except UnicodeEncodeError:
            raise MalformedQuery("text has lone surrogates", where="query") from None
        if not 1 <= length <= MAX_QUERY_BYTES:
            raise MalformedQuery(
                f"query of {length} bytes", where="query", expected=f"1..{MAX_QUERY_BYTES}"
            )
        rows = live.indexes[registered.tenant].count
        most = min(live.policy.top_k_max, rows - 1)
        if not 1 <= request.top_k <= most:
            raise MalformedQuery(f"K is {request.top_k}", where="top_k", expected=f"1..{most}")
        if request.filter:
            raise MalformedQuery("filters are not supported", where="filter", expected='""')

    def _refuse(
        self,
        live: LiveWindow,
        registered: Registered,
        reason: Reason,
        detail: str = "",
        *,
        again: int | None = None,
    ) -> Exception:
        return self._refusals.refuse(
            reason,
            origin=live.origin,
            pseudonym=registered.pseudonym,
            counter=registered.counter,
            time=self._clock(),
            detail=detail,
            again=again,
        )
