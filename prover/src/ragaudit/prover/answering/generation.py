"""Questions of the generation channel: charged, generated, stored with the time to send them.

    request -> StoredCharge (durable) -> StoredAnswer (durable) -> receipt file, when it is due

Whoever dies between two steps goes on at the one that is missing: coins follow from keys, and a
charge has one answer.
"""

import numpy as np
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import Conflict, UnsupportedError
from ragaudit.ledger.messages.challenge import UsedRow
from ragaudit.ledger.messages.entries import Generated
from ragaudit.ledger.messages.filters import request_filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import GeneratedFile, GeneratedPrivate, GenerationRequest
from ragaudit.prover.answering.answering import Promises
from ragaudit.prover.answering.charging import Charging, coins_of, terms_of
from ragaudit.prover.answering.generator import Generator, answered
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.errors import UnknownRecord, WindowUnusable
from ragaudit.prover.index.committed import CommittedIndex, IndexForm, part
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.states import State, check_state
from ragaudit.prover.window.charges import (
    MadeOf,
    StoredAnswer,
    StoredCharge,
    answer_of_charge,
    charge_at,
    put_answer,
    put_void,
    unanswered,
)
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import revealed_nonce
from ragaudit.prover.window.registrations import find
from ragaudit.serving.exchange import phase


class Generation:
    """Answers charged questions, in every window of a prover. Safe to use from several threads."""

    def __init__(self, charging: Charging, generator: Generator | None, promises: Promises) -> None:
        """Collect the parts.

        Args:
            generator: None where the settings name none; nothing is answered then.
        """
        self.charging = charging
        self._context = charging.context
        self._promises = promises
        self._generator = generator

    @property
    def at_once(self) -> int:
        """How many answers may be generated at a time."""
        return 1 if self._generator is None else self._generator.at_once

    def close(self) -> None:
        """Release the connections to the model."""
        if self._generator is not None:
            self._generator.close()

    def charge(
        self, live: OpenWindow, account: Account, request: GenerationRequest
    ) -> StoredCharge:
        """Charge a plain account's question; return the charge of the same one before, if any.

        Args:
            account: authenticated.
            request: without a counter.

        Raises:
            UnsupportedError: the window has no generation channel, or this prover not its model.
            RagauditError: as `Charging.take`.
        """
        self._of(live)
        return self.charging.take(live, account, request)

    def promise(self, live: OpenWindow, account: Account, request: GenerationRequest) -> Promise:
        """Charge an anchored account's question and promise it; as `Promises.promise_in`.

        Raises:
            UnsupportedError: the window has no generation channel, or this prover not its model;
                or the channel is MURAG-ADA's, which takes plain accounts alone.
        """
        # After the promise nothing is refused: without the model nothing is promised.
        self._of(live)
        # What is released with a charge there needs the nonce, which nobody has yet.
        if terms_of(live).adaptive is not None:
            raise UnsupportedError(
                "an anchored account under murag-ada", where=live.name, expected="a plain account"
            )
        return self._promises.promise_in(self.charging, live, account, request)

    def reveal(
        self, live: OpenWindow, account: Account, counter: int, nonce: bytes
    ) -> StoredCharge:
        """Return a promised charge, to be answered with its nonce; as `Promises.keep_in`."""
        return self._promises.keep_in(self.charging, live, account, counter, nonce)

    def answer(self, live: OpenWindow, charge: StoredCharge) -> GeneratedFile:
        """Return the receipt file of a charge, generated now if it is not stored yet.

        That of an anchored account is answered once its nonce is stored.

        It may not leave before ``public.issued``.

        Raises:
            GeneratorUnavailable, BackendUnavailable: the question is charged, and has no answer
                yet; who asks again is not charged again.
            WrongState, WindowUnusable, UnknownRecord: the window ended meanwhile.
            StoreUnavailable: it is not durable.
        """
        answer = self._stored(charge) or self._answer(live, charge, self._of(live))
        return self._file(live.origin, charge, answer)

    def due(self, live: OpenWindow, charge: StoredCharge) -> int:
        """Return when an answer that is there now leaves, Unix milliseconds.

        So does a failure: how long it took may tell of rows.
        """
        delay = 1000 * terms_of(live).answer_delay_seconds
        return _due(charge.body.time, delay, self._context.clock())

    def file(self, origin: str, account: Account, window: str, position: int) -> GeneratedFile:
        """Return an account's receipt file again.

        Args:
            origin: of the window's log.
            position: of the charge entry.

        Raises:
            UnknownRecord: no such answer of this account, or not yet.
        """
        with self._context.store.read() as connection:
            charge = charge_at(connection, window, position)
        answer = None if charge is None else self._stored(charge)
        # One refusal for all of it: whether there is such a charge is not said.
        if (
            charge is None
            or charge.account != account.id
            or answer is None
            or answer.answer is None
            or answer.leaves > self._context.clock()
        ):
            where = f"{window}.{position}"
            raise UnknownRecord("no such receipt of this account", where=where)
        return self._file(origin, charge, answer)

    def stored(self, policy: Policy, window: str, position: int) -> GeneratedFile | None:
        """Return the receipt file of a charge if a request for the same is a retry now.

        It may not leave before ``public.issued``.

        Args:
            policy: of the window, which may have ended.
            position: of the charge entry.

        Returns:
            None if it was charged too long ago, or has no answer: a void is none.
        """
        since = self._context.clock() - 1000 * policy.retrieval.retry_seconds
        with self._context.store.read() as connection:
            charge = charge_at(connection, window, position)
        if charge is None or charge.body.time < since:
            return None
        answer = self._stored(charge)
        if answer is None or answer.answer is None:
            return None
        return self._file(policy.origin, charge, answer)

    def settle(self, live: OpenWindow) -> None:
        """Answer the charges whose nonce was revealed, and void all others without an answer.

        At the end of a window. What is voided stays charged.

        Raises:
            GeneratorUnavailable, BackendUnavailable: a revealed charge cannot be answered now. It
                cannot be voided, either: call again.
        """
        with self._context.store.read() as connection:
            left = unanswered(connection, live.name)
        for position in left:
            # One at a time: each holds its question and the embedding.
            with self._context.store.read() as connection:
                charge = charge_at(connection, live.name, position)
            assert charge is not None  # it has a place
            with live.committing(self._context.store) as transaction:
                connection = transaction.connection
                # Of this transaction: a nonce that comes after the void is refused.
                nonce = revealed_nonce(connection, live.name, charge.account, charge.body.counter)
                if nonce is None:
                    put_void(transaction, live, charge, self._context.clock())
            if nonce is not None and self._stored(charge) is None:
                self._answer(live, charge, self._of(live), State.CLOSED)

    def _of(self, live: OpenWindow) -> Generator:
        terms = terms_of(live)
        if self._generator is None or self._generator.manifest != terms.generator:
            raise UnsupportedError(
                "this prover does not have the committed model",
                where=live.name,
                expected="settings of the generator that the policy names",
            )
        return self._generator

    def _stored(self, charge: StoredCharge) -> StoredAnswer | None:
        with self._context.store.read() as connection:
            return answer_of_charge(connection, charge.window, charge.entry.index)

    def _answer(
        self,
        live: OpenWindow,
        charge: StoredCharge,
        generator: Generator,
        state: State = State.OPEN,
    ) -> StoredAnswer:
        """Generate, and make the answer durable; another's, if one was stored meanwhile.

        Args:
            state: in which the window must be.
        """
        body, terms = charge.body, terms_of(live)
        nonce = self._nonce(charge)
        used = self._used(live, charge)
        # Draws after those of the released sums.
        coins = coins_of(live, body, drawn=len(body.sums), nonce=nonce)
        with phase("generate"):
            found = answered(
                generator,
                terms,
                charge.opened.request.query,
                [row.content or "" for row in used],
                coins,
            )
        rising = tuple(sorted(used, key=lambda row: row.position))
        made_of = MadeOf(rising, found.votes) if terms.replays else None
        answer = found.answer
        place = (live.name, body.pseudonym, body.counter)
        salt = live.randomness.draw(SALT_BYTES, "answer", *place)
        salt_a = live.randomness.draw(SALT_BYTES, "salt_a", *place)

        def commit(transaction: LogTransaction) -> None:
            connection = transaction.connection
            if answer_of_charge(connection, live.name, charge.entry.index) is not None:
                return
            status = transaction.status(self._context.windows)
            check_state(live.name, status.state, (state,))
            if status.unusable is not None:
                raise WindowUnusable(status.unusable, where=live.name)
            now = transaction.next_time(charge.account, self._context.clock())
            entry = Generated(
                live.name, body.tenant, charge.entry.index, now, nonce, answer.digest(salt_a)
            )
            leaves = _due(body.time, 1000 * terms.answer_delay_seconds, now)
            put_answer(
                transaction,
                live,
                charge,
                entry,
                salt,
                answer=answer,
                salt_a=salt_a,
                leaves=leaves,
                made_of=made_of,
            )

        with phase("commit"):
            live.commit(self._context.store, commit)
        stored = self._stored(charge)
        assert stored is not None  # it is durable
        return stored

    def _nonce(self, charge: StoredCharge) -> bytes | None:
        """Return the nonce of an anchored account's charge, None of a plain account's.

        Raises:
            Conflict: it was not revealed yet. Coins without it would be a draw of the provider's.
        """
        place = (charge.window, charge.account, charge.body.counter)
        with self._context.store.read() as connection:
            registered = find(connection, charge.window, charge.account)
            nonce = revealed_nonce(connection, *place)
        if nonce is None and (registered is None or registered.anchor is not None):
            raise Conflict("the nonce was not revealed", where="counter")
        return nonce

    def _used(self, live: OpenWindow, charge: StoredCharge) -> list[UsedRow]:
        """Return the best of the rows that paid, the best first."""
        body, terms = charge.body, terms_of(live)
        index = live.index_of(body.tenant, body.version)
        embedding = np.array(charge.opened.openings.embedding, dtype=np.int16)
        scores = self._context.mechanism.scores(index, embedding)
        rows = charge.rows
        if not terms.charges_rows:
            allowed = index.allowed(request_filter(charge.opened.request.filter, live.policy))
            rows = np.arange(index.count) if allowed is None else np.array(allowed, dtype=np.int64)
        best = rows[np.lexsort((rows, -scores[rows]))][: terms.answerer.slots].tolist()
        documents = self._context.backend.fetch(body.tenant, [index.ids[at] for at in best])
        return [
            _used(index, at, document, live.form)
            for at, document in zip(best, documents, strict=True)
        ]

    def _file(self, origin: str, charge: StoredCharge, answer: StoredAnswer) -> GeneratedFile:
        if answer.answer is None or answer.salt is None:
            raise UnknownRecord("the charge was voided", where=charge.window)
        return GeneratedFile.issue(
            self._context.key,
            origin=origin,
            charge=charge.entry,
            answered=answer.entry,
            issued=answer.leaves,
            request=charge.opened.request,
            answer=answer.answer,
            private=GeneratedPrivate(charge.opened.openings, answer.salt),
        )


def _due(charged: int, delay: int, now: int) -> int:
    """Return the first whole multiple of the delay after a charge that is not past."""
    return charged + delay * max(1, -(-(now - charged) // delay))


def _used(index: CommittedIndex, at: int, document: Document | None, form: IndexForm) -> UsedRow:
    salt = part(index.salts, at)
    # What is gone or changed reads as nothing: that is a function of this document alone.
    if document is None or not index.holds(at, document, form):
        return UsedRow(at, index.ids[at], None, "", salt)
    return UsedRow(at, document.id, document.content, document.attributes, salt)
