"""DP-RAG and DP-KSA: traces, laws, and what one changed slot can tell."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from coins import ScriptedCoins
from for_each import for_each
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.mechanisms.dp_ksa import KeywordAnswer
from ragaudit.privacy.mechanisms.dp_rag import DpRag, TokenAnswer
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
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
