"""Anchored accounts: a promise first, then the nonce, then the answer (spec 8.7).

A promise is durable before it is sent, and the fence knows of it, so that no restart and no
restored backup makes the prover promise two different things for one counter.
"""

from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.answering import Answering
from ragaudit.prover.answering.refusals import seconds_until
from ragaudit.prover.errors import Conflict, PromisePending
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.entries import record_of
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.promises import find_promise, is_revealed
from ragaudit.prover.window.registrations import find


class Promises:
    """Promises and their fulfilment. Safe to use from several threads."""

    def __init__(self, *, answering: Answering, verifier: VerifierClient) -> None:
        self._answering = answering
        self._store = answering.context.store
        self._clock = answering.context.clock
        self._verifier = verifier

    def promise(self, live: OpenWindow, account: Account, request: Request) -> Promise:
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
            admitted = self._answering.query(live, account).admit(anchored=True)
            counter = admitted.registered.counter
            if request.counter != counter:
                raise Conflict(
                    f"counter {request.counter}",
                    where="counter",
                    expected=f"{counter}, the account's next one",
                )
            with self._store.read() as connection:
                pending = find_promise(connection, live.name, account.name, counter)
            expired = None
            if pending is not None and self._expired(live, pending):
                self._check_unclaimed(live, account, pending.record)
                pending, expired = None, pending
            if pending is None:
                return admitted.describe(request).promise(superseded=expired).send()
            if pending.request != request:
                raise PromisePending(
                    "the counter has a promise for another request",
                    promise=pending.to_json(),
                    retry_after=self._expires(live, pending),
                    expected="the nonce of that promise",
                )
            return admitted.promised(pending).send()

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
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
                promise = find_promise(connection, live.name, account.name, counter)
            if registered is None or promise is None or registered.anchor is None:
                raise Conflict("no promise for this counter", where="counter")
            verify_nonce(live.name, registered.pseudonym, registered.anchor, counter, nonce)
            if logged is not None:
                return self._answering.repeated(live, registered, logged).answer()
            admitted = self._answering.query(live, account).admit(anchored=True)
            answer = admitted.promised(promise).reveal(nonce).log()
        return answer.answer()

    def _expired(self, live: OpenWindow, promise: Promise) -> bool:
        """Whether nobody can claim the promise any more, by the verifier's clock whatever it is."""
        return self._clock() >= promise.superseded_from(live.policy)

    def _check_unclaimed(self, live: OpenWindow, account: Account, record: Record) -> None:
        """Check that nobody has seen the noise of a promise, so that another may be made.

        With a nonce in view, another promise would be a second draw.
        """
        with self._store.read() as connection:
            revealed = is_revealed(connection, live.name, account.name, record.counter)
        if revealed or self._verifier.claimed(live.name, record) is not False:
            raise Conflict(
                "the promise for this counter has expired, and its nonce was revealed",
                where="counter",
                expected="the record at the window's end, if it was claimed",
            )

    def _expires(self, live: OpenWindow, promise: Promise) -> int:
        """Seconds until a promise is superseded."""
        return seconds_until(promise.superseded_from(live.policy), self._clock())
