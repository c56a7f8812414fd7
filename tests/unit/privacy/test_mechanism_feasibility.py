"""Whether a vote can succeed: printed numbers, the mechanism's own law, and its simulation."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.accounting.generation import pass_probability
from ragaudit.privacy.mechanisms import feasibility
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.feasibility import (
    answer_chance,
    choice_chance,
    even_votes,
    keyword_chance,
    keyword_gap,
    private_chance,
    stream_plan,
)
from ragaudit.privacy.mechanisms.samplers import KeyedCoins

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ORACLE = {entry["id"]: entry for entry in VECTORS["entries"]}


@pytest.mark.parametrize("name", ["dprag.em.50272.30.1.0", "dprag.em.50272.50.0.5"])
def test_a_unanimous_vote_wins_as_often_as_the_oracle_says(name: str) -> None:
    entry: dict[str, Any] = ORACLE[name]
    given = entry["inputs"]
    found = choice_chance(given["vocab"], given["unanimous_votes"], 2 * Fraction(given["eps_expo"]))
    assert found == pytest.approx(entry["expected"], rel=entry["rtol"])


def test_an_epsilon_of_a_half_per_token_cannot_work() -> None:
    """50 voters that all agree, 50,272 tokens: at exponents of 1/4, 1/2 and 1 a pair of votes."""
    chances = [choice_chance(50_272, 50, 2 * Fraction(each)) for each in ("0.25", "0.5", "1")]
    assert [round(each, 3) for each in chances] == [0.010, 0.842, 1.0]
    assert even_votes(50_272, Fraction(1, 2)) == 87
    assert choice_chance(50_272, 87, Fraction(1, 2)) >= 0.5 > choice_chance(50_272, 86, 0.5)


@pytest.mark.parametrize(("epsilon", "gap"), [(1, 52.2), (2, 27.7), (3, 19.5), (5, 12.9), (8, 9.2)])
def test_the_gaps_of_keywords_are_those_of_the_note(epsilon: int, gap: float) -> None:
    found = keyword_gap(epsilon, Fraction(1, 10_000))
    assert round(found, 1) == gap
    below, above = (keyword_chance(each, epsilon, Fraction(1, 10_000)) for each in
                    (math.floor(found), math.ceil(found)))  # fmt: skip
    assert below <= 0.5 <= above


def test_a_keyword_that_nobody_names_is_released_as_often_as_a_test_may_fail() -> None:
    found = keyword_chance(0, 5, Fraction(1, 1000), questions=10)
    assert found == pytest.approx(float(pass_probability(0, 1, Fraction(1, 20_000))), rel=1e-9)
    assert found == pytest.approx(1 / 20_000, rel=1e-9)


class Divided:
    """So many voters name token 1, who reads nothing and the others token 2, then the end."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int]:
        if len(answer) >= self._tokens:
            return [0] * len(documents)
        return [1 if "".join(each) else 2 for each in documents]


@pytest.mark.parametrize(("votes", "epsilon", "tokens"), [(9, 6, 1), (7, 20, 2), (8, 9, 2)])
def test_the_chance_of_an_answer_is_that_of_the_mechanism(
    votes: int, epsilon: int, tokens: int
) -> None:
    rag = DpRag(Fraction(epsilon), Fraction(epsilon, tokens), 10, 1, 30, 0, tokens + 1)
    slots = ["x"] * votes + [""] * (10 - votes)
    runs = 400
    answers = Counter(
        rag.answer("?", slots, Divided(tokens), KeyedCoins(n.to_bytes(32, "big"))).tokens[:tokens]
        for n in range(runs)
    )
    chance = answer_chance(rag, votes, tokens)
    # Two sides at 1e-6: 4.9 standard errors.
    error = 4.9 * math.sqrt(chance * (1 - chance) / runs)
    assert answers[(1,) * tokens] / runs == pytest.approx(chance, abs=error)
    assert 0.05 < chance < 0.999


def test_a_token_is_drawn_as_often_as_the_mechanism_draws() -> None:
    rag = DpRag(Fraction(6), Fraction(6), 10, 1, 30, 0, 1)
    slots = ["x"] * 6 + [""] * 4
    runs = 400
    drawn = sum(
        rag.answer("?", slots, Divided(1), KeyedCoins(n.to_bytes(32, "big"))).private
        for n in range(runs)
    )
    chance = private_chance(rag, 4)
    error = 4.9 * math.sqrt(chance * (1 - chance) / runs)
    assert drawn / runs == pytest.approx(chance, abs=error)
    assert 0.05 < chance < 0.95


def test_answers_that_do_not_fit_are_never_right() -> None:
    rag = DpRag(Fraction(2), Fraction(1), 10, 1, 30, 0, 4)
    assert answer_chance(rag, 10, 3) == 0
    assert answer_chance(rag, 10, 2) > 0


def test_a_wide_noise_is_summed_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rag = DpRag(Fraction(1, 5), Fraction(1, 10), 10, 1, 30, 0, 2)
    one_by_one = [private_chance(rag, agreeing) for agreeing in (0, 5, 10)]
    monkeypatch.setattr(feasibility, "_MOST_NOISES", 100)
    by_blocks = [private_chance(rag, agreeing) for agreeing in (0, 5, 10)]
    assert by_blocks == pytest.approx(one_by_one, rel=0.01)
    assert by_blocks != one_by_one
    # However small an epsilon: the sum ends.
    least = DpRag(Fraction(1, 10**9), Fraction(1, 10**9), 10, 1, 30, 0, 1)
    assert private_chance(least, 5) == pytest.approx(0.5, abs=1e-3)


def test_uses_are_shared_out() -> None:
    terms: dict[str, Any] = {
        "questions": 100, "asked": 4, "supporting": 40, "voters": 30, "vocabulary": 200,
        "tokens": 3,
    }  # fmt: skip
    plans = [stream_plan(Fraction(12), uses, **terms) for uses in (None, 1, 3, 4, 5)]
    assert [plan.epsilon_question for plan in plans] == [
        Fraction(12, 100), 12, 4, 3, Fraction(12, 5),
    ]  # fmt: skip
    assert [plan.served for plan in plans] == [100, 25, 75, 100, 100]
    chances = [plan.chance for plan in plans]
    assert chances[1] > chances[2] > chances[3] > chances[4] > chances[0]


@for_each(
    "call",
    [
        lambda: choice_chance(1, 1, 1), lambda: choice_chance(2, -1, 1),
        lambda: choice_chance(2, 1, 0), lambda: even_votes(1, 1), lambda: keyword_gap(0, 0.1),
        lambda: keyword_gap(1, 1), lambda: keyword_gap(1, 0.1, 0),
        lambda: answer_chance(DpRag(Fraction(1), Fraction(1), 2, 1, 3, 0, 1), 3, 1),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(call: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        call()
