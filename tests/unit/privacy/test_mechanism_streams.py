"""NAIVE, MURAG and MURAG-ADA: which document pays, for what, and in whose absence; noisy bins."""

import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from coins import ScriptedCoins
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.mechanisms import samplers
from ragaudit.privacy.mechanisms.dp_rag import TokenAnswer
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
from voters import Copier, Speaker, ksa, rag


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
