"""To riskcal: what its attack rates are for our events, and our mechanism for its calibration.

riskcal reads a privacy loss distribution and gives the rates of the best membership attack. Its
numbers describe the *distribution* that it is handed, which is dp-accounting's pessimistic one of
an ideal sampler. There is no way back from a rate: a point of a trade-off curve bounds nothing
between two points (a convex curve lies below its chords), so no guarantee is made of one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.bridges.extra import library
from ragaudit.lab.bridges.loss_distributions import loss_distribution
from ragaudit.privacy.accounting.events import Event, NoisyScores
from ragaudit.privacy.numbers import Number, instance, real, sequence

_RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class AttackRates:
    """What riskcal says of the best attack that tells two neighbours apart.

    Attributes:
        advantage: largest true positive rate less false positive rate.
        false_positives, false_negatives: rates of the best tests; the second by the first.
        accuracy: largest share of right answers where both neighbours are equally likely.
    """

    advantage: float
    false_positives: tuple[float, ...]
    false_negatives: tuple[float, ...]
    accuracy: float


def attack_rates(source: Event | Any, false_positives: Sequence[Number] = _RATES) -> AttackRates:
    """Return riskcal's rates of the best attack.

    Args:
        source: an event, or a privacy loss distribution of dp-accounting.
        false_positives: rates at which the least false negative rate is wanted, 0 to 1.

    Raises:
        InvalidArgumentError: a rate out of range, or neither an event nor a distribution.
        RefusedError: the event's mu is 0, or above 20.
        UnsupportedError: riskcal is not installed.
    """
    analysis = library("riskcal.analysis")
    rates = [
        real(each, "false_positives", least=0, most=1)
        for each in sequence(false_positives, "false_positives")
    ]
    distribution = source
    if not hasattr(source, "get_delta_for_epsilon"):
        instance(source, get_args(Event), "source")
        distribution = loss_distribution(source)
    advantage = float(analysis.get_advantage_from_pld(distribution))
    missed = (float(analysis.get_beta_from_pld(distribution, alpha=rate)) for rate in rates)
    error = float(analysis.get_bayes_risk_from_pld(distribution, 0.5))
    return AttackRates(advantage, tuple(rates), tuple(missed), 1 - error)


def risk_evaluator(
    relation: NeighboringRelation,
    group_size: int,
    queries: int,
    *,
    false_positive: Number = 0.1,
    delta: Number = "1e-6",
) -> Callable[[float], Any]:
    """Return a function from sigma to ``riskcal.calibration`` metrics of one account.

    For ``riskcal.calibration.core.calibrate_parameter``, whose search is for the sigma that has
    an advantage, a pair of error rates, or (epsilon, delta). More sigma is less risk: give its
    configuration ``increasing=False`` for an advantage or an epsilon.

    Args:
        relation, group_size, queries: of the account's policy.
        false_positive: at which the metrics' false negative rate is.
        delta: at which their epsilon is.

    Raises:
        InvalidArgumentError: a value out of range.
        UnsupportedError: riskcal is not installed.
    """
    core = library("riskcal.calibration.core")
    rate = real(false_positive, "false_positive", least=0, most=1)
    target = real(delta, "delta", above=0, below=1)
    NoisyScores.of_policy(1, relation, group_size, queries)  # bad terms are told at once

    def evaluate(sigma: float) -> Any:
        event = NoisyScores.of_policy(sigma, relation, group_size, queries)
        distribution = loss_distribution(event)
        found = attack_rates(distribution, [rate])
        return core.PrivacyMetrics(
            advantage=found.advantage,
            alpha=rate,
            beta=found.false_negatives[0],
            epsilon=float(distribution.get_epsilon_for_delta(target)),
            delta=target,
        )

    return evaluate
