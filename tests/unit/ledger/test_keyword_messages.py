"""DP-KSA in policies, answers and replays: one form each, everything else refused."""

import hashlib
from typing import Any

import pytest
from for_each import for_each
from generation_messages import GENERATION, KEYWORDS, SALT, policy_with
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.tagged import enc
from ragaudit.encoding.text import words
from ragaudit.ledger.messages.challenge import Replay
from ragaudit.ledger.messages.generation_terms import KeywordVoting
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GeneratedAnswer, GeneratedKeywords

ANSWERER: dict[str, Any] = KEYWORDS["answerer"]
MODEL: dict[str, Any] = KEYWORDS["generator"]
ANSWER = GeneratedKeywords("take mirazo", ("mirazo", "take"))
REPLAY = Replay(bytes(32), (), (), ("take mirazo", ""), ANSWER, SALT)


def test_terms_are_exact() -> None:
    policy = Policy.from_json(policy_with(**KEYWORDS))
    terms = policy.generation
    assert terms is not None and isinstance(terms.answerer, KeywordVoting)
    assert Policy.parse(policy.encode()) == policy
    assert (terms.answerer.slots, terms.answerer.sizes) == (8, (1, 2, 3))
    # Epsilon is of all three uses, and so is delta.
    assert terms.epsilon == 2
    with pytest.raises(UnsupportedError):
        _ = terms.token_voting


@for_each(
    "change",
    [
        {"epsilon_choice": "23"},  # of 8 voters: 184 > 176
        {"delta_test": "1/3"},  # three uses
        {"sizes": [2, 1]},
        {"sizes": [1, 1]},
        {"stop_words": ["the", "a"]},
        {"stop_words": ["The"]},
        {"stop_words": ["a b"]},
        {"stop_words": [""]},
    ],
)  # fmt: skip
def test_answerers_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        Policy.from_json(policy_with(**{**KEYWORDS, "answerer": {**ANSWERER, **change}}))


@pytest.mark.parametrize("mechanism", ["naive", "murag-ada"])
def test_only_murag_charges_for_it(mechanism: str) -> None:
    threshold = {"edges": [9000], "epsilon": "1/4", "enough": 5}
    given: dict[str, Any] = {"threshold": threshold}
    if mechanism == "naive":
        given = {"threshold": None, "replay": None}
    with pytest.raises(UnsupportedError, match=f"dp-ksa under {mechanism}"):
        Policy.from_json(policy_with(**KEYWORDS, mechanism=mechanism, **given))


def test_a_document_is_one_row() -> None:
    value = {**policy_with(**KEYWORDS), "rows_per_document": 2}
    with pytest.raises(UnsupportedError, match="documents of several rows"):
        Policy.from_json(value)


def test_a_model_of_tokens_is_another_one() -> None:
    with pytest.raises(MalformedError, match="a model of tokens"):
        Policy.from_json(policy_with(**{**KEYWORDS, "generator": GENERATION["generator"]}))


def test_an_answer_as_it_is_digested() -> None:
    data = b'{"keywords":["mirazo","take"],"text":"take mirazo"}'
    assert ANSWER.encode() == data
    assert ANSWER.digest(SALT) == hashlib.sha256(enc("ragaudit/v1/generated", SALT, data)).digest()
    failed = GeneratedKeywords("none", None)
    assert GeneratedKeywords.parse(failed.encode()) == failed
    assert (ANSWER.private, failed.private) == (2, 0)


@for_each("keywords", [["take", "mirazo"], ["a", "a"], ["A"], ["a b"], ["a" * 65]])
def test_keywords_that_are_no_set_of_words(keywords: Any) -> None:
    with pytest.raises(MalformedError):
        GeneratedKeywords.from_json({"keywords": keywords, "text": ""})


def test_a_replay_has_the_votes_of_its_answer() -> None:
    assert Replay.parse(REPLAY.encode()) == REPLAY
    value = REPLAY.to_json()
    tokens = GeneratedAnswer("a", (0,), 0).to_json()
    changes: tuple[dict[str, Any], ...] = (
        {"votes": []},
        {"votes": [{"public": 0, "voters": [0]}]},
        {"votes": ["a", 1]},
        {"votes": ["a" * (2**14 + 1)]},
        {"answer": tokens},
    )
    for change in changes:
        with pytest.raises(MalformedError):
            Replay.parse(canonical_json.dumps({**value, **change}))


@for_each(
    ("text", "found"),
    [
        ("Take MIRAZO, take it!", {"take", "mirazo", "it"}),
        ("snake_case don't", {"snake", "case", "don", "t"}),
        ("Straße ﬁne ２３ ½", {"strasse", "fine", "23", "1", "2"}),
        ("Müller cafe\u0301", {"müller", "café"}),
        ("東京 Ⅷ", {"東京", "viii"}),
        # Of later versions than 3.2: U+A7CB folds to a letter of 3.2 since Unicode 16.
        ("a\ua7cbb \U0001ccd6", {"a", "b"}),
        ("x" * 64 + " " + "y" * 65, {"x" * 64}),
        ("", set()),
    ],
)
def test_what_a_word_is(text: str, found: set[str]) -> None:
    assert words(text) == found
