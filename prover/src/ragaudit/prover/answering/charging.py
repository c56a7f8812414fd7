"""Charging: which rows pay for a question is decided, stored and logged in one piece.

Of one tenant one question is charged at a time, in all processes: the order of the log is the order
of the charges (docs/spec/11-generation.md §11.11).
"""

import threading
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import COIN_TAG, noise_key
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import Conflict, UnsupportedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.entries import Charge, Record
from ragaudit.ledger.messages.filters import request_filter
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.promises import Claim, Promise
from ragaudit.ledger.messages.receipts import GenerationRequest
from ragaudit.ledger.messages.requests import Openings
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.privacy.mechanisms.streams import BudgetExhausted, bin_counts, running_sums
from ragaudit.prover.answering.answering import Channel, voided
from ragaudit.prover.answering.context import Context
from ragaudit.prover.answering.query import Admitted, check_claim, check_request
from ragaudit.prover.errors import MalformedQuery
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.randomness import EPOCH
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.states import State
from ragaudit.prover.window.charges import (
    ChargeOpenings,
    StoredAnswer,
    StoredCharge,
    answer_of_charge,
    charge_at,
    charge_of,
    charged_rows,
    find_charge,
    insert_charge,
    next_number,
)
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import (
    Asked,
    find_promise,
    note_nonce,
    put_promise,
)
from ragaudit.prover.window.registrations import Registered
from ragaudit.serving.exchange import phase
from sqlalchemy import Connection

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Due:
    """What a charge entry says of rows, and what opens it.

    Attributes:
        rows: D_t, int64, rising; private.
        blinding: rho_t, 32 bytes; private.
        threshold: tau_t; None where nothing is charged.
        point: B_t, 32 bytes; None where nothing is charged.
        sums: that are released.
    """

    rows: Positions = field(repr=False)
    blinding: bytes = field(repr=False)
    threshold: int | None = None
    point: bytes | None = None
    sums: tuple[int, ...] = ()


def nothing_due() -> Due:
    """Return what is due where no rows are charged (NAIVE)."""
    return Due(np.empty(0, dtype=np.int64), _blinding())


def due_rows(
    terms: GenerationTerms,
    scores: npt.NDArray[np.int64],
    payable: npt.NDArray[np.bool_],
    coins: KeyedCoins,
) -> Due:
    """Return which rows pay for a question.

    Args:
        terms: that charge rows.
        scores: int64[N], of the question.
        payable: bool[N], of rows that are live and allowed.
        coins: of the question, none of which was used.
    """
    threshold, sums = terms.threshold, tuple[int, ...]()
    if terms.adaptive is not None:
        # Scores of other rows lie in no bin. Their number must not show in the time that this took.
        counts = bin_counts(np.where(payable, scores, -1), terms.adaptive.edges)
        noisy = running_sums(counts, terms.adaptive.epsilon, terms.adaptive.enough, coins)
        sums = tuple(int(total) for total in noisy)
        threshold = terms.adaptive.threshold_of(sums)
    assert isinstance(threshold, int)  # rows are charged
    due = payable & (scores > threshold)
    blinding = _blinding()
    # The time to the entry must not say how many rows there are.
    point = core.commit_marked(due, blinding)
    return Due(np.flatnonzero(due), blinding, threshold, point, sums)


def coins_of(
    live: OpenWindow, question: Record | Charge, drawn: int = 0, nonce: bytes | None = None
) -> KeyedCoins:
    """Return the coins of a question.

    Args:
        question: a record without time and selection, or its charge entry.
        drawn: draws that were used before.
        nonce: of an anchored account, 32 bytes; None of a plain one.
    """
    key = noise_key(
        live.epochs.tree(question.epoch).key(question.slot, question.counter),
        window=question.window,
        tenant=question.tenant,
        version=question.version,
        pseudonym=question.pseudonym,
        epoch=question.epoch,
        slot=question.slot,
        counter=question.counter,
        activation_randomness=live.activation_randomness(question.activation),
        nonce=nonce or b"",
        tag=COIN_TAG,
    )
    return KeyedCoins(key, drawn)


def _blinding() -> bytes:
    # From the operating system in every window: the verifier opens keys, and a blinding that
    # followed from one would let it test which rows were charged.
    blinding: bytes = core.random_scalars(1)[0].tobytes()
    return blinding


def terms_of(live: OpenWindow) -> GenerationTerms:
    """Return the terms of a window's channel.

    Raises:
        UnsupportedError: it has none.
    """
    if live.policy.generation is None:
        raise UnsupportedError("no generation channel in this window", where=live.name)
    return live.policy.generation


class Charging(Channel[GenerationRequest, StoredCharge]):
    """Charges questions, whose answers are generated then. Safe to use from several threads."""

    supersedes = False
    occupied = "the counter has a promise for a query"
    way_out = "the nonce of that promise; once expired, another .../promise"
    missing = "no promised charge for this counter"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._counts = _Counts()

    def before(self, live: OpenWindow, account: Account, asked: Asked) -> StoredCharge | None:
        """Return the charge that the terms make the same question's, unless it was voided."""
        life = 1000 * live.policy.retrieval.retry_seconds
        since = 0 if terms_of(live).reuse else self.context.clock() - life
        # Most questions are new: nothing else is read for them.
        with self.context.store.look() as connection:
            position = find_charge(connection, live.name, account.id, asked.request, since)
        if position is None:
            return None
        with self.context.store.read() as connection:
            answer = answer_of_charge(connection, live.name, position)
            # A void is no answer: who asks again is charged again.
            if answer is not None and answer.answer is None:
                return None
            return charge_at(connection, live.name, position)

    def promise(
        self, admitted: Admitted, request: GenerationRequest, superseded: Promise | None
    ) -> Promise:
        """Charge the question and promise the entry, durable in one transaction.

        Raises:
            RagauditError: as `log`; QueryRefused also where a promise could not be claimed.
        """
        charge = self.log(admitted, request, Asked.of(request))
        with self.context.store.read() as connection:
            made = find_promise(connection, charge.window, charge.account, charge.body.counter)
        assert made is not None  # it is durable with the charge
        return made

    def keep(
        self, live: OpenWindow, account: Account, promise: Promise, nonce: bytes
    ) -> StoredCharge:
        """Make the nonce durable, and return the charge, which is in the log already.

        Raises:
            ChargeVoided, TooEarly: it has no answer and gets none.
        """
        counter = promise.promised.counter
        with self.context.store.read() as connection:
            charge = charge_of(connection, live.name, account.id, counter)
        if charge is None:
            raise Conflict(self.missing, where="counter")
        if (void := self._note(live, charge, nonce)) is not None:
            raise voided(live, charge, void)
        return charge

    def keep_claimed(self, live: OpenWindow, registered: Registered, claim: Claim) -> None:
        """Take the nonce; with it the charge is answered when all claims are read.

        Raises:
            Conflict: there is no such charge, or it was voided.
        """
        promised = claim.promise.promised
        with self.context.store.read() as connection:
            charge = charge_of(connection, live.name, registered.account, promised.counter)
        if charge is None or charge.body != promised:
            raise Conflict("the promised charge is not in the log", where="claim")
        if self._note(live, charge, claim.nonce) is not None:
            raise Conflict("the charge was voided", where="claim")

    def _note(self, live: OpenWindow, charge: StoredCharge, nonce: bytes) -> StoredAnswer | None:
        """Make a verified nonce durable, unless the charge is void: then return the void."""
        with self.context.store.read() as connection:
            answer = answer_of_charge(connection, live.name, charge.entry.index)
        # Answered already: it is only fetched again, perhaps when the log has ended.
        if answer is not None and answer.answer is not None:
            return None

        def note(transaction: LogTransaction) -> StoredAnswer | None:
            answer = answer_of_charge(transaction.connection, live.name, charge.entry.index)
            if answer is not None and answer.answer is None:
                return answer
            # Durable before a coin is drawn: what was seen is never voided.
            note_nonce(transaction, live.name, charge.account, charge.body.counter, nonce)
            return None

        return live.commit(self.context.store, note)

    def log(self, admitted: Admitted, request: GenerationRequest, asked: Asked) -> StoredCharge:
        """Decide which rows pay, and make the charge durable, with its promise if there is one.

        Raises:
            UnsupportedError: the window has no such channel.
            MalformedQuery, MalformedError: the question or its filter.
            QueryRefused: the window was restored, ended or is unavailable; signed.
            BudgetExhausted: under NAIVE, all questions of the tenant were asked.
            StoreUnavailable: nothing was charged; try again.
        """
        live, terms = admitted.window, terms_of(admitted.window)
        # Charges of before a restore may be lost with what they charged.
        if admitted.epoch != EPOCH:
            raise self.context.refuse(
                live, admitted.registered, "unavailable", "restored: the channel is closed"
            )
        _check(request, admitted)
        with phase("embed"):
            openings = admitted.openings(request.retrieval)
        # In all processes: whoever reads what was charged sees every charge before its own.
        with live.account_lock(f"\n{admitted.registered.tenant}"):
            return self._charge(live, admitted, request, asked, openings, terms)

    def _charge(
        self,
        live: OpenWindow,
        admitted: Admitted,
        request: GenerationRequest,
        asked: Asked,
        openings: Openings,
        terms: GenerationTerms,
    ) -> StoredCharge:
        record = admitted.record(request.retrieval, openings)
        index, tenant = admitted.index, record.tenant
        with self.context.store.look() as connection:
            number, uses = self._counts.read(connection, live, tenant, index.count)
        if not terms.charges_rows and number >= terms.uses:
            raise BudgetExhausted(
                "all questions of this tenant were asked",
                where=live.name,
                expected=f"at most {terms.uses}",
            )
        due = self._due(live, index, record, openings, uses)
        salt = live.randomness.draw(
            SALT_BYTES, "charge", live.name, record.pseudonym, record.counter
        )

        def commit(transaction: LogTransaction) -> StoredCharge:
            connection, account = transaction.connection, admitted.registered.account
            admitted.check_window(transaction, State.OPEN)
            current = admitted.current(transaction, record.counter)
            # If the turn was lost, somebody else's charge is not in these counts.
            if next_number(connection, live.name, tenant) != number:
                raise Conflict("another question was charged meanwhile", where=live.name)
            transaction.use_counter(current.pseudonym, record.counter, record.counter + 1)
            body = _body(admitted.stamp(current, record), number, due)
            if current.anchor is not None:
                self._promise(transaction, live, current, body, request, openings)
            stored = insert_charge(
                transaction,
                live,
                body,
                salt,
                account=account,
                request=asked.request,
                opened=ChargeOpenings(request, openings),
                rows=due.rows,
                blinding=due.blinding,
            )
            transaction.count(current, body.time)
            return stored

        with phase("commit"):
            return live.commit(self.context.store, commit)

    def _promise(
        self,
        transaction: LogTransaction,
        live: OpenWindow,
        current: Registered,
        body: Charge,
        request: GenerationRequest,
        openings: Openings,
    ) -> None:
        """Sign and store the promise of a charge, in the charge's own transaction."""
        # The account needs the margin to claim it at the verifier (check 12).
        if body.time > live.policy.last_promise:
            raise self.context.refuse(
                live, current, "closed", "no promise is made so near to the end"
            )
        place = (live.name, current.account, body.counter)
        if find_promise(transaction.connection, *place) is not None:
            raise Conflict("the counter was promised meanwhile", where=live.name)
        promise = Promise.issue(
            self.context.key,
            origin=live.origin,
            body=body.promised().encode(),
            request=request,
            openings=openings,
        )
        # Before anything is kept: a promise that cannot be claimed does not bind the prover.
        check_claim(promise, live.policy.slots)
        put_promise(transaction, *place, promise)

    def _due(
        self,
        live: OpenWindow,
        index: CommittedIndex,
        record: Record,
        openings: Openings,
        uses: npt.NDArray[np.int64],
    ) -> Due:
        """Return what the question charges, with c(i) in ``uses``, int64[N]."""
        terms = terms_of(live)
        if not terms.charges_rows:
            return nothing_due()
        with phase("score"):
            embedding = np.array(openings.embedding, dtype=np.int16)
            scores = self.context.mechanism.scores(index, embedding)
            payable = uses < terms.uses
            allowed = index.allowed(request_filter(openings.filter, live.policy))
            if allowed is not None:
                passes = np.zeros(index.count, dtype=bool)
                passes[list(allowed)] = True
                payable &= passes
            return due_rows(terms, scores, payable, coins_of(live, record))


class _Counts:
    """How often each row was charged, of committed charges; read on from where it was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: a window that ended takes its counts with it.
        self._known = WeakKeyDictionary[OpenWindow, dict[str, tuple[int, npt.NDArray[np.int64]]]]()

    def read(
        self, connection: Connection, live: OpenWindow, tenant: str, count: int
    ) -> tuple[int, npt.NDArray[np.int64]]:
        """Return n_t of the next charge and c(i), int64[count], after all that are committed."""
        with self._lock:
            known = self._known.setdefault(live, {})
            start, counts = known.get(tenant, (0, np.zeros(count, np.int64)))
            # A copy: a reading that fails midway must not have counted anything.
            counts = counts.copy()
            for number, rows in charged_rows(connection, live.name, tenant, start):
                counts[rows] += 1
                start = number + 1
            known[tenant] = start, counts
        return start, counts


def _check(request: GenerationRequest, admitted: Admitted) -> None:
    try:
        request.check_policy(admitted.window.policy)
    except (MalformedRecord, UnsupportedError) as error:
        raise MalformedQuery(error.what, where=error.where, expected=error.expected) from None
    check_request(request.retrieval, admitted.index.count, admitted.window.policy)


def _body(record: Record, number: int, due: Due) -> Charge:
    return Charge(
        policy_digest=record.policy_digest,
        window=record.window,
        tenant=record.tenant,
        version=record.version,
        rows=record.rows,
        filter_digest=record.filter_digest,
        pseudonym=record.pseudonym,
        epoch=record.epoch,
        slot=record.slot,
        counter=record.counter,
        activation=record.activation,
        time=record.time,
        query_digest=record.query_digest,
        embedding_digest=record.embedding_digest,
        sketch_digest=record.sketch_digest,
        number=number,
        threshold=due.threshold,
        charge=due.point,
        sums=due.sums,
    )
