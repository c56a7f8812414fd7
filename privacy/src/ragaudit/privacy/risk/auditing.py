"""From an observed advantage to an epsilon: two kinds of answer that are never mixed.

A :class:`CertifiedLowerBound` says that no mechanism with a smaller epsilon, whatever it is, explains
what was seen, with a stated confidence. A :class:`ModelBasedEstimate` says which parameter the
*claimed* mechanism would need to show the observed mean; a fault in the code is invisible to it, and
being a point estimate it is too high about half the time. They share no base class, and neither is a
number. Derivations: docs/notes/disclosure-risk.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ragaudit.privacy.guarantees import Adjacency, ApproximateDp
from ragaudit.privacy.risk.best_bound import best_bound
from ragaudit.privacy.risk.estimation import AdvantageEstimate
from ragaudit.privacy.risk.scenario import Assumptions, Bound, Scenario
from ragaudit.privacy.risk.validation import (
    check_delta,
    check_finite,
    check_integer,
)

__all__ = [
    "CertifiedLowerBound",
    "ClaimCheck",
    "ModelBasedEstimate",
    "certify",
    "check_claim",
    "epsilon_explaining",
    "estimate_from_model",
]

LARGEST_EPSILON: Final = 1e4
"""Beyond it an advantage that no epsilon explains and one that only a huge one does are the same."""


@dataclass(frozen=True, slots=True)
class CertifiedLowerBound:
    """Every (epsilon', delta)-DP mechanism with epsilon' < ``epsilon`` is refuted.

    Holds with the stated confidence if the targets were drawn independently from the stated prior,
    and trials, attack and method were fixed beforehand.

    Attributes:
        epsilon: >= 0, natural logarithm; 0: nothing is refuted; inf: no finite epsilon explains it.
        delta: of the refuted guarantees.
        adjacency: of the refuted guarantees: how the tested records differ.
        advantage: the lower confidence bound that was inverted.
        confidence: one-sided.
        theorem: the black-box bound that was inverted.
        assumptions: what it assumes.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    advantage: float
    confidence: float
    theorem: str
    assumptions: Assumptions


@dataclass(frozen=True, slots=True)
class ModelBasedEstimate:
    """The parameter at which the claimed mechanism shows the observed advantage: no certificate.

    Attributes:
        mechanism: as claimed, in words.
        parameter: which one ``value`` is: "epsilon" or "standard deviation".
        value: 0 to inf; epsilon in natural logarithms.
        advantage: the point estimate that was inverted.
    """

    mechanism: str
    parameter: str
    value: float
    advantage: float


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claimed guarantee against an observed advantage.

    Attributes:
        refuted: whether the lower confidence bound exceeds what the claim allows.
        claim: the claim under the adjacency of the tested records.
        allowed: the largest advantage under the claim.
        advantage: the lower confidence bound.
        confidence: one-sided: a true claim is refuted with at most one minus this probability.
    """

    refuted: bool
    claim: ApproximateDp
    allowed: Bound
    advantage: float
    confidence: float


def epsilon_explaining(advantage: float, records: int, delta: float = 0.0) -> float:
    """Return the least epsilon whose Corollary 5.6 allows this advantage: Eq. (61) with delta.

    ``ln((1 + g m - delta m)/(1 - g m/(m-1)))`` for uniform prior, no auxiliary knowledge, exact
    guesses; 0 where nothing needs explaining, inf where nothing explains it.

    Args:
        advantage: g, in [-1, 1].
        records: m >= 2.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    g, d = check_finite(advantage, "advantage"), check_delta(delta)
    m = check_integer(records, "records", least=2)
    above, below = 1 + m * (g - d), 1 - g * (m / (m - 1))
    if above <= below:
        return 0.0
    return math.inf if below <= 0 else math.log(above / below)


def certify(estimate: AdvantageEstimate, scenario: Scenario, delta: float) -> CertifiedLowerBound:
    """Turn a lower confidence bound on the advantage into one on epsilon.

    Inverts the best black-box bound that holds in the scenario. For the uniform prior, exact guesses
    and no auxiliary knowledge that is Corollary 5.6 in closed form.

    Args:
        scenario: prior, success sets and knowledge of the attack that was run, and the relation
            between the records it told apart.
        delta: of the guarantees to refute, in [0, 1].

    Raises:
        InvalidArgumentError: delta out of range.
    """
    slack, observed = check_delta(delta), estimate.lower

    def allowed(epsilon: float) -> Bound:
        return best_bound(scenario, ApproximateDp.of(epsilon, slack, scenario.adjacency)).bound

    epsilon = _infimum(lambda value: allowed(value).value, observed)
    at = allowed(min(epsilon, LARGEST_EPSILON))
    if at.theorem == "Corollary 5.6" and scenario.records is not None:
        epsilon = epsilon_explaining(observed, scenario.records, slack)
    return CertifiedLowerBound(
        epsilon, slack, scenario.adjacency, observed, estimate.confidence, at.theorem,
        at.assumptions,
    )  # fmt: skip


def check_claim(
    estimate: AdvantageEstimate, scenario: Scenario, claim: ApproximateDp
) -> ClaimCheck:
    """Compare a claimed (epsilon, delta) with what was seen; the claim is converted by name.

    Raises:
        RefusedError: nothing about these records follows from the claim's adjacency.
    """
    under = claim.under(scenario.adjacency)
    bound = best_bound(scenario, under).bound
    return ClaimCheck(
        estimate.lower > bound.value, under, bound, estimate.lower, estimate.confidence
    )


def estimate_from_model(
    estimate: AdvantageEstimate,
    mechanism: str,
    advantage_at: Callable[[float], float],
    parameter: str = "epsilon",
) -> ModelBasedEstimate:
    """Invert a mechanism's own advantage at the observed mean.

    Args:
        mechanism: in words.
        advantage_at: the optimal advantage as a non-decreasing function of the parameter >= 0.
        parameter: what it is called.

    Returns:
        The generalized inverse: the least value whose advantage reaches the observed one.
    """
    value = _infimum(advantage_at, estimate.advantage)
    return ModelBasedEstimate(mechanism, parameter, value, estimate.advantage)


def _infimum(bound: Callable[[float], float], reached: float) -> float:
    """The least argument in [0, 10^4] at which a non-decreasing bound reaches a value.

    Rounded down; 0 if it is reached at 0, inf if it never is.
    """
    if bound(0.0) >= reached:
        return 0.0
    low, high = 0.0, 1.0
    while bound(high) < reached:
        if high >= LARGEST_EPSILON:
            return math.inf
        low, high = high, min(2 * high, LARGEST_EPSILON)
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if bound(middle) < reached else (low, middle)
    return low
