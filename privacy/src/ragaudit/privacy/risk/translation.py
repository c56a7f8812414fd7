"""A guarantee in terms of what an attacker can do, in numbers and in sentences to quote.

Every value is an upper limit over all attackers, rounded up at the sixth decimal. Claims:
docs/notes/disclosure-risk.md.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final

from ragaudit.privacy.guarantees import Adjacency, ApproximateDp, GaussianDp
from ragaudit.privacy.risk.best_bound import best_bound
from ragaudit.privacy.risk.general_bounds import total_variation_bound
from ragaudit.privacy.risk.scenario import Scenario
from ragaudit.privacy.risk.trade_off import trade_off
from ragaudit.privacy.risk.validation import (
    AssumptionError,
    check_probability,
)
from scipy import special

__all__ = ["Translation", "largest_auc", "translate"]

PLACES: Final = 6

_CHOICE: Final = {
    Adjacency.ADD_REMOVE: "whether it is in the collection or not",
    Adjacency.NULL_REPLACE: "whether it is in the collection or an empty one in its place",
    Adjacency.REPLACE_ONE: "whether it or another given document is in the collection",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """Limits for every attacker who sees all that the guarantee covers.

    Attributes:
        guarantee: in words.
        adjacency: as guaranteed; the membership limits are for it.
        prior: in words; the other limits are for it.
        membership_advantage: true less false positive rate of any test, in [0, 1].
        auc: area under the ROC curve of any test, in [1/2, 1].
        attribute_advantage: advantage (RAD) with any auxiliary knowledge, in [0, 1 - kappa].
        reconstruction_advantage: without knowledge of the target beyond the prior.
        blind_success: success of the best guess without any output, kappa_plus.
        reconstruction_success: success with the outputs, without other knowledge of the target.
        theorem: where the reconstruction limit is proved.
    """

    guarantee: str
    adjacency: Adjacency
    prior: str
    membership_advantage: float
    auc: float
    attribute_advantage: float
    reconstruction_advantage: float
    blind_success: float
    reconstruction_success: float
    theorem: str

    def sentences(self) -> tuple[str, ...]:
        """The limits in words, one claim per sentence."""
        return (
            f"Membership: whoever sees all the answers and knows a document word for word, and has "
            f"to tell {_CHOICE[self.adjacency]}, raises correct alarms at most "
            f"{_percent(self.membership_advantage)} of the time more often than false ones "
            "(0 %: no better than guessing; 100 %: certainty).",
            f"No such test has an area under its ROC curve above {_shown(self.auc)} "
            "(0.5: guessing; 1: certainty).",
            f"Attributes: whoever knows anything at all about a target, and for the rest that it is "
            f"{self.prior}, names it correctly with a probability at most "
            f"{_percent(self.attribute_advantage)} higher than if another draw from the same "
            "prior had been in the target's place.",
            f"Reconstruction: whoever knows only that prior is right with a probability at most "
            f"{_percent(self.reconstruction_advantage)} higher than without the target's "
            f"document in the collection, and at most {_percent(self.reconstruction_success)} of "
            f"the time in all; without any answers the best guess is right "
            f"{_percent(self.blind_success)} of the time.",
        )


def largest_auc(guarantee: ApproximateDp | GaussianDp) -> float:
    """Return the area over the trade-off curve, the largest AUC of any test.

    ``1 - (1 - delta)^2/(1 + e^eps)``, or ``Phi(mu/sqrt 2)`` (Dong, Roth and Su 2022).
    """
    if isinstance(guarantee, GaussianDp):
        return float(special.ndtr(float(guarantee.mu) / math.sqrt(2)))
    kept = float(1 - guarantee.delta)
    return 1 - kept * kept * float(special.expit(-float(guarantee.epsilon)))


def translate(
    guarantee: ApproximateDp | GaussianDp, scenario: Scenario, slack: float = 0.0
) -> Translation:
    """Translate a guarantee for an attacker's prior.

    Args:
        guarantee: under the adjacency that was proved; it is brought under replace-one, by name,
            for the limits that compare two records.
        scenario: prior and success sets over records that replace each other; auxiliary knowledge
            counts in the attribute limit only.
        slack: total variation between the noise that was sampled and the one that is
            guaranteed, for one data set, in [0, 1].

    Raises:
        AssumptionError: the scenario's records are not replacements of each other.
        InvalidArgumentError: slack out of range.
    """
    if scenario.adjacency is not Adjacency.REPLACE_ONE:
        raise AssumptionError(
            f"a scenario under {scenario.adjacency}", where="scenario", expected="replace"
        )
    distance = check_probability(slack, "slack")
    between = guarantee.under(Adjacency.REPLACE_ONE)
    # Two laws differ from their ideals by the slack each; a detour over the null record makes four.
    near = 2 * distance
    far = near if between == guarantee else 2 * near
    membership = trade_off(guarantee).total_variation + near
    attribute = total_variation_bound(scenario, between).value + far
    reconstruction = best_bound(scenario.without_knowledge(), between).bound
    most = 1 - scenario.summary.collision_probability
    blind = scenario.summary.largest_ball
    advantage = _up(min(most, reconstruction.value + far))
    return Translation(
        guarantee=trade_off(guarantee).description,
        adjacency=guarantee.adjacency,
        prior=scenario.prior_name,
        membership_advantage=_up(min(1.0, membership)),
        auc=_up(min(1.0, largest_auc(guarantee) + near)),
        attribute_advantage=_up(min(most, attribute)),
        reconstruction_advantage=advantage,
        blind_success=_up(blind),
        reconstruction_success=_up(min(1.0, advantage + blind)),
        theorem=reconstruction.theorem,
    )


def _up(value: float) -> float:
    """Rounded up at the sixth decimal; binary rounding below 1e-12 is not rounded up."""
    shown = Decimal(value) - Decimal("1e-12")
    return max(0.0, float(shown.quantize(Decimal(1).scaleb(-PLACES), ROUND_CEILING)))


def _shown(value: float) -> str:
    """Four decimals, rounded up."""
    return str(Decimal(repr(value)).quantize(Decimal("0.0001"), ROUND_CEILING))


def _percent(value: float) -> str:
    """Two decimals of a percentage, rounded up."""
    return f"{(100 * Decimal(repr(value))).quantize(Decimal('0.01'), ROUND_CEILING)} %"
