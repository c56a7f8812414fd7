"""Retrieval as a part of the mechanism: which documents a question is asked of.

One document replaced, added or removed changes the slots in one place at most, if the score is a
function of that document and the question only, the search is exact, ties are broken by an
immutable id, short lists are padded, and a document has one slot (privacy note, 1).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.numbers import count, exact


@dataclass(frozen=True, slots=True)
class Row:
    """A document with its score.

    Attributes:
        id: immutable, and of this document only; ids break ties.
        score: of the question, exact.
        text: what a voter reads.

    Raises:
        InvalidArgumentError: a score that is no finite number.
    """

    id: int
    score: Fraction
    text: str

    def __post_init__(self) -> None:
        # A score that is no number would have a place in no order.
        object.__setattr__(self, "score", exact(self.score, "score"))


def best_rows(rows: Iterable[Row], slots: int) -> list[Row]:
    """Return at most so many rows, of the largest scores first.

    Args:
        rows: in any order.
        slots: >= 1.

    Raises:
        InvalidArgumentError: no slot, or two rows with one id.
    """
    count(slots, "slots")
    ordered = sorted(rows, key=lambda row: (-row.score, row.id))
    if len({row.id for row in ordered}) != len(ordered):
        raise InvalidArgumentError("two rows with one id", where="rows", expected="one row an id")
    return ordered[:slots]


def top_slots(rows: Iterable[Row], slots: int) -> list[str]:
    """Return exactly so many texts: those of `best_rows`, then "".

    Args:
        rows, slots: as of `best_rows`, with the same errors.
    """
    texts = [row.text for row in best_rows(rows, slots)]
    return texts + [""] * (slots - len(texts))


def groups(slots: Sequence[str], order: Sequence[int], each: int) -> list[tuple[str, ...]]:
    """Return the slots of each voter: consecutive ones of a random order.

    Never by rank or id: a document that moves up would change what every voter after it reads.

    Args:
        slots: as many as voters times ``each``.
        order: a permutation of the slots' positions.
        each: slots of a voter, >= 1.
    """
    shuffled = [slots[position] for position in order]
    return [tuple(shuffled[start : start + each]) for start in range(0, len(shuffled), each)]
