"""What the signed messages of the verifier have in common (docs/spec/08-services.md §8.4)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import PREFIX
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey, sign, verify
from ragaudit.encoding.tagged import Field
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.json_fields import Fields

MAX_TIME = 2**53 - 1
"""Of a time in Unix milliseconds, a count or a size: the largest integer that JSON holds."""

NOT_SIGNED_YET = bytes(SIGNATURE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierMessage(ABC):
    """A message in canonical JSON, signed with `keys.verifier`.

    Attributes:
        KIND: what the format and the signed fields are called.
        MEMBERS: names of the members beside ``format`` and ``signature``, spaces between.
        signature: 64 bytes; nothing has been verified.
    """

    KIND: ClassVar[str]
    MEMBERS: ClassVar[str]

    signature: bytes = field(default=NOT_SIGNED_YET, repr=False)

    @abstractmethod
    def members(self) -> dict[str, Any]:
        """Return the members beside ``format`` and ``signature`` as JSON values."""

    @abstractmethod
    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""

    @classmethod
    @abstractmethod
    def of_fields(cls, f: Fields) -> Self:
        """Return the message with these members; MalformedRecord."""

    def to_json(self) -> dict[str, Any]:
        """Return the message as a JSON object."""
        return {
            "format": PREFIX + self.KIND,
            **self.members(),
            "signature": self.signature.hex(),
        }

    def encode(self) -> bytes:
        """Return the message in canonical JSON, as it is sent and kept."""
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any, where: str = "") -> Self:
        """Return the message of a JSON value, the strict inverse of `to_json`.

        Args:
            where: the value's place, for errors; the kind of the message if it has none.

        Raises:
            MalformedRecord: not such a message. Nothing is verified.
        """
        names = f"format {cls.MEMBERS} signature"
        f = Fields(value, names, MalformedRecord, where or cls.KIND)
        f.constant("format", PREFIX + cls.KIND)
        return cls.of_fields(f)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the message in ``data``, the strict inverse of `encode`.

        Raises:
            MalformedError: not canonical JSON, or (MalformedRecord) not such a message.
        """
        return cls.from_json(canonical_json.loads(data))

    def verify(self, key: PublicKey) -> None:
        """Check the signature alone.

        Raises:
            SignatureRejected: ``key`` did not sign this.
        """
        verify(key, self.signature, self.KIND, *self.signed_fields())

    def _signed(self, key: PrivateKey) -> Self:
        return replace(self, signature=sign(key, self.KIND, *self.signed_fields()))

    def _demand(self, what: str, found: object, expected: object) -> None:
        """RejectedError unless the message names the expected thing."""
        if found != expected:
            shown = expected.hex() if isinstance(expected, bytes) else str(expected)
            raise RejectedError(f"another {what}", where=self.KIND, expected=shown)
