"""The verifier's public keys and its clock, as it shows them: docs/spec/08-services.md §8.3."""

from dataclasses import dataclass
from typing import Any, Self

from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.notes import MAX_NAME_BYTES, VerifierKey
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.signed import MAX_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKeys:
    """The reply of the verifier's `GET /v1/keys`; nothing in it is signed.

    Attributes:
        arbiter: whose findings it takes; None: nobody's.
        name: of the verifier.
        time: its clock, Unix milliseconds.
    """

    arbiter: PublicKey | None
    name: str
    cosigner: VerifierKey
    verifier: PublicKey
    verdict: PublicKey
    time: int

    def to_json(self) -> dict[str, Any]:
        """Return the keys as a JSON object."""
        return {
            "arbiter": None if self.arbiter is None else self.arbiter.raw.hex(),
            "name": self.name,
            "cosigner": str(self.cosigner),
            "verifier": self.verifier.raw.hex(),
            "verdict": self.verdict.raw.hex(),
            "time": self.time,
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the keys of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedError: not such keys.
        """
        f = Fields(value, "arbiter name cosigner verifier verdict time", MalformedRecord, "keys")
        return cls(
            arbiter=None if f.raw("arbiter") is None else f.public_key("arbiter"),
            name=f.text("name", 1, MAX_NAME_BYTES),
            cosigner=VerifierKey.parse(f.text("cosigner", 1, 512)),
            verifier=f.public_key("verifier"),
            verdict=f.public_key("verdict"),
            time=f.integer("time", 0, MAX_TIME),
        )
