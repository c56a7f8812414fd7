"""Proof that an entry is not where its receipt says (docs/spec/06-ledger.md §6.11).

Two statements of the provider's side that cannot both be true: a receipt for leaf i, and a
checkpoint of a log that has another leaf there, or that ended before.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, Self

from ragaudit.encoding import canonical_json
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
from ragaudit.ledger.messages.charges import Charge, Generated
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.generated import GeneratedReceipt
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.opened_entry import OpenedEntry
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.records import Close

__all__ = ["LogShown", "MissingEntry", "MissingRecord", "read_missing"]

_SHOWN: Final = "checkpoint path leaf close"


class LogShown(NamedTuple):
    """What the log has instead of an entry.

    Attributes:
        checkpoint: a note that the log signed.
        path: inclusion path of the leaf that is shown, sibling of the leaf first.
        leaf: leaf hash at the entry's index; None where the log ended before it.
        close: the last entry of a log that ended before the entry's index; None otherwise.
    """

    checkpoint: bytes
    path: tuple[bytes, ...]
    leaf: bytes | None = None
    close: OpenedEntry | None = None

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

    def members(self) -> dict[str, Any]:
        """Return the members of a proof that say it."""
        return {
            "checkpoint": self.checkpoint.decode(),
            "path": [sibling.hex() for sibling in self.path],
            "leaf": None if self.leaf is None else self.leaf.hex(),
            "close": None if self.close is None else self.close.to_json(),
        }

    @classmethod
    def read(cls, f: Fields) -> Self:
        """Return what the members of a proof say; MalformedRecord."""
        shown = cls(
            checkpoint=f.text("checkpoint", 1, MAX_NOTE_BYTES).encode(),
            path=f.hexes("path", MAX_PATH, HASH_BYTES),
            leaf=f.optional(f.hex, "leaf", HASH_BYTES),
            close=None if f.raw("close") is None else f.message("close", OpenedEntry),
        )
        if (shown.leaf is None) == (shown.close is None):
            raise MalformedRecord("shows no contradiction", where=f.where, expected="leaf or close")
        return shown


@dataclass(frozen=True, slots=True)
class MissingRecord(JsonMessage):
    """A receipt, and what the log has instead of its record.

    Attributes:
        receipt: the public half, without proof.
        shown: by the log.
    """

    FORMAT: ClassVar[str] = "ragaudit/v1/missing-record"
    MEMBERS: ClassVar[str] = f"receipt {_SHOWN}"
    LABEL: ClassVar[str] = "missing record"
    WHERE: ClassVar[str] = "missing record"

    receipt: PublicReceipt
    shown: LogShown

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

    def _members(self) -> dict[str, Any]:
        return {"receipt": self.receipt.to_json(), **self.shown.members()}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        proof = cls(f.message("receipt", PublicReceipt), LogShown.read(f))
        if proof.receipt.proof is not None:
            raise f.error("receipt", "with a proof", expected="proof null")
        return proof


@dataclass(frozen=True, slots=True)
class MissingEntry(JsonMessage):
    """A receipt of an answer in words, and what the log has instead of one of its entries.

    Attributes:
        receipt: the public half, without proofs.
        entry: the kind that is missing, `charge` or `answer`.
        shown: by the log.
    """

    FORMAT: ClassVar[str] = "ragaudit/v1/missing-entry"
    MEMBERS: ClassVar[str] = f"receipt entry {_SHOWN}"
    LABEL: ClassVar[str] = "missing entry"
    WHERE: ClassVar[str] = "missing entry"

    receipt: GeneratedReceipt
    entry: str
    shown: LogShown

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
                return cls(unproven, kind, shown)
        return None

    def verify(self, policy: Policy) -> SignedCheckpoint:
        """Check that receipt and log contradict each other; as `MissingRecord.verify`.

        Args:
            policy: of the window that is accused; no key is taken from anywhere else.
        """
        _verify_receipt(self.receipt, policy)
        data = dict(self.receipt.entries)[self.entry].leaf_data(self.entry)
        return self.shown.verify(self.index, data, policy)

    def _members(self) -> dict[str, Any]:
        return {"receipt": self.receipt.to_json(), "entry": self.entry, **self.shown.members()}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        receipt = f.message("receipt", GeneratedReceipt)
        if any(entry.proof is not None for _, entry in receipt.entries):
            raise f.error("receipt", "with a proof", expected="both proofs null")
        return cls(receipt, f.choice("entry", Charge.KIND, Generated.KIND), LogShown.read(f))


def read_missing(data: bytes) -> MissingRecord | MissingEntry:
    """Return the proof that a file holds, of whichever format it says; MalformedError."""
    value = canonical_json.loads(data)
    words = isinstance(value, dict) and value.get("format") == MissingEntry.FORMAT
    return (MissingEntry if words else MissingRecord).parse(data)


def _verify_receipt(receipt: PublicReceipt | GeneratedReceipt, policy: Policy) -> None:
    if receipt.origin != policy.origin:
        raise ReceiptRejected("of another log", where="receipt", expected=policy.origin)
    receipt.verify(policy.keys.provider)
