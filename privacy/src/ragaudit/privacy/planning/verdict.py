"""One sentence on a plan: useless, empty, both or neither."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ragaudit.encoding.decimals import ceil_decimal
from ragaudit.privacy.planning.budget import Budget
from ragaudit.privacy.planning.retrieval import Simulation

__all__ = ["EMPTY_ADVANTAGE", "USELESS_GAIN", "Finding", "Verdict", "judge"]

EMPTY_ADVANTAGE = Fraction(9, 10)
"""A promise is empty from this membership advantage of ``k_max`` accounts on.

An attacker who is told that a document is in the index or not, with even odds, may then be right
95 times in 100 (half of 1 plus the advantage): what people call a finding beyond doubt is within
reach, so epsilon excludes nothing that a tenant fears.
"""

USELESS_GAIN = 0.05
"""Retrieval is useless if noise leaves at most this share of what the score adds to chance.

At 0.05 one place in twenty of what exact search does better than blind choice is left.
"""


class Finding(StrEnum):
    """What is wrong with a plan."""

    USELESS = "useless"
    EMPTY = "empty"
    BOTH = "useless and empty"
    NEITHER = "neither"
    NOT_SIMULATED = "not simulated"


@dataclass(frozen=True)
class Verdict:
    """The finding, and one sentence with its figures."""

    finding: Finding
    sentence: str


def judge(plan: Budget, simulation: Simulation | None) -> Verdict:
    """Return the verdict on a plan.

    *Empty*: ``k_max`` accounts together have no finite epsilon, or a membership advantage of at
    least EMPTY_ADVANTAGE. *Useless*: the 95 % interval of recall at the planned sigma includes
    what blind choice gives or lies below it, or all of it lies at or below
    ``random + USELESS_GAIN (1 - random)``.

    Args:
        simulation: with the planned sigma among its points; None if there was none, and then
            nothing is said about usefulness.
    """
    empty, promise = _promise(plan)
    if simulation is None:
        finding = Finding.EMPTY if empty else Finding.NOT_SIMULATED
        head = "Empty" if empty else "Not empty"
        return Verdict(finding, f"{head}: {promise}; what the noise does to retrieval was not "
                       "simulated.")  # fmt: skip
    useless, service = _service(plan, simulation)
    if useless and empty:
        return Verdict(Finding.BOTH, f"Useless and empty: {service}, and {promise}.")
    if useless:
        return Verdict(Finding.USELESS, f"Useless: {service}; {promise}.")
    if empty:
        return Verdict(Finding.EMPTY, f"Empty: {promise}; {service}.")
    return Verdict(Finding.NEITHER, f"Neither useless nor empty: {service}, and {promise}.")


def _promise(plan: Budget) -> tuple[bool, str]:
    row = plan.coalition
    who = "one account" if row.accounts == 1 else f"{row.accounts} accounts together"
    if row.price.epsilon is None:
        return True, f"epsilon says nothing: no finite bound for {who}"
    advantage = Fraction(row.price.advantage)
    right = ceil_decimal(50 * (1 + advantage), 1)
    told = (
        f"{who} may be right about whether a document is there {right} times in 100 "
        f"(epsilon {ceil_decimal(Fraction(row.price.epsilon), 2)})"
    )
    empty = advantage >= EMPTY_ADVANTAGE
    return empty, f"epsilon says nothing: {told}" if empty else told


def _service(plan: Budget, simulation: Simulation) -> tuple[bool, str]:
    found, blind = simulation.at(plan.sigma).recall, simulation.random_recall
    figures = (
        f"recall@{simulation.top_k} {found.mean:.3f} (95 % interval {found.low:.3f} to "
        f"{found.high:.3f}), blind choice {blind:.3f}"
    )
    if found.low <= blind:
        return True, f"retrieval cannot be told from random ({figures})"
    if found.high <= blind + USELESS_GAIN * (1 - blind):
        return True, f"retrieval is next to random ({figures})"
    return False, f"retrieval has {figures}"
