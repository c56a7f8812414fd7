"""What an answer in words was made of, as stored (docs/spec/11-generation.md §11.12)."""

from dataclasses import dataclass, field

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.replays import (
    MAX_ROWS,
    UsedRow,
    VotesOfAnswer,
    read_votes,
    votes_json,
)

__all__ = ["MadeOf"]


@dataclass(frozen=True)
class MadeOf:
    """What an answer was made of, as its replay opens it (docs/spec/11-generation.md §11.12).

    Attributes:
        used: the rows in slots, positions rising.
        votes: as of `Replay`.
    """

    used: tuple[UsedRow, ...] = field(repr=False)
    votes: VotesOfAnswer = field(repr=False)

    def encode(self) -> bytes:
        """Return it in canonical JSON, as the database holds it."""
        return dumps(
            {
                "used": [row.to_json() for row in self.used],
                "votes": votes_json(self.votes),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> "MadeOf":
        """Return what ``data`` holds, the strict inverse of `encode`; MalformedRecord."""
        f = Fields(loads(data), "used votes", MalformedRecord, "stored answer")
        return cls(f.messages("used", UsedRow, 0, MAX_ROWS), read_votes(f, "votes"))
