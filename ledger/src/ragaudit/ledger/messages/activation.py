"""The verifier releases an activation value: docs/spec/08-services.md §8.4."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey
from ragaudit.encoding.tagged import DIGEST_BYTES, Field
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.policy import MAX_INSTANTS, Policy
from ragaudit.ledger.messages.signed import MAX_TIME, VerifierMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation(VerifierMessage):
    """The value n_a, released at or after t_a, with the size of the log that it activates.

    Attributes:
        a: number of the instant, from 1.
        preimage: n_a, 32 bytes.
        covered_size: of the largest checkpoint cosigned strictly before t_a, in entries.
        time: of the release, Unix milliseconds.
    """

    KIND: ClassVar[str] = "activation"
    MEMBERS: ClassVar[str] = "window a preimage covered_size time"

    window: str
    a: int
    preimage: bytes
    covered_size: int
    time: int

    @classmethod
    def issue(
        cls, key: PrivateKey, *, window: str, a: int, preimage: bytes, covered_size: int, time: int
    ) -> Self:
        """Release n_a; the arguments are the attributes."""
        return cls(
            window=window, a=a, preimage=preimage, covered_size=covered_size, time=time
        )._signed(key)

    def members(self) -> dict[str, Any]:
        """Return the members beside ``format`` and ``signature`` as JSON values."""
        return {
            "window": self.window,
            "a": self.a,
            "preimage": self.preimage.hex(),
            "covered_size": self.covered_size,
            "time": self.time,
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        return (self.window, self.a, self.preimage, self.covered_size, self.time)

    @classmethod
    def of_fields(cls, f: Fields) -> Self:
        """Return the message with these members; MalformedRecord."""
        return cls(
            window=f.text("window", 1, 64),
            a=f.integer("a", 0, MAX_INSTANTS),
            preimage=f.hex("preimage", DIGEST_BYTES),
            covered_size=f.integer("covered_size", 0, MAX_TIME),
            time=f.integer("time", 0, MAX_TIME),
            signature=f.hex("signature", SIGNATURE_BYTES),
        )

    def authenticate(self, policy: Policy, *, anchor: bytes, number: int) -> None:
        """Check that this is the window's activation ``number``, signed and on the chain.

        Args:
            anchor: of the countersigned activation chain, 32 bytes.
            number: the activation asked for, 1..A-1.

        Raises:
            RejectedError: of another window or number.
            SignatureRejected: not signed with the policy's `keys.verifier`.
            ChainRejected: not the chain's value.
        """
        self._demand("window", self.window, policy.window)
        self._demand("activation", self.a, number)
        self.verify(policy.keys.verifier)
        verify_activation_preimage(policy.window, anchor, number, self.preimage)
