"""The ceiling of recall, against sums over all outcomes.

Claims are those of docs/notes/accounting.md.
"""

import math
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.planning.budget import Missing, Price
from ragaudit.privacy.planning.retrieval import ceiling_of, largest_recall


def difference(trials: int, more: Any, less: Any, epsilon: Any) -> Any:
    """``sum over all outcomes of max(0, P - e^epsilon Q)`` at 60 digits."""
    with mp.workdps(60):
        p, q, odds = mpf(more), mpf(less), mp.exp(mpf(epsilon))
        return mp.fsum(
            max(
                mpf(0),
                math.comb(trials, t)
                * (p**t * (1 - p) ** (trials - t) - odds * q**t * (1 - q) ** (trials - t)),
            )
            for t in range(trials + 1)
        )


def kept(recall: float, epsilon: float, delta: float, trials: int, blind: float) -> bool:
    """Whether counts of hits at both recalls are as close as (epsilon, delta) demands."""
    return bool(
        difference(trials, recall, blind, epsilon) <= delta
        and difference(trials, blind, recall, epsilon) <= delta
    )


@settings(max_examples=30, deadline=None)
@given(
    epsilon=st.floats(0, 12),
    delta=st.floats(1e-9, 0.5),
    trials=st.integers(1, 60),
    blind=st.floats(1e-4, 0.9),
)
def test_claim_25_the_ceiling_is_that_of_all_outcomes(
    epsilon: float, delta: float, trials: int, blind: float
) -> None:
    found = largest_recall(epsilon, delta, trials, blind)
    # What is kept falls with the recall: the ceiling is between what is kept and what is not.
    assert kept(max(blind, found - 2e-6), epsilon, delta, trials, blind)
    assert found >= 1 - 1e-12 or not kept(found + 1e-12, epsilon, delta, trials, blind)


@pytest.mark.parametrize("trials", [1, 7, 500])
def test_pure_privacy_of_one_question_in_closed_form(trials: int) -> None:
    """At delta 0 every count must keep the ratio; all m hits bind: R = q e^(eps/m), or misses."""
    epsilon, blind = 2.0, 0.01
    hits = blind * math.exp(epsilon / trials)
    misses = 1 - (1 - blind) * math.exp(-epsilon / trials)
    assert largest_recall(epsilon, 0, trials, blind) == pytest.approx(min(hits, misses), abs=1e-6)


def test_a_delta_of_one_allows_everything_and_nothing_allows_blind_choice() -> None:
    assert largest_recall(0, 1, 10, "0.1") == 1
    assert largest_recall(3, "0.1", 10, 1) == 1
    assert largest_recall(0, 0, 10**6, Fraction(1, 200)) == pytest.approx(1 / 200, abs=1e-9)
    assert largest_recall(1000, 0, 3, "0.1") == 1


def test_more_queries_and_smaller_guarantees_leave_less() -> None:
    found = [largest_recall(1, 1e-6, 10**power, 0.005) for power in range(9)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.005, rel=0.02)
    rising = [largest_recall(epsilon, 1e-6, 250, 0.005) for epsilon in (0, 0.5, 1, 5, 20, 100, 900)]
    assert rising == sorted(rising)
    # Against the normal limit of many questions: mu = (R - q) sqrt(m/(q (1 - q))).
    mu = (largest_recall(1, 1e-5, 10**7, 0.3) - 0.3) * math.sqrt(10**7 / 0.21)
    assert 0.2 < mu < 0.3


def test_the_ceiling_of_a_price() -> None:
    replace = NeighboringRelation.REPLACE
    price = Price(250, "0.00001", replace, "8.000000", "8.000000", "0.9")
    assert ceiling_of(price, 0.005) == largest_recall("8", "0.00001", 250, 0.005)
    nothing = Price(250, "0.00001", replace, None, "80.000000", "1")
    assert isinstance(ceiling_of(nothing, 0.005), Missing)
    many = Price(10**9, "0.00001", replace, "8.000000", "8.000000", "0.9")
    assert isinstance(ceiling_of(many, 0.005), Missing)


@for_each(
    ("where", "arguments"),
    [
        ("epsilon", (-1, 0, 1, 0.1)),
        ("delta", (1, 2, 1, 0.1)),
        ("queries", (1, 0, 0, 0.1)),
        ("queries", (1, 0, 10**9, 0.1)),
        ("blind", (1, 0, 1, 0)),
        ("blind", (1, 0, 1, "x")),
    ],
)
def test_bad_values_are_refused_by_name(where: str, arguments: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        largest_recall(*arguments)
    assert caught.value.where == where
