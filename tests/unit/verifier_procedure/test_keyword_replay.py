"""Answers of DP-KSA computed again: votes that differ, models that are away (spec 11.12)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from ragaudit.encoding.errors import RejectedError, UnavailableError
from ragaudit.ledger.messages.generation_terms import KeywordVoting
from ragaudit.ledger.messages.receipts import GeneratedKeywords
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.verifier.procedure.replay_checks import StatedResponses, check_keywords

QUESTION = "what helps?"
SLOTS = ["take mirazo"] * 8
VOTING = KeywordVoting(
    # So much that nothing is left to chance: what all voters name is released.
    epsilon_choice=Fraction(22),
    sigma=Fraction(1, 16),
    delta_test=Fraction(1, 10**6),
    delta_conversion=Fraction(1, 10**6),
    voters=8,
    sizes=(1, 2, 3),
    stop_words=(),
    tokens=6,
    final="model",
)
STATED = GeneratedKeywords("it is mirazo take", ("mirazo", "take"))


class Model:
    """What each voter reads is its answer, but for the first ones.

    Args:
        others: voters that it has another answer of.
        missing: voters that it has none of.
        final: whether it writes texts of keywords.
    """

    def __init__(self, others: int = 0, missing: int = 0, *, final: bool = True) -> None:
        self.others, self.missing, self.writes = others, missing, final

    def whole(self, question: str, documents: Sequence[str]) -> Sequence[str | None]:
        assert question == QUESTION
        if self.missing == len(documents):
            raise UnavailableError("away")
        changed = [None] * self.missing + ["something else"] * self.others
        return [*changed, *documents[len(changed) :]]

    def final(self, question: str, keywords: Sequence[str]) -> str:
        if not self.writes:
            raise UnavailableError("away")
        return f"it is {' '.join(keywords)}"


def replayed(
    own: Model | None, stated: GeneratedKeywords = STATED, tolerated: int = 0, **changes: Any
) -> StatedResponses:
    votes = changes.pop("votes", SLOTS)
    by_model = changes.pop("by_model", True)
    voters = StatedResponses(votes, stated, own, tolerated=tolerated, by_model=by_model)
    check_keywords(VOTING, QUESTION, SLOTS, voters, stated, KeyedCoins(bytes(32)))
    return voters


def test_the_same_votes_and_text_are_computed_again() -> None:
    voters = replayed(Model())
    assert (voters.differing, voters.unasked) == (0, False)


@pytest.mark.parametrize("others", [1, 2, 3])
def test_so_many_votes_may_differ_and_no_more(others: int) -> None:
    assert replayed(Model(others), tolerated=others).differing == others
    with pytest.raises(RejectedError, match=rf"{others} votes are not.*at most {others - 1}"):
        replayed(Model(others), tolerated=others - 1)


@pytest.mark.parametrize("missing", [1, 8])
def test_a_vote_that_nobody_could_ask_again_is_none_that_differs(missing: int) -> None:
    voters = replayed(Model(missing=missing))
    assert (voters.differing, voters.unasked) == (0, True)
    # Those that were asked still count.
    if missing == 1:
        with pytest.raises(RejectedError, match="1 votes are not"):
            replayed(Model(others=1, missing=1))


def test_a_model_that_is_away_at_the_final_text_leaves_it_open() -> None:
    other = GeneratedKeywords("anything", STATED.keywords)
    for stated in (STATED, other):
        voters = replayed(Model(final=False), stated)
        assert (voters.differing, voters.unasked) == (0, True)
    # What it would have written is demanded of one that answers, and the words of any.
    with pytest.raises(RejectedError, match="final text"):
        replayed(Model(), other)
    with pytest.raises(RejectedError, match="other keywords"):
        replayed(Model(final=False), GeneratedKeywords(STATED.text, ("take",)))


def test_where_no_model_writes_the_text_none_is_asked_for_it() -> None:
    joined = GeneratedKeywords("mirazo take", STATED.keywords)
    for own in (None, Model(final=False)):
        assert not replayed(own, joined, by_model=False).unasked
        with pytest.raises(RejectedError, match="final text"):
            replayed(own, STATED, by_model=False)


def test_votes_are_one_for_each_slot() -> None:
    with pytest.raises(RejectedError, match=r"7 votes .*8"):
        replayed(None, votes=SLOTS[1:])
