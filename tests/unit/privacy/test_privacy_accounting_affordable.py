"""What a sigma affords, and the sigma for a coalition (docs/notes/accounting.md §7)."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError, RefusedError, UnsupportedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.accountants import (
    GaussianAccountant,
    calibrate_coalition,
    largest_coalition,
    largest_queries,
    largest_rate,
    remaining_queries,
)
from ragaudit.privacy.accounting.events import GAMMA, Coalition, Composition, NoisyScores
from ragaudit.privacy.accounting.gaussian import calibrate, gives
from ragaudit.privacy.guarantees import ApproximateDp

ONE, DELTA = Fraction(1), Fraction(1, 10**6)


def noise(sigma: str, **changes: Any) -> NoisyScores:
    return NoisyScores.of_policy(sigma, "replace", 1, 1, **changes)


@settings(max_examples=8, deadline=None)
@given(
    sigma=st.integers(1, 10**5),
    epsilon=st.sampled_from([Fraction(1, 10), ONE, Fraction(12)]),
    relation=st.sampled_from(["replace", "null-replace"]),
)
def test_claim_19_one_more_query_breaks_it(sigma: int, epsilon: Fraction, relation: str) -> None:
    mechanism = NoisyScores.of_policy(f"{sigma / 100:.2f}", relation, 2, 5)
    most = largest_queries(mechanism, epsilon, DELTA)
    assert gives(mechanism.with_queries(most), epsilon, DELTA)
    assert not gives(mechanism.with_queries(most + 1), epsilon, DELTA)


@settings(max_examples=6, deadline=None)
@given(accounts=st.integers(1, 50), rate=st.integers(1, 400), windows=st.integers(1, 12))
def test_claim_19_calibration_and_allowance_are_inverse(
    accounts: int, rate: int, windows: int
) -> None:
    sigma = calibrate_coalition(
        "2", "0.000001", accounts=accounts, rate=rate, windows=windows,
        relation="replace", group_size=1, places=3,
    )  # fmt: skip
    mechanism, less = noise(sigma), noise(str(Decimal(sigma) - Decimal("0.001")))
    assert largest_rate(mechanism, Fraction(2), DELTA, accounts=accounts, windows=windows) >= rate
    assert largest_coalition(mechanism, Fraction(2), DELTA, rate=rate, windows=windows) >= accounts
    assert largest_queries(less, Fraction(2), DELTA) < accounts * rate * windows


def test_claim_19_whole_numbers_are_rounded_down() -> None:
    mechanism = noise("100")
    most = largest_queries(mechanism, ONE, DELTA)
    assert most == 140
    assert largest_rate(mechanism, ONE, DELTA, accounts=9) == 15
    assert largest_coalition(mechanism, ONE, DELTA, rate=50) == 2
    assert largest_coalition(mechanism, ONE, DELTA, rate=50, windows=2) == 1
    assert largest_coalition(mechanism, ONE, DELTA, rate=141) == 0


def test_claim_19_what_remains_of_a_budget() -> None:
    mechanism, budget = noise("100"), ApproximateDp(ONE, DELTA, NeighboringRelation.REPLACE)
    accountant = GaussianAccountant()
    for asked in (0, 37, 140):
        spent = mechanism.with_queries(asked)
        left = remaining_queries(spent, mechanism, budget)
        assert left == 140 - asked
        assert accountant.within(Composition((spent, mechanism.with_queries(left))), budget)
    assert remaining_queries(mechanism.with_queries(141), mechanism, budget) == 0
    quieter = remaining_queries(Coalition(noise("200"), 60), mechanism, budget)
    assert quieter == 140 - 60 // 4
    huge = noise("60000000", gamma=Fraction(0))
    whole = ApproximateDp(Fraction(10**4), Fraction(1, 2), NeighboringRelation.REPLACE)
    assert remaining_queries(huge, huge, whole) == 10**13


def test_a_budget_names_the_relation_of_what_it_pays_for() -> None:
    mechanism = noise("100")
    for relation in (NeighboringRelation.NULL_REPLACE, NeighboringRelation.ADD_REMOVE):
        with pytest.raises(MalformedError) as caught:
            remaining_queries(mechanism, mechanism, ApproximateDp(ONE, DELTA, relation))
        assert caught.value.where == "relation"
    budget = ApproximateDp(ONE, DELTA, NeighboringRelation.REPLACE)
    with pytest.raises(UnsupportedError):
        remaining_queries("nothing", mechanism, budget)  # type: ignore[arg-type]
    with pytest.raises(MalformedError) as caught:
        GaussianAccountant().within(mechanism, ApproximateDp(ONE, DELTA * 0, budget.relation))
    assert caught.value.where == "delta"


def test_allowance_is_monotone() -> None:
    base = largest_queries(noise("50"), ONE, DELTA)
    assert base <= largest_queries(noise("51"), ONE, DELTA)
    assert base <= largest_queries(noise("50"), 2 * ONE, DELTA)
    assert base <= largest_queries(noise("50"), ONE, 10 * DELTA)
    assert base >= largest_queries(NoisyScores.of_policy("50", "replace", 3, 1), ONE, DELTA)
    assert base >= largest_queries(noise("50", gamma=Fraction(1, 2**40)), ONE, DELTA)


def test_the_samplers_error_bounds_the_allowance() -> None:
    """With gamma 2^-30 and delta 1e-6, more than some hundred samples have no bound at all."""
    coarse = noise("60000000", gamma=Fraction(1, 2**30))
    assert largest_queries(coarse, ONE, DELTA) == (DELTA / (2 * Fraction(1, 2**30))).__floor__()


def test_no_noise_affords_nothing_and_much_affords_the_most() -> None:
    assert largest_queries(noise("0.001"), Fraction(1, 1000), DELTA) == 0
    plenty = NoisyScores.of_policy("60000000", "replace", 1, 1, Fraction(0))
    assert largest_queries(plenty, Fraction(10**4), Fraction(1, 2)) == 10**13


def test_a_coalitions_sigma_is_that_of_its_queries() -> None:
    found = calibrate_coalition(
        "1", "0.00001", accounts=10, rate=30, windows=2, relation="null-replace", group_size=2
    )
    assert found == calibrate("1", "0.00001", 600, "null-replace", 2, gamma=GAMMA)


GOOD: dict[str, Any] = {
    "epsilon": "1", "delta": "0.000001", "accounts": 2, "rate": 3, "windows": 1,
    "relation": "replace", "group_size": 1,
}  # fmt: skip


@for_each(
    ("field", "value"),
    [
        ("epsilon", "0"), ("epsilon", "nan"), ("epsilon", "-1"), ("delta", "0"), ("delta", "1"),
        ("delta", "1e-6x"), ("accounts", 0), ("accounts", True), ("rate", 1.5), ("rate", -3),
        ("windows", 0), ("group_size", 0),
    ],
)  # fmt: skip
def test_bad_calibration_input_is_refused_by_name(field: str, value: Any) -> None:
    arguments = {**GOOD, field: value}
    with pytest.raises(MalformedError) as caught:
        calibrate_coalition(arguments.pop("epsilon"), arguments.pop("delta"), **arguments)
    assert caught.value.where == field


def test_too_many_queries_and_impossible_targets_are_refused() -> None:
    arguments = {**GOOD, "accounts": 10**7, "rate": 10**7}
    with pytest.raises(MalformedError, match="too many queries"):
        calibrate_coalition(arguments.pop("epsilon"), arguments.pop("delta"), **arguments)
    with pytest.raises(RefusedError):
        calibrate_coalition("0.000000000001", "0.000000000001", **{
            k: v for k, v in {**GOOD, "accounts": 10**6, "rate": 10**6}.items()
            if k not in ("epsilon", "delta")
        })  # fmt: skip


@pytest.mark.parametrize(
    ("epsilon", "delta", "field"),
    [
        ("one", DELTA, "epsilon"),
        (Fraction(0), DELTA, "epsilon"),
        (ONE, -1e-6, "delta"),
        (ONE, Fraction(1), "delta"),
    ],
)
def test_bad_allowance_input_is_refused_by_name(epsilon: Any, delta: Any, field: str) -> None:
    with pytest.raises(MalformedError) as caught:
        largest_queries(noise("1"), epsilon, delta)
    assert caught.value.where == field
