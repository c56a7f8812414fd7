"""A log entry that a proof opens: what its leaf is made of (docs/spec/01-encoding.md §1.2).

With its inclusion proof it says, to whoever has the policy, what the window's log holds.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from ragaudit.encoding.digests import leaf_data
from ragaudit.ledger.errors import ProofRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.kernel import Digest, Hex, Message, Text
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, TenantOpening

__all__ = ["OpenedEntry", "Place", "ProvenEntry", "ProvenOpening"]


class OpenedEntry(Message):
    """Salt and body of an entry whose kind the proof fixes.

    Attributes:
        salt: 32 bytes.
    """

    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)] = field(repr=False)

    def leaf(self, kind: str) -> bytes:
        """Return the leaf hash that the entry has in the log.

        Args:
            kind: of the entry, never one that the proof names.
        """
        return leaf_hash(leaf_data(self.salt, kind, self.body))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a log has an entry.

    Attributes:
        index: of the entry, from 0.
        size: of the tree under the checkpoint that proves it.
    """

    index: int
    size: int


class ProvenEntry(Message):
    """An entry that a proof opens, and that the log has it.

    Attributes:
        proof: text of its .tlog-proof.
    """

    ENTRY: ClassVar[type[OpenedEntry]] = OpenedEntry

    entry: OpenedEntry
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)] = field(repr=False)

    @classmethod
    def of(cls, salt: bytes, body: bytes, proof: TlogProof) -> Self:
        """Return an entry with its proof.

        Args:
            salt: of the entry, 32 bytes.
            body: of the entry.
            proof: of its inclusion, under a cosigned checkpoint.
        """
        return cls(cls.ENTRY(salt, body), proof.encode().decode())

    def verify(self, kind: str, policy: Policy) -> Place:
        """Return where the window's log has the entry.

        Args:
            kind: of the entry, never one that the proof names.
            policy: of the window; no key is taken from anywhere else.

        Raises:
            MalformedNote, NoteRejected: no checkpoint that log and cosigner signed.
            MalformedProof, ProofRejected: the path.
        """
        proof = TlogProof.parse(self.proof.encode())
        cosigned = verify_tlog_proof(
            proof, leaf=self.entry.leaf(kind), log_key=policy.keys.log,
            cosigners=CosignerPolicy((policy.keys.cosigner,), 1),
        )  # fmt: skip
        return Place(proof.index, cosigned.signed.head.size)


class OpenedOpening(OpenedEntry):
    """Entry 0, which names every tenant."""

    body: Annotated[bytes, Hex(limit=MAX_OPENING_BYTES)] = field(repr=False)


class ProvenOpening(ProvenEntry):
    """The opening of a window, proven to be entry 0 of its log."""

    ENTRY = OpenedOpening

    entry: OpenedOpening

    def opened(self, policy: Policy) -> Opening:
        """Return the opening, once it is proven.

        Args:
            policy: of the window.

        Raises:
            ProofRejected: another entry, or the opening of another policy.
            MalformedRecord: a body that is none.
            RagauditError: as `verify`.
        """
        place = self.verify(Opening.KIND, policy)
        opening = Opening.parse(self.entry.body)
        if place.index != 0 or opening.policy_digest != policy.digest:
            raise ProofRejected("not the opening of this policy", where="opening")
        return opening

    def tenant(self, name: str, policy: Policy) -> TenantOpening:
        """Return a tenant's part of the opening; raises as `opened`, and if there is none."""
        return self.opened(policy).tenant(name)
