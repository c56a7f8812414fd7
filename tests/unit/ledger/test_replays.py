"""How long a replay may be: as long as the largest one of its policy, no longer (spec 11.12)."""

import pytest
from generation_messages import KEYWORDS, policy_with
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.challenge import (
    MAX_REPLAY_BYTES,
    MAX_VOTE_BYTES,
    PaidRow,
    Replay,
    UsedRow,
    Votes,
    VotesOfAnswer,
    longest_replay,
)
from ragaudit.ledger.messages.kernel import MAX_TIME
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GeneratedAnswer, GeneratedKeywords

ROWS, DIMENSION = 3, 6


def largest(policy: Policy) -> Replay:
    """A replay whose every member is as long as it can be, but that no text needs an escape."""
    terms = policy.generation
    assert terms is not None
    answerer, text = terms.answerer, "x" * 2**20
    places = [MAX_TIME - number for number in range(ROWS)][::-1]
    paid = tuple(PaidRow(place, (-(2**15),) * (DIMENSION + 4), bytes(32)) for place in places)
    used = tuple(
        UsedRow(place, "i" * 512, text[512:], text, bytes(32)) for place in places[: answerer.slots]
    )
    answer: GeneratedAnswer | GeneratedKeywords = GeneratedKeywords("y" * 2**18, None)
    votes: VotesOfAnswer = ('"' * MAX_VOTE_BYTES,) * answerer.slots
    if terms.generator.vocabulary is not None:
        each = Votes(2**24, (2**24,) * terms.token_voting.voters)
        votes = (each,) * terms.token_voting.tokens
        answer = GeneratedAnswer("y" * 2**18, (2**24 - 1,) * terms.token_voting.tokens, 1)
    return Replay(bytes(32), paid, used, votes, answer, bytes(32))


def test_the_largest_replay_is_not_too_long_and_its_length_follows_from_the_policy() -> None:
    for policy in (Policy.from_json(policy_with()), Policy.from_json(policy_with(**KEYWORDS))):
        assert policy.generation is not None
        answerer = policy.generation.answerer
        most = longest_replay(answerer, DIMENSION, ROWS)
        data = largest(policy).encode()
        # The texts are nearly all of it; a byte of them may take two.
        assert len(data) <= most < 2 * len(data) + 2**21 < MAX_REPLAY_BYTES
        assert Replay.parse(data, most).encode() == data
        with pytest.raises(MalformedRecord, match=f"{len(data)} bytes"):
            Replay.parse(data, len(data) - 1)
        # More rows, entries, voters: more bytes, up to what any may have.
        assert most < longest_replay(answerer, DIMENSION + 1, ROWS)
        assert most < longest_replay(answerer, DIMENSION, ROWS + 1)
        assert longest_replay(answerer, 384, 2**40) == MAX_REPLAY_BYTES
