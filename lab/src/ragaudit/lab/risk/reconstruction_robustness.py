"""Reconstruction robustness (ReRo), the older measure, for comparison only.

A ReRo bound limits a *success probability*. It counts what could be guessed without the data as
risk, and it is false against attackers who know something about their target. Balle, Cherubin
and Hayes 2022 (Eq. 1); Hayes, Balle and Mahloujifar 2023 (Eq. 3).
"""

from dataclasses import dataclass
from typing import Any

from ragaudit.lab.risk.scenario import Assumptions, Scenario
from ragaudit.lab.risk.trade_off import Guarantee, TradeOff, times_expm1, trade_off
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.validation import (
    AssumptionError,
    check_epsilon,
    check_probability,
)
from ragaudit.privacy.guarantees import ApproximateDp

__all__ = [
    "LABEL",
    "SuccessBound",
    "pure_dp_success",
    "pure_dp_success_bound",
    "success_bound",
    "trade_off_success",
    "trade_off_success_bound",
]

LABEL = "success probability, not advantage; not valid with target-specific knowledge"
"""Stands beside every ReRo value that is shown."""


@dataclass(frozen=True)
class SuccessBound:
    """An upper bound of a success probability; no bound of any advantage.

    Attributes:
        value: in [0, 1].
        equation: of the RAD paper.
        assumptions: under which it holds.
        label: ``LABEL``.
    """

    value: float
    equation: str
    assumptions: Assumptions
    label: str = LABEL

    def to_json(self) -> dict[str, Any]:
        """Return the bound as JSON values, label included."""
        return {
            "success_probability_at_most": self.value,
            "equation": self.equation,
            "assumptions": self.assumptions._asdict(),
            "label": self.label,
        }


def pure_dp_success(largest_ball: float, epsilon: float) -> float:
    """Return ``min(1, kappa_plus e^eps)``.

    Args:
        largest_ball: kappa_plus, 0 to 1.
        epsilon: >= 0.
    """
    kappa = check_probability(largest_ball, "largest_ball")
    return min(1.0, kappa + times_expm1(kappa, check_epsilon(epsilon)))


@typed
def trade_off_success(largest_ball: float, curve: TradeOff) -> float:
    """Return ``1 - f(kappa_plus)``.

    Args:
        largest_ball: kappa_plus, 0 to 1.
        curve: f, of the guarantee.
    """
    kappa = check_probability(largest_ball, "largest_ball")
    return min(1.0, curve.gap(kappa) + kappa)


@typed
def pure_dp_success_bound(scenario: Scenario, guarantee: ApproximateDp) -> SuccessBound:
    """Return Eq. (1). With delta > 0 it is false: use :func:`trade_off_success_bound`.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: with delta 0, under the scenario's relation.

    Raises:
        AssumptionError: another scenario or guarantee.
    """
    scenario.require(guarantee)
    scenario.require_no_knowledge()
    if guarantee.delta != 0:
        raise AssumptionError(
            f"delta is {float(guarantee.delta):g}", where="delta", expected="0, or Eq. (3)"
        )
    curve = trade_off(guarantee)
    value = pure_dp_success(float(scenario.summary.largest_ball), check_epsilon(guarantee.epsilon))
    return SuccessBound(value, "Eq. (1)", _assumptions(scenario, curve))


@typed
def trade_off_success_bound(scenario: Scenario, guarantee: Guarantee) -> SuccessBound:
    """Return Eq. (3), for any guarantee with a trade-off function.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: under the scenario's relation.

    Raises:
        AssumptionError: another scenario or relation.
    """
    scenario.require(guarantee)
    scenario.require_no_knowledge()
    curve = trade_off(guarantee)
    value = trade_off_success(float(scenario.summary.largest_ball), curve)
    return SuccessBound(value, "Eq. (3)", _assumptions(scenario, curve))


@typed
def success_bound(scenario: Scenario, guarantee: Guarantee) -> SuccessBound:
    """Return the one that applies: Eq. (1) for pure DP, Eq. (3) otherwise.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: under the scenario's relation.

    Raises:
        AssumptionError: the attacker may know something about the target.
    """
    if isinstance(guarantee, ApproximateDp) and guarantee.delta == 0:
        return pure_dp_success_bound(scenario, guarantee)
    return trade_off_success_bound(scenario, guarantee)


def _assumptions(scenario: Scenario, curve: TradeOff) -> Assumptions:
    return Assumptions(
        prior=scenario.prior_name,
        auxiliary="none",
        eta="any",
        relation=scenario.relation,
        mechanism=curve.description,
    )
