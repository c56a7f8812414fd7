"""Planning: sigma for a promise, the budget table, what a sigma affords."""

from dataclasses import replace
from fractions import Fraction

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import ceil_decimal
from ragaudit.privacy.accounting.accountants import calibrate_coalition
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.gaussian import epsilon
from ragaudit.privacy.planning.budget import (
    Missing,
    PaperNoise,
    Price,
    Targets,
    budget,
    epsilon_by_accounts,
    price_of_account,
    price_of_coalition,
    round_counts,
    sigma_by_queries,
    sigma_for,
)

TARGETS = Targets("8", "0.000001", 50, 3, "0.00001")
FEW = settings(max_examples=6, deadline=None)

epsilons = st.integers(1, 40_000).map(lambda n: f"{n // 1000}.{n % 1000:03d}")
counts = st.integers(1, 10_000)
relations = st.sampled_from(["replace", "null-replace"])


def number(text: str | Missing | None) -> Fraction:
    assert isinstance(text, str)
    return Fraction(text)


# Known answers: section 3.6 and 4 of the source paper's terms (n = 10^4, delta 10^-6), sigma at
# sensitivity 1, computed independently (tests/vectors/oracle.json holds a part of them).
@pytest.mark.parametrize(
    ("promised", "paper", "exact", "ratio", "real"),
    [
        ("0.5", 7168.785, 805.762, 8.897, 0.04819),
        ("1", 3584.392, 422.468, 8.484, 0.10138),
        ("2", 1792.196, 223.048, 8.035, 0.21275),
        ("4", 896.098, 119.352, 7.508, 0.44626),
    ],
)
def test_the_papers_noise_is_eight_times_as_much(
    promised: str, paper: float, exact: float, ratio: float, real: float
) -> None:
    targets = Targets(promised, "0.000001", 10_000, 1, "0.000002", relation="null-replace")
    made = budget(targets)
    assert float(made.sigma) == pytest.approx(exact, abs=2e-3)
    assert isinstance(made.paper, PaperNoise)
    assert float(made.paper.sigma) == pytest.approx(paper, abs=1e-3)
    assert float(made.paper.ratio) == pytest.approx(ratio, abs=1e-3)
    assert isinstance(made.paper.account, Price)
    assert float(number(made.paper.account.epsilon)) == pytest.approx(real, abs=2e-5)


def test_the_rows_of_a_plan() -> None:
    # Table B2 of the same source: eps 1, k = 10 at (k + 1)·10^-6, and (5.2) with its residual.
    targets = Targets("1", "0.000001", 10_000, 10, "0.000011", slots=20, windows=3)
    made = budget(targets)
    assert made.calibrated and made.kept
    assert [row.accounts for row in made.coalitions] == list(range(1, 11))
    assert float(number(made.coalition.price.epsilon)) == pytest.approx(3.1229, abs=1e-4)
    assert float(number(made.coalition.closed_form)) == pytest.approx(3.5245, abs=1e-4)
    assert made.coalition.price.queries == 100_000
    assert made.tenant.accounts == 20
    assert made.tenant.closed_form == Missing("delta_policy is at most accounts · delta")
    assert made.over_windows[0].closed_form == Missing("(5.2) covers one window")
    assert [(row.accounts, row.windows) for row in made.over_windows] == [(10, 2), (10, 3)]
    # Two windows cost what twice the accounts cost.
    assert made.over_windows[0].price == made.tenant.price
    assert made.queries_afforded == 10_000 and made.accounts_afforded == 1


def test_rounding_is_up() -> None:
    event = NoisyScores.of_policy("9.3", "replace", 1, 150)
    found = epsilon(event, Fraction(1, 10**5))
    assert price_of_coalition(TARGETS, "9.3").epsilon == ceil_decimal(Fraction(found), 6)
    assert number(price_of_coalition(TARGETS, "9.3").epsilon) >= Fraction(found)


def test_counts_are_all_to_ten_then_round() -> None:
    assert round_counts(1) == [1]
    assert round_counts(4) == [1, 2, 3, 4]
    assert round_counts(25)[-3:] == [10, 20, 25]
    assert round_counts(100)[-3:] == [20, 50, 100]
    assert round_counts(3000)[-4:] == [50, 100, 1000, 3000]


def test_a_given_sigma_is_priced() -> None:
    made = budget(replace(TARGETS, epsilon=None), sigma="20")
    assert not made.calibrated and made.kept is None  # nothing was promised
    assert made.targets.epsilon == made.account.epsilon == price_of_account(TARGETS, "20").epsilon
    # That epsilon is rounded up, so it may hold for a query more.
    assert isinstance(made.queries_afforded, int) and made.queries_afforded >= 50


def test_a_given_sigma_may_miss_the_promise() -> None:
    assert budget(TARGETS, sigma="5").kept is False
    assert budget(TARGETS, sigma="50").kept is True
    assert budget(TARGETS, sigma="0.1").kept is False


def test_every_price_says_at_which_delta_and_for_which_neighbours() -> None:
    made = budget(replace(TARGETS, relation="null-replace"))
    assert (made.account.delta, made.account.relation) == (
        "0.000001",
        NeighboringRelation.NULL_REPLACE,
    )
    row = made.coalition.price
    assert (row.delta, row.relation) == ("0.00001", NeighboringRelation.NULL_REPLACE)
    assert isinstance(made.paper, PaperNoise) and isinstance(made.paper.account, Price)
    assert made.paper.account.delta == "0.000001"


def test_the_noise_for_a_whole_coalition() -> None:
    made = budget(replace(TARGETS, coalition=5))
    assert made.coalition_sigma == calibrate_coalition(
        "8", "0.00001", accounts=5, rate=50, relation="replace", group_size=1
    )
    # With that noise the five stay within epsilon together, and with a millionth less do not.
    for step, within in (("0", True), ("0.000001", False)):
        sigma = f"{float(number(made.coalition_sigma) - Fraction(step)):.6f}"
        priced = budget(replace(TARGETS, coalition=5), sigma=sigma)
        assert isinstance(priced.accounts_afforded, int)
        assert (priced.accounts_afforded >= 5) is within
    # At the account's own delta: computed independently of this module.
    same = budget(replace(TARGETS, coalition=5, delta_policy="0.000001"))
    assert same.coalition_sigma == "20.647630"


def test_a_coalition_may_be_beyond_all_noise() -> None:
    targets = Targets("0.000001", "0.5", 10**8, 1000, "0.000000000001", slots=1000)
    assert isinstance(budget(targets).coalition_sigma, Missing)


def test_the_protected_unit() -> None:
    assert TARGETS.protected_unit == "row"
    assert replace(TARGETS, rows_per_document=2).protected_unit == "document"


def test_no_finite_bound_is_told_not_hidden() -> None:
    made = budget(replace(TARGETS, epsilon=None), sigma="0.1")
    assert made.account.epsilon is None
    assert number(made.account.ideal_epsilon) > 100
    assert made.kept is None
    for each in (
        made.paper, made.queries_afforded, made.accounts_afforded, made.coalition_sigma,
        made.coalition.closed_form,
    ):  # fmt: skip
        assert each == Missing("one account has no finite epsilon to stay within")
    assert made.coalition.price.advantage == "1.000000"


def test_near_the_end_of_finite_bounds_the_sampler_costs_something() -> None:
    # docs/notes/accounting.md section 3: from an epsilon of some 45 to 60 on.
    prices = [price_of_account(replace(TARGETS, queries=1), f"0.{n}") for n in range(100, 400, 10)]
    gaps = [
        number(each.epsilon) - number(each.ideal_epsilon)
        for each in prices
        if each.epsilon is not None
    ]
    assert 0 < len(gaps) < len(prices)
    assert max(gaps) > 0.01 and min(gaps) == 0
    ideal = [number(each.ideal_epsilon) for each in prices]
    assert ideal == sorted(ideal, reverse=True)


@FEW
@given(epsilons, epsilons, counts, relations)
def test_sigma_falls_with_epsilon(one: str, other: str, queries: int, relation: str) -> None:
    low, high = sorted((one, other), key=Fraction)
    targets = Targets(low, "0.000001", queries, 1, "0.00001", relation=relation)
    assert number(sigma_for(targets)) >= number(sigma_for(replace(targets, epsilon=high)))


@FEW
@given(epsilons, counts, counts, relations)
def test_sigma_rises_with_queries(loss: str, one: int, other: int, relation: str) -> None:
    low, high = sorted((one, other))
    targets = Targets(loss, "0.000001", low, 1, "0.00001", relation=relation)
    assert number(sigma_for(targets)) <= number(sigma_for(replace(targets, queries=high)))


@FEW
@given(st.integers(1, 60), st.integers(1, 60), counts, st.integers(1, 5))
def test_epsilon_and_advantage_rise_with_accounts(
    one: int, other: int, queries: int, windows: int
) -> None:
    low, high = sorted((one, other))
    targets = Targets("1", "0.000001", queries, low, "0.00001")
    small = price_of_coalition(targets, "700", low, windows)
    large = price_of_coalition(targets, "700", high, windows)
    assert number(small.advantage) <= number(large.advantage)
    assert number(small.ideal_epsilon) <= number(large.ideal_epsilon)
    if large.epsilon is not None:
        assert number(small.epsilon) <= number(large.epsilon)


@FEW
@given(st.integers(1, 1000), st.integers(1, 1000))
def test_larger_documents_need_more_noise(one: int, other: int) -> None:
    low, high = sorted((one, other))
    small, large = (sigma_for(replace(TARGETS, rows_per_document=each)) for each in (low, high))
    assert number(small) <= number(large)


def test_replace_needs_twice_the_noise_of_null_replace() -> None:
    # Up to the share of the variance that the rounding kernel takes, 16 lattice units squared.
    single = number(sigma_for(replace(TARGETS, relation="null-replace")))
    assert number(sigma_for(TARGETS)) == pytest.approx(2 * single, rel=1e-6)


def test_outside_the_papers_range_nothing_of_it_is_shown() -> None:
    # One query at epsilon 8: eps_q of (3.1) is 8/sqrt(2 ln 10^6) = 1.52, not below 1.
    made = budget(replace(TARGETS, queries=1))
    assert isinstance(made.paper, Missing) and "(3.1)" in made.paper.reason
    assert {row.closed_form for row in made.coalitions} == {made.paper}


def test_curves() -> None:
    made = budget(replace(TARGETS, slots=30))
    rows = epsilon_by_accounts(made)
    assert [rows[0].accounts, rows[-1].accounts] == [1, 30]
    assert 3 in {row.accounts for row in rows}
    assert rows[0] == made.coalitions[0]
    assert all(isinstance(row.closed_form, str) for row in rows if row.accounts < 10)
    assert [row.accounts for row in epsilon_by_accounts(made, 1)] == [1, 3]
    with pytest.raises(MalformedError):
        epsilon_by_accounts(made, 0)
    points = sigma_by_queries(made.targets)
    assert [points[0].queries, points[-1].queries] == [5, 500]
    sigmas = [number(point.sigma) for point in points]
    assert sigmas == sorted(sigmas)
    planned = next(point for point in points if point.queries == 50)
    assert isinstance(made.paper, PaperNoise)
    assert (planned.sigma, planned.paper_sigma) == (made.sigma, made.paper.sigma)


@for_each(
    ("field", "value"),
    [
        ("epsilon", "0"), ("epsilon", "-1"), ("epsilon", "1e3"), ("delta", "0"), ("delta", "1"),
        ("delta", "nan"), ("delta_policy", "1.5"), ("delta_policy", ""), ("queries", 0),
        ("queries", True), ("queries", 2.0), ("queries", 10**13 + 1), ("coalition", 0),
        ("rows_per_document", 0), ("rows_per_document", 1001), ("relation", "add-remove"),
        ("slots", 2), ("windows", 0), ("windows", -3),
    ],
)  # fmt: skip
def test_bad_targets_name_the_field(field: str, value: object) -> None:
    with pytest.raises(MalformedError) as caught:
        replace(TARGETS, **{field: value})  # type: ignore[arg-type]
    assert caught.value.where == field


def test_more_queries_than_can_be_accounted_for_are_refused() -> None:
    with pytest.raises(MalformedError) as caught:
        replace(TARGETS, queries=10**12)
    assert caught.value.where == "queries"


@for_each("sigma", ["0", "0.0009", "70000000", "x", "-1", "1e2"])
def test_sigma_outside_the_sampler_is_refused(sigma: str) -> None:
    with pytest.raises(MalformedError) as caught:
        budget(TARGETS, sigma=sigma)
    assert caught.value.where == "sigma"


def test_without_epsilon_and_sigma_there_is_no_plan() -> None:
    with pytest.raises(MalformedError) as caught:
        budget(replace(TARGETS, epsilon=None))
    assert caught.value.where == "epsilon"


def test_a_promise_beyond_all_noise_is_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        budget(Targets("0.000000000001", "0.000000000001", 10**8, 1, "0.5"))
    assert caught.value.where == "epsilon"


def test_extreme_targets_are_finite() -> None:
    made = budget(Targets("999999999", "0.999999999999", 1, 1, "0.999999999999", slots=1))
    assert made.kept
    assert number(made.sigma) > 0
    assert isinstance(made.paper, Missing)
