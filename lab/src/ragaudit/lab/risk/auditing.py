"""From an observed advantage to an epsilon: two kinds of answer that are never mixed.

A :class:`CertifiedLowerBound` says that no mechanism with a smaller epsilon, whatever it is,
explains what was seen, with a stated confidence. A :class:`ModelBasedEstimate` says which
parameter the *claimed* mechanism would need to show the observed mean; a fault in the code is
invisible to it, and being a point estimate it is too high about half the time. They share no base
class, and neither is a number. Derivations: docs/notes/risk-audits.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.calibration import (
    continuous_least_parameter,
    least_parameter,
    uniform_exact_guess_epsilon,
)
from ragaudit.lab.risk.estimation import AdvantageEstimate
from ragaudit.lab.risk.general_bounds import BestBound, best_bound, uniform_exact_guess_bound
from ragaudit.lab.risk.scenario import Assumptions, Knowledge, Scenario
from ragaudit.lab.risk.validation import check_delta, check_positive, typed
from ragaudit.privacy.guarantees import ApproximateDp

_LARGEST = 1e4
"""Up to here epsilons are told apart."""


@dataclass(frozen=True, slots=True)
class CertifiedLowerBound:
    """Every (epsilon', delta)-DP mechanism with epsilon' < ``epsilon`` is refuted.

    Holds with the stated confidence if the targets were drawn independently from the stated prior,
    and trials, attack and method were fixed beforehand.

    Attributes:
        epsilon: >= 0, natural logarithm; 0: nothing is refuted; inf: no finite epsilon explains it.
        delta: of the refuted guarantees.
        relation: of the refuted guarantees: how the tested records differ.
        advantage: the lower confidence bound that was inverted.
        confidence: one-sided.
        theorem: the black-box bound that was inverted.
        assumptions: what it assumes.
    """

    epsilon: float
    delta: float
    relation: NeighboringRelation
    advantage: float
    confidence: float
    theorem: str
    assumptions: Assumptions


@dataclass(frozen=True, slots=True)
class ModelBasedEstimate:
    """The parameter at which the claimed mechanism shows the observed advantage: no certificate.

    Attributes:
        mechanism: as claimed, in words.
        parameter: which one: "epsilon" (natural logarithm) or "mu" (of Gaussian DP).
        value: 0 to inf.
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
        stated: the claim as it was made.
        claim: the claim under the relation of the tested records.
        allowed: the largest advantage under the claim, with the bound that says so.
        advantage: the lower confidence bound.
        confidence: one-sided: a true claim is refuted with at most one minus this probability.
    """

    refuted: bool
    stated: ApproximateDp
    claim: ApproximateDp
    allowed: BestBound
    advantage: float
    confidence: float


@typed
def certify(estimate: AdvantageEstimate, scenario: Scenario, delta: float) -> CertifiedLowerBound:
    """Turn a lower confidence bound on the advantage into one on epsilon.

    Inverts the best bound for unknown mechanisms that holds in the scenario: for the uniform prior,
    exact guesses and no auxiliary knowledge Corollary 5.6, in closed form (Eq. 61 with delta).

    Args:
        scenario: prior, success sets and knowledge of the attack that was run, and the relation
            between the records it told apart.
        delta: of the guarantees to refute, in [0, 1].

    Raises:
        InvalidArgumentError: delta out of range.
    """
    slack, observed = check_delta(delta), estimate.lower

    def promised(epsilon: float) -> ApproximateDp:
        return ApproximateDp.of(epsilon, slack, scenario.relation)

    plain = scenario.exact_guesses and scenario.knowledge is Knowledge.NONE
    if plain and scenario.is_uniform and scenario.records is not None:
        epsilon = uniform_exact_guess_epsilon(observed, scenario.records, slack)
        inverted = uniform_exact_guess_bound(scenario, promised(min(epsilon, _LARGEST)))
    else:
        epsilon = least_parameter(
            lambda value: best_bound(scenario, [promised(value)]).value, observed
        ).parameter
        inverted = best_bound(scenario, [promised(min(epsilon, _LARGEST))]).winner
    return CertifiedLowerBound(
        epsilon, slack, scenario.relation, observed, estimate.confidence, inverted.theorem,
        inverted.assumptions._replace(mechanism="any"),
    )  # fmt: skip


@typed
def check_claim(
    estimate: AdvantageEstimate, scenario: Scenario, claim: ApproximateDp
) -> ClaimCheck:
    """Compare a claimed (epsilon, delta) with what was seen; the claim is converted by name.

    Args:
        estimate: with its lower confidence bound.
        scenario: prior, success sets and knowledge of the attack that was run.
        claim: under any relation from which the scenario's follows.

    Raises:
        RefusedError: nothing about these records follows from the claim's relation.
    """
    under = claim.under(scenario.relation)
    allowed = best_bound(scenario, [under])
    refuted = estimate.lower > allowed.value
    return ClaimCheck(refuted, claim, under, allowed, estimate.lower, estimate.confidence)


@typed
def estimate_from_model(
    estimate: AdvantageEstimate,
    mechanism: str,
    advantage_at: Callable[[float], float],
    parameter: str = "epsilon",
    largest: float = _LARGEST,
) -> ModelBasedEstimate:
    """Invert a mechanism's own optimal advantage at the observed mean.

    Args:
        mechanism: in words.
        advantage_at: the optimal advantage for each value of the parameter; continuous and
            non-decreasing.
        parameter: its name.
        largest: a value from which on the advantage no longer grows.

    Returns:
        The inverse: the least value whose advantage reaches the observed one, 0 if every one
        does, inf if it is the supremum or above.
    """
    limit = check_positive(largest, "largest")
    found = continuous_least_parameter(advantage_at, estimate.advantage, limit=limit).parameter
    return ModelBasedEstimate(mechanism, parameter, found, estimate.advantage)
