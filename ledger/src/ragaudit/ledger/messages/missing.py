"""Proof that a receipt's record is not where the receipt says (docs/spec/06-ledger.md §6.11).

Two statements of the provider's side that cannot both be true: a receipt for leaf i, and a
checkpoint of a log that has another leaf there, or that ended before.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ragaudit.ledger.errors import MalformedRecord, ProofRejected, ReceiptRejected
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, verify_checkpoint
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.log.tlog_proof import MAX_PATH
from ragaudit.ledger.log.tree import (
    HASH_BYTES,
    HashSource,
    TreeHead,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.opened_entry import OpenedEntry
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.records import Close

__all__ = ["MissingRecord"]


@dataclass(frozen=True, slots=True)
class MissingRecord(JsonMessage):
    """A receipt, and what the log has instead of its record.

    Attributes:
        receipt: the public half, without proof.
        checkpoint: a note that the log signed.
        path: inclusion path of the leaf that is shown, sibling of the leaf first.
        leaf: leaf hash at the receipt's index; None where the log ended before it.
        close: the last entry of a log that ended before the receipt's index; None otherwise.
    """

    FORMAT: ClassVar[str] = "ragaudit/v1/missing-record"
    MEMBERS: ClassVar[str] = "receipt checkpoint path leaf close"
    LABEL: ClassVar[str] = "missing record"
    WHERE: ClassVar[str] = "missing record"

    receipt: PublicReceipt
    checkpoint: bytes
    path: tuple[bytes, ...]
    leaf: bytes | None = None
    close: OpenedEntry | None = None

    @classmethod
    def find(
        cls,
        receipt: PublicReceipt,
        checkpoint: SignedCheckpoint,
        source: HashSource,
        last: Entry | None = None,
    ) -> Self | None:
        """Return the proof that the log contradicts a receipt; None where it does not.

        The caller verifies what it gets (`verify`): nothing here is trusted or checked.

        Args:
            receipt: of a record of this log.
            checkpoint: of the log, verified.
            source: hashes of its tree.
            last: the log's last entry, where it is known; it counts only if it is the close.
        """
        index, size = receipt.index, checkpoint.head.size
        # A proof in a receipt is nobody's statement, and would make two files of one proof.
        receipt, note = replace(receipt, proof=None), checkpoint.encode()
        if index < size:
            leaf = source.subtree_hash(0, index)
            if leaf == leaf_hash(receipt.leaf_data):
                return None
            return cls(receipt, note, inclusion_proof(source, index, size), leaf=leaf)
        # Without its close the log may still grow to the index: that contradicts nothing.
        if last is None or last.kind != Close.KIND or last.index != size - 1:
            return None
        path = inclusion_proof(source, size - 1, size)
        return cls(receipt, note, path, close=OpenedEntry(last.salt, last.body))

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
        signed = verify_checkpoint(self.checkpoint, policy.keys.log)
        if self.leaf is not None:
            self._verify_leaf(self.leaf, signed.head)
        if self.close is not None:
            self._verify_end(self.close, signed.head, policy)
        return signed

    def _verify_leaf(self, leaf: bytes, head: TreeHead) -> None:
        index = self.receipt.index
        # Before the path: a proof that the record is there would be a valid path too.
        if leaf == leaf_hash(self.receipt.leaf_data):
            raise ProofRejected("the record is where its receipt says", where=f"leaf {index}")
        if index >= head.size:
            raise ProofRejected(
                f"the log has {head.size} entries",
                where=f"leaf {index}",
                expected="its close entry",
            )
        verify_inclusion(leaf=leaf, index=index, head=head, proof=self.path)

    def _verify_end(self, close: OpenedEntry, head: TreeHead, policy: Policy) -> None:
        index = self.receipt.index
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

    def _members(self) -> dict[str, Any]:
        return {
            "receipt": self.receipt.to_json(),
            "checkpoint": self.checkpoint.decode(),
            "path": [sibling.hex() for sibling in self.path],
            "leaf": None if self.leaf is None else self.leaf.hex(),
            "close": None if self.close is None else self.close.to_json(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        proof = cls(
            receipt=f.message("receipt", PublicReceipt),
            checkpoint=f.text("checkpoint", 1, MAX_NOTE_BYTES).encode(),
            path=f.hexes("path", MAX_PATH, HASH_BYTES),
            leaf=f.optional(f.hex, "leaf", HASH_BYTES),
            close=None if f.raw("close") is None else f.message("close", OpenedEntry),
        )
        if proof.receipt.proof is not None:
            raise f.error("receipt", "with a proof", expected="proof null")
        if (proof.leaf is None) == (proof.close is None):
            raise MalformedRecord("shows no contradiction", where=f.where, expected="leaf or close")
        return proof
