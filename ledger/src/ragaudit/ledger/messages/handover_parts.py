"""Bodies of the calls that hand a log over in parts: docs/spec/08-services.md §8.3."""

from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding.errors import MalformedRequest
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.ledger.messages.bodies import Body
from ragaudit.ledger.messages.fields import Fields

MAX_PARTS: Final = 244_142  # of a handover: 10^9 entries


@dataclass(frozen=True, slots=True)
class RecordsBody(Body):
    """`POST .../records`: which parts are the handover.

    Attributes:
        parts: number of them.
        digest: SHA-256 of all their bytes, 32 bytes.
    """

    parts: int
    digest: bytes

    def to_json(self) -> dict[str, Any]:
        return {"parts": self.parts, "digest": self.digest.hex()}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "parts digest", MalformedRequest)
        return cls(f.integer("parts", 1, MAX_PARTS), f.hex("digest", DIGEST_BYTES))


@dataclass(frozen=True, slots=True)
class HeldParts:
    """Answer of `GET .../records/parts`.

    Attributes:
        parts: how many the verifier holds, from the first on.
        complete: whether it has taken a handover.
    """

    parts: int
    complete: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"parts": self.parts, "complete": self.complete}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return what a JSON value says; MalformedRequest if it is no such object."""
        f = Fields(value, "parts complete", MalformedRequest)
        return cls(f.integer("parts", 0, MAX_PARTS), f.boolean("complete"))
