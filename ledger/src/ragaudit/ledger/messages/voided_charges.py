"""What shows an anchored account that a charge of its own has no answer and gets none (spec 11.10).

The account goes on to its next query, whose nonce gives the coins of this charge away. Without the
void in the log a provider could say that there is one, see the coins, and then answer or not.
"""

from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.messages.charges import Charge, Void
from ragaudit.ledger.messages.generated import LoggedEntry
from ragaudit.ledger.messages.kernel import Message
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import voidable_from
from ragaudit.ledger.messages.receipt_body import same

__all__ = ["VoidedCharge"]


class VoidedCharge(Message, kind="voided-charge", where="voided charge"):
    """A charge entry and its void, each with its inclusion proof.

    Attributes:
        charge, void: the entries, as they were logged.
    """

    charge: LoggedEntry
    void: LoggedEntry

    @property
    def charged(self) -> Charge:
        """The body of the charge entry."""
        return Charge.parse(self.charge.body)

    @property
    def voided(self) -> Void:
        """The body of the void."""
        return Void.parse(self.void.body)

    def verify(self, policy: Policy, pseudonym: bytes, counter: int, now: int) -> None:
        """Check that this charge can have no answer, whatever the provider does from now on.

        Args:
            policy: of the window, authenticated by the caller.
            pseudonym: of the account, 32 bytes.
            counter: of its query.
            now: by the account's clock, Unix milliseconds.

        Raises:
            ReceiptRejected: the charge of another query, the void of another charge, one of a time
                at which the promise could still be claimed or that is yet to come, or a proof that
                is missing.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: a proof is none, or false.
        """
        charge, void = self.charged, self.voided
        same("policy", charge.policy_digest, policy.digest)
        same("window", charge.window, policy.window)
        same("pseudonym", charge.pseudonym, pseudonym)
        same("counter", charge.counter, counter)
        place = (charge.window, charge.tenant, self.charge.index)
        if (void.window, void.tenant, void.charge) != place:
            raise ReceiptRejected("the void of another charge", where="void")
        # Sooner, an answer could have been claimed, and the audit refuses such a void (check 28).
        if void.time < voidable_from(charge.time, policy):
            raise ReceiptRejected("void while its promise could be claimed", where="void")
        latest = now + 1000 * policy.clock_skew_seconds
        # Dated ahead, it was made while the promise could be claimed.
        if void.time > latest:
            raise ReceiptRejected(
                f"void at {rfc3339(void.time)}",
                where="void, time",
                expected=f"{rfc3339(latest)} at the latest",
            )
        # Under the verifier's signature: so no log without the void can pass any more.
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        self.charge.verify_inclusion(Charge.KIND, policy.keys.log, cosigners)
        self.void.verify_inclusion(Void.KIND, policy.keys.log, cosigners)

    def _check(self) -> None:
        _ = self.charged, self.voided  # refused here, where the message is malformed
