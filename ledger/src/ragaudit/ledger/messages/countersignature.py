"""The verifier agrees to audit a window: docs/spec/08-services.md §8.4."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey
from ragaudit.encoding.tagged import DIGEST_BYTES, Field
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed import MAX_TIME, VerifierMessage


def opening_digest(salt: bytes, body: bytes) -> bytes:
    """Return the 32 bytes by which a countersignature names the log's entry 0.

    Args:
        salt: of the entry, 32 bytes.
        body: of the entry, as it is logged.
    """
    return structure("opening-digest", salt, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Countersignature(VerifierMessage):
    """What the verifier agreed to, and when.

    Attributes:
        policy_digest, opening_digest, terms_digest: 32 bytes each.
        activation_anchor: of the verifier's activation chain, 32 bytes.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "countersignature"
    MEMBERS: ClassVar[str] = (
        "window policy_digest opening_digest terms_digest activation_anchor time"
    )

    window: str
    policy_digest: bytes
    opening_digest: bytes
    terms_digest: bytes
    activation_anchor: bytes
    time: int

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        window: str,
        policy_digest: bytes,
        opening_digest: bytes,
        terms_digest: bytes,
        activation_anchor: bytes,
        time: int,
    ) -> Self:
        """Countersign an opening; the arguments are the attributes."""
        return cls(
            window=window,
            policy_digest=policy_digest,
            opening_digest=opening_digest,
            terms_digest=terms_digest,
            activation_anchor=activation_anchor,
            time=time,
        )._signed(key)

    def members(self) -> dict[str, Any]:
        """Return the members beside ``format`` and ``signature`` as JSON values."""
        return {
            "window": self.window,
            "policy_digest": self.policy_digest.hex(),
            "opening_digest": self.opening_digest.hex(),
            "terms_digest": self.terms_digest.hex(),
            "activation_anchor": self.activation_anchor.hex(),
            "time": self.time,
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        digests = (self.policy_digest, self.opening_digest, self.terms_digest)
        return (self.window, *digests, self.activation_anchor, self.time)

    @classmethod
    def of_fields(cls, f: Fields) -> Self:
        """Return the message with these members; MalformedRecord."""
        return cls(
            window=f.text("window", 1, 64),
            policy_digest=f.hex("policy_digest", DIGEST_BYTES),
            opening_digest=f.hex("opening_digest", DIGEST_BYTES),
            terms_digest=f.hex("terms_digest", DIGEST_BYTES),
            activation_anchor=f.hex("activation_anchor", DIGEST_BYTES),
            time=f.integer("time", 0, MAX_TIME),
            signature=f.hex("signature", SIGNATURE_BYTES),
        )

    def authenticate(self, policy: Policy, *, opening_salt: bytes, opening_body: bytes) -> None:
        """Check that the policy's verifier signed this for this window, policy and opening.

        Args:
            opening_salt: of the log's entry 0, 32 bytes.
            opening_body: of the log's entry 0.

        Raises:
            RejectedError: of another window, policy or opening.
            SignatureRejected: not signed with `keys.verifier`.
        """
        self._demand("window", self.window, policy.window)
        self._demand("policy", self.policy_digest, policy.digest)
        found = opening_digest(opening_salt, opening_body)
        self._demand("opening", self.opening_digest, found)
        self.verify(policy.keys.verifier)
