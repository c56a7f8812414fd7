"""Events and accountants, what a sigma affords: docs/notes/accounting.md §12 and §7.

Each test names the claim that it checks.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError, RefusedError, UnsupportedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting import gaussian, renyi
from ragaudit.privacy.accounting.accountants import (
    ACCOUNTANTS,
    LEAST_ORDER,
    Accountant,
    GaussianAccountant,
    LossDistributionAccountant,
    RenyiAccountant,
    ZeroConcentratedAccountant,
    calibrate_coalition,
    largest_coalition,
    largest_queries,
    largest_rate,
    remaining_queries,
)
from ragaudit.privacy.accounting.events import (
    GAMMA,
    Coalition,
    Composition,
    NoisyScores,
    RealisedCoalition,
    WholeTenant,
    releases,
)
from ragaudit.privacy.accounting.gaussian import NoFiniteBound, calibrate, epsilon, gives
from ragaudit.privacy.guarantees import ApproximateDp

DELTA = Fraction(1, 10**6)
GAUSSIAN, RENYI, ZERO, LOSS = ACCOUNTANTS
CERTIFICATES = (GAUSSIAN, RENYI, ZERO)


def scores(sigma: str = "50", queries: int = 500, **changes: Any) -> NoisyScores:
    relation, group = changes.pop("relation", "replace"), changes.pop("group", 1)
    return NoisyScores.of_policy(sigma, relation, group, queries, **changes)


# --- events ---


def test_claim_17_coalitions_are_queries_of_one_mechanism() -> None:
    account = scores(queries=200)
    assert releases(Coalition(account, 10)) == (account.with_queries(2000),)
    assert releases(Coalition(account, 10, windows=12)) == (account.with_queries(24_000),)
    assert releases(RealisedCoalition(account, (5, 0, 90, 30), 2)) == (account.with_queries(120),)
    assert releases(RealisedCoalition(account, (5,), 7)) == (account.with_queries(5),)
    assert releases(RealisedCoalition(account, (), 7)) == (account.with_queries(0),)
    assert releases(WholeTenant(account, 31_000)) == (account.with_queries(31_000),)


def test_claim_17_a_composition_is_flat() -> None:
    a, b = scores("50"), scores("80", 7)
    nested = Composition((a, Composition((Coalition(b, 3), b))))
    assert releases(nested) == (a, b.with_queries(21), b)


@for_each(
    ("build", "field"),
    [
        (lambda: Coalition(scores(), 0), "accounts"),
        (lambda: Coalition(scores(), True), "accounts"),
        (lambda: Coalition(scores(), 2, windows=0), "windows"),
        (lambda: Coalition(scores(), 1.5), "accounts"),  # type: ignore[arg-type]
        (lambda: Coalition("scores", 1), "account"),  # type: ignore[arg-type]
        (lambda: Coalition(scores(queries=10**7), 10**7), "queries"),
        (lambda: RealisedCoalition(scores(), (1, -1), 1), "counts"),
        (lambda: RealisedCoalition(scores(), (10**13, 1), 2), "queries"),
        (lambda: WholeTenant(scores(), -1), "records"),
        (lambda: WholeTenant(None, 1), "mechanism"),  # type: ignore[arg-type]
        (lambda: Composition(()), "parts"),
        (lambda: Composition((scores(), scores(relation="null-replace"))), "relation"),
    ],
)
def test_bad_events_are_refused_by_name(build: Any, field: str) -> None:
    with pytest.raises(MalformedError) as caught:
        build()
    assert caught.value.where == field


class Subsampled:
    """An event that looks like one of ours, with a claim that nobody checked."""

    queries, slack, samples = 1, Fraction(0), 1


@for_each("accountant", ACCOUNTANTS)
@for_each("event", [Subsampled(), None, "scores"])
def test_unknown_events_are_refused(accountant: Accountant, event: Any) -> None:
    with pytest.raises(UnsupportedError, match="unknown event"):
        accountant.price(event, DELTA)
    with pytest.raises(UnsupportedError, match="unknown event"):
        Composition((scores(), event))


@for_each("accountant", ACCOUNTANTS)
@for_each("delta", ["x", True, Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_bad_deltas_are_refused_by_name(accountant: Accountant, delta: Any) -> None:
    with pytest.raises(MalformedError) as caught:
        accountant.price(scores(), delta)
    assert caught.value.where == "delta"


# --- prices ---


def test_claim_17_one_release_has_the_headline_price() -> None:
    event = scores()
    price = GAUSSIAN.price(event, DELTA)
    assert price.epsilon == Fraction(epsilon(event, DELTA))
    assert (price.delta, price.relation) == (DELTA, NeighboringRelation.REPLACE)
    bound = renyi.bound(event, DELTA)
    assert bound is not None
    assert RENYI.price(event, DELTA).epsilon == Fraction(bound.epsilon)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: a.name)
def test_every_accountant_states_the_events_relation(accountant: Accountant) -> None:
    event = scores(relation="null-replace")
    assert accountant.price(event, DELTA).relation == NeighboringRelation.NULL_REPLACE


@pytest.mark.parametrize("accountant", CERTIFICATES, ids=lambda a: a.name)
def test_claim_17_windows_add_up(accountant: Accountant) -> None:
    """Twelve windows of the same terms are one with twelve times the queries, to the digit."""
    window = Coalition(scores(queries=30), 10)
    apart = accountant.price(Composition((window,) * 12), DELTA)
    assert apart == accountant.price(Coalition(scores(queries=30), 10, windows=12), DELTA)
    assert apart == accountant.price(scores(queries=3600), DELTA)


parts = st.builds(
    scores,
    sigma=st.sampled_from(["1", "7.5", "40", "300"]),
    queries=st.integers(0, 400),
    group=st.integers(1, 4),
)


@settings(max_examples=6, deadline=None)
@given(a=parts, b=parts, c=parts)
def test_claim_18_composition_is_associative_and_commutative(
    a: NoisyScores, b: NoisyScores, c: NoisyScores
) -> None:
    for accountant in CERTIFICATES:
        try:
            expected: object = accountant.price(Composition((a, b, c)), DELTA)
        except NoFiniteBound:
            expected = None
        for event in (
            Composition((Composition((a, b)), c)),
            Composition((a, Composition((b, c)))),
            Composition((c, a, b)),
        ):
            try:
                assert accountant.price(event, DELTA) == expected
            except NoFiniteBound:
                assert expected is None


@settings(max_examples=4, deadline=None)
@given(
    queries=st.integers(1, 300),
    accounts=st.integers(1, 40),
    windows=st.integers(1, 20),
    group=st.integers(1, 20),
)
def test_claim_18_prices_rise_with_everything_that_is_released(
    queries: int, accounts: int, windows: int, group: int
) -> None:
    def price(accountant: Accountant, r: int, k: int, w: int, g: int, sigma: str = "900") -> Any:
        return accountant.price(Coalition(scores(sigma, r, group=g), k, w), DELTA).epsilon

    for accountant in CERTIFICATES:
        least = price(accountant, queries, accounts, windows, group)
        assert least < price(accountant, queries + 1, accounts, windows, group)
        assert least < price(accountant, queries, accounts + 1, windows, group)
        assert least < price(accountant, queries, accounts, windows + 1, group)
        assert least < price(accountant, queries, accounts, windows, group + 1)
        assert least > price(accountant, queries, accounts, windows, group, "901")
        event = Coalition(scores("900", queries, group=group), accounts, windows)
        assert least > accountant.price(event, 2 * DELTA).epsilon


@settings(max_examples=10, deadline=None)
@given(sigma=st.integers(10, 5000), queries=st.integers(1, 10**5))
def test_claim_18_exact_below_renyi_below_zero_concentrated(sigma: int, queries: int) -> None:
    event = scores(str(sigma), queries, gamma=Fraction(0))
    exactly, by_order, closed = (each.price(event, DELTA).epsilon for each in CERTIFICATES)
    # The variance correction costs the exact curve at most 16/S² of its epsilon.
    assert exactly <= by_order * (1 + Fraction(1, 10**6))
    assert by_order <= closed


def test_claim_18_the_closed_conversion_is_equation_3_6() -> None:
    event = scores("60", 900, gamma=Fraction(0))
    rho = event.rho()
    found = float(ZERO.price(event, DELTA).epsilon)
    mu = Decimal(2 * float(rho)).sqrt()
    assert found == pytest.approx(
        float(mu * (-2 * Decimal("1e-6").ln()).sqrt() + mu * mu / 2), rel=1e-6
    )


@pytest.mark.parametrize(
    "event",
    [
        scores("50", 500),
        Coalition(scores("50", 20), 10, windows=4),
        Composition((scores("40", 300), scores("90", 800, group=3), scores("40", 300))),
        Composition(tuple(scores(str(sigma), 100) for sigma in (30, 60, 90, 120, 150))),
    ],
    ids=["release", "coalition", "mixed", "windows"],
)
def test_claim_6_loss_distributions_agree(event: Any) -> None:
    """dp-accounting composes the parts itself; its value is pessimistic and close."""
    exactly = float(GAUSSIAN.price(event, DELTA).epsilon)
    found = float(LOSS.price(event, DELTA).epsilon)
    assert exactly * (1 - 1e-6) <= found <= exactly * (1 + 1e-3)


def test_loss_distributions_refuse_what_gets_large_and_know_nothing() -> None:
    with pytest.raises(RefusedError, match="mu is"):
        LOSS.price(scores("0.1", 1000), DELTA)
    assert LOSS.price(scores(queries=0), DELTA).epsilon == 0


# --- the sampler's share ---


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: a.name)
def test_claim_4_a_coarse_sampler_has_no_finite_bound(accountant: Accountant) -> None:
    fine, coarse = (scores(gamma=Fraction(1, 2**bits)) for bits in (60, 27))
    ideal = scores(gamma=Fraction(0))
    assert accountant.price(ideal, DELTA).epsilon <= accountant.price(fine, DELTA).epsilon
    with pytest.raises(NoFiniteBound):
        accountant.price(coarse, DELTA)
    with pytest.raises(NoFiniteBound):
        accountant.price(Composition((ideal, coarse)), DELTA)


def test_claim_2_ends_at_ten_to_the_sixteen_samples() -> None:
    most = scores("60000", 10**13, group=1000)
    for accountant in CERTIFICATES:
        with pytest.raises(RefusedError, match="too many noise samples"):
            accountant.price(Composition((most, most)), DELTA)


# --- orders ---


def test_claim_5_any_order_is_a_bound_and_the_best_is_real() -> None:
    event = scores("200", 500)
    best = RENYI.price(event, DELTA).epsilon
    grid = RenyiAccountant(tuple(Fraction(a) for a in range(2, 65)))
    classic = RenyiAccountant(grid.orders, "mironov")
    finer = RenyiAccountant((*grid.orders, Fraction(3, 2), Fraction(101, 100)))
    assert best <= grid.price(event, DELTA).epsilon <= classic.price(event, DELTA).epsilon
    assert finer.price(event, DELTA).epsilon <= grid.price(event, DELTA).epsilon
    assert best <= RenyiAccountant((Fraction(7),)).price(event, DELTA).epsilon


@pytest.mark.parametrize("mu", [5, 100, 500])
def test_claim_5_large_mu_needs_orders_near_one(mu: int) -> None:
    sigma = f"{2 / mu:.12f}"
    event = scores(sigma, 1, gamma=Fraction(0))
    exactly = GAUSSIAN.price(event, DELTA).epsilon
    grid = RenyiAccountant(tuple(Fraction(a) for a in range(2, 65)))
    assert RENYI.price(event, DELTA).epsilon <= exactly * Fraction(11, 10)
    assert grid.price(event, DELTA).epsilon > RENYI.price(event, DELTA).epsilon
    near = RenyiAccountant(tuple(1 + Fraction(1, 2**k) for k in range(12)))
    assert near.price(event, DELTA).epsilon <= grid.price(event, DELTA).epsilon


@pytest.mark.parametrize("conversion", ["canonne", "mironov"])
def test_orders_down_to_one_are_finite_and_one_is_refused(conversion: Any) -> None:
    event = scores(gamma=Fraction(0))
    price = RenyiAccountant((LEAST_ORDER,), conversion).price(event, DELTA)
    assert price.epsilon > 10**20
    for order in (Fraction(1), LEAST_ORDER - Fraction(1, 10**21), Fraction(1, 2), 0.5, True):
        with pytest.raises(MalformedError) as caught:
            RenyiAccountant((order,), conversion)  # type: ignore[arg-type]
        assert caught.value.where == "orders"


def test_conversions_are_known_and_need_orders() -> None:
    with pytest.raises(MalformedError, match="unknown conversion"):
        RenyiAccountant((Fraction(2),), "bun")  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="no orders"):
        RenyiAccountant((), "mironov")


# --- extremes ---


@for_each("queries", [0, 1, 10**7])
@for_each("sigma", ["0.001", "1", "60000000"])
@for_each("delta", [Fraction(1, 10**12), Fraction(999, 1000)])
@for_each("accountant", CERTIFICATES)
def test_extreme_events_are_finite_or_refused(
    accountant: Accountant, delta: Fraction, sigma: str, queries: int
) -> None:
    for gamma in (Fraction(0), Fraction(1, 2**100)):
        event = scores(sigma, queries, gamma=gamma)
        try:
            price = accountant.price(event, delta)
        except NoFiniteBound:
            assert gamma > 0
            continue
        assert price.epsilon >= 0
        if queries == 0:
            assert price.epsilon == 0


@for_each("mu", ["1e-12", "1e-6", "0.01", "1", "50", "500"])
def test_claim_3_the_curve_is_inverted_over_its_whole_range(mu: str) -> None:
    """epsilon 1e-6 to 1e4: what the curve gives at an epsilon is met there."""
    for value in ("1e-6", "0.01", "1", "40", "1e4"):
        at = Decimal(value)
        delta = gaussian.delta(Decimal(mu), at)
        assert 0 <= delta <= Decimal("1." + 48 * "0" + "1")
        if Decimal("1e-200") < delta < 1:
            found = gaussian.least_epsilon(Decimal(mu), Fraction(delta))
            assert found is not None
            assert found <= at * (1 + Decimal("1e-15")) + Decimal("1e-17")


def test_accountants_have_distinct_names() -> None:
    assert len({accountant.name for accountant in ACCOUNTANTS}) == len(ACCOUNTANTS) == 4
    kinds = (
        GaussianAccountant, RenyiAccountant, ZeroConcentratedAccountant, LossDistributionAccountant,
    )  # fmt: skip
    assert tuple(type(accountant) for accountant in ACCOUNTANTS) == kinds


ONE, LARGE_DELTA = Fraction(1), Fraction(1, 10**6)


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
    most = largest_queries(mechanism, epsilon, LARGE_DELTA)
    assert gives(mechanism.with_queries(most), epsilon, LARGE_DELTA)
    assert not gives(mechanism.with_queries(most + 1), epsilon, LARGE_DELTA)


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
    assert (
        largest_rate(mechanism, Fraction(2), LARGE_DELTA, accounts=accounts, windows=windows)
        >= rate
    )
    assert (
        largest_coalition(mechanism, Fraction(2), LARGE_DELTA, rate=rate, windows=windows)
        >= accounts
    )
    assert largest_queries(less, Fraction(2), LARGE_DELTA) < accounts * rate * windows


def test_claim_19_whole_numbers_are_rounded_down() -> None:
    mechanism = noise("100")
    most = largest_queries(mechanism, ONE, LARGE_DELTA)
    assert most == 140
    assert largest_rate(mechanism, ONE, LARGE_DELTA, accounts=9) == 15
    assert largest_coalition(mechanism, ONE, LARGE_DELTA, rate=50) == 2
    assert largest_coalition(mechanism, ONE, LARGE_DELTA, rate=50, windows=2) == 1
    assert largest_coalition(mechanism, ONE, LARGE_DELTA, rate=141) == 0


def test_claim_19_what_remains_of_a_budget() -> None:
    mechanism, budget = noise("100"), ApproximateDp(ONE, LARGE_DELTA, NeighboringRelation.REPLACE)
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
            remaining_queries(mechanism, mechanism, ApproximateDp(ONE, LARGE_DELTA, relation))
        assert caught.value.where == "relation"
    budget = ApproximateDp(ONE, LARGE_DELTA, NeighboringRelation.REPLACE)
    with pytest.raises(UnsupportedError):
        remaining_queries("nothing", mechanism, budget)  # type: ignore[arg-type]
    with pytest.raises(MalformedError) as caught:
        GaussianAccountant().within(mechanism, ApproximateDp(ONE, LARGE_DELTA * 0, budget.relation))
    assert caught.value.where == "delta"


def test_allowance_is_monotone() -> None:
    base = largest_queries(noise("50"), ONE, LARGE_DELTA)
    assert base <= largest_queries(noise("51"), ONE, LARGE_DELTA)
    assert base <= largest_queries(noise("50"), 2 * ONE, LARGE_DELTA)
    assert base <= largest_queries(noise("50"), ONE, 10 * LARGE_DELTA)
    assert base >= largest_queries(NoisyScores.of_policy("50", "replace", 3, 1), ONE, LARGE_DELTA)
    assert base >= largest_queries(noise("50", gamma=Fraction(1, 2**40)), ONE, LARGE_DELTA)


def test_the_samplers_error_bounds_the_allowance() -> None:
    """With gamma 2^-30 and delta 1e-6, more than some hundred samples have no bound at all."""
    coarse = noise("60000000", gamma=Fraction(1, 2**30))
    assert (
        largest_queries(coarse, ONE, LARGE_DELTA)
        == (LARGE_DELTA / (2 * Fraction(1, 2**30))).__floor__()
    )


def test_no_noise_affords_nothing_and_much_affords_the_most() -> None:
    assert largest_queries(noise("0.001"), Fraction(1, 1000), LARGE_DELTA) == 0
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
        ("one", LARGE_DELTA, "epsilon"),
        (Fraction(0), LARGE_DELTA, "epsilon"),
        (ONE, -1e-6, "delta"),
        (ONE, Fraction(1), "delta"),
    ],
)
def test_bad_allowance_input_is_refused_by_name(epsilon: Any, delta: Any, field: str) -> None:
    with pytest.raises(MalformedError) as caught:
        largest_queries(noise("1"), epsilon, delta)
    assert caught.value.where == field
