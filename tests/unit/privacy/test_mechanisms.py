"""Mechanisms for generated answers: answers, feasibility, samplers, streams of questions."""

import hashlib
import hmac
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from coins import ScriptedCoins
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.accounting.generation import pass_probability
from ragaudit.privacy.mechanisms import feasibility, samplers
from ragaudit.privacy.mechanisms.dp_ksa import KeywordAnswer
from ragaudit.privacy.mechanisms.dp_rag import DpRag, TokenAnswer
from ragaudit.privacy.mechanisms.feasibility import (
    answer_chance,
    choice_chance,
    even_votes,
    keyword_chance,
    keyword_gap,
    private_chance,
    stream_plan,
)
from ragaudit.privacy.mechanisms.retrieval import Row, groups, top_slots
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.privacy.mechanisms.streams import (
    Adaptive,
    Bin,
    BudgetExhausted,
    DocumentBudgets,
    Murag,
    MuragAda,
    Naive,
    bin_counts,
    running_sums,
)
from voters import END, Copier, Speaker, ksa, rag


def test_a_trace_of_dp_rag() -> None:
    """Agreement costs nothing; a private token is the choice's; the budget ends the answer."""
    terms = rag(tokens=9)
    coins = ScriptedCoins(noises=["0.5", "0", "-3", "-3"], choices=[2, 2])
    answer = terms.answer("?", ["122", "122", "122"], Copier(), coins)
    # 3 votes for the public 1 are above 1.5 + .5; then none, and none again, at c = 2.
    assert answer == TokenAnswer((1, 2, 2), private=2, public_only=False)
    assert coins.left == 0
    assert coins.scales == [4, 8, 8, 4, 8, 4]
    assert terms.spent(2) == Fraction(7, 4) <= terms.price


def test_the_end_token_and_the_longest_answer_end_an_answer() -> None:
    ended = rag().answer("?", ["1"] * 3, Copier(), ScriptedCoins(["0", "-9"], choices=[END]))
    assert ended.tokens == (END,) and ended.private == 1
    longest = rag(tokens=2).answer("?", ["111"] * 3, Copier(), ScriptedCoins(["0", "5", "5"]))
    assert longest.tokens == (1, 1) and longest.private == 0
    assert rag(tokens=0).answer("?", ["1"] * 3, Copier(), ScriptedCoins(["0"])).tokens == ()


def test_a_budget_below_one_token_reads_no_document() -> None:
    """The printed loop would draw a private token, and never stop at c = -1."""
    voters, coins = Copier(), ScriptedCoins()
    answer = rag("2", "5").answer("?", ["222"] * 3, voters, coins)
    assert answer == TokenAnswer((1, 1, 1), private=0, public_only=True)
    assert voters.asked == [[()]] * 3
    assert rag("2", "5").spent(0) == 0


def law(terms: DpRag, texts: Sequence[str]) -> dict[tuple[tuple[int, ...], int], float]:
    """The law of DP-RAG's transcripts by its definition, summed over the threshold's noise."""

    def at_most(scale: float, x: float) -> float:
        n, q = math.floor(x), math.exp(-1 / scale)
        return q ** (-n) / (1 + q) if n < 0 else 1 - q ** (n + 1) / (1 + q)

    scale = float(terms.threshold_scale)
    q = math.exp(-1 / scale)
    found: defaultdict[tuple[tuple[int, ...], int], float] = defaultdict(float)

    def go(tokens: tuple[int, ...], left: int, threshold: float, share: float) -> None:
        done = len(tokens) == terms.tokens or left == 0 or (tokens and tokens[-1] == END)
        if done or share < 1e-18:
            found[tokens, terms.private_tokens - left] += share
            return
        votes = Counter(Copier.token_of(text, len(tokens)) for text in texts)
        private = at_most(float(terms.test_scale), threshold - votes[1])
        go((*tokens, 1), left, threshold, share * (1 - private))
        weights = [math.exp(votes[v] / float(terms.choice_scale)) for v in range(terms.vocabulary)]
        for token, weight in enumerate(weights):
            go((*tokens, token), left - 1, threshold, share * private * weight / sum(weights))

    for n in range(-200, 201):
        go(
            (),
            terms.private_tokens,
            float(terms.threshold or 0) + n,
            (1 - q) / (1 + q) * q ** abs(n),
        )
    return found


@pytest.mark.parametrize(("epsilon", "token"), [("2", "1"), ("9", "3"), ("1", "0.5")])
def test_one_changed_slot_costs_what_the_private_tokens_cost(epsilon: str, token: str) -> None:
    """Point by point: also what `spent` says, which is less than the whole price."""
    terms = rag(epsilon, token)
    for before, after in [("122", "200"), ("111", "222"), ("", "012")]:
        first = law(terms, ["121", "210", before])
        second = law(terms, ["121", "210", after])
        for transcript in first.keys() | second.keys():
            if max(first[transcript], second[transcript]) > 1e-12:
                ratio = abs(math.log(first[transcript] / second[transcript]))
                assert ratio <= float(terms.spent(transcript[1])) + 1e-6 <= float(epsilon) + 1e-6


def test_keyed_answers_follow_the_law() -> None:
    """3,000 answers; each frequency within 5 deviations: fails once in 50,000 by chance."""
    terms, texts, runs = rag("2", "1"), ["121", "210", "122"], 3000
    expected = law(terms, texts)
    found: Counter[tuple[tuple[int, ...], int]] = Counter()
    for run in range(runs):
        answer = terms.answer("?", texts, Copier(), KeyedCoins(run.to_bytes(32, "little")))
        found[answer.tokens, answer.private] += 1
    by_tokens: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for (tokens, _), share in expected.items():
        by_tokens[tokens] += share
    for tokens, share in by_tokens.items():
        number = sum(count for (each, _), count in found.items() if each == tokens)
        assert abs(number - runs * share) <= 5 * math.sqrt(runs * share * (1 - share)) + 1


def test_votes_outside_the_vocabulary_are_refused() -> None:
    class Liar(Copier):
        def next_tokens(self, *given: Any) -> list[int]:
            return [1, 2, 3, 1]

    class Short(Copier):
        def next_tokens(self, *given: Any) -> list[int]:
            return [1, 2]

    for voters in (Liar(), Short()):
        with pytest.raises(InvalidArgumentError):
            rag().answer("?", [""] * 3, voters, ScriptedCoins(["0", "0"]))
    with pytest.raises(InvalidArgumentError, match="slots"):
        rag().answer("?", [""] * 2, Copier(), ScriptedCoins(["0"]))


@for_each(
    "given",
    [
        {"epsilon": "0"}, {"token": "0"}, {"voters": 0}, {"slots_per_voter": 0}, {"end": 3},
        {"tokens": -1}, {"vocabulary": 0}, {"token": "100", "voters": 2}, {"threshold": "x"},
    ],
)  # fmt: skip
def test_terms_of_dp_rag_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        rag(**given)


class _OneFreeVote:
    """Voters that agree half and half, but for one vote at one place."""

    def __init__(self, change: tuple[int, int, int] | None) -> None:
        self._change = change

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        votes: list[int | None] = [1 + voter % 2 for voter in range(len(documents) - 1)]
        if self._change is not None and self._change[0] == len(answer):
            votes[self._change[1]] = self._change[2]
        return [0, *votes]


def test_one_free_vote_tells_a_bit_of_a_document_that_pays_nothing() -> None:
    """Why votes that differ have no price: whoever knows the coins picks among what they reach.

    Of 60 answers of 4 tokens nearly all can be made even or odd by one vote, whatever is charged:
    so each tells a bit about any document at all, for an epsilon of that document of 0.
    """
    mechanism = DpRag(
        Fraction(8), Fraction(2), voters=8, slots_per_voter=1, vocabulary=64, end=63, tokens=4
    )

    def parity(key: bytes, change: tuple[int, int, int] | None = None) -> int:
        voters = _OneFreeVote(change)
        return sum(mechanism.answer("q", [""] * 8, voters, KeyedCoins(key)).tokens) % 2

    either = 0
    for key in (number.to_bytes(32, "big") for number in range(60)):
        changes = itertools.product(range(4), (0, 1), (0, 3, 9, 27, 40, 50, 62))
        honest = parity(key)
        either += any(parity(key, change) != honest for change in changes)
    assert either >= 54


def test_a_trace_of_dp_ksa() -> None:
    """Words are counted once a response; the set comes in alphabetic order, without its ranks."""
    slots = ["Zebra, zebra the APE"] * 11 + [""]
    terms = ksa(stop_words=frozenset({"the"}))
    coins = ScriptedCoins(noises=["0", "0", "0", "0"])
    answer = terms.answer("q", slots, Speaker(), coins)
    assert answer == KeywordAnswer("q ape zebra", ("ape", "zebra"))
    assert coins.scales == [4, 2] and coins.left == 0


def test_a_gap_that_is_too_small_leaves_the_plain_question() -> None:
    slots = ["ape"] * 4 + [""] * 8
    terms = ksa()
    assert terms.shift == 5  # P[N(0, 2²) > 5] is .3 %, P[> 4] is 1.2 %
    failed = terms.answer("q", slots, Speaker(), ScriptedCoins(["0", "-9", "-9", "3"]))
    assert failed == KeywordAnswer("q", None)
    passed = terms.answer("q", slots, Speaker(), ScriptedCoins(["0", "-9", "-9", "4"]))
    assert passed == KeywordAnswer("q ape", ("ape",))


def test_fewer_words_than_a_size_is_no_error() -> None:
    answer = ksa(sizes=(5,)).answer("q", ["ape"] * 12, Speaker(), ScriptedCoins(["0", "6"]))
    assert answer.keywords == ("ape",)


def test_small_gaps_are_told_apart_by_nothing() -> None:
    for noise in range(-3, 9):
        assert len({ksa().passes(gap, ScriptedCoins([noise])) for gap in (0, 1, 2)}) == 1


@for_each(
    "given",
    [
        {"sizes": ()}, {"sizes": (1, 1)}, {"sizes": (0,)}, {"slots": 0}, {"sigma": Fraction(0)},
        {"delta_test": Fraction(3, 4)}, {"preferences": {9: Fraction(1)}},
        {"preferences": {1: Fraction(-1)}}, {"epsilon_choice": Fraction(15)},
    ],
)  # fmt: skip
def test_terms_of_dp_ksa_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        ksa(**given)


def test_preferences_move_the_choice() -> None:
    slots = ["ape"] * 12
    plain = ksa().answer("q", slots, Speaker(), ScriptedCoins(["0", "0", "0", "9"]))
    assert plain.keywords == ("ape",)
    moved = ksa(preferences={3: Fraction(12)}, sizes=(2, 3))
    assert moved.choose_size(Counter({"ape": 2}), ScriptedCoins(["2", "0"])) == 3


def test_all_permutations_reach_the_voters() -> None:
    terms = rag(slots_per_voter=2, voters=2)
    seen = set()
    for run in range(200):
        voters = Copier()
        terms.answer("?", list("1212"), voters, KeyedCoins(run.to_bytes(32, "big")))
        seen.add(tuple(voters.asked[0][1:]))
    assert seen == {(each[:2], each[2:]) for each in itertools.permutations("1122")}


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


TOP = 2**256 - 1
SAMPLER_VECTORS = Path(__file__).parents[2] / "vectors"


def sampler_law(sampler: Any, parameter: Fraction, width: int) -> dict[int, Fraction]:
    """The sampler_law of what a sampler returns, by bisection for its thresholds."""
    found, below = {}, 0
    for n in range(-width, width + 1):
        low, high = below, 2**128
        while low < high:
            middle = (low + high) // 2
            if sampler(middle << 128, parameter) <= n:
                low = middle + 1
            else:
                high = middle
        found[n] = Fraction(low - below, 2**128)
        below = low
    assert below == 2**128
    return found


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(1), Fraction(3)])
def test_laplace_is_within_2_to_the_minus_100_of_its_law(scale: Fraction) -> None:
    width = int(90 * scale) + 1
    with mpmath.workdps(100):
        q = mpmath.exp(-1 / (mpmath.mpf(scale.numerator) / scale.denominator))
        distance = q ** (width + 1) * 2 / (1 + q)
        for n, share in sampler_law(samplers.laplace, scale, width).items():
            exact = (1 - q) / (1 + q) * q ** abs(n)
            distance += abs(mpmath.mpf(share.numerator) / share.denominator - exact)
        assert distance / 2 < mpmath.mpf(2) ** -100


@pytest.mark.parametrize("deviation", [Fraction(1, 3), Fraction(2), Fraction(13, 2)])
def test_gaussian_is_within_2_to_the_minus_100_of_its_law(deviation: Fraction) -> None:
    width = int(14 * deviation) + 2
    with mpmath.workdps(100):
        squared = 2 * mpmath.mpf(deviation.numerator) ** 2 / deviation.denominator**2
        weights = {n: mpmath.exp(-n * n / squared) for n in range(-2 * width, 2 * width + 1)}
        total = mpmath.fsum(weights.values())
        found = sampler_law(samplers.gaussian, deviation, width)
        shares = {n: mpmath.mpf(x.numerator) / x.denominator for n, x in found.items()}
        distance = mpmath.fsum(
            abs(shares.get(n, 0) - weight / total) for n, weight in weights.items()
        )
        assert distance / 2 < mpmath.mpf(2) ** -100


@pytest.mark.parametrize("failure", ["0.5", "0.01", "1e-4", "1e-12"])
def test_the_threshold_of_a_test_is_the_least_that_fails_so_seldom(failure: str) -> None:
    deviation, goal = Fraction(13, 2), Fraction(failure)
    least = samplers.gaussian_threshold(deviation, goal)
    found = sampler_law(samplers.gaussian, deviation, int(14 * deviation) + 2)

    def above(c: int) -> Fraction:
        return sum((share for n, share in found.items() if n > c), Fraction(0))

    assert above(least) <= goal < above(least - 1)


@given(
    utilities=st.dictionaries(st.integers(0, 9), st.integers(1, 6), max_size=4),
    scale=st.fractions(Fraction(1, 4), 20),
    point=st.fractions(0, 1).filter(lambda x: x < 1),
)
def test_a_choice_is_that_of_the_whole_list_of_weights(
    utilities: dict[int, int], scale: Fraction, point: Fraction
) -> None:
    given_utilities = {each: Fraction(number) for each, number in utilities.items()}
    weights = samplers.weights(
        [given_utilities.get(each, Fraction(0)) for each in range(10)], most=6, scale=scale
    )
    uniform = int(point * 2**256)
    left = uniform * sum(weights) >> 256
    expected = 0
    while left >= weights[expected]:
        left -= weights[expected]
        expected += 1
    found = samplers.exponential(uniform, given_utilities, 10, most=6, scale=scale)
    assert found == expected


def test_weights_are_floors_of_exponentials() -> None:
    scale = Fraction(3, 2)
    found = samplers.weights([Fraction(n) for n in range(66, -1, -1)], most=66, scale=scale)
    with mpmath.workdps(120):
        assert found == [
            int(mpmath.floor(mpmath.mpf(2) ** 128 * mpmath.exp(-mpmath.mpf(n) * 2 / 3)))
            for n in range(67)
        ]
    assert found[0] == 2**128 and found[-1] > 2**63


def test_permutations_are_uniform_over_equal_parts_of_the_draws() -> None:
    """Six parts of the first draw, two of the second: every order of three comes up once."""
    draws = [[(2 * i + 1) * 2**255 // 3, (2 * j + 1) * 2**254] for i in range(3) for j in range(2)]
    assert len({tuple(samplers.permutation(each)) for each in draws}) == 6
    assert samplers.permutation([]) == [0]


@settings(max_examples=30)
@given(uniform=st.integers(0, TOP), scale=st.fractions(Fraction(1, 50), 60))
def test_larger_draws_never_give_smaller_noise(uniform: int, scale: Fraction) -> None:
    step = samplers.laplace(min(TOP, uniform + 2**250), scale)
    assert samplers.laplace(uniform, scale) <= step
    assert abs(step) <= 90 * scale + 1


@for_each(
    "call",
    [
        lambda: samplers.laplace(-1, Fraction(1)),
        lambda: samplers.laplace(2**256, Fraction(1)),
        lambda: samplers.laplace(0, Fraction(0)),
        lambda: samplers.laplace(0, Fraction(2**16 + 1)),
        lambda: samplers.gaussian(0, Fraction(0)),
        lambda: samplers.gaussian(0, Fraction(2**12 + 1)),
        lambda: samplers.gaussian_threshold(Fraction(1), Fraction(3, 4)),
        lambda: samplers.gaussian_threshold(Fraction(1), Fraction(1, 2**91)),
        lambda: samplers.exponential(0, {}, 0, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {3: Fraction(1)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {-1: Fraction(1)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {1: Fraction(2)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {1: Fraction(-1)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {}, 3, most=45, scale=Fraction(1)),
        lambda: samplers.permutation([2**256]),
        lambda: KeyedCoins(bytes(31)),
    ],
)
def test_refusals(call: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        call()


def test_known_answers_of_a_key() -> None:
    """Made by a script that shares no code with this library."""
    vectors = json.loads((SAMPLER_VECTORS / "generation_coins.json").read_bytes())
    coins = KeyedCoins(bytes.fromhex(vectors["key"]))
    for draw in vectors["draws"]:
        kind, given, expected = draw["kind"], draw["inputs"], draw["expected"]
        if kind == "permutation":
            found: object = coins.permutation(given["size"])
        elif kind == "choose":
            utilities = {int(key): Fraction(value) for key, value in given["utilities"].items()}
            found = coins.choose(
                utilities, given["size"], most=given["most"], scale=Fraction(given["scale"])
            )
        else:
            found = int(getattr(coins, kind)(Fraction(given["parameter"])))
        assert found == expected, draw
    assert repr(coins) == f"KeyedCoins(drawn={vectors['drawn']})"


def rows(scores: Sequence[object], text: str = "121") -> list[Row]:
    return [Row(i, Fraction(str(score)), text) for i, score in enumerate(scores)]


def test_slots_are_padded_and_ties_go_to_the_smaller_id() -> None:
    ordered = [Row(7, Fraction(1), "b"), Row(3, Fraction(1), "a"), Row(9, Fraction(2), "c")]
    assert top_slots(ordered, 2) == ["c", "a"]
    assert top_slots(ordered, 5) == ["c", "a", "b", "", ""]
    with pytest.raises(InvalidArgumentError):
        top_slots([*ordered, Row(3, Fraction(0), "d")], 2)
    with pytest.raises(InvalidArgumentError):
        top_slots(ordered, 0)
    with pytest.raises(InvalidArgumentError, match="score"):
        Row(1, float("nan"), "")  # type: ignore[arg-type]


@given(
    scores=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    slots=st.integers(1, 5),
    place=st.integers(0, 7),
    score=st.integers(0, 5),
)
def test_one_document_changed_changes_one_slot_at_most(
    scores: list[int], slots: int, place: int, score: int
) -> None:
    """As multisets: the order is shuffled away before anybody reads."""
    before = [Row(i, Fraction(x), f"{i}") for i, x in enumerate(scores)]
    place %= len(before)
    after = [*before]
    after[place] = Row(place, Fraction(score), "new")
    for others in (after, before[:place] + before[place + 1 :]):
        gone = Counter(top_slots(before, slots)) - Counter(top_slots(others, slots))
        assert gone.total() <= 1


def test_voters_read_consecutive_slots_of_the_random_order() -> None:
    assert groups(["a", "b", "c", "d"], [2, 0, 3, 1], 2) == [("c", "a"), ("d", "b")]


def murag(budgets: DocumentBudgets, threshold: int = 4) -> Murag[Copier, TokenAnswer]:
    return Murag(rag("2", "1", tokens=1), budgets, Fraction(threshold))


def test_every_live_relevant_document_pays_before_anything_is_generated() -> None:
    class Failing(Copier):
        def next_tokens(self, *given: Any) -> list[int]:
            raise TimeoutError

    budgets = DocumentBudgets(2, 2)
    with pytest.raises(TimeoutError):
        murag(budgets).ask("?", rows([5, 4, 9, 8, 7, 6]), Failing(), ScriptedCoins(["0"]))
    assert budgets.paid() == {0: 2, 2: 2, 3: 2, 4: 2, 5: 2}  # 1 has the threshold's own score
    assert not budgets.live(0) and budgets.live(1)


def test_exhausted_documents_are_neither_charged_nor_read() -> None:
    budgets = DocumentBudgets(4, 2)
    stream, voters = murag(budgets), Copier()
    given_rows = [Row(0, Fraction(9), "2"), Row(1, Fraction(8), "1")]
    for _ in range(2):
        stream.ask("?", given_rows, voters, ScriptedCoins(["0", "9"]))
    outcome = stream.ask("?", given_rows, voters, ScriptedCoins(["0", "9"]))
    assert outcome.charged == outcome.used == frozenset()
    assert voters.asked[-1] == [(), ("",), ("",), ("",)]
    assert budgets.left(0) == 0


@settings(max_examples=60)
@given(scores=st.lists(st.lists(st.integers(0, 9), min_size=6, max_size=6), min_size=1, max_size=6))
def test_what_others_pay_does_not_depend_on_a_document(scores: list[list[int]]) -> None:
    """The heart of the proof; charging the best rows only would break it."""
    paid = []
    for without in (None, 2):
        budgets = DocumentBudgets(4, 2)
        for question in scores:
            corpus = [row for row in rows(question) if row.id != without]
            murag(budgets).ask("?", corpus, Copier(), ScriptedCoins(["0", "9"]))
        paid.append({key: value for key, value in budgets.paid().items() if key != 2})
        assert all(value <= 4 for value in budgets.paid().values())
    assert paid[0] == paid[1]


def ada(budgets: DocumentBudgets, enough: int = 3) -> MuragAda[Copier, TokenAnswer]:
    bins = tuple(Bin(Fraction(low), Fraction(low + 2)) for low in (8, 6, 4, 2))
    answerer = rag("2", "1", tokens=1)
    return MuragAda(answerer, budgets, Fraction(1, 2), bins, enough)


def test_a_trace_of_murag_ada() -> None:
    """(8, 10] holds 9; (6, 8] holds 8 and 7: 3.5 is above 3 after two bins."""
    budgets = DocumentBudgets(Fraction(5, 2), Fraction(5, 2))
    coins = ScriptedCoins(noises=["0.25", "0.25", "0", "9"])
    outcome = ada(budgets).ask("?", rows([9, 8, 7, 6, 2]), Copier(), coins)
    assert outcome.adaptive == Adaptive((Fraction(5, 4), Fraction(7, 2)), Fraction(6))
    assert outcome.charged == {0, 1, 2}
    assert budgets.paid() == dict.fromkeys((0, 1, 2), Fraction(5, 2))
    assert coins.scales[:2] == [2, 2]


def test_a_drained_corpus_is_read_to_the_last_bin_and_no_further() -> None:
    budgets = DocumentBudgets(Fraction(5, 2), Fraction(5, 2))
    stream = ada(budgets)
    for _ in range(2):
        outcome = stream.ask(
            "?", rows([9, 9, 1]), Copier(), ScriptedCoins(["0", "0", "0", "0", "0", "9"])
        )
    assert outcome.adaptive is not None
    assert outcome.adaptive.threshold == 2 and len(outcome.adaptive.sums) == 4
    assert outcome.charged == frozenset() and budgets.left(2) == Fraction(5, 2)


@for_each(
    "bins",
    [
        [], [(0, 1), (1, 2)], [(1, 2), (1, 2)], [(1, 3), (0, 2)], [(2, 2)], [(2, 1)],
    ],
)  # fmt: skip
def test_bins_that_rise_or_overlap_are_refused(bins: list[tuple[int, int]]) -> None:
    budgets = DocumentBudgets(1, 1)
    with pytest.raises(InvalidArgumentError, match="bins"):
        MuragAda(
            rag(), budgets, Fraction(1, 2), tuple(Bin(Fraction(a), Fraction(b)) for a, b in bins), 1
        )
    for epsilon in (Fraction(0), Fraction(1)):
        with pytest.raises(InvalidArgumentError, match="epsilon_threshold"):
            MuragAda(rag(), budgets, epsilon, (Bin(Fraction(0), Fraction(1)),), 1)


def test_naive_pays_for_every_question_and_refuses_the_one_too_many() -> None:
    naive = Naive(rag("2", "1", tokens=1), Fraction(2), 2)
    for _ in range(2):
        outcome = naive.ask("?", rows([3, 2]), Copier(), ScriptedCoins(["0", "9"]))
        assert outcome.charged == frozenset() and outcome.used == {0, 1}
    with pytest.raises(BudgetExhausted):
        naive.ask("?", rows([3]), Copier(), ScriptedCoins())
    assert naive.spent == 4


def test_money_is_exact_and_a_charge_is_of_all_or_of_none() -> None:
    """In floats (0.3 + 0.6) - 0.3 is below 0.6, and a document dies with money left."""
    budgets = DocumentBudgets("0.9", "0.9")
    budgets.charge([1], "0.3")
    budgets.charge([1], "0.6")
    assert budgets.left(1) == 0
    with pytest.raises(BudgetExhausted):
        budgets.charge([2, 1], "0.1")
    assert budgets.left(2) == Fraction(9, 10)
    for amount in (0, 1, -1):
        with pytest.raises(InvalidArgumentError):
            budgets.charge([3], amount)
    for limit, price in ((-1, 1), (1, 0)):
        with pytest.raises(InvalidArgumentError):
            DocumentBudgets(limit, price)


def test_dp_ksa_answers_under_murag() -> None:
    """A Rényi filter: a divergence at one order for money, the same arithmetic."""
    terms = ksa(slots=4, sizes=(1,))
    budgets = DocumentBudgets(Fraction(3), Fraction(3, 2))
    stream = Murag(terms, budgets, Fraction(0))
    answers = [
        stream.ask("q", rows([1] * 4, "ape"), Speaker(), ScriptedCoins(["0", "9"]))
        for _ in range(3)
    ]
    assert [len(each.charged) for each in answers] == [4, 4, 0]
    assert answers[0].answer.keywords == ("ape",) and answers[2].answer.keywords == ()


KEY = bytes(range(32))


def test_bins_are_half_open_and_the_first_has_no_upper_edge() -> None:
    scores = np.array([100, 10, 9, 9, 8, 5, 4, 4, 0, -7])
    assert bin_counts(scores, [9, 4]) == [2, 4]
    assert bin_counts(scores, [0]) == [8]
    assert bin_counts(np.array([], dtype=np.int64), [9, 4]) == [0, 0]


def test_reading_stops_above_enough_and_not_at_it() -> None:
    coins = ScriptedCoins(noises=["1", "-2", "0"])
    assert list(running_sums([2, 4, 9], Fraction(1, 2), 4, coins)) == [3, 5]
    assert coins.scales == [2, 2]
    coins = ScriptedCoins(noises=["0", "0", "0"])
    assert list(running_sums([2, 2, 0], Fraction(1, 2), 4, coins)) == [2, 4, 4]


def draw(n: int) -> int:
    """U_n of spec 11.2, written from its text."""
    message = b"ragaudit/v1/generation-coin\0" + n.to_bytes(8, "little")
    return int.from_bytes(hmac.digest(KEY, message, hashlib.sha256), "little")


def test_each_sum_has_one_draw_and_the_answer_the_ones_after() -> None:
    coins = KeyedCoins(KEY)
    sums = running_sums([3, 1, 4], Fraction(1, 3), 10**6, coins)
    noises = [samplers.laplace(draw(n), Fraction(3)) for n in range(3)]
    assert list(sums) == [3 + noises[0], 4 + sum(noises[:2]), 8 + sum(noises)]
    # What was computed once: a change of the sampler or the coins changes this.
    assert [int(total) for total in sums] == [2, 4, 15]
    rest = KeyedCoins(KEY, drawn=len(sums))
    assert rest.permutation(9) == coins.permutation(9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**16), Fraction(44)], ids=str)
def test_any_epsilon_of_a_policy_can_be_drawn(epsilon: Fraction) -> None:
    (total,) = running_sums([7], epsilon, 10**9, KeyedCoins(KEY))
    assert total.denominator == 1 and abs(total - 7) < 91 / epsilon + 2
