"""Events and accountants (docs/notes/accounting.md §12); each test names the claim it checks."""

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
)
from ragaudit.privacy.accounting.events import (
    Coalition,
    Composition,
    NoisyScores,
    RealisedCoalition,
    WholeTenant,
    releases,
)
from ragaudit.privacy.accounting.gaussian import NoFiniteBound, epsilon

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
