"""Inversion of the bounds: round trips, jumps and defined limits.

Claims are those of docs/notes/disclosure-risk.md.
"""

import math

import numpy as np
import pytest
from for_each import for_each
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk import calibration, mechanisms
from ragaudit.lab.risk.general_bounds import (
    Scenario,
    best_bound,
    trade_off_forms,
    uniform_exact_guess_value,
)
from ragaudit.lab.risk.mechanisms import GaussianNoise, LaplaceNoise
from ragaudit.lab.risk.threat import FinitePrior, ThreatModel
from ragaudit.lab.risk.trade_off import GaussianTradeOff, approximate_total_variation
from ragaudit.privacy.accounting.risk import PriorSummary
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp

TARGETS = [1e-6, 0.01, 0.1, 0.3, 0.45]


@for_each("target", TARGETS)
@for_each("records", [2, 10, 1000])
def test_claim_9_1_closed_inverses_meet_their_target(target: float, records: int) -> None:
    m, kappa = records, 1 / records
    uniform = ThreatModel.reconstruction(FinitePrior.uniform(m))
    epsilon = calibration.grr_epsilon(target, m, kappa)
    assert mechanisms.grr_advantage(uniform, epsilon) == pytest.approx(target, rel=1e-9)
    epsilon = calibration.total_variation_epsilon(target, kappa, 1e-7)
    bound = approximate_total_variation(epsilon, 1e-7) * (1 - kappa)
    assert bound == pytest.approx(target, rel=1e-9)
    epsilon = calibration.uniform_exact_guess_epsilon(target, m, 1e-9)
    assert uniform_exact_guess_value(m, epsilon, 1e-9) == pytest.approx(target, rel=1e-9)
    for omega in {1, m // 2}:
        epsilon = calibration.ss_epsilon(target, m, omega)
        if math.isfinite(epsilon):
            found = mechanisms.ss_advantage_uniform(m, epsilon, omega)
            assert found == pytest.approx(target, rel=1e-9)
        else:
            assert target >= 1 / omega - 1 / m
    laplace = LaplaceNoise(calibration.laplace_scale(target, m, 3.0))
    assert mechanisms.noise_bound_uniform(m, 3.0, laplace) == pytest.approx(target, rel=1e-9)
    gaussian = GaussianNoise(calibration.gaussian_scale(target, m, 3.0))
    assert mechanisms.noise_bound_uniform(m, 3.0, gaussian) == pytest.approx(target, rel=1e-9)


def test_claim_9_2_limits_are_defined() -> None:
    """At or below 0 nothing may be learnt; at the supremum there is no constraint."""
    for target in (0.0, -0.2):
        assert calibration.grr_epsilon(target, 10, 0.1) == 0
        assert calibration.ss_epsilon(target, 10, 2) == 0
        assert calibration.total_variation_epsilon(target, 0.1, 0.0) == 0
        assert calibration.laplace_scale(target, 10, 1.0) == math.inf
        assert calibration.gaussian_scale(target, 10, 1.0) == math.inf
        assert calibration.largest_mu(target, PriorSummary.uniform(10)).parameter == 0
    for target in (0.9, 0.95, 2.0):
        assert calibration.grr_epsilon(target, 10, 0.1) == math.inf
        assert calibration.ss_epsilon(target, 10, 1) == math.inf
        assert calibration.total_variation_epsilon(target, 0.1, 1e-5) == math.inf
        assert calibration.uniform_exact_guess_epsilon(target, 10) == math.inf
        assert calibration.laplace_scale(target, 10, 1.0) == 0
        assert calibration.gaussian_scale(target, 10, 1.0) == 0
        assert calibration.largest_mu(target, PriorSummary.uniform(10)).parameter == math.inf
    assert calibration.total_variation_epsilon(0.05, 0.0, delta=0.1) == 0
    assert calibration.uniform_exact_guess_epsilon(0.01, 10, delta=0.1) == 0


def test_claim_9_3_crossings_are_on_the_safe_side() -> None:
    for target in TARGETS:
        found = calibration.largest_parameter(
            lambda eps: mechanisms.oue_advantage_uniform(100, eps), target
        )
        assert found.bound <= target
        above = math.nextafter(found.parameter, math.inf)
        assert mechanisms.oue_advantage_uniform(100, above) > target
        mu = calibration.largest_mu(target, PriorSummary.uniform(10))
        assert mu.bound == pytest.approx(target, rel=1e-9)
        assert mu.bound <= target
        forms = trade_off_forms(PriorSummary.uniform(10), GaussianTradeOff(mu.parameter))
        assert min(forms) == mu.bound


def test_claim_9_4_jumps_of_the_subset_size() -> None:
    """m = 10: at eps = ln 4 the floor rule goes from two records to one, and the risk jumps."""

    def bound(epsilon: float) -> float:
        omega = mechanisms.subset_size(10, epsilon)
        return mechanisms.ss_advantage_uniform(10, epsilon, omega)

    jump = math.log(4)
    below, above = bound(jump * (1 - 1e-12)), bound(jump * (1 + 1e-12))
    assert above - below > 0.01
    target = (above + below) / 2
    largest = calibration.largest_parameter(bound, target)
    least = calibration.least_parameter(bound, target)
    assert largest.parameter == pytest.approx(jump, abs=1e-12)
    assert least.parameter == pytest.approx(jump, abs=1e-12)
    assert largest.bound <= target <= least.bound
    assert largest.parameter < least.parameter
    values = [bound(epsilon) for epsilon in np.linspace(0, 8, 2001)]
    assert (np.diff(values) >= -1e-12).all()


@pytest.mark.parametrize("target", [1e-200, 1e-9, 0.1, 0.44])
def test_continuous_bounds_are_inverted_in_few_evaluations(target: float) -> None:
    calls = 0

    def bound(epsilon: float) -> float:
        nonlocal calls
        calls += 1
        return mechanisms.oue_advantage_uniform(100, epsilon)

    largest = calibration.continuous_largest_parameter(bound, target)
    least = calibration.continuous_least_parameter(bound, target)
    assert calls <= 2 * 40
    bisected = calibration.largest_parameter(
        lambda eps: mechanisms.oue_advantage_uniform(100, eps), target
    )
    assert largest.parameter == pytest.approx(bisected.parameter, rel=1e-9)
    assert largest.bound <= target <= least.bound
    assert largest.parameter <= least.parameter <= largest.parameter * (1 + 1e-9)


def test_continuous_bounds_have_the_same_limits() -> None:
    def bound(epsilon: float) -> float:
        return mechanisms.oue_advantage_uniform(10, epsilon)

    for inverse in (
        calibration.continuous_largest_parameter, calibration.continuous_least_parameter,
    ):  # fmt: skip
        assert inverse(bound, 0.0) == inverse(bound, -1.0) == (0.0, 0.0)
        assert inverse(bound, 0.45).parameter == inverse(bound, 0.9).parameter == math.inf
        assert inverse(bound, 1e-305).parameter == 0
        assert 0 < inverse(bound, 0.449).parameter < 10


def test_any_bound_can_be_inverted() -> None:
    scenario = Scenario.of_threat(ThreatModel.reconstruction(FinitePrior([0.6, 0.2, 0.1, 0.1])))

    def bound(epsilon: float) -> float:
        guarantee = ApproximateDp.of(epsilon, 1e-6, NeighboringRelation.REPLACE)
        return best_bound(scenario, [guarantee]).value

    found = calibration.largest_parameter(bound, 0.2, limit=50)
    assert found.bound <= 0.2
    assert found.bound == pytest.approx(0.2, abs=1e-12)
    assert calibration.largest_parameter(bound, 0.59, limit=50).parameter == math.inf
    observed = calibration.least_parameter(bound, 0.2, limit=50)
    assert observed.parameter == pytest.approx(found.parameter, abs=1e-9)
    assert calibration.least_parameter(bound, 0.99, limit=50).parameter == math.inf


def test_claim_7_5_less_noise_for_full_batch_dp_sgd() -> None:
    """m = 10, T = 100, target .1, mu = 2 sqrt(T)/sigma."""

    def bound(mu: float) -> float:
        guarantee = GaussianDp.of(mu, NeighboringRelation.REPLACE)
        return best_bound(Scenario.uniform(10), [guarantee]).value

    by_curve = calibration.largest_mu(0.1, PriorSummary.uniform(10)).parameter
    best = calibration.largest_parameter(bound, 0.1, limit=100).parameter
    assert 20 / by_curve == pytest.approx(43.866, abs=5e-4)
    assert 20 / best == pytest.approx(39.525, abs=5e-4)


def test_example_4_4_of_the_paper() -> None:
    assert calibration.grr_epsilon(0.1, 2, 0.5) == pytest.approx(math.log(1.5))
    assert calibration.grr_epsilon(0.1, 100, 0.01) == pytest.approx(2.504379, abs=5e-7)
