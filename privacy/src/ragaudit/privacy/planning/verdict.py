"""One sentence on a plan: useless, empty, both, neither, or undecided."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ragaudit.encoding.decimals import ceil_decimal
from ragaudit.privacy.planning.budget import Budget
from ragaudit.privacy.planning.retrieval import Simulation

__all__ = ["EMPTY_ADVANTAGE", "USELESS_GAIN", "Finding", "Verdict", "judge"]

EMPTY_ADVANTAGE = Fraction(9, 10)
"""A promise is empty from this membership advantage of ``k_max`` accounts on.

An attacker who is told that a protected unit is in the index or not, with even odds, may then be
right 95 times in 100 (half of 1 plus the advantage): what people call a finding beyond doubt is
within reach, so epsilon excludes nothing that a tenant fears.
"""

USELESS_GAIN = 0.05
"""Retrieval is useless if noise leaves at most this share of what the score adds to chance.

At 0.05 one place in twenty of what exact search does better than blind choice is left.
"""


class Finding(StrEnum):
    """What is wrong with a plan, or that too few questions were asked to know."""

    USELESS = "useless"
    EMPTY = "empty"
    BOTH = "useless and empty"
    UNDECIDED = "undecided"
    EMPTY_UNDECIDED = "empty and undecided"
    NEITHER = "neither"
    NOT_SIMULATED = "not simulated"


class _Service(StrEnum):
    """What is known about retrieval."""

    USELESS = "useless"
    UNDECIDED = "undecided"
    USEFUL = "useful"
    NOT_SIMULATED = "not simulated"


# Retrieval, whether the promise is empty -> the finding and how its sentence begins.
_FINDINGS = {
    (_Service.USELESS, False): (Finding.USELESS, "Useless"),
    (_Service.USELESS, True): (Finding.BOTH, "Useless and empty"),
    (_Service.UNDECIDED, False): (Finding.UNDECIDED, "Undecided"),
    (_Service.UNDECIDED, True): (Finding.EMPTY_UNDECIDED, "Empty and undecided"),
    (_Service.USEFUL, False): (Finding.NEITHER, "Neither useless nor empty"),
    (_Service.USEFUL, True): (Finding.EMPTY, "Empty"),
    (_Service.NOT_SIMULATED, False): (Finding.NOT_SIMULATED, "Not empty"),
    (_Service.NOT_SIMULATED, True): (Finding.EMPTY, "Empty"),
}


@dataclass(frozen=True)
class Verdict:
    """The finding, and one sentence with its figures."""

    finding: Finding
    sentence: str


def judge(plan: Budget, simulation: Simulation | None) -> Verdict:
    """Return the verdict on a plan.

    *Empty*: ``k_max`` accounts together have no finite epsilon, or a membership advantage of at
    least EMPTY_ADVANTAGE. *Useless*: the 95 % interval of recall at the planned sigma ends at or
    below ``random + USELESS_GAIN (1 - random)``. *Undecided*: the interval holds that limit, so
    more questions are needed. A promise that sigma does not keep is named whatever the finding.

    Args:
        simulation: with the planned sigma among its points; None if there was none, and then
            nothing is said about usefulness.
    """
    empty, promise = _promise(plan)
    known, service = _service(plan, simulation)
    finding, head = _FINDINGS[known, empty]
    told = [promise, service]
    if known in {_Service.USELESS, _Service.UNDECIDED}:
        told.reverse()
    return Verdict(finding, f"{head}: {'; '.join([*told, *_broken(plan)])}.")


def _promise(plan: Budget) -> tuple[bool, str]:
    row = plan.coalition
    who = "one account" if row.accounts == 1 else f"{row.accounts} accounts together"
    if row.price.epsilon is None:
        return True, f"epsilon says nothing, no finite bound for {who}"
    advantage = Fraction(row.price.advantage)
    right = ceil_decimal(50 * (1 + advantage), 1)
    told = (
        f"{who} may be right about whether a {plan.targets.protected_unit} is there {right} times "
        f"in 100 (epsilon {_rounded(row.price.epsilon)} at delta {row.price.delta})"
    )
    empty = advantage >= EMPTY_ADVANTAGE
    return empty, f"epsilon says nothing, {told}" if empty else told


def _broken(plan: Budget) -> list[str]:
    """The promise to one account, if sigma does not keep it."""
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


def _service(plan: Budget, simulation: Simulation | None) -> tuple[_Service, str]:
    if simulation is None:
        return _Service.NOT_SIMULATED, "what the noise does to retrieval was not simulated"
    found, blind = simulation.at(plan.sigma).recall, simulation.random_recall
    limit = blind + USELESS_GAIN * (1 - blind)
    figures = (
        f"recall@{simulation.top_k} {found.mean:.3f}, 95 % interval {found.low:.3f} to "
        f"{found.high:.3f}, blind choice {blind:.3f}"
    )
    if found.high <= limit:
        return _Service.USELESS, f"retrieval is random or next to it ({figures})"
    if found.low <= limit:
        asked = simulation.questions
        told = f"{asked} questions do not tell whether retrieval is useless: ask more ({figures})"
        return _Service.UNDECIDED, told
    return _Service.USEFUL, f"retrieval has {figures}"
