"""What is opened of a sampled charge so that its answer can be computed again (spec 11.12)."""

from collections.abc import Iterable
from dataclasses import field
from typing import Annotated, Final, Self, TypeAlias

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.answerers import Answerer, KeywordVoting
from ragaudit.ledger.messages.generated import AnyAnswer, GeneratedKeywords
from ragaudit.ledger.messages.kernel import (
    Converted,
    Count,
    Digest,
    Integer,
    Items,
    Message,
    Nested,
    OneOf,
    Text,
)

__all__ = [
    "PaidRow",
    "Replay",
    "UsedRow",
    "Votes",
    "VotesOfAnswer",
    "longest_replay",
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


_Int16: TypeAlias = Annotated[int, Integer(-(2**15), 2**15 - 1)]


class PaidRow(Message):
    """A row that a charge entry charges.

    Attributes:
        position: in the index.
        vector: X_i with the four numbers that complete its norm, d + 4 integers.
        blinding: of its commitment, a scalar.
    """

    position: Count
    vector: Annotated[tuple[_Int16, ...], Items(5, 4100)] = field(repr=False)
    blinding: Digest = field(repr=False)


_Text: TypeAlias = Annotated[str, Text(0, _MAX_TEXT)]


class UsedRow(Message):
    """A row that was put into a slot: what its row digest is of (5.4).

    Attributes:
        position: in the index; charged.
        id, attributes: of its document.
        content: of its document; None: it was gone or changed since, and was read as "".
        salt: of the row digest, 32 bytes.
    """

    position: Count
    id: Annotated[str, Text(1, _MAX_TEXT)] = field(repr=False)
    content: _Text | None = field(repr=False)
    attributes: _Text = field(repr=False)
    salt: Digest = field(repr=False)


_Vote: TypeAlias = Annotated[
    int | None,
    Converted(
        Integer(-1, 2**24),
        lambda vote: None if vote < 0 else vote,
        lambda vote: -1 if vote is None else vote,
    ),
]


class Votes(Message):
    """The tokens that were named for one place of an answer.

    Attributes:
        public: by the model that reads nothing.
        voters: by each voter, in the order of the voters; None for an empty vote.
    """

    public: Annotated[int, Integer(0, 2**24)]
    voters: Annotated[tuple[_Vote, ...], Items(1, 2**16)] = field(repr=False)


_VOTE: Final = OneOf(lambda vote: isinstance(vote, str), Text(0, MAX_RESPONSE_BYTES), Nested(Votes))
VotesOfAnswer: TypeAlias = Annotated[
    tuple[Votes, ...] | tuple[str, ...], Items(0, MAX_STEPS, _VOTE)
]
"""For each token of the answer; or, under DP-KSA, the whole answer of each voter in its order."""


class Replay(Message, kind="replay"):
    """Everything that sums and answer of a charge entry follow from, beside key and question.

    Attributes:
        blinding: rho of the charge entry's point, a scalar.
        rows: all that the entry charges, positions rising.
        used: those that were put into slots, positions rising.
        votes: for each token of the answer, in order; under DP-KSA whole answers, by voter.
        answer, salt_a: what opens the answer entry's digest; None of a void, which has no votes and
            uses nothing.
    """

    blinding: Digest = field(repr=False)
    rows: Annotated[tuple[PaidRow, ...], Items(0, MAX_ROWS)] = field(repr=False)
    used: Annotated[tuple[UsedRow, ...], Items(0, MAX_ROWS)] = field(repr=False)
    votes: VotesOfAnswer = field(repr=False)
    answer: AnyAnswer | None = field(repr=False)
    salt_a: Digest | None = field(repr=False)

    @classmethod
    def of_void(cls, blinding: bytes, rows: Iterable[PaidRow]) -> Self:
        """Return the replay of a charge without an answer, which has released sums alone."""
        return cls(blinding, tuple(rows), (), (), None, None)

    def _check(self) -> None:
        for name, listed in (("rows", self.rows), ("used", self.used)):
            positions = [row.position for row in listed]
            # One set of rows, one spelling; a row named twice would be committed to twice.
            if positions != sorted(set(positions)):
                raise MalformedError("positions do not rise", where=name)
        answer, votes = self.answer, self.votes
        if (answer is None) != (self.salt_a is None) or (answer is None and (self.used or votes)):
            expected = "null with a void alone, as salt_a is"
            raise MalformedError("null", where="answer", expected=expected)
        texts = {isinstance(each, str) for each in votes}
        of_words = isinstance(answer, GeneratedKeywords)
        if len(texts) > 1 or (answer is not None and (True in texts) != of_words):
            raise MalformedError("of another answerer than the answer", where="votes")

    @classmethod
    def parse(cls, data: bytes, most: int = MAX_REPLAY_BYTES) -> Self:
        """Return the replay of canonical bytes.

        Args:
            data: from a provider.
            most: how many bytes it may have, `longest_replay`; of more, nothing is parsed.

        Raises:
            MalformedError: longer, or as of `Message.parse`.
        """
        if len(data) > most:
            raise MalformedRecord(f"{len(data)} bytes", where="replay", expected=f"at most {most}")
        return super().parse(data)


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
