"""The charge that an anchored account was promised and that has no answer yet: one at most.

Until it is answered or voided the account is promised nothing else, so that no two nonces are ever
out with one answer (docs/spec/11-generation.md §11.11).
"""

from ragaudit.encoding.errors import TooEarly
from ragaudit.ledger.messages.generated import LoggedEntry
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.voided_charges import VoidedCharge
from ragaudit.prover.answering.stage import Context, seconds_until
from ragaudit.prover.errors import ChargeVoided, PromisePending
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
from ragaudit.prover.window.promised import find_promise, is_revealed
from ragaudit.prover.window.registrations import find

__all__ = ["PromisedCharges"]


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
