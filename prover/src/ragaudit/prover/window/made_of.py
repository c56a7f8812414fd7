"""What an answer in words was made of, as stored (docs/spec/11-generation.md §11.12)."""

from dataclasses import field
from typing import Annotated

from ragaudit.ledger.messages.kernel import Items, Message
from ragaudit.ledger.messages.replays import MAX_ROWS, UsedRow, VotesOfAnswer

__all__ = ["MadeOf"]


class MadeOf(Message, where="stored answer"):
    """What an answer was made of, as its replay opens it (docs/spec/11-generation.md §11.12).

    Attributes:
        used: the rows in slots, positions rising.
        votes: as of `Replay`.
    """

    used: Annotated[tuple[UsedRow, ...], Items(0, MAX_ROWS)] = field(repr=False)
    votes: VotesOfAnswer = field(repr=False)
