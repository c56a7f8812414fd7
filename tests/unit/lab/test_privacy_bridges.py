"""Bridges to dp-accounting, OpenDP and riskcal agree with our own accountants and guarantees.

Conversions are by two libraries: theirs of zero-concentrated DP in conservative binary arithmetic,
ours of Gaussian and approximate DP, rounded up. riskcal reads a discretised distribution, which is
pessimistic: at 4,000 steps per mu its advantage is above the exact one by less than 2e-4.
"""

from fractions import Fraction
from typing import Any

import pytest
from dp_accounting import NeighboringRelation as LibraryRelation
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from opendp import prelude
from ragaudit.encoding.errors import InvalidArgumentError, RefusedError, UnsupportedError
from ragaudit.lab import bridges
from ragaudit.lab.bridges import (
    approximate_of,
    attack_rates,
    dp_event,
    loss_distribution,
    opendp_guarantee,
    opendp_measurement,
    opendp_profile,
    profile_of,
    risk_evaluator,
)
from ragaudit.lab.risk import Scenario, best_bound
from ragaudit.lab.risk.trade_off import GaussianTradeOff, PrivacyProfile
from ragaudit.privacy import (
    ApproximateDp,
    Coalition,
    Composition,
    GaussianAccountant,
    GaussianDp,
    NeighboringRelation,
    NoisyScores,
    ZeroConcentratedAccountant,
    ZeroConcentratedDp,
)
from riskcal.calibration.core import CalibrationConfig, CalibrationTarget, calibrate_parameter

ACCOUNT = NoisyScores.of_policy(30, "replace", 1, 20)
OTHER = NoisyScores.of_policy(20, "replace", 1, 5)
EVENTS = (ACCOUNT, Coalition(ACCOUNT, accounts=2), Composition((ACCOUNT, OTHER)))
DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize("event", EVENTS, ids=["account", "coalition", "composition"])
def test_an_event_costs_there_what_it_costs_here(event: Any) -> None:
    ours = float(GaussianAccountant().price(event, DELTA).epsilon)
    loss = PLDAccountant(LibraryRelation.ADD_OR_REMOVE_ONE).compose(dp_event(event))
    assert loss.get_epsilon(float(DELTA)) == pytest.approx(ours, rel=2e-3, abs=1e-3)
    orders = RdpAccountant(neighboring_relation=LibraryRelation.ADD_OR_REMOVE_ONE)
    # Rényi accounting is valid and looser.
    assert ours * 0.999 < orders.compose(dp_event(event)).get_epsilon(float(DELTA)) < 1.3 * ours
    found = approximate_of(loss_distribution(event), DELTA, NeighboringRelation.REPLACE)
    assert float(found.epsilon) == pytest.approx(ours, rel=2e-3, abs=1e-3)
    assert found.relation is NeighboringRelation.REPLACE


def test_a_foreign_distribution_bounds_risk_under_the_relation_that_is_named() -> None:
    pure = privacy_loss_distribution.from_laplace_mechanism(2.0)  # 0.5-DP, add or remove one
    profile = profile_of(pure, NeighboringRelation.REPLACE, ["0.5", 1])
    assert profile.pairs[0] == (0.5, pytest.approx(0, abs=1e-6))  # type: ignore[comparison-overlap]
    bound = best_bound(Scenario.uniform(10), [profile])
    exact = 0.9 * (2.718281828**0.5 - 1) / (2.718281828**0.5 + 9)
    assert bound.value == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize(
    ("where", "call"),
    [
        ("distribution", lambda: profile_of(3, NeighboringRelation.REPLACE)),
        ("distribution", lambda: approximate_of(object(), "1e-6", NeighboringRelation.REPLACE)),
        ("pairs", lambda: profile_of(loss_distribution(ACCOUNT), NeighboringRelation.REPLACE, ())),
        ("relation", lambda: profile_of(loss_distribution(ACCOUNT), "anything")),  # type: ignore[arg-type]
        ("delta", lambda: approximate_of(loss_distribution(ACCOUNT), 0, "replace")),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused_by_name(where: str, call: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert caught.value.where == where


def test_what_has_no_distribution_is_refused() -> None:
    with pytest.raises(RefusedError):
        loss_distribution(NoisyScores.of_policy(1, "replace", 1, 10**6))
    with pytest.raises(RefusedError):
        loss_distribution(ACCOUNT.with_queries(0))
    with pytest.raises(RefusedError):
        dp_event(ACCOUNT.with_queries(0))


REPLACE = NeighboringRelation.REPLACE


def released(documents: list[str]) -> int:
    return len(documents)


@pytest.mark.parametrize("event", EVENTS, ids=["account", "coalition", "composition"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-9"])
def test_the_curve_of_an_event_is_inverted_to_our_epsilon(event: Any, delta: str) -> None:
    """OpenDP bisects the curve; it stops where neighbouring epsilons no longer differ."""
    ours = GaussianAccountant().price(event, delta)
    found = opendp_profile(event).epsilon(float(Fraction(delta)))
    assert found == pytest.approx(float(ours.epsilon), rel=1e-9)
    back = opendp_profile(event).delta(float(ours.epsilon))
    assert back == pytest.approx(float(Fraction(delta)), rel=1e-9)


def test_a_curve_with_a_poor_sampler_does_not_rise_again() -> None:
    poor = NoisyScores.of_policy(30, "replace", 1, 20, gamma="1e-12")
    profile, ideal = opendp_profile(poor), opendp_profile(ACCOUNT)
    values = [profile.delta(epsilon) for epsilon in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 100.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == values[-2] > ideal.delta(16.0)
    assert profile.epsilon(1e-11) == float("inf")
    assert values[2] > ideal.delta(2.0)


def test_pairs_imply_what_they_imply_below_their_epsilons() -> None:
    pair = ApproximateDp.of(1, "1e-6", REPLACE)
    profile = opendp_profile(pair)
    assert profile.delta(1.0) == profile.delta(3.0) == 1e-6
    assert profile.delta(0.0) == pytest.approx(float(pair.total_variation().value), rel=1e-12)
    # A curve of the Gaussian mechanism from 30 of its points: above it, and near.
    exact = GaussianDp.of(1, REPLACE)
    points = [i / 10 for i in range(30)]
    several = opendp_profile(profile_of(_Found(exact), REPLACE, points))
    for epsilon in (0.05, 0.55, 1.25, 2.85):
        truth = float(exact.at_epsilon(epsilon).delta)
        assert truth <= several.delta(epsilon) <= truth * 1.02 + 1e-12


class _Found:
    """A guarantee in the form of a loss distribution."""

    def __init__(self, guarantee: GaussianDp) -> None:
        self.guarantee = guarantee

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        return float(self.guarantee.at_epsilon(epsilon).delta)


def test_our_zero_concentrated_privacy_is_the_one_of_opendps_gaussian() -> None:
    """rho of one query: OpenDP's own Gaussian at our sigma and sensitivity, and its composition."""
    one = ACCOUNT.with_queries(1)
    space = (
        prelude.vector_domain(prelude.atom_domain(T=float, nan=False)),
        prelude.l2_distance(T=float),
    )
    native = prelude.m.make_gaussian(*space, scale=float(one.sigma_units))
    rho = ZeroConcentratedAccountant().zero_concentrated(one)
    theirs = opendp_guarantee(native, REPLACE, float(one.squared_sensitivity) ** 0.5)
    assert isinstance(theirs, ZeroConcentratedDp)
    assert float(theirs.rho) == pytest.approx(float(rho.rho), rel=1e-12)
    twenty = prelude.c.make_composition([native] * 20)
    whole = opendp_guarantee(twenty, REPLACE, float(one.squared_sensitivity) ** 0.5)
    ours = ZeroConcentratedAccountant().zero_concentrated(ACCOUNT)
    assert isinstance(whole, ZeroConcentratedDp)
    assert float(whole.rho) == pytest.approx(float(ours.rho), rel=1e-12)


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-10])
@pytest.mark.parametrize("rho", ["0.01", "0.3", "5"])
def test_opendps_conversion_of_rho_agrees_with_ours(rho: str, delta: float) -> None:
    """Canonne, Kamath and Steinke at the best order, by both."""
    mine = ZeroConcentratedDp.of(rho, REPLACE)
    measurement = prelude.c.make_zCDP_to_approxDP(opendp_measurement(mine, released))
    found = measurement.map(1).epsilon(delta)  # type: ignore[no-untyped-call]
    assert found == pytest.approx(float(mine.at_delta(delta).epsilon), rel=1e-6)


@pytest.mark.parametrize(
    ("guarantee", "records"),
    [
        (GaussianDp.of("0.8", REPLACE), 1),
        (GaussianDp.of("0.8", REPLACE), 3),
        (GaussianDp.of("0.8", NeighboringRelation.NULL_REPLACE), 2),
        (GaussianDp.of("0.8", NeighboringRelation.ADD_REMOVE), 1),
    ],
)
def test_a_measurement_goes_there_and_comes_back(guarantee: GaussianDp, records: int) -> None:
    measurement = opendp_measurement(guarantee, released)
    assert measurement(["a", "b"]) == 2
    fixed = prelude.c.make_fix_delta(measurement, 1e-6).map(records)  # type: ignore[no-untyped-call]
    ours = GaussianDp(records * guarantee.mu, guarantee.relation).at_delta("1e-6")
    assert fixed == (pytest.approx(float(ours.epsilon), rel=1e-9), 1e-6)
    back = opendp_guarantee(measurement, guarantee.relation, records)
    assert back.relation is guarantee.relation
    # The points are of the exact curve, so bounds on risk lie above its own and near.
    exact = float(GaussianDp(records * guarantee.mu, guarantee.relation).total_variation().value)
    assert isinstance(back, PrivacyProfile)
    assert exact - 1e-9 <= back.total_variation <= exact + 1e-6


def test_a_measurement_of_opendp_bounds_risk() -> None:
    """Its Laplace noise of scale 2: advantage of ten records by Corollary 5.6, as of ours."""
    laplace = prelude.m.make_laplace(
        prelude.atom_domain(T=float, nan=False), prelude.absolute_distance(T=float), scale=2.0
    )
    bound = best_bound(Scenario.uniform(10), [opendp_guarantee(laplace, REPLACE, 1.0)])  # type: ignore[list-item]
    exact = 0.9 * (2.718281828459045**0.5 - 1) / (2.718281828459045**0.5 + 9)
    assert bound.value == pytest.approx(exact, abs=1e-9)


def test_groups_cost_what_groups_cost() -> None:
    rho = opendp_measurement(ZeroConcentratedDp.of("0.1", REPLACE), released)
    assert rho.map(3) == pytest.approx(0.9)
    pair = opendp_measurement(ApproximateDp.of(1, "1e-6", REPLACE), released)
    assert pair.map(1) == (1.0, 1e-6)
    epsilon, delta = pair.map(2)
    assert epsilon == 2.0 and delta == pytest.approx(1e-6 * (1 + 2.718281828459045), rel=1e-12)
    assert pair.map(800) == (800.0, 1.0)
    assert pair.map(0) == (0.0, 1e-6)
    pure = opendp_measurement(ApproximateDp.of(1, 0, REPLACE), released)
    assert [pure.map(records) for records in (2, 800)] == [(2.0, 0.0), (800.0, 0.0)]
    assert opendp_guarantee(pair, REPLACE, 1) == ApproximateDp.of(1, 1e-6, REPLACE)
    laplace = prelude.m.make_laplace(
        prelude.atom_domain(T=float, nan=False), prelude.absolute_distance(T=float), scale=2.0
    )
    assert opendp_guarantee(laplace, REPLACE, 1.0) == ApproximateDp.of("0.5", 0, REPLACE)


def test_what_opendp_cannot_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        opendp_guarantee(3, REPLACE)
    assert caught.value.where == "measurement"
    laplace = prelude.m.make_laplace(
        prelude.atom_domain(T=float, nan=False), prelude.absolute_distance(T=float), scale=2.0
    )
    with pytest.raises(InvalidArgumentError) as distance:
        opendp_guarantee(laplace, REPLACE, "far")
    assert distance.value.where == "distance"
    with pytest.raises(InvalidArgumentError, match="guarantee"):
        opendp_profile("anything")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError) as missing:
        opendp_measurement(ZeroConcentratedDp, released)  # type: ignore[arg-type]
    assert missing.value.where == "guarantee"
    endless = prelude.m.make_laplace(
        prelude.atom_domain(T=float, nan=False), prelude.absolute_distance(T=float), scale=0.0
    )
    with pytest.raises(RefusedError):
        opendp_guarantee(endless, REPLACE, 1.0)
    monkeypatch.setattr(bridges, "import_module", _absent)
    with pytest.raises(UnsupportedError, match="opendp is not installed") as absent:
        opendp_profile(GaussianDp.of(1, REPLACE))
    assert "bridges" in str(absent.value)


def _absent(name: str) -> Any:
    raise ModuleNotFoundError(name)


RATED = (ACCOUNT, Coalition(ACCOUNT, accounts=20))
TOLERANCE = 2e-4


@pytest.mark.parametrize("event", RATED, ids=["account", "coalition"])
def test_riskcals_rates_are_those_of_our_trade_off_function(event: Any) -> None:
    guarantee = GaussianAccountant().gaussian(event)
    curve = GaussianTradeOff(float(guarantee.mu))
    found = attack_rates(event)
    assert found.advantage == pytest.approx(curve.total_variation, abs=TOLERANCE)
    assert found.advantage >= curve.total_variation - 1e-12
    for wrong, missed in zip(found.false_positives, found.false_negatives, strict=True):
        assert 1 - wrong - missed == pytest.approx(curve.gap(wrong), abs=TOLERANCE)
    assert found.accuracy == pytest.approx((1 + curve.total_variation) / 2, abs=TOLERANCE)


@pytest.mark.parametrize("event", RATED, ids=["account", "coalition"])
def test_our_bound_on_two_records_is_half_of_riskcals_advantage(event: Any) -> None:
    """RAD of two equally likely records is TV/2: the target is among them in either world."""
    guarantee = GaussianAccountant().gaussian(event)
    bound = best_bound(Scenario.uniform(2), [guarantee]).value
    found = attack_rates(event).advantage
    assert bound == pytest.approx(found / 2, abs=TOLERANCE)
    # Of ten records the bound is below what the advantage alone gives, TV (1 - 1/10).
    assert best_bound(Scenario.uniform(10), [guarantee]).value < 0.9 * found


def test_a_foreign_distribution_has_rates_too() -> None:
    laplace = privacy_loss_distribution.from_laplace_mechanism(2.0)
    found = attack_rates(laplace, ["0.1"])
    assert found.advantage == pytest.approx(1 - 2.718281828459045**-0.25, abs=TOLERANCE)
    # f(alpha) = 1 - e^epsilon alpha where that is at least 1/2 (epsilon = 1/2).
    assert found.false_negatives[0] == pytest.approx(1 - 0.1 * 2.718281828459045**0.5, abs=1e-3)


def test_the_evaluator_has_our_figures() -> None:
    metrics = risk_evaluator(ACCOUNT.relation, 1, 20, false_positive="0.05", delta="1e-6")(30.0)
    guarantee = GaussianAccountant().gaussian(ACCOUNT)
    assert metrics.advantage == pytest.approx(
        float(guarantee.total_variation().value), abs=TOLERANCE
    )
    gap = GaussianTradeOff(float(guarantee.mu)).gap(0.05)
    assert 1 - metrics.alpha - metrics.beta == pytest.approx(gap, abs=TOLERANCE)
    ours = float(guarantee.at_delta("1e-6").epsilon)
    assert metrics.epsilon == pytest.approx(ours, rel=2e-3, abs=1e-3)


@pytest.mark.slow
def test_riskcal_calibrates_our_mechanism_to_our_sigma() -> None:
    """The sigma at which a query has advantage 0.05, by riskcal's search and by ours."""
    target = 0.05
    found = calibrate_parameter(
        risk_evaluator(ACCOUNT.relation, 1, 1),
        CalibrationTarget(kind="advantage", advantage=target),
        CalibrationConfig(increasing=False, param_min=2.0, param_max=100.0, target_tol=1e-5),
        "sigma",
    )
    low, high = 2.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        event = NoisyScores.of_policy(middle, ACCOUNT.relation, 1, 1)
        told = GaussianAccountant().gaussian(event).total_variation().value
        low, high = (middle, high) if told > target else (low, middle)
    assert found.parameter_value == pytest.approx(high, rel=2e-3)
    assert found.achieved_advantage == pytest.approx(target, abs=1e-4)


def test_what_riskcal_cannot_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        attack_rates(ACCOUNT, [2])
    assert caught.value.where == "false_positives"
    with pytest.raises(InvalidArgumentError) as relation:
        risk_evaluator("anything", 1, 20)  # type: ignore[arg-type]
    assert relation.value.where == "relation"
    with pytest.raises(RefusedError):
        attack_rates(ACCOUNT.with_queries(0))
    with pytest.raises(InvalidArgumentError, match="source"):
        attack_rates("anything")
    monkeypatch.setattr(bridges, "import_module", _absent)
    with pytest.raises(UnsupportedError, match="riskcal is not installed"):
        attack_rates(ACCOUNT)
