"""Proof that an entry is not where its receipt says (docs/spec/06-ledger.md §6.11).

Two statements of the provider's side that cannot both be true: a receipt for leaf i, and a
checkpoint of a log that has another leaf there, or that ended before.
"""

from dataclasses import replace
from typing import Annotated, Literal, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import ProofRejected, ReceiptRejected
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, verify_checkpoint
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.log.tlog_proof import MAX_PATH
from ragaudit.ledger.log.tree import (
    HashSource,
    TreeHead,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from ragaudit.ledger.messages.charges import Charge
from ragaudit.ledger.messages.generated import GeneratedReceipt
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.kernel import EMBEDDED, Converted, Digest, Items, Message, Text
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.records import Close
from ragaudit.ledger.messages.shown_entries import OpenedEntry

__all__ = ["LogShown", "MissingEntry", "MissingRecord", "read_missing"]


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
        """Return what contradicts an entry's place; None if nothing does; as `MissingRecord.find`.

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
        """Check that it contradicts an entry's place; as `MissingRecord.verify`."""
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


class MissingRecord(Message, kind="missing-record", where="missing record"):
    """A receipt, and what the log has instead of its record.

    Attributes:
        receipt: the public part, without proof.
        shown: by the log.
    """

    receipt: PublicReceipt
    shown: Annotated[LogShown, EMBEDDED]

    @property
    def index(self) -> int:
        """Where the record is said to be."""
        return self.receipt.index

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
        shown = LogShown.find(receipt.index, receipt.leaf_data, checkpoint, source, last)
        # A proof in a receipt is nobody's statement, and would make two files of one proof.
        return None if shown is None else cls(replace(receipt, proof=None), shown)

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
        _verify_receipt(self.receipt, policy)
        return self.shown.verify(self.index, self.receipt.leaf_data, policy)

    def _check(self) -> None:
        if self.receipt.proof is not None:
            raise MalformedError("with a proof", where="receipt", expected="proof null")


class MissingEntry(Message, kind="missing-entry", where="missing entry"):
    """A receipt of a generated answer, and what the log has instead of one of its entries.

    Attributes:
        receipt: the public part, without proofs.
        entry: the kind that is missing, `charge` or `answer`.
        shown: by the log.
    """

    receipt: GeneratedReceipt
    entry: Literal["charge", "answer"]
    shown: Annotated[LogShown, EMBEDDED]

    @property
    def index(self) -> int:
        """Where the entry is said to be."""
        return dict(self.receipt.entries)[self.entry].index

    @classmethod
    def find(
        cls,
        receipt: GeneratedReceipt,
        checkpoint: SignedCheckpoint,
        source: HashSource,
        last: Entry | None = None,
    ) -> Self | None:
        """Return the proof that charge or answer, the first of them, is missing; None if neither.

        Args:
            receipt, checkpoint, source, last: as of `MissingRecord.find`.
        """
        unproven = receipt.with_proofs(None, None)
        for kind, entry in unproven.entries:
            data = entry.leaf_data(kind)
            shown = LogShown.find(entry.index, data, checkpoint, source, last)
            if shown is not None:
                return cls(unproven, "charge" if kind == Charge.KIND else "answer", shown)
        return None

    def verify(self, policy: Policy) -> SignedCheckpoint:
        """Check that receipt and log contradict each other; as `MissingRecord.verify`.

        Args:
            policy: of the window that is accused; no key is taken from anywhere else.
        """
        _verify_receipt(self.receipt, policy)
        data = dict(self.receipt.entries)[self.entry].leaf_data(self.entry)
        return self.shown.verify(self.index, data, policy)

    def _check(self) -> None:
        if any(entry.proof is not None for _, entry in self.receipt.entries):
            raise MalformedError("with a proof", where="receipt", expected="both proofs null")


def read_missing(data: bytes) -> MissingRecord | MissingEntry:
    """Return the proof that a file holds, of whichever format it says; MalformedError."""
    value = canonical_json.loads(data)
    words = isinstance(value, dict) and value.get("format") == MissingEntry.FORMAT
    return (MissingEntry if words else MissingRecord).parse(data)


def _verify_receipt(receipt: PublicReceipt | GeneratedReceipt, policy: Policy) -> None:
    if receipt.origin != policy.origin:
        raise ReceiptRejected("of another log", where="receipt", expected=policy.origin)
    receipt.verify(policy.keys.provider)
