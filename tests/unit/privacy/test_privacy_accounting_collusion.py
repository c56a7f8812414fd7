"""Equations of the collusion paper, inside and outside their ranges (accounting notes, §13).

Claims are those of docs/notes/accounting.md.
"""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.collusion import (
    ScoreReleaseClass,
    advanced_composition,
    exposure,
    membership_lower_bound,
    renyi_closed_form,
    renyi_sigma,
)
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp

DELTA = Fraction(1, 10**6)
REPLACE = NeighboringRelation.REPLACE


def release(epsilon_acc: str = "1", queries: int = 10_000) -> ScoreReleaseClass:
    return ScoreReleaseClass(Fraction(epsilon_acc), DELTA, queries, REPLACE)


budgets = st.fractions(min_value=Fraction(1, 10**4), max_value=4, max_denominator=10**4)


@settings(max_examples=40, deadline=None)
@given(epsilon_acc=budgets, queries=st.integers(10, 10**7), accounts=st.integers(1, 1000))
def test_claim_21_the_residual_is_between_half_and_all_of_its_bound(
    epsilon_acc: Fraction, queries: int, accounts: int
) -> None:
    bound = ScoreReleaseClass(epsilon_acc, DELTA, queries, REPLACE).coalition(
        accounts, Fraction(1, 10**7)
    )
    assert bound.residual_bound / 2 <= bound.residual <= bound.residual_bound
    log = math.log(1e6)
    assert float(bound.residual_bound) == pytest.approx(accounts * float(epsilon_acc) ** 2 / log)
    assert float(bound.leading) == pytest.approx(
        math.sqrt(accounts * math.log(1e7) / log) * float(epsilon_acc)
    )
    assert bound.delta == Fraction(1, 10**7) + accounts * DELTA
    guarantee = bound.guarantee()
    assert guarantee.epsilon > Fraction(bound.leading)
    assert (guarantee.delta, guarantee.relation) == (bound.delta, REPLACE)


@settings(max_examples=12, deadline=None)
@given(epsilon_acc=budgets, queries=st.integers(20, 10**6), accounts=st.integers(1, 100))
def test_claim_20_the_bound_holds_for_the_noise_of_its_class(
    epsilon_acc: Fraction, queries: int, accounts: int
) -> None:
    inside = ScoreReleaseClass(epsilon_acc, DELTA, queries, REPLACE)
    bound = inside.coalition(accounts, DELTA).guarantee()
    assert inside.gaussian(accounts).at_delta(bound.delta).epsilon <= bound.epsilon


def test_claim_20_the_leading_term_is_no_bound_for_just_enough_noise() -> None:
    exactly = Fraction("0.2367")  # below the mu of (1, 1e-6)-DP
    account = GaussianDp(exactly, REPLACE)
    assert account.at_delta(DELTA).epsilon <= 1
    fifty = GaussianDp.compose([account] * 50)
    bound = release().coalition(50, DELTA)
    assert fifty.at_delta(bound.delta).epsilon > Fraction(bound.leading)


@settings(max_examples=15, deadline=None)
@given(epsilon_acc=budgets, accounts=st.integers(1, 500), factor=st.integers(2, 5))
def test_claim_21_monotone_in_epsilon_and_accounts(
    epsilon_acc: Fraction, accounts: int, factor: int
) -> None:
    def total(budget: Fraction, k: int) -> Fraction:
        inside = ScoreReleaseClass(budget, DELTA, 10_000, REPLACE)
        return inside.coalition(k, DELTA).guarantee().epsilon

    assert total(epsilon_acc, accounts) < total(epsilon_acc * factor, accounts)
    assert total(epsilon_acc, accounts) < total(epsilon_acc, accounts * factor)


def test_claim_21_audit_has_the_policys_delta_exactly() -> None:
    policy = Fraction(2, 10**5)
    bound = release().audit(10, policy)
    assert bound.delta == policy
    assert float(bound.leading) == pytest.approx(2.8868, abs=5e-5)
    assert float(release().gaussian(10).at_delta(policy).epsilon) == pytest.approx(0.2808, abs=5e-5)


def test_claim_21_no_share_of_delta_left() -> None:
    """As numbers 1e-5 does not exceed 10·1e-6, although it does in binary floating point."""
    assert 1e-5 > 10 * 1e-6
    with pytest.raises(RefusedError) as caught:
        release().audit(10, Fraction(1, 10**5))
    assert caught.value.where == "delta_policy"


@pytest.mark.parametrize(("epsilon_acc", "least"), [("1", 1), ("16", 10), ("4", 1), ("20", 15)])
def test_claim_21_the_range_of_queries_is_checked(epsilon_acc: str, least: int) -> None:
    limit = float(Fraction(epsilon_acc)) ** 2 / (2 * math.log(1e6))
    assert least - 1 <= limit < least
    release(epsilon_acc, least)
    if least > 1:
        with pytest.raises(MalformedError) as caught:
            release(epsilon_acc, least - 1)
        assert caught.value.where == "queries"


def test_lemma_3_2_ends_at_one() -> None:
    bound = advanced_composition(Decimal(1), Fraction(0), 3, DELTA, REPLACE)
    assert float(bound.residual) == pytest.approx(3 * (math.e - 1))
    for epsilon_q in (Decimal("1.0001"), Decimal(0), Decimal(-1), Decimal("NaN"), 1.5):
        with pytest.raises(MalformedError) as caught:
            advanced_composition(epsilon_q, Fraction(0), 3, DELTA, REPLACE)
        assert caught.value.where == "epsilon_q"


def test_claim_21_lemma_3_2_is_above_basic_and_exact_composition_where_it_should_be() -> None:
    """Against the optimal composition of pure mechanisms (Kairouz, Oh, Viswanath), by summation."""
    times, eps = 40, 0.1
    bound = advanced_composition(Decimal("0.1"), Fraction(0), times, DELTA, REPLACE)

    def delta(total: float) -> float:
        weights = [
            math.comb(times, i) * math.exp(i * eps) / (1 + math.exp(eps)) ** times
            for i in range(times + 1)
        ]
        losses = [(2 * i - times) * eps for i in range(times + 1)]
        return sum(
            weight * max(0.0, 1 - math.exp(total - loss))
            for weight, loss in zip(weights, losses, strict=True)
        )

    assert delta(float(bound.guarantee().epsilon)) <= 1e-6
    assert delta(0.5 * float(bound.leading)) > 1e-6


def test_claim_22_theorem_3_9_names_another_sigma() -> None:
    classic, other = release().sigma(Fraction(1)), renyi_sigma(Fraction(1), DELTA, 10_000)
    assert float(classic / other) == pytest.approx(math.sqrt(2 * math.log(1.25e10)), rel=1e-12)
    form = renyi_closed_form(other, Decimal(1), 10_000, DELTA, REPLACE)
    assert float(form.leading) == pytest.approx(1, rel=1e-12)
    assert float(form.residual) == pytest.approx(1 / (4 * math.log(1e6)), rel=1e-12)
    assert float(form.guarantee().epsilon) == pytest.approx(1.0181, abs=5e-5)
    assert float(form.order) == pytest.approx(1 + 2 * math.log(1e6), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(mu=st.decimals("1e-4", "500", places=4), order=st.decimals("1.001", "1e6", places=3))
def test_claim_22_equation_3_6_is_the_least_over_all_orders(mu: Decimal, order: Decimal) -> None:
    form = renyi_closed_form(Decimal(1), mu, 1, DELTA, REPLACE)
    at = order * mu * mu / 2 - Decimal("1e-6").ln() / (order - 1)
    assert form.guarantee().epsilon <= Fraction(at) * (1 + Fraction(1, 10**20))


def test_claim_23_the_lower_bound_and_where_it_ends() -> None:
    found = membership_lower_bound(release("4").gaussian(100))
    exact = release("4").gaussian(100).total_variation().value
    assert float(found) == pytest.approx(0.2226, abs=5e-5)
    assert Fraction(found) < exact
    edge = GaussianDp.of(Decimal("4.94608"), REPLACE)
    assert Fraction(membership_lower_bound(edge)) <= edge.total_variation().value
    beyond = GaussianDp.of(Decimal("4.9463"), REPLACE)
    assert beyond.mu / 2 * Fraction(39894228, 10**8) > beyond.total_variation().value
    with pytest.raises(RefusedError) as caught:
        membership_lower_bound(beyond)
    assert caught.value.where == "mu"


def test_claim_24_add_remove_has_no_useful_delta() -> None:
    assert float(exposure(10**5, 5, 10_000)) == pytest.approx(0.3935, abs=5e-5)
    assert exposure(3, 3, 1) == 1
    for rows, selected, queries in ((10, 3, 4), (1000, 5, 77)):
        exact = 1 - (1 - Fraction(selected, rows)) ** queries
        assert exact - Fraction(1, 2**200) < exposure(rows, selected, queries) <= exact
    # As long as the numbers are long, not as long as the queries are many.
    assert float(exposure(10**18, 1, 10**13)) == pytest.approx(1e-5, rel=1e-4)
    for arguments, field in (
        ((0, 1, 1), "rows"), ((5, 6, 1), "selected"), ((5, 0, 1), "selected"),
        ((5, 1, 0), "queries"), ((5, 1, 10**14), "queries"), ((5, True, 1), "selected"),
    ):  # fmt: skip
        with pytest.raises(MalformedError) as caught:
            exposure(*arguments)
        assert caught.value.where == field


@for_each(
    ("changes", "field"),
    [
        ({"epsilon_acc": Fraction(0)}, "epsilon_acc"),
        ({"epsilon_acc": Fraction(-1)}, "epsilon_acc"),
        ({"epsilon_acc": "x"}, "epsilon_acc"),
        ({"delta_acc": Fraction(0)}, "delta_acc"),
        ({"delta_acc": Fraction(1)}, "delta_acc"),
        ({"delta_acc": Fraction(3, 2)}, "delta_acc"),
        ({"queries": 0}, "queries"),
        ({"queries": True}, "queries"),
        ({"relation": "replaced"}, "relation"),
    ],
)
def test_bad_classes_are_refused_by_name(changes: dict[str, Any], field: str) -> None:
    good = {"epsilon_acc": Fraction(1), "delta_acc": DELTA, "queries": 100, "relation": REPLACE}
    with pytest.raises(MalformedError) as caught:
        ScoreReleaseClass(**{**good, **changes})
    assert caught.value.where == field


@for_each(
    ("call", "field"),
    [
        (lambda: release().coalition(0, DELTA), "accounts"),
        (lambda: release().coalition(2, Fraction(1)), "delta_comp"),
        (lambda: release().coalition(10**6, DELTA), "delta_comp"),
        (lambda: release().audit(2, Fraction(2)), "delta_policy"),
        (lambda: release().gaussian(-1), "accounts"),
        (lambda: release().sigma(Fraction(0)), "sensitivity"),
        (lambda: renyi_closed_form(Decimal(0), Decimal(1), 1, DELTA, REPLACE), "sigma"),
        (lambda: renyi_closed_form(Decimal("Infinity"), Decimal(1), 1, DELTA, REPLACE), "sigma"),
        (lambda: renyi_closed_form(Decimal(1), Decimal("NaN"), 1, DELTA, REPLACE), "sensitivity"),
        (lambda: renyi_closed_form(Decimal(1), Decimal(1), 0, DELTA, REPLACE), "queries"),
        (lambda: renyi_closed_form(Decimal(1), Decimal(1), 1, Fraction(0), REPLACE), "delta"),
        (lambda: renyi_sigma(Fraction(0), DELTA, 1), "epsilon_acc"),
        (lambda: renyi_sigma(Fraction(1), Fraction(1), 1), "delta_acc"),
    ],
)
def test_bad_arguments_are_refused_by_name(call: Any, field: str) -> None:
    with pytest.raises(MalformedError) as caught:
        call()
    assert caught.value.where == field


@pytest.mark.parametrize("mu", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_equation_3_8_is_total_variation(mu: Fraction) -> None:
    """(3.8) is above the exact advantage at every epsilon of the exact curve."""
    guarantee = GaussianDp(mu, REPLACE)
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(3)):
        at: ApproximateDp = guarantee.at_epsilon(epsilon)
        assert at.total_variation().value >= guarantee.total_variation().value * (
            1 - Fraction(1, 10**12)
        )
