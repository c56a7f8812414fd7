"""A guarantee in terms of what an attacker can do, in numbers and in sentences to quote.

Every value is an upper limit over all attackers, rounded up at the sixth decimal, in sentences at
the fourth. Claims: docs/notes/risk-audits.md.
"""

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Final

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.general_bounds import Knowledge, Scenario, best_bound, total_variation_bound
from ragaudit.lab.risk.trade_off import trade_off
from ragaudit.lab.risk.validation import (
    AssumptionError,
    check_probability,
    typed,
)
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, membership_sentence
from scipy import special

PLACES: Final = 6
_MOST_LISTED: Final = 10
"""Of a prior with more records, not every probability is said."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """Which guesses count besides the record itself.

    Attributes:
        eta: >= 0, the largest distance that counts.
        span: distance of the extreme records, in the same unit; the others lie evenly between.
    """

    eta: float
    span: float


@dataclass(frozen=True, slots=True)
class Translation:
    """Limits for every attacker who sees all that the guarantee covers.

    Attributes:
        guarantee: in words.
        relation: as guaranteed; the membership limits are for it.
        prior: in words; the other limits are for it.
        membership_advantage: true less false positive rate of any test, in [0, 1].
        auc: area under the ROC curve of any test, in [1/2, 1].
        attribute_advantage: advantage (RAD) with any auxiliary knowledge, in [0, 1 - kappa].
        reconstruction_advantage: without knowledge of the target beyond the prior.
        blind_success: success of the best guess without any output, kappa_plus.
        reconstruction_success: success with the outputs, without other knowledge of the target.
        theorem: where the reconstruction limit is proved.
        success: what counts as success in the limits for the prior, in words.
    """

    guarantee: str
    relation: NeighboringRelation
    prior: str
    membership_advantage: float
    auc: float
    attribute_advantage: float
    reconstruction_advantage: float
    blind_success: float
    reconstruction_success: float
    theorem: str
    success: str

    def sentences(self) -> tuple[str, ...]:
        """Return the limits in words, one claim per sentence."""
        relation = self.relation
        return (
            f"Membership: {membership_sentence(_decimal(self.membership_advantage), relation)}",
            f"No such test has an area under its ROC curve above {_shown(self.auc)} "
            "(0.5: guessing; 1: certainty).",
            f"Attributes: an attacker to whom the target is {self.prior}, and who may know "
            f"anything else about it, {self.success} at most "
            f"{_points(self.attribute_advantage)} more often than if another draw from the same "
            "prior had been in the target's place.",
            f"Reconstruction: an attacker to whom the target is {self.prior}, and who knows "
            f"nothing else about it, {self.success} at most "
            f"{_points(self.reconstruction_advantage)} more often than if another draw had been "
            f"in its place, and at most {_percent(self.reconstruction_success)} of the time "
            f"in all; the best guess without any answer is right {_percent(self.blind_success)} "
            "of the time.",
        )


@typed
def largest_auc(guarantee: ApproximateDp | GaussianDp) -> float:
    """Return the area over the trade-off curve, the largest AUC of any test.

    ``1 - (1 - delta)^2/(1 + e^eps)``, or ``Phi(mu/sqrt 2)`` (Dong, Roth and Su 2022).

    Args:
        guarantee: approximate or Gaussian DP.
    """
    if isinstance(guarantee, GaussianDp):
        return float(special.ndtr(float(guarantee.mu) / math.sqrt(2)))
    kept = float(1 - guarantee.delta)
    return 1 - kept * kept * float(special.expit(-float(guarantee.epsilon)))


@typed
def translate(
    guarantee: ApproximateDp | GaussianDp,
    scenario: Scenario,
    slack: float = 0.0,
    nearness: Nearness | None = None,
) -> Translation:
    """Translate a guarantee for an attacker's prior.

    Args:
        guarantee: under the relation that was proved; it is brought under replace-one, by name,
            for the limits that compare two records.
        scenario: prior and success sets over records that replace each other; auxiliary knowledge
            counts in the attribute limit only.
        slack: total variation between the noise that was sampled and the one that is
            guaranteed, for one data set, in [0, 1].
        nearness: the scenario's success sets, if near guesses count; for the words.

    Raises:
        AssumptionError: the scenario's records are not replacements of each other.
        InvalidArgumentError: slack out of range.
    """
    if scenario.relation is not NeighboringRelation.REPLACE:
        raise AssumptionError(
            f"a scenario under {scenario.relation}", where="scenario", expected="replace"
        )
    distance = check_probability(slack, "slack")
    between = guarantee.under(NeighboringRelation.REPLACE)
    # Two laws differ from their ideals by the slack each; a detour over the null record makes four.
    near = 2 * distance
    far = near if between == guarantee else 2 * near
    membership = trade_off(guarantee).total_variation + near
    attribute = total_variation_bound(scenario, between).value + far
    reconstruction = best_bound(replace(scenario, knowledge=Knowledge.NONE), [between])
    most = 1 - float(scenario.summary.collision_probability)
    blind = float(scenario.summary.largest_ball)
    advantage = _up(min(most, reconstruction.value + far))
    return Translation(
        guarantee=trade_off(guarantee).description,
        relation=guarantee.relation,
        prior=_described(scenario),
        membership_advantage=_up(min(1.0, membership)),
        auc=_up(min(1.0, largest_auc(guarantee) + near)),
        attribute_advantage=_up(min(most, attribute)),
        reconstruction_advantage=advantage,
        blind_success=_up(blind),
        reconstruction_success=_up(min(1.0, advantage + blind)),
        theorem=reconstruction.winner.theorem,
        success=_success(scenario, nearness),
    )


def _described(scenario: Scenario) -> str:
    if scenario.is_uniform:
        return f"one of {scenario.records} equally likely records"
    if scenario.prior is None:
        return f"a draw from the prior '{scenario.prior_name}'"
    probabilities = scenario.prior.probabilities
    if scenario.prior.records <= _MOST_LISTED:
        *others, last = (f"{float(share):g}" for share in probabilities)
        return (
            f"one of {scenario.prior.records} records with the probabilities "
            f"{', '.join(others)} and {last}"
        )
    return (
        f"one of {scenario.prior.records} records, the most probable one with probability "
        f"{float(probabilities.max()):g}, two draws being equal with probability "
        f"{scenario.prior.collision_probability:g}"
    )


def _success(scenario: Scenario, nearness: Nearness | None) -> str:
    if nearness is not None:
        return (
            f"names a record within {nearness.eta:g} of it (the records lie evenly over a range "
            f"of {nearness.span:g})"
        )
    return "names it correctly" if scenario.exact_guesses else "names it or one that counts as it"


def _up(value: float) -> float:
    """Rounded up at the sixth decimal; binary rounding below 1e-12 is not rounded up."""
    shown = Decimal(value) - Decimal("1e-12")
    return max(0.0, float(shown.quantize(Decimal(1).scaleb(-PLACES), ROUND_CEILING)))


def _shown(value: float) -> str:
    """Four decimals, rounded up."""
    return str(_decimal(value).quantize(Decimal("0.0001"), ROUND_CEILING))


def _decimal(value: float) -> Decimal:
    """The shortest decimal of a binary number: what was meant, so that it is not rounded up."""
    return Decimal(repr(value))


def _hundredths(value: float) -> Decimal:
    return (100 * _decimal(value)).quantize(Decimal("0.01"), ROUND_CEILING)


def _points(value: float) -> str:
    return f"{_hundredths(value)} percentage points"


def _percent(value: float) -> str:
    return f"{_hundredths(value)} %"
