"""Log entries as a provider shows them, each with the proof that the log has it (spec 8.6)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ragaudit.encoding.digests import SALT_BYTES, leaf_data
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES, MAX_TIME, Fields, JsonMessage
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Registration, Version


@dataclass(frozen=True, slots=True)
class ShownOpening(JsonMessage):
    """The log's entry 0 as it is shown: salt of 32 bytes, and body."""

    MEMBERS: ClassVar[str] = "index salt body"
    WHERE: ClassVar[str] = "opening"

    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {"index": 0, "salt": self.salt.hex(), "body": self.body.hex()}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        f.constant("index", 0)
        return cls(f.hex("salt", SALT_BYTES), f.hex("body", limit=MAX_OPENING_BYTES))


@dataclass(frozen=True, slots=True)
class ShownEntry(JsonMessage):
    """A log entry as the provider shows it.

    Attributes:
        index: of the entry, from 1.
        salt: 32 bytes.
        proof: .tlog-proof of its inclusion; None while there is none.
    """

    MEMBERS: ClassVar[str] = "index salt body proof"
    KIND: ClassVar[str]

    index: int
    salt: bytes = field(repr=False)
    body: bytes
    proof: str | None

    def _members(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "salt": self.salt.hex(),
            "body": self.body.hex(),
            "proof": self.proof,
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            # Entry 0 is the opening.
            index=f.integer("index", 1, MAX_TIME),
            salt=f.hex("salt", SALT_BYTES),
            body=f.hex("body", limit=MAX_BODY_BYTES),
            proof=f.optional(f.text, "proof", 1, MAX_PROOF_BYTES),
        )

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
        leaf = leaf_hash(leaf_data(self.salt, self.KIND, self.body))
        # A log's signature alone could be of a tree that is shown to this account only.
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        verify_tlog_proof(proof, leaf=leaf, log_key=policy.keys.log, cosigners=cosigners)


@dataclass(frozen=True, slots=True)
class RegistrationEntry(ShownEntry):
    """The log entry of a registration, as the provider shows it and the account shows it on."""

    WHERE: ClassVar[str] = "registration"
    KIND: ClassVar[str] = Registration.KIND

    @property
    def registration(self) -> Registration:
        """The body of the entry; MalformedRecord if it is no registration."""
        return Registration.parse(self.body)


@dataclass(frozen=True, slots=True)
class VersionEntry(ShownEntry):
    """The log entry of a later version of an index, as the provider shows it."""

    WHERE: ClassVar[str] = "version"
    KIND: ClassVar[str] = Version.KIND

    @property
    def version(self) -> Version:
        """The body of the entry; MalformedRecord if it is no version."""
        return Version.parse(self.body)


@dataclass(frozen=True, slots=True)
class EpochEntry(ShownEntry):
    """The log entry of a later seed epoch, as the provider shows it."""

    WHERE: ClassVar[str] = "epoch"
    KIND: ClassVar[str] = Epoch.KIND

    @property
    def epoch(self) -> Epoch:
        """The body of the entry; MalformedRecord if it is no epoch."""
        return Epoch.parse(self.body)
