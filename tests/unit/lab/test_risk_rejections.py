"""Bad input and wrong assumptions are refused by the argument's name, as a ValueError.

Claims are those of docs/notes/disclosure-risk.md.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk import calibration, general_bounds, mechanisms
from ragaudit.lab.risk.continuous import (
    continuous_advantage,
    monte_carlo_advantage,
    outer_deviation,
)
from ragaudit.lab.risk.general_bounds import (
    LABEL,
    Knowledge,
    Scenario,
    best_bound,
    pure_dp_success_bound,
    trade_off_success_bound,
)
from ragaudit.lab.risk.mechanisms import (
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    channel_total_variation,
    finite_advantage,
)
from ragaudit.lab.risk.one_dimensional import line_advantage
from ragaudit.lab.risk.threat import (
    AuxiliaryKnowledge,
    ContinuousPrior,
    FinitePrior,
    SuccessSets,
    ThreatModel,
)
from ragaudit.lab.risk.trade_off import (
    ApproximateTradeOff,
    GaussianTradeOff,
    PrivacyProfile,
    composed_total_variation,
    trade_off,
)
from ragaudit.lab.risk.validation import AssumptionError
from ragaudit.privacy.accounting.risk import PriorSummary
from ragaudit.privacy.guarantees import (
    ApproximateDp,
    GaussianDp,
    TotalVariation,
    ZeroConcentratedDp,
)

REPLACE = NeighboringRelation.REPLACE
UNIFORM = ThreatModel.reconstruction(FinitePrior.uniform(3))
SKEWED = ThreatModel.reconstruction(FinitePrior([0.5, 0.3, 0.2]))
NEAR = ThreatModel.reconstruction(FinitePrior.uniform(3), SuccessSets.on_line([0, 1, 2], 1))
PART = ThreatModel(
    FinitePrior.uniform(3), SuccessSets.on_line([0, 1, 2], 1), AuxiliaryKnowledge.of_labels("aab")
)
PURE, ONE = ApproximateDp.of(1, 0, REPLACE), GaussianDp.of(1, REPLACE)
CONCENTRATED = ZeroConcentratedDp.of(1, REPLACE)
ADD_REMOVED = TotalVariation.of(0.1, NeighboringRelation.ADD_REMOVE)
NULL_REPLACED = PrivacyProfile([(1.0, 0.0)], NeighboringRelation.NULL_REPLACE)
INTERVAL = ContinuousPrior.uniform(0, 1)
THREE, TENTH = Scenario.uniform(3), Scenario.continuous(INTERVAL, 0.1)
PRIOR, MANY = FinitePrior.uniform(3), ThreatModel.reconstruction(FinitePrior.uniform(3000))

BAD: list[tuple[str, Callable[[], Any]]] = [
    ("prior", lambda: FinitePrior([0.5, 0.4])),
    ("prior", lambda: FinitePrior([1.2, -0.2])),
    ("prior", lambda: FinitePrior([0.5, math.nan])),
    ("prior", lambda: FinitePrior([1.0])),
    ("prior", lambda: FinitePrior([])),
    ("prior", lambda: FinitePrior(np.array([True, False]))),
    ("prior", lambda: FinitePrior(["a", "b"])),  # type: ignore[list-item]
    ("prior", lambda: FinitePrior(np.ones((2, 2)) / 2)),
    ("prior", lambda: FinitePrior([[0.5], [0.25, 0.25]])),  # type: ignore[list-item]
    ("records", lambda: FinitePrior.uniform(1)),
    ("records", lambda: FinitePrior.uniform(10**8)),
    ("records", lambda: FinitePrior.uniform(2.0)),  # type: ignore[arg-type]
    ("records", lambda: FinitePrior.uniform(True)),
    ("high", lambda: ContinuousPrior.uniform(1, 1)),
    ("a", lambda: ContinuousPrior.beta(0, 1)),
    ("cdf", lambda: ContinuousPrior(0, 1, lambda x: x / 2)),
    ("cdf", lambda: ContinuousPrior(0, 1, lambda x: 1 - x)),
    ("least_ball", lambda: PriorSummary.of(0.1, 0.2, 0.1)),
    ("largest_ball", lambda: PriorSummary.of(0.1, 0.2, 1.1)),
    ("collision_probability", lambda: PriorSummary.of(-0.1, 0.2, 0.3)),
    ("eta", lambda: SuccessSets.on_line([0, 1], -1)),
    ("eta", lambda: SuccessSets.on_line([0, 1], math.inf)),
    ("positions", lambda: SuccessSets.on_line([0, math.nan], 1)),
    ("losses", lambda: SuccessSets.from_losses([[0, 1], [1, 0], [1, 1]], 1)),
    ("losses", lambda: SuccessSets.from_losses([[1, 1], [1, 0]], 1)),
    ("losses", lambda: SuccessSets.from_losses([[0, -1], [1, 0]], 1)),
    ("success", lambda: SuccessSets.on_line(np.arange(5000), 2)),  # type: ignore[arg-type]
    ("guess", lambda: SuccessSets.exact(3).hits(3, 0)),
    ("record", lambda: SuccessSets.exact(3).hits(0, -1)),
    ("auxiliary", lambda: AuxiliaryKnowledge.of_labels("a")),
    ("success", lambda: ThreatModel.reconstruction(FinitePrior.uniform(3), SuccessSets.exact(2))),
    ("auxiliary", lambda: ThreatModel(PRIOR, SuccessSets.exact(3), AuxiliaryKnowledge.none(2))),
    ("epsilon", lambda: mechanisms.grr_channel(3, -1)),
    ("epsilon", lambda: mechanisms.grr_channel(3, math.inf)),
    ("records", lambda: mechanisms.grr_channel(1, 1)),
    ("records", lambda: mechanisms.grr_channel(10**6, 1)),
    ("records", lambda: mechanisms.oue_channel(25, 1)),
    ("records", lambda: mechanisms.oue_channel(20, 1)),
    ("records", lambda: mechanisms.ss_channel(100, 1, 50)),
    ("subset", lambda: mechanisms.ss_channel(5, 1, 6)),
    ("subset", lambda: mechanisms.ss_channel(5, 1, 0)),
    ("subset", lambda: mechanisms.ss_advantage(UNIFORM, 1, 3)),
    ("rule", lambda: mechanisms.subset_size(10, 1, "ceil")),  # type: ignore[arg-type]
    ("scale", lambda: LaplaceNoise(0)),
    ("epsilon", lambda: LaplaceNoise.calibrated(0, 1)),
    ("scale", lambda: GaussianNoise(-1)),
    ("epsilon", lambda: ExponentialMechanism(0)),
    ("sensitivity", lambda: ExponentialMechanism(1, sensitivity=0)),
    ("high", lambda: ExponentialMechanism(1, 1, 0)),
    ("channel", lambda: finite_advantage([[0.5, 0.4], [0.5, 0.5], [1, 0]], UNIFORM)),
    ("channel", lambda: finite_advantage([[0.5, 0.5]], UNIFORM)),
    ("channel", lambda: finite_advantage([[1.5, -0.5]] * 3, UNIFORM)),
    ("channel", lambda: channel_total_variation([0.5, 0.5])),  # type: ignore[list-item]
    ("positions", lambda: line_advantage([0, 1], LaplaceNoise(1), UNIFORM)),
    ("positions", lambda: line_advantage(np.arange(3000), LaplaceNoise(1), MANY)),  # type: ignore[arg-type]
    ("clamp", lambda: line_advantage([0, 1, 2], LaplaceNoise(1), UNIFORM, clamp=(1, 1))),
    ("positions", lambda: line_advantage([0, 1e200, 2e200], LaplaceNoise(1), UNIFORM)),
    ("noise", lambda: line_advantage([0, 1, 2], LaplaceNoise(1e-200), UNIFORM)),
    ("high", lambda: ContinuousPrior.uniform(0, 1e300)),
    ("cdf", lambda: ContinuousPrior(0, 1, 3)),  # type: ignore[arg-type]
    ("cdf", lambda: ContinuousPrior(0, 1, lambda x: 0.5)),  # type: ignore[arg-type, return-value]
    ("eta", lambda: continuous_advantage(INTERVAL, LaplaceNoise(1), -0.1)),
    ("mechanism", lambda: continuous_advantage(INTERVAL, LaplaceNoise(1e-4), 0.1)),
    ("mechanism", lambda: continuous_advantage(INTERVAL, ExponentialMechanism(1, 0, 2), 0.1)),
    (
        "draw",
        lambda: monte_carlo_advantage(
            lambda n: np.full(n, 2.0), ExponentialMechanism(1), 0.1, outer=2, inner=2, guesses=2,
            generator=np.random.default_rng(0),
        ),
    ),
    ("samples", lambda: outer_deviation(0.1, samples=0, largest_density=1)),
    ("mu", lambda: GaussianTradeOff(-1)),
    ("delta", lambda: ApproximateTradeOff(1, 1.5)),
    ("alpha", lambda: GaussianTradeOff(1).gap(1.1)),
    ("pairs", lambda: PrivacyProfile([], REPLACE)),
    ("relation", lambda: PrivacyProfile([(1, 0)], "replaced")),  # type: ignore[arg-type]
    ("value", lambda: composed_total_variation(1.1, 2)),
    ("prior", lambda: general_bounds.exact_guess_knapsack(np.array([0.5, 0.4]), 1, 0)),
    ("records", lambda: general_bounds.uniform_exact_guess_value(1, 1, 0)),
    ("guarantees", lambda: best_bound(THREE, [])),
    ("epsilon", lambda: best_bound(THREE, [ApproximateDp.of(10**400, 0, REPLACE)])),
    ("presence", lambda: Scenario.absence(1.5)),
    ("relation", lambda: Scenario.absence(0.5, REPLACE)),
    ("advantage", lambda: calibration.grr_epsilon(math.nan, 3, 0.1)),
    ("span", lambda: calibration.laplace_scale(0.1, 3, 0)),
    ("span", lambda: calibration.gaussian_scale(0.1, 3, -1)),
    ("collision_probability", lambda: calibration.total_variation_epsilon(0.1, 1.2)),
    ("limit", lambda: calibration.largest_parameter(lambda x: x, 0.5, limit=0)),
]  # fmt: skip

WRONG_ASSUMPTIONS: list[tuple[str, Callable[[], Any]]] = [
    ("threat", lambda: mechanisms.grr_advantage(PART, 1)),
    ("threat", lambda: mechanisms.oue_advantage(NEAR, 1)),
    ("threat", lambda: mechanisms.ss_advantage(NEAR, 1, 1)),
    ("positions", lambda: mechanisms.noise_advantage_uniform([0, 0, 1], LaplaceNoise(1))),
    ("relation", lambda: general_bounds.total_variation_bound(THREE, ADD_REMOVED)),
    ("relation", lambda: best_bound(THREE, [NULL_REPLACED])),
    ("knowledge", lambda: general_bounds.trade_off_bound(Scenario.uniform(3, Knowledge.ANY), PURE)),
    ("knowledge", lambda: general_bounds.approximate_dp_bound(Scenario.of_threat(PART), PURE)),
    ("knowledge", lambda: general_bounds.trade_off_bound(Scenario.unknown_prior(), PURE)),
    ("exact_guesses", lambda: general_bounds.exact_guess_bound(Scenario.of_threat(NEAR), PURE)),
    ("exact_guesses", lambda: general_bounds.uniform_exact_guess_bound(TENTH, PURE)),
    ("prior", lambda: general_bounds.exact_guess_bound(THREE, PURE)),
    ("prior", lambda: general_bounds.uniform_exact_guess_bound(Scenario.of_threat(SKEWED), PURE)),
    ("guarantee", lambda: general_bounds.approximate_dp_bound(Scenario.of_threat(SKEWED), ONE)),
    ("guarantee", lambda: best_bound(THREE, [CONCENTRATED])),  # type: ignore[list-item]
    ("guarantee", lambda: trade_off(CONCENTRATED)),  # type: ignore[arg-type]
    ("delta", lambda: pure_dp_success_bound(THREE, ApproximateDp.of(1, 0.1, REPLACE))),
    ("knowledge", lambda: trade_off_success_bound(Scenario.uniform(3, Knowledge.ANY), PURE)),
]


@for_each(("name", "call"), BAD + WRONG_ASSUMPTIONS)
def test_refused_by_name(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: ") as raised:
        call()
    assert isinstance(raised.value, InvalidArgumentError)
    assert raised.value.where == name


@for_each(("name", "call"), WRONG_ASSUMPTIONS)
def test_wrong_assumptions_are_told_apart_from_bad_input(
    name: str, call: Callable[[], Any]
) -> None:
    with pytest.raises(AssumptionError):
        call()


def test_parsers_errors_stay_no_value_errors() -> None:
    """``except ValueError`` around a parser must not swallow what it found."""
    assert not issubclass(MalformedError, ValueError)
    assert issubclass(InvalidArgumentError, MalformedError)


def test_claim_10_1_success_bounds_are_labelled() -> None:
    """Claim 10.1: neither a ReRo value nor its JSON appears without the label."""
    scenario = Scenario.uniform(8)
    for bound in (
        pure_dp_success_bound(scenario, PURE),
        trade_off_success_bound(scenario, GaussianDp.of(1, REPLACE)),
    ):
        assert bound.label == LABEL
        assert bound.to_json()["label"] == LABEL
        assert "value" not in bound.to_json()
    advantage = best_bound(scenario, [PURE]).value
    assert pure_dp_success_bound(scenario, PURE).value > advantage
