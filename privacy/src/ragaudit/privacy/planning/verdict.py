"""One sentence on a plan: what is left of retrieval, and what is promised; both with numbers."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ragaudit.encoding.text import ceil_decimal
from ragaudit.privacy.planning.budget import Budget
from ragaudit.privacy.planning.retrieval import Simulation
from ragaudit.privacy.words import Strength, strength

__all__ = ["GOOD_GAIN", "USELESS_GAIN", "Service", "Verdict", "judge"]

USELESS_GAIN = 0.5
"""Retrieval is useless below half of the way from blind choice to perfect recall."""

GOOD_GAIN = 0.9
"""Retrieval is good from nine tenths of that way on."""


class Service(StrEnum):
    """What the noise leaves of retrieval."""

    USELESS = "useless"
    WEAK = "weak"
    GOOD = "good"
    UNDECIDED = "undecided"
    NOT_SIMULATED = "not simulated"


@dataclass(frozen=True)
class Verdict:
    """A plan in two grades and a sentence.

    Attributes:
        service: of retrieval.
        promise: of the guarantee to ``k_max`` accounts over all windows.
        sentence: both, with their figures.
    """

    service: Service
    promise: Strength
    sentence: str


def judge(plan: Budget, simulation: Simulation | None) -> Verdict:
    """Return the verdict on a plan.

    The promise is that of ``k_max`` accounts over *all* windows of the targets, graded by its
    membership advantage (:func:`~ragaudit.privacy.words.strength`); without a finite epsilon it is
    empty. Retrieval is graded by the 95 % interval of recall at the planned sigma, on the way from
    blind choice to perfect recall: useless if it ends at or below USELESS_GAIN, good if it begins
    above GOOD_GAIN, weak if it begins above USELESS_GAIN, else undecided: more questions are
    needed. A promise that sigma does not keep is named whatever the grades.

    Args:
        plan: its sigma is judged.
        simulation: with the planned sigma among its points; None if there was none, and then
            nothing is said about usefulness.
    """
    promise, promise_text = _promise(plan)
    service, service_text = _service(plan, simulation)
    sentence = "; ".join((f"Retrieval {service_text}", f"promise {promise_text}", *_broken(plan)))
    return Verdict(service, promise, f"{sentence}.")


def _promise(plan: Budget) -> tuple[Strength, str]:
    row = plan.judged
    who = "one account" if row.accounts == 1 else f"{row.accounts} accounts together"
    when = "" if row.windows == 1 else f" over {row.windows} windows"
    # Without a finite epsilon nothing is promised, whatever the advantage would say.
    if row.price.epsilon is None:
        return Strength.EMPTY, f"empty: no finite epsilon for {who}{when}"
    advantage = Fraction(row.price.advantage)
    grade = strength(advantage)
    right = ceil_decimal(50 * (1 + advantage), 1)
    return grade, (
        f"{grade}: {who}{when} may be right about whether a {plan.targets.protected_unit} is there "
        f"{right} times in 100 (membership advantage {ceil_decimal(advantage, 3)}, epsilon "
        f"{_rounded(row.price.epsilon)} at delta {row.price.delta})"
    )


def _broken(plan: Budget) -> list[str]:
    """Return a clause on the promise to one account if sigma does not keep it, else nothing."""
    # None is not False: where nothing was promised, nothing can be broken.
    if plan.kept is not False:
        return []
    real = plan.account.epsilon
    return [
        f"the promise is broken, one account has "
        f"{'no finite epsilon' if real is None else f'epsilon {_rounded(real)}'} at delta "
        f"{plan.targets.delta}, not {plan.targets.epsilon}"
    ]


def _rounded(epsilon: str) -> str:
    return ceil_decimal(Fraction(epsilon), 2)


def _service(plan: Budget, simulation: Simulation | None) -> tuple[Service, str]:
    if simulation is None:
        return Service.NOT_SIMULATED, "not simulated"
    # Against blind choice: a recall of 0.5 is nothing where K is half of the rows.
    interval, blind = simulation.at(plan.sigma).recall, simulation.random_recall
    half, most = (blind + gain * (1 - blind) for gain in (USELESS_GAIN, GOOD_GAIN))
    figures = (
        f"recall@{simulation.top_k} {interval.mean:.3f}, 95 % interval {interval.low:.3f} to "
        f"{interval.high:.3f}; blind choice {blind:.3f}, half way {half:.3f}"
    )
    # By the ends of the interval: an estimate alone could be luck with the questions.
    if interval.high <= half:
        return Service.USELESS, f"useless ({figures})"
    if interval.low > most:
        return Service.GOOD, f"good ({figures})"
    if interval.low > half:
        return Service.WEAK, f"weak ({figures})"
    advice = f"{simulation.questions} questions do not tell, ask more"
    return Service.UNDECIDED, f"undecided ({advice}: {figures})"
