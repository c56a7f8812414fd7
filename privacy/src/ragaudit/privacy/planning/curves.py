"""Points of the curves that a plan draws: epsilon against k, sigma against r."""

from dataclasses import dataclass, replace
from fractions import Fraction

from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.privacy.accounting.events import MAX_QUERIES
from ragaudit.privacy.planning.budget import Budget, BudgetRow, budget_row, paper_sigma, sigma_for
from ragaudit.privacy.planning.missing import Missing
from ragaudit.privacy.planning.targets import Targets

__all__ = ["SigmaPoint", "epsilon_by_accounts", "sigma_by_queries"]

POINTS = 13
"""Points of a curve, evenly spread in the logarithm."""


@dataclass(frozen=True)
class SigmaPoint:
    """The noise for one number of queries.

    Attributes:
        queries: r.
        sigma: decimal, the exact calibration, cosine units.
        paper_sigma: decimal, equation (3.4) of the source paper, for the same promise;
            Missing outside its range.
    """

    queries: int
    sigma: str
    paper_sigma: str | Missing


def epsilon_by_accounts(plan: Budget, most: int | None = None) -> list[BudgetRow]:
    """Return about POINTS rows, from one account to ``most``, in one window.

    Args:
        most: at least 1, all slots if None; k_max is always among the rows.

    Raises:
        MalformedError: ``most`` is below 1, or so many queries cannot be accounted for.
    """
    targets = plan.targets
    last = targets.slots if most is None else most
    if last < 1:
        raise MalformedError(f"most is {last}", where="most", expected="at least 1")
    counts = sorted({*_spread(1, last), targets.coalition})
    return [budget_row(targets, plan.sigma, count) for count in counts]


def sigma_by_queries(targets: Targets) -> list[SigmaPoint]:
    """Return the calibrated sigma from a tenth to ten times as many queries.

    A point for which no sigma in the sampler's range keeps the promise is left out.

    Raises:
        MalformedError: the targets name no epsilon.
    """
    if targets.epsilon is None:
        raise MalformedError("no epsilon to calibrate for", where="epsilon", expected="a decimal")
    least = max(1, targets.queries // 10)
    most = min(10 * targets.queries, MAX_QUERIES // (targets.slots * targets.windows))
    points = []
    for queries in sorted({*_spread(least, most), targets.queries}):
        varied = replace(targets, queries=queries)
        try:
            points.append(SigmaPoint(queries, sigma_for(varied), paper_sigma(varied)))
        except RefusedError:
            continue
    return points


def _spread(least: int, most: int) -> set[int]:
    """Return about POINTS whole numbers from ``least`` to ``most``, both included."""
    ratio = (Fraction(most) / least) if most > least else Fraction(1)
    return {round(least * float(ratio) ** (n / (POINTS - 1))) for n in range(POINTS)}
