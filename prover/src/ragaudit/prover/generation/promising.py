"""Charges of anchored accounts: promised once they are in the log, answered after the nonce came.

Under MURAG nothing of a charge depends on coins. So it is charged and logged first, and the promise
is the entry as it stands: whoever then has the nonce finds nothing left to choose
(docs/spec/11-generation.md §11.11).
"""

from ragaudit.encoding.errors import Conflict, UnsupportedError
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.generated import GenerationRequest
from ragaudit.ledger.messages.promises import Claim, Promise
from ragaudit.prover.answering.answering import Answering
from ragaudit.prover.answering.promised_charges import PromisedCharges
from ragaudit.prover.generation.charging import Charging, terms_of
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.charges import (
    StoredAnswer,
    StoredCharge,
    answer_of_charge,
    charge_of,
)
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.promised import find_promise, note_nonce
from ragaudit.prover.window.registrations import Registered, find

__all__ = ["Promising"]


class Promising:
    """Promises of charges, and their nonces. Safe to use from several threads."""

    def __init__(self, answering: Answering, charging: Charging, verifier: VerifierClient) -> None:
        self._context = answering.context
        self._charging = charging
        self._charges = PromisedCharges(answering.context, verifier)

    def promise(self, live: OpenWindow, account: Account, request: GenerationRequest) -> Promise:
        """Return the signed promise for a question, which is charged; a retry gets the same one.

        Args:
            account: authenticated; anchored in this window.
            request: with the counter that the account expects.

        Raises:
            PromisePending: another promise of the account has no answer yet.
            ChargeVoided, TooEarly: the charge of this counter expired before its nonce was
                revealed; the second one until that is proven.
            VerifierUnreachable: whether an expired promise was claimed is not known.
            UnsupportedError: the channel is MURAG-ADA's, which takes plain accounts alone.
            RagauditError: as `Charging.promise`.
        """
        # What is released with a charge there needs the nonce, which nobody has yet.
        if terms_of(live).adaptive is not None:
            raise UnsupportedError(
                "an anchored account under murag-ada", where=live.name, expected="a plain account"
            )
        with live.account_lock(account.id):
            pending = self._charges.pending(live, account, request.counter)
            if pending is None:
                return self._charging.promise(live, account, request)
            if pending.request != request:
                raise self._charges.refusal(live, pending)
            # The process may have died before the fence knew of it.
            charge = pending.charge
            live.fence.advance(live.log.entries.head(), {charge.pseudonym: charge.counter + 1})
            return pending

    def reveal(
        self, live: OpenWindow, account: Account, counter: int, nonce: bytes
    ) -> StoredCharge:
        """Make a nonce durable, and return the charge that is to be answered with it.

        Args:
            counter: of the promised question.
            nonce: the account's, 32 bytes.

        Raises:
            Conflict: there is no promised charge with this counter.
            ChargeVoided, TooEarly: it has no answer and gets none.
            ChainRejected: not the nonce of the account's chain.
        """
        with live.account_lock(account.id):
            with self._context.store.read() as connection:
                registered = find(connection, live.name, account.id)
                promise = find_promise(connection, live.name, account.id, counter)
                charge = charge_of(connection, live.name, account.id, counter)
            if registered is None or charge is None or promise is None:
                raise Conflict("no promised charge for this counter", where="counter")
            if (void := self._note(live, registered, charge, nonce)) is not None:
                raise self._charges.voided(live, charge, void)
            return charge

    def claimed(self, live: OpenWindow, registered: Registered, claim: Claim) -> None:
        """Take the nonce of a promised charge that its account gave to the verifier.

        Args:
            claim: verified, of this window.

        Raises:
            Conflict: there is no such charge, or it was voided.
        """
        promised = claim.promise.charge
        with self._context.store.read() as connection:
            charge = charge_of(connection, live.name, registered.account, promised.counter)
        if charge is None or charge.body != promised:
            raise Conflict("the promised charge is not in the log", where="claim")
        if self._note(live, registered, charge, claim.nonce) is not None:
            raise Conflict("the charge was voided", where="claim")

    def _note(
        self, live: OpenWindow, registered: Registered, charge: StoredCharge, nonce: bytes
    ) -> StoredAnswer | None:
        """Make a nonce durable, unless the charge is void: then return the void."""
        counter = charge.body.counter
        if registered.anchor is None:
            raise Conflict("the account is plain", where="nonce")
        # Before any coin is drawn: an answer with another nonce would fail check 11.
        verify_nonce(live.name, registered.pseudonym, registered.anchor, counter, nonce)
        with self._context.store.read() as connection:
            answer = answer_of_charge(connection, live.name, charge.entry.index)
        # Answered already: it is only fetched again, perhaps when the log has ended.
        if answer is not None and answer.answer is not None:
            return None
        with live.committing(self._context.store) as transaction:
            connection = transaction.connection
            answer = answer_of_charge(connection, live.name, charge.entry.index)
            if answer is not None and answer.answer is None:
                return answer
            # Durable before a coin is drawn: what was seen is never voided.
            note_nonce(connection, live.name, charge.account, counter, nonce)
        return None
