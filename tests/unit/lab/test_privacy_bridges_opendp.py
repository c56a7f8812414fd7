"""OpenDP: our guarantees as its profiles and maps, and its maps as our guarantees.

Conversions are by two libraries: OpenDP's of zero-concentrated DP, ours of Gaussian and
approximate DP. Ours are rounded up, OpenDP's are conservative binary arithmetic.
"""

from fractions import Fraction
from typing import Any

import pytest
from opendp import prelude
from ragaudit.encoding.errors import InvalidArgumentError, RefusedError, UnsupportedError
from ragaudit.lab.bridges import (
    extra,
    opendp_guarantee,
    opendp_measurement,
    opendp_profile,
    profile_of,
)
from ragaudit.lab.risk import Scenario, best_bound
from ragaudit.lab.risk.trade_off import PrivacyProfile
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

REPLACE = NeighboringRelation.REPLACE
ACCOUNT = NoisyScores.of_policy(30, "replace", 1, 20)
OTHER = NoisyScores.of_policy(20, "replace", 1, 5)
EVENTS = (ACCOUNT, Coalition(ACCOUNT, accounts=2), Composition((ACCOUNT, OTHER)))


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


def test_what_does_not_fit_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(extra, "import_module", _absent)
    with pytest.raises(UnsupportedError, match="opendp is not installed") as absent:
        opendp_profile(GaussianDp.of(1, REPLACE))
    assert "bridges" in str(absent.value)


def _absent(name: str) -> Any:
    raise ModuleNotFoundError(name)
