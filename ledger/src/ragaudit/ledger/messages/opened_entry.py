"""A log entry that a proof opens: what its leaf is made of (docs/spec/01-encoding.md §1.2)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ragaudit.encoding.digests import SALT_BYTES, leaf_data
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES, Fields, JsonMessage

__all__ = ["OpenedEntry"]


@dataclass(frozen=True, slots=True)
class OpenedEntry(JsonMessage):
    """Salt and body of an entry whose kind the proof fixes.

    Attributes:
        salt: 32 bytes.
    """

    MEMBERS: ClassVar[str] = "salt body"

    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)

    def leaf(self, kind: str) -> bytes:
        """Return the leaf hash that the entry has in the log.

        Args:
            kind: of the entry, never one that the proof names.
        """
        return leaf_hash(leaf_data(self.salt, kind, self.body))

    def _members(self) -> dict[str, Any]:
        return {"salt": self.salt.hex(), "body": self.body.hex()}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(f.hex("salt", SALT_BYTES), f.hex("body", limit=MAX_BODY_BYTES))
