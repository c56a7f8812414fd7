"""Anchored accounts: a promise first, then the nonce, then the answer (spec 8.7).

A promise is durable before it is sent, and the fence knows of it, so that no restart and no
restored backup makes the prover promise two different things for one counter.
"""

from collections.abc import Callable

from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.chains import NONCE_BYTES, verify_nonce
from ragaudit.ledger.messages.openings import Openings
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.answering import Answering
from ragaudit.prover.answering.refusals import seconds_until
from ragaudit.prover.errors import Conflict, MalformedQuery, PromisePending
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.entries import record_of
from ragaudit.prover.window.live import LiveWindow
from ragaudit.prover.window.receipts import LoggedRecord
from ragaudit.prover.window.registrations import Registered, find
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update


class Promises:
    """Promises and their fulfilment. Safe to use from several threads."""

    def __init__(
        self,
        *,
        store: Store,
        answering: Answering,
        verifier: VerifierClient,
        key: PrivateKey,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._answering = answering
        self._verifier = verifier
        self._key = key
        self._clock = clock

    def promise(self, live: LiveWindow, account: Account, request: Request) -> Promise:
        """Return the signed promise for a request; the stored one if it was asked before.

        A stored one that has expired is superseded, unless its nonce is known or it was claimed.

        Raises:
            PromisePending: the counter was promised to another request. Two different promises
                for one counter would be evidence against the prover.
            Conflict: not the account's next counter, not registered, plain, or promised for good.
            QueryRefused, MalformedQuery, MalformedError: as for a query; closed also so near to
                the end that a promise could not be claimed.
            VerifierUnreachable: an expired promise, and nobody to ask whether it was claimed.
        """
        with live.account_lock(account.name):
            registered = self._answering.admit(live, account, anchored=True)
            if request.counter != registered.counter:
                raise Conflict(
                    f"counter {request.counter}",
                    where="counter",
                    expected=f"{registered.counter}, the account's next one",
                )
            with self._store.read() as connection:
                pending = stored(connection, live.name, account.name, registered.counter)
            expired = None
            if pending is not None and self._expired(live, pending):
                self._check_unclaimed(live, account, pending.record)
                pending, expired = None, pending
            if pending is None:
                openings = self._answering.open_query(live, registered, request)
                record = self._answering.describe(live, registered, request, openings)
                pending = self._store_promise(
                    live, registered, record, request, openings, superseded=expired
                )
            elif pending.request != request:
                raise PromisePending(
                    "the counter has a promise for another request",
                    promise=pending.to_json(),
                    retry_after=self._expires(live, pending),
                    expected="the nonce of that promise",
                )
            # Also for a stored one: the process may have died before the fence knew of it.
            live.fence.advance(
                live.log.entries.head(), registered.pseudonym, registered.counter + 1
            )
            return pending

    def reveal(self, live: LiveWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        """Fulfil a promise; a repeated call gives the same answer and receipt again.

        Raises:
            Conflict: there is no promise for this counter, or it is too old.
            ChainRejected: not the nonce of the account's chain.
            QueryRefused: the window is closed or unavailable.
        """
        with live.account_lock(account.name):
            with self._store.read() as connection:
                registered = find(connection, live.name, account.name)
                logged = record_of(connection, live.name, account.name, counter)
                promise = stored(connection, live.name, account.name, counter)
            if registered is None or promise is None or registered.anchor is None:
                raise Conflict("no promise for this counter", where="counter")
            verify_nonce(live.name, registered.pseudonym, registered.anchor, counter, nonce)
            if logged is not None:
                return self._again(live, registered, logged, counter)
            self._answering.admit(live, account, anchored=True)
            self._answering.check_age(live, promise.record)
            self._note_nonce(live, account, counter, nonce)
            logged, rows = self._answering.log(
                live, registered, promise.record, promise.request, promise.openings, nonce=nonce
            )
        return self._answering.respond(live, registered, logged, rows)

    def issue(
        self, live: LiveWindow, record: Record, request: Request, openings: Openings
    ) -> Promise:
        """Sign the promise of a record without nonce and selection (spec 5.8)."""
        return Promise.issue(
            self._key,
            origin=live.origin,
            body=record.encode(),
            request=request,
            openings=openings,
        )

    def _again(
        self, live: LiveWindow, registered: Registered, logged: LoggedRecord, counter: int
    ) -> ReceiptFile:
        """Answer a logged record once more: the first answer may never have arrived."""
        live.fence.advance(live.log.entries.head(), registered.pseudonym, counter + 1)
        index = live.indexes[registered.tenant]
        rows = self._answering.served_documents(index, logged.openings.selected)
        return self._answering.respond(live, registered, logged, rows)

    def _store_promise(
        self,
        live: LiveWindow,
        registered: Registered,
        record: Record,
        request: Request,
        openings: Openings,
        *,
        superseded: Promise | None,
    ) -> Promise:
        """Sign the promise and make it durable, with the time at which that happens."""
        with live.committing(self._store) as transaction:
            connection, counter = transaction.connection, record.counter
            current = self._answering.current(transaction, live, registered, counter)
            promised = superseded is not None
            transaction.use_counter(current.pseudonym, counter + promised, counter + 1)
            stamped = self._answering.stamp(live, current, record)
            self._answering.check_margin(live, current, stamped)
            connection.execute(
                delete(tables.promise).where(_row(live.name, registered.account, counter))
            )
            promise = self.issue(live, stamped, request, openings)
            _check_claim(promise)
            connection.execute(
                insert(tables.promise).values(
                    window=live.name,
                    account=registered.account,
                    counter=counter,
                    message=promise.encode(),
                )
            )
        return promise

    def _note_nonce(self, live: LiveWindow, account: Account, counter: int, nonce: bytes) -> None:
        mine = _row(live.name, account.name, counter)
        with live.committing(self._store) as transaction:
            transaction.connection.execute(update(tables.promise).where(mine).values(nonce=nonce))

    def _expired(self, live: LiveWindow, promise: Promise) -> bool:
        """Whether nobody can claim the promise any more, by the verifier's clock whatever it is."""
        return self._clock() >= promise.superseded_from(live.policy)

    def _check_unclaimed(self, live: LiveWindow, account: Account, record: Record) -> None:
        """Check that nobody has seen the noise of a promise, so that another may be made.

        With a nonce in view, another promise would be a second draw.
        """
        mine = _row(live.name, account.name, record.counter)
        with self._store.read() as connection:
            revealed = connection.scalar(select(tables.promise.c.nonce).where(mine)) is not None
        if revealed or self._verifier.claimed(live.name, record) is not False:
            raise Conflict(
                "the promise for this counter has expired, and its nonce was revealed",
                where="counter",
                expected="the record at the window's end, if it was claimed",
            )

    def _expires(self, live: LiveWindow, promise: Promise) -> int:
        """Seconds until a promise is superseded."""
        return seconds_until(promise.superseded_from(live.policy), self._clock())


def _check_claim(promise: Promise) -> None:
    """Check that an account could claim the promise; its library reveals nothing otherwise."""
    try:
        promise.claim(bytes(NONCE_BYTES))
    except RefusedError as error:
        raise MalformedQuery(error.what, where="query", expected=error.expected) from error


def _row(window: str, account: str, counter: int) -> ColumnElement[bool]:
    table = tables.promise
    place = (table.c.account == account) & (table.c.counter == counter)
    return (table.c.window == window) & place


def stored(connection: Connection, window: str, account: str, counter: int) -> Promise | None:
    """Return the promise for an account's counter, if one was made."""
    table = tables.promise
    message = connection.scalar(
        select(table.c.message).where(
            table.c.window == window, table.c.account == account, table.c.counter == counter
        )
    )
    return None if message is None else Promise.parse(message)


def used_counters(connection: Connection, window: str, pseudonym: bytes) -> int:
    """Return how many counters of a pseudonym are logged or promised: what the fence compares."""
    registration, promise = tables.registration, tables.promise
    row = connection.execute(
        select(registration.c.account, registration.c.counter).where(
            registration.c.window == window, registration.c.pseudonym == pseudonym
        )
    ).one_or_none()
    if row is None:
        return 0
    last: int | None = connection.scalar(
        select(func.max(promise.c.counter)).where(
            promise.c.window == window, promise.c.account == row.account
        )
    )
    logged: int = row.counter
    return logged if last is None else max(logged, last + 1)
