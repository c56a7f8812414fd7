"""What the evidence holds of the time before a window: docs/spec/10-verdict.md §10.1.

The verifier's service writes it; the audit, and whoever repeats the audit from a bundle, reads it.
"""

from dataclasses import dataclass, field
from typing import Any, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES, VerifierKey
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.json_fields import Fields


@dataclass(frozen=True, slots=True)
class OpeningItem:
    """`public/opening.json`: salt (32 bytes) and body of the log's entry 0, as countersigned."""

    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the item as a JSON object."""
        return {"salt": self.salt.hex(), "body": self.body.hex()}

    def encode(self) -> bytes:
        """Return the item in canonical JSON, as the evidence holds it."""
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the item of a JSON value, the strict inverse of `to_json`; MalformedRecord."""
        f = Fields(value, "salt body", MalformedRecord, "opening")
        return cls(f.hex("salt", SALT_BYTES), f.hex("body", limit=MAX_OPENING_BYTES))

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the item in ``data``, the strict inverse of `encode`; MalformedError."""
        return cls.from_json(canonical_json.loads(data))


@dataclass(frozen=True, slots=True)
class PreviousWindow:
    """`public/previous.json`: the window whose final checkpoint the policy names.

    Attributes:
        log, cosigner: its keys.
        final: its final checkpoint, a cosigned note; None before its close.
    """

    log: VerifierKey
    cosigner: VerifierKey
    final: bytes | None

    def head(self, note: bytes) -> TreeHead:
        """Return the head of a checkpoint of its log.

        Raises:
            RagauditError: not a checkpoint that log and cosigner signed.
        """
        cosigners = CosignerPolicy((self.cosigner,), 1)
        return verify_cosigned(note, self.log, cosigners).signed.head

    def to_json(self) -> dict[str, Any]:
        """Return the window as a JSON object."""
        return {
            "log": str(self.log),
            "cosigner": str(self.cosigner),
            "final_checkpoint": None if self.final is None else self.final.decode(),
        }

    def encode(self) -> bytes:
        """Return the window in canonical JSON, as the evidence holds it."""
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the window of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedError: not such a window. The checkpoint is not looked at.
        """
        f = Fields(value, "log cosigner final_checkpoint", MalformedRecord, "previous window")
        final = None
        if f.raw("final_checkpoint") is not None:
            final = f.text("final_checkpoint", 0, MAX_NOTE_BYTES).encode()
        log, cosigner = (VerifierKey.parse(f.text(name, 1, 512)) for name in ("log", "cosigner"))
        return cls(log, cosigner, final)
