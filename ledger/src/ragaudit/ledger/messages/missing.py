"""Answers that are missing from a log, or that a charge never gets (docs/spec 6.11, 11.10).

Where a log lacks one, two statements of the provider's side cannot both be true: a receipt for leaf
i, and a checkpoint of a log that has another leaf there, or that ended before. Where an anchored
account goes on to its next query, whose nonce gives the coins of its charge away, it must see the
void in the log: a provider could else say that there is one, see the coins, and then answer or not.
"""

from typing import Annotated, Any, Literal, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ProofRejected, ReceiptRejected
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, verify_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.log.tlog_proof import MAX_PATH
from ragaudit.ledger.log.tree import (
    HashSource,
    TreeHead,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from ragaudit.ledger.messages.entries import Charge, Close, Void
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.kernel import (
    ANYTHING,
    EMBEDDED,
    Converted,
    Digest,
    Items,
    Message,
    Text,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import voidable_from
from ragaudit.ledger.messages.receipt_check import same
from ragaudit.ledger.messages.receipts import GeneratedReceipt, LoggedEntry, PublicReceipt
from ragaudit.ledger.messages.shown import OpenedEntry


class LogShown(Message):
    """What the log has instead of an entry.

    Attributes:
        checkpoint: a note that the log signed.
        path: inclusion path of the leaf that is shown, sibling of the leaf first.
        leaf: leaf hash at the entry's index; None where the log ended before it.
        close: the last entry of a log that ended before the entry's index; None otherwise.
    """

    checkpoint: Annotated[bytes, Converted(Text(1, MAX_NOTE_BYTES), str.encode, bytes.decode)]
    path: Annotated[tuple[Digest, ...], Items(0, MAX_PATH)]
    leaf: Digest | None = None
    close: OpenedEntry | None = None

    def _check(self) -> None:
        if (self.leaf is None) == (self.close is None):
            raise MalformedError("shows no contradiction", expected="leaf or close")

    @classmethod
    def find(
        cls,
        index: int,
        data: bytes,
        checkpoint: SignedCheckpoint,
        source: HashSource,
        last: Entry | None,
    ) -> Self | None:
        """Return what contradicts an entry's place; None if nothing does; as `_Missing.find`.

        Args:
            index, data: where the entry is said to be, and its leaf data.
        """
        size, note = checkpoint.head.size, checkpoint.encode()
        if index < size:
            leaf = source.subtree_hash(0, index)
            if leaf == leaf_hash(data):
                return None
            return cls(note, inclusion_proof(source, index, size), leaf=leaf)
        # Without its close the log may still grow to the index: that contradicts nothing.
        if last is None or last.kind != Close.KIND or last.index != size - 1:
            return None
        path = inclusion_proof(source, size - 1, size)
        return cls(note, path, close=OpenedEntry(last.salt, last.body))

    def verify(self, index: int, data: bytes, policy: Policy) -> SignedCheckpoint:
        """Check that it contradicts an entry's place; as `_Missing.verify`."""
        signed = verify_checkpoint(self.checkpoint, policy.keys.log)
        if self.leaf is not None:
            self._verify_leaf(self.leaf, index, data, signed.head)
        if self.close is not None:
            self._verify_end(self.close, index, signed.head, policy)
        return signed

    def _verify_leaf(self, leaf: bytes, index: int, data: bytes, head: TreeHead) -> None:
        # Before the path: a proof that the entry is there would be a valid path too.
        if leaf == leaf_hash(data):
            raise ProofRejected("the entry is where its receipt says", where=f"leaf {index}")
        if index >= head.size:
            raise ProofRejected(
                f"the log has {head.size} entries",
                where=f"leaf {index}",
                expected="its close entry",
            )
        verify_inclusion(leaf=leaf, index=index, head=head, proof=self.path)

    def _verify_end(self, close: OpenedEntry, index: int, head: TreeHead, policy: Policy) -> None:
        if head.size > index:
            raise ProofRejected(
                f"the log has {head.size} entries", where=f"leaf {index}", expected="another leaf"
            )
        if Close.parse(close.body).window != policy.window:
            raise ProofRejected("closes another window", where="close", expected=policy.window)
        # The entry says which leaf it is by its kind alone: any other last leaf may be followed.
        verify_inclusion(
            leaf=close.leaf(Close.KIND), index=head.size - 1, head=head, proof=self.path
        )


class _Missing(Message):
    """A receipt without proofs, and what the log has instead of one of its entries.

    Attributes:
        shown: by the log.
    """

    receipt: Annotated[PublicReceipt | GeneratedReceipt, ANYTHING]
    shown: Annotated[LogShown, EMBEDDED]

    @property
    def _leaf(self) -> tuple[str, int, bytes]:
        return self.receipt.leaves[0]

    @property
    def index(self) -> int:
        """Where the entry is said to be."""
        return self._leaf[1]

    @classmethod
    def find(
        cls,
        receipt: PublicReceipt | GeneratedReceipt,
        checkpoint: SignedCheckpoint,
        source: HashSource,
        last: Entry | None = None,
    ) -> Self | None:
        """Return the proof that the log lacks an entry, the first of them; None if it lacks none.

        The caller verifies what it gets (`verify`): nothing here is trusted or checked.

        Args:
            receipt: of entries of this log.
            checkpoint: of the log, verified.
            source: hashes of its tree.
            last: the log's last entry, where it is known; it counts only if it is the close.
        """
        for kind, index, data in receipt.leaves:
            shown = LogShown.find(index, data, checkpoint, source, last)
            if shown is not None:
                # A proof in a receipt is nobody's statement, and would make two files of one proof.
                return cls._of(receipt.unproven(), shown, kind)
        return None

    @classmethod
    def _of(cls, receipt: PublicReceipt | GeneratedReceipt, shown: LogShown, kind: str) -> Self:
        return cls(receipt, shown)

    def verify(self, policy: Policy) -> SignedCheckpoint:
        """Check that receipt and log contradict each other; return the log's checkpoint.

        Args:
            policy: of the window that is accused; no key is taken from anywhere else.

        Raises:
            ReceiptRejected: the receipt is of another log, or the provider did not sign it.
            MalformedNote, NoteRejected: the checkpoint is not one that the log signed.
            MalformedProof, ProofRejected: the path is wrong, or there is no contradiction.
            MalformedRecord: the last entry is no close entry.
        """
        if self.receipt.origin != policy.origin:
            raise ReceiptRejected("of another log", where="receipt", expected=policy.origin)
        self.receipt.verify(policy.keys.provider)
        _, index, data = self._leaf
        return self.shown.verify(index, data, policy)

    def _check(self) -> None:
        if self.receipt != self.receipt.unproven():
            raise MalformedError("with a proof", where="receipt", expected="proof null")


class MissingRecord(_Missing, kind="missing-record", where="missing record"):
    """A receipt, and what the log has instead of its record.

    Attributes:
        receipt: the public part, without proof.
    """

    receipt: PublicReceipt


class MissingEntry(_Missing, kind="missing-entry", where="missing entry"):
    """A receipt of a generated answer, and what the log has instead of one of its entries.

    Attributes:
        receipt: the public part, without proofs.
        entry: the kind that is missing, `charge` or `answer`.
    """

    receipt: GeneratedReceipt
    entry: Literal["charge", "answer"]

    @property
    def _leaf(self) -> tuple[str, int, bytes]:
        return next(leaf for leaf in self.receipt.leaves if leaf[0] == self.entry)

    @classmethod
    def _of(cls, receipt: Any, shown: LogShown, kind: Any) -> Self:
        return cls(receipt, shown, kind)


def read_missing(data: bytes) -> MissingRecord | MissingEntry:
    """Return the proof that a file holds, of whichever format it says; MalformedError."""
    value = canonical_json.loads(data)
    words = isinstance(value, dict) and value.get("format") == MissingEntry.FORMAT
    return (MissingEntry if words else MissingRecord).parse(data)


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
