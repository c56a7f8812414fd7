"""What the stages of a query have in common; the stages themselves are in `query`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import Conflict, InternalError, RefusedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.chains import NONCE_BYTES
from ragaudit.ledger.messages.filters import request_filter
from ragaudit.ledger.messages.identifiers import pseudonym
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Claim, Promise, Reason, Refusal
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Openings, Request
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.errors import MalformedQuery, QueryRefused, VersionMoved, WindowUnusable
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State, check_state
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import RecordOpenings
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.prover.window.windows import Window, Windows
from ragaudit.serving.exchange import phase
from sqlalchemy import Connection

if TYPE_CHECKING:
    from ragaudit.prover.answering.query import Selected, Stages

_WORDS: dict[Reason, tuple[str, str]] = {
    "budget": ("the account's queries of this window are used up", "the next window"),
    "closed": ("the window is not open", "a query while the window is open"),
    "unavailable": ("the window cannot answer now", "a later query"),
}


@dataclass(frozen=True, repr=False)
class Context:
    """What every query of a prover is answered with.

    Attributes:
        key: the provider's, signs promises, refusals and receipts.
        clock: Unix milliseconds.
    """

    store: Store
    windows: Windows
    backend: Backend
    mechanism: Mechanism
    key: PrivateKey
    clock: Callable[[], int]
    stages: "Stages"

    def refuse(
        self,
        window: OpenWindow,
        registered: Registered,
        reason: Reason,
        detail: str = "",
        *,
        again: int | None = None,
    ) -> QueryRefused:
        """Return the error with the signed refusal of a registered account's query; see `refuse`.

        Args:
            detail: more for the reader; it is not signed.
            again: Unix milliseconds from which the same query may succeed; None if waiting does
                not help.
        """
        return refuse(
            self.key,
            reason,
            origin=window.origin,
            pseudonym=registered.pseudonym,
            counter=registered.counter,
            time=self.clock(),
            detail=detail,
            again=again,
        )


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
        current = find(transaction.connection, name, self.registered.account)
        if current is None or current.counter != counter:
            raise Conflict("the account's counter moved", where=name)
        return current

    def check_window(self, connection: Connection, state: State) -> None:
        """Check that the window still answers, and that nothing of it changed unnoticed.

        Args:
            connection: of a transaction that holds the log's lock.
            state: in which the window must still be.

        Raises:
            WrongState: it is in another one.
            WindowUnusable: it was stopped for good.
            VersionMoved: an activation or a version of the index is not in memory yet.
        """
        window = self.window
        status = self.context.windows.status(connection, window.name)
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
        if time < window.log.cosigned_time - 1000 * policy.clock_skew_seconds:
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
            with phase("noise"):
                noise = mechanism.draw_noise(window, index, record, nonce)
            with phase("score"):
                selected = mechanism.noised_selection(
                    window, index, embedding, noise, record.top_k, allowed
                )
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


def refuse(
    key: PrivateKey,
    reason: Reason,
    *,
    origin: str,
    pseudonym: bytes,
    counter: int,
    time: int,
    detail: str = "",
    again: int | None = None,
) -> QueryRefused:
    """Return the error that carries a signed refusal (docs/spec/05-records.md §5.8).

    Args:
        key: the provider's.
        origin: of the window's log.
        pseudonym: the account's, 32 bytes.
        counter: number of the account's logged queries.
        time: Unix milliseconds.
        detail: more for the reader; it is not signed.
        again: Unix milliseconds from which the same query may succeed; None if waiting does not
            help.
    """
    refusal = Refusal(
        origin=origin, pseudonym=pseudonym, counter=counter, reason=reason, time=time
    ).signed(key)
    what, expected = _WORDS[reason]
    return QueryRefused(
        f"{what}: {detail}" if detail else what,
        refusal=refusal.to_json(),
        where=origin,
        expected=expected,
        retry_after=None if again is None else seconds_until(again, time),
    )


def refuse_unloaded(key: PrivateKey, window: Window, account: Account, time: int) -> QueryRefused:
    """Return the signed refusal of a window that is not in memory: its account can show it.

    Args:
        time: Unix milliseconds.
    """
    return refuse(
        key,
        "closed",
        origin=Policy.parse(window.policy).origin,
        pseudonym=pseudonym(window.pseudonym_key, window.name, account.name, account.user),
        counter=0,
        time=time,
        detail=f"it is {window.state}",
    )


def seconds_until(instant: int, now: int) -> int:
    """Return the whole seconds between two Unix milliseconds: at least 1, as a header shows it.

    Args:
        instant, now: Unix milliseconds; ``instant`` may be past.
    """
    return max(1, -(-(instant - now) // 1000))


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


def check_claim(promise: Promise) -> None:
    """Check that an account could claim the promise; its library reveals nothing otherwise.

    Args:
        promise: signed, and not stored yet.

    Raises:
        MalformedQuery: the claim would be too long for any verifier.
    """
    try:
        Claim(promise, bytes(NONCE_BYTES)).encode()
    except RefusedError as error:
        # Malformed, not refused: what makes a claim too long is the text of the query.
        raise MalformedQuery(error.what, where="query", expected=error.expected) from error
