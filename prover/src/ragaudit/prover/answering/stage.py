"""What the stages of a query have in common; the stages themselves are in `query`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.promises import Reason
from ragaudit.ledger.messages.records import Record
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.refusals import CLOSED, UNAVAILABLE, Refusals
from ragaudit.prover.backends.base import Backend
from ragaudit.prover.errors import Conflict, QueryRefused
from ragaudit.prover.index.index_commitment import CommittedIndex
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.open_window import LogTransaction, OpenWindow
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.prover.window.windows import Windows

if TYPE_CHECKING:
    from ragaudit.prover.answering.query import Stages


@dataclass(frozen=True, repr=False)
class Context:
    """What every query of a prover is answered with. ``clock`` is in milliseconds."""

    store: Store
    windows: Windows
    backend: Backend
    mechanism: Mechanism
    refusals: Refusals
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
        """Return the error with the signed refusal; see `Refusals.refuse`."""
        return self.refusals.refuse(
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
    def index(self) -> CommittedIndex:
        """The index of the account's tenant."""
        return self.window.indexes[self.registered.tenant]

    def current(self, transaction: LogTransaction, counter: int) -> Registered:
        """Return the registration as a transaction reads it.

        Raises:
            Conflict: ``counter`` is not its next one any more.
        """
        name = self.window.name
        current = find(transaction.connection, name, self.registered.account)
        if current is None or current.counter != counter:
            raise Conflict("the account's counter moved", where=name)
        return current

    def stamp(self, current: Registered, record: Record) -> Record:
        """Return the record with the present time; call it inside `OpenWindow.committing`.

        Whatever the work before took, the checkpoints around an entry then confirm its time.

        Raises:
            QueryRefused: the window ended meanwhile, or the clock is behind the cosigner's.
        """
        window, policy = self.window, self.window.policy
        # Times of one account never go back, whatever the clock does.
        time = max(self.context.clock(), current.last_time)
        if time >= 1000 * policy.end:
            raise self.context.refuse(window, current, CLOSED)
        if time < window.log.cosigned_time - 1000 * policy.clock_skew_seconds:
            raise self.context.refuse(
                window, current, UNAVAILABLE, "the clock is behind the cosigner's by the skew"
            )
        return replace(record, time=time)

    def check_age(self, promised: Record) -> None:
        """Check that a promise lives; a nonce that comes later is for the verifier to judge."""
        policy = self.window.policy
        if self.context.clock() > promised.time + policy.promise_life:
            life = policy.promise_life_seconds
            raise Conflict("the promise is too old", where="counter", expected=f"within {life} s")
