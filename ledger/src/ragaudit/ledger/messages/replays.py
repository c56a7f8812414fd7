"""What is opened of a sampled charge so that its answer can be computed again (spec 11.12)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.answerers import Answerer, KeywordVoting
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.generated_answers import (
    AnyAnswer,
    GeneratedKeywords,
    read_answer,
)
from ragaudit.ledger.messages.kernel import MAX_TIME

__all__ = [
    "PaidRow",
    "Replay",
    "UsedRow",
    "Votes",
    "VotesOfAnswer",
    "longest_replay",
    "read_votes",
    "votes_json",
]

MAX_REPLAY_BYTES: Final = 2**26
MAX_ROWS: Final = 2**16
MAX_STEPS: Final = 4096
MAX_RESPONSE_BYTES: Final = 2**14
_MAX_TEXT: Final = 2**20
_SCALAR_BYTES: Final = 32
_NAMES: Final = 256  # bytes of the members of a row, but for vector and texts
_ENTRY: Final = 7  # of a vector: "-32768,"
_TOKEN: Final = 9  # "16777216,"
_REST: Final = 2**20  # the answer, and what stands around the lists


@dataclass(frozen=True, slots=True)
class PaidRow(JsonMessage):
    """A row that a charge entry charges.

    Attributes:
        position: in the index.
        vector: X_i with the four numbers that complete its norm, d + 4 integers.
        blinding: of its commitment, a scalar.
    """

    MEMBERS: ClassVar[str] = "position vector blinding"

    position: int
    vector: tuple[int, ...] = field(repr=False)
    blinding: bytes = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "vector": list(self.vector),
            "blinding": self.blinding.hex(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            f.integer("position", 0, MAX_TIME),
            f.integers("vector", (5, 4100), -(2**15), 2**15 - 1),
            f.hex("blinding", _SCALAR_BYTES),
        )


@dataclass(frozen=True, slots=True)
class UsedRow(JsonMessage):
    """A row that was put into a slot: what its row digest is of (5.4).

    Attributes:
        position: in the index; charged.
        id, attributes: of its document.
        content: of its document; None: it was gone or changed since, and was read as "".
        salt: of the row digest, 32 bytes.
    """

    MEMBERS: ClassVar[str] = "position id content attributes salt"

    position: int
    id: str = field(repr=False)
    content: str | None = field(repr=False)
    attributes: str = field(repr=False)
    salt: bytes = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "id": self.id,
            "content": self.content,
            "attributes": self.attributes,
            "salt": self.salt.hex(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            f.integer("position", 0, MAX_TIME),
            f.text("id", 1, _MAX_TEXT),
            f.optional(f.text, "content", 0, _MAX_TEXT),
            f.text("attributes", 0, _MAX_TEXT),
            f.hex("salt", SALT_BYTES),
        )


@dataclass(frozen=True, slots=True)
class Votes(JsonMessage):
    """The tokens that were named for one place of an answer.

    Attributes:
        public: by the model that reads nothing.
        voters: by each voter, in the order of the voters; None for an empty vote.
    """

    MEMBERS: ClassVar[str] = "public voters"

    public: int
    voters: tuple[int | None, ...] = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {"public": self.public, "voters": [-1 if v is None else v for v in self.voters]}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        votes = f.integers("voters", (1, 2**16), -1, 2**24)
        return cls(
            f.integer("public", 0, 2**24), tuple(None if vote < 0 else vote for vote in votes)
        )


VotesOfAnswer = tuple[Votes, ...] | tuple[str, ...]
"""For each token of the answer; or, under DP-KSA, the whole answer of each voter in its order."""


def votes_json(votes: VotesOfAnswer) -> list[Any]:
    """Return the votes for an answer as JSON has them."""
    return [each if isinstance(each, str) else each.to_json() for each in votes]


def read_votes(f: Fields, name: str) -> VotesOfAnswer:
    """Return the votes that a member holds, of one form or the other; MalformedError."""
    value = f.raw(name)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return f.texts(name, MAX_STEPS, MAX_RESPONSE_BYTES)
    return f.messages(name, Votes, 0, MAX_STEPS)


@dataclass(frozen=True, slots=True)
class Replay(JsonMessage):
    """Everything that sums and answer of a charge entry follow from, beside key and question.

    Attributes:
        blinding: rho of the charge entry's point, a scalar.
        rows: all that the entry charges, positions rising.
        used: those that were put into slots, positions rising.
        votes: for each token of the answer, in order; under DP-KSA whole answers, by voter.
        answer, salt_a: what opens the answer entry's digest; None of a void, which has no votes and
            uses nothing.
    """

    FORMAT: ClassVar[str] = "ragaudit/v1/replay"
    MEMBERS: ClassVar[str] = "blinding rows used votes answer salt_a"
    WHERE: ClassVar[str] = "replay"

    blinding: bytes = field(repr=False)
    rows: tuple[PaidRow, ...] = field(repr=False)
    used: tuple[UsedRow, ...] = field(repr=False)
    votes: VotesOfAnswer = field(repr=False)
    answer: AnyAnswer | None = field(repr=False)
    salt_a: bytes | None = field(repr=False)

    @classmethod
    def of_void(cls, blinding: bytes, rows: Iterable[PaidRow]) -> Self:
        """Return the replay of a charge without an answer, which has released sums alone."""
        return cls(blinding, tuple(rows), (), (), None, None)

    def _members(self) -> dict[str, Any]:
        return {
            "blinding": self.blinding.hex(),
            "rows": [row.to_json() for row in self.rows],
            "used": [row.to_json() for row in self.used],
            "votes": votes_json(self.votes),
            "answer": None if self.answer is None else self.answer.to_json(),
            "salt_a": None if self.salt_a is None else self.salt_a.hex(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        rows = f.messages("rows", PaidRow, 0, MAX_ROWS)
        used = f.messages("used", UsedRow, 0, MAX_ROWS)
        for name, listed in (("rows", rows), ("used", used)):
            positions = [row.position for row in listed]
            # One set of rows, one spelling; a row named twice would be committed to twice.
            if positions != sorted(set(positions)):
                raise f.error(name, "positions do not rise")
        votes = read_votes(f, "votes")
        answer = None if f.raw("answer") is None else read_answer(f, "answer")
        salt = f.optional(f.hex, "salt_a", SALT_BYTES)
        if (answer is None) != (salt is None) or (answer is None and (used or votes)):
            raise f.error("answer", "null", "null with a void alone, as salt_a is")
        texts = any(isinstance(each, str) for each in votes)
        if answer is not None and texts != isinstance(answer, GeneratedKeywords):
            raise f.error("votes", "of another answerer than the answer")
        return cls(f.hex("blinding", _SCALAR_BYTES), rows, used, votes, answer, salt)

    @classmethod
    def parse(cls, data: bytes, most: int = MAX_REPLAY_BYTES) -> Self:
        """Return the replay of canonical bytes.

        Args:
            data: from a provider.
            most: how many bytes it may have, `longest_replay`; of more, nothing is parsed.

        Raises:
            MalformedError: longer, or as of `JsonMessage.parse`.
        """
        if len(data) > most:
            raise MalformedRecord(f"{len(data)} bytes", where="replay", expected=f"at most {most}")
        return super(Replay, cls).parse(data)


def longest_replay(answerer: Answerer, dimension: int, rows: int) -> int:
    """Return how many bytes a replay of a question may have (spec 11.12), at most 2^26.

    Args:
        answerer: of the policy.
        dimension: d.
        rows: N of the tenant's index, of which a question may charge every one.
    """
    paid = min(rows, MAX_ROWS) * (_NAMES + _ENTRY * (dimension + 4))
    used = min(rows, answerer.slots) * (_NAMES + 2 * _MAX_TEXT)
    if isinstance(answerer, KeywordVoting):
        votes = answerer.voters * 2 * MAX_RESPONSE_BYTES
    else:
        votes = answerer.tokens * (_NAMES + _TOKEN * (answerer.voters + 1))
    return min(paid + used + votes + _REST, MAX_REPLAY_BYTES)
