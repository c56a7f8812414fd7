"""riskcal's attack rates beside our bounds on disclosure risk, for the same mechanism.

riskcal reads dp-accounting's discretised distribution, which is pessimistic: at 4,000 steps per mu
its advantage is above the exact one by less than 2e-4.
"""

from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution
from ragaudit.encoding.errors import InvalidArgumentError, RefusedError, UnsupportedError
from ragaudit.lab.bridges import attack_rates, extra, risk_evaluator
from ragaudit.lab.risk import Scenario, best_bound
from ragaudit.lab.risk.trade_off import GaussianTradeOff
from ragaudit.privacy import Coalition, GaussianAccountant, NoisyScores
from riskcal.calibration.core import CalibrationConfig, CalibrationTarget, calibrate_parameter

ACCOUNT = NoisyScores.of_policy(30, "replace", 1, 20)
EVENTS = (ACCOUNT, Coalition(ACCOUNT, accounts=20))
TOLERANCE = 2e-4


@pytest.mark.parametrize("event", EVENTS, ids=["account", "coalition"])
def test_riskcals_rates_are_those_of_our_trade_off_function(event: Any) -> None:
    guarantee = GaussianAccountant().gaussian(event)
    curve = GaussianTradeOff(float(guarantee.mu))
    found = attack_rates(event)
    assert found.advantage == pytest.approx(curve.total_variation, abs=TOLERANCE)
    assert found.advantage >= curve.total_variation - 1e-12
    for wrong, missed in zip(found.false_positives, found.false_negatives, strict=True):
        assert 1 - wrong - missed == pytest.approx(curve.gap(wrong), abs=TOLERANCE)
    assert found.accuracy == pytest.approx((1 + curve.total_variation) / 2, abs=TOLERANCE)


@pytest.mark.parametrize("event", EVENTS, ids=["account", "coalition"])
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


def test_what_does_not_fit_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(extra, "import_module", _absent)
    with pytest.raises(UnsupportedError, match="riskcal is not installed"):
        attack_rates(ACCOUNT)


def _absent(name: str) -> Any:
    raise ModuleNotFoundError(name)
