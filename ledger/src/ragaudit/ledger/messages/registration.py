"""An account's place in a window, as the provider shows it: docs/spec/08-services.md §8.6, §8.9."""

from dataclasses import dataclass, field
from typing import Any, Self

from ragaudit.encoding.digests import DIGEST_BYTES, SALT_BYTES, leaf_data
from ragaudit.encoding.errors import RejectedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.identifiers import PSEUDONYM_BYTES
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_SLOTS, MAX_TIME, Registration

MAX_BODY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class RegistrationEntry:
    """The log entry of a registration, as the provider shows it and the account shows it on.

    Attributes:
        index: of the entry, from 1.
        salt: 32 bytes.
        proof: .tlog-proof of its inclusion; None while there is none.
    """

    index: int
    salt: bytes = field(repr=False)
    body: bytes
    proof: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        return {
            "index": self.index,
            "salt": self.salt.hex(),
            "body": self.body.hex(),
            "proof": self.proof,
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "registration") -> Self:
        """Return the entry of a JSON value, the strict inverse of `to_json`.

        Args:
            where: the value's place, for errors.

        Raises:
            MalformedRecord: not such an entry. Nothing is verified.
        """
        f = Fields(value, "index salt body proof", MalformedRecord, where)
        return cls(
            index=f.integer("index", 1, MAX_TIME),
            salt=f.hex("salt", SALT_BYTES),
            body=f.hex("body", limit=MAX_BODY_BYTES),
            proof=None if f.raw("proof") is None else f.text("proof", 1, MAX_PROOF_BYTES),
        )

    def decode(self) -> Registration:
        """Return the entry's body; MalformedRecord if it is no registration."""
        return Registration.decode(self.body)

    def verify_inclusion(self, policy: Policy) -> bool:
        """Check that the entry is in the window's log; False while there is no proof.

        Raises:
            RejectedError: a proof of another entry.
            MalformedError, RejectedError: not a proof under a checkpoint that the policy's
                cosigner signed.
        """
        if self.proof is None:
            return False
        proof = TlogProof.parse(self.proof.encode())
        if proof.index != self.index:
            raise RejectedError(f"a proof of leaf {proof.index}", where="registration")
        leaf = leaf_hash(leaf_data(self.salt, Registration.KIND, self.body))
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        verify_tlog_proof(proof, leaf=leaf, log_key=policy.keys.log, cosigners=cosigners)
        return True


@dataclass(frozen=True, slots=True)
class ShownAccount:
    """The reply of `GET /v1/windows/{w}/account`; nothing in it has been checked.

    Attributes:
        slot, registration: None before the registration.
        anchor: of the nonce chain, 32 bytes; None for a plain account.
        dispute_key: 32 bytes, None if the account gave none.
        counter: of the next query.
        remaining: how many queries are left.
    """

    tenant: str
    pseudonym: bytes
    slot: int | None
    anchor: bytes | None
    dispute_key: bytes | None
    counter: int
    remaining: int
    registration: RegistrationEntry | None

    def to_json(self) -> dict[str, Any]:
        """Return the account as a JSON object."""
        entry = self.registration
        return {
            "tenant": self.tenant,
            "pseudonym": self.pseudonym.hex(),
            "slot": self.slot,
            "anchor": None if self.anchor is None else self.anchor.hex(),
            "dispute_key": None if self.dispute_key is None else self.dispute_key.hex(),
            "counter": self.counter,
            "remaining": self.remaining,
            "registration": None if entry is None else entry.to_json(),
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the account of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedRecord: not such an account. Nothing is verified.
        """
        names = "tenant pseudonym slot anchor dispute_key counter remaining registration"
        f = Fields(value, names, MalformedRecord, "account")
        entry = f.raw("registration")
        return cls(
            tenant=f.text("tenant", 1, 64),
            pseudonym=f.hex("pseudonym", PSEUDONYM_BYTES),
            slot=None if f.raw("slot") is None else f.integer("slot", 0, MAX_SLOTS - 1),
            anchor=_digest(f, "anchor"),
            dispute_key=_digest(f, "dispute_key"),
            counter=f.integer("counter", 0, MAX_QUERIES),
            remaining=f.integer("remaining", 0, MAX_QUERIES),
            registration=None
            if entry is None
            else RegistrationEntry.from_json(entry, f.path("registration")),
        )


def _digest(f: Fields, name: str) -> bytes | None:
    return None if f.raw(name) is None else f.hex(name, DIGEST_BYTES)
