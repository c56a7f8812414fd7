"""Log entries as they are shown, each with the proof that the log has it (docs/spec 1.2, 8.6).

A proof opens an entry by what its leaf is made of. With its inclusion proof it says, to whoever has
the policy, what the window's log holds.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.errors import ProofRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.entries import Epoch, Opening, Registration, TenantOpening, Version
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.kernel import MAX_TIME, Digest, Hex, Integer, Message, Text
from ragaudit.ledger.messages.policy import Policy


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


class ShownOpening(Message, where="opening"):
    """The log's entry 0 as it is shown: salt of 32 bytes, and body."""

    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_OPENING_BYTES)] = field(repr=False)
    index: Annotated[int, Integer(0, 0)] = 0


class ShownEntry(Message):
    """A log entry as the provider shows it.

    Attributes:
        index: of the entry, from 1.
        salt: 32 bytes.
        proof: .tlog-proof of its inclusion; None while there is none.
        ENTRY: its kind.
    """

    ENTRY: ClassVar[str]

    index: Annotated[int, Integer(1, MAX_TIME)]
    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)]
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)] | None

    def verify_inclusion(self, policy: Policy) -> None:
        """Check that the entry is in the window's log.

        Args:
            policy: of the window, whose log and cosigner it names.

        Raises:
            MalformedError: no proof; whoever may wait for one looks at `proof` first.
            RejectedError: a proof of another entry.
            MalformedError, RejectedError: not a proof under a checkpoint that the policy's
                cosigner signed.
        """
        # Raised, not told by a value: an entry of no log must not pass for one by oversight.
        if self.proof is None:
            raise MalformedError("no proof", where=self.WHERE)
        proof = TlogProof.parse(self.proof.encode())
        # The index decides which activation the account's records have (5.6), so the proof must be
        # of this place, not merely of this log.
        if proof.index != self.index:
            raise RejectedError(f"a proof of leaf {proof.index}", where=self.WHERE)
        # Under the kind's name: the entry of a record is no registration, whatever its body says.
        leaf = leaf_hash(leaf_data(self.salt, self.ENTRY, self.body))
        # A log's signature alone could be of a tree that is shown to this account only.
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        verify_tlog_proof(proof, leaf=leaf, log_key=policy.keys.log, cosigners=cosigners)


class RegistrationEntry(ShownEntry, where="registration"):
    """The log entry of a registration, as the provider shows it and the account shows it on."""

    ENTRY = Registration.KIND

    @property
    def registration(self) -> Registration:
        """The body of the entry; MalformedRecord if it is no registration."""
        return Registration.parse(self.body)


class VersionEntry(ShownEntry, where="version"):
    """The log entry of a later version of an index, as the provider shows it."""

    ENTRY = Version.KIND

    @property
    def version(self) -> Version:
        """The body of the entry; MalformedRecord if it is no version."""
        return Version.parse(self.body)


class EpochEntry(ShownEntry, where="epoch"):
    """The log entry of a later seed epoch, as the provider shows it."""

    ENTRY = Epoch.KIND

    @property
    def epoch(self) -> Epoch:
        """The body of the entry; MalformedRecord if it is no epoch."""
        return Epoch.parse(self.body)
