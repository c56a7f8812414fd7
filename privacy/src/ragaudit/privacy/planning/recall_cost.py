"""The inverse question: which sigma, and so which epsilon, a wanted recall costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import floor_decimal
from ragaudit.privacy.planning.price import Price, price_of_account, price_of_coalition
from ragaudit.privacy.planning.retrieval import Simulation
from ragaudit.privacy.planning.targets import Targets

__all__ = ["Cost", "RecallCost", "cost_of_recall"]


@dataclass(frozen=True)
class Cost:
    """A sigma (decimal, cosine units) and what it promises.

    Attributes:
        account: one account's r queries, at ``delta``.
        coalition: the queries of ``coalition`` accounts in all windows, at ``delta_policy``.
    """

    sigma: str
    account: Price
    coalition: Price


@dataclass(frozen=True)
class RecallCost:
    """What a recall costs. Where the largest sigma is larger, epsilon is smaller.

    Attributes:
        recall: wanted, 0 to 1.
        best: at the estimated curve; None if no simulated sigma reaches the recall.
        sure: at the lower end of the intervals: enough recall with confidence; None as above.
        hopeful: at their upper end; None if not even that reaches the recall.
        beyond: the largest simulated sigma still has this recall: ``best`` is then that sigma,
            and more noise than that may do.
    """

    recall: float
    best: Cost | None
    sure: Cost | None
    hopeful: Cost | None
    beyond: bool


def cost_of_recall(simulation: Simulation, targets: Targets, recall: float) -> RecallCost:
    """Return the largest sigma that keeps a recall, and its epsilon.

    More noise cannot help, so the estimates are first made to fall with sigma (isotonic
    regression; the ends of the intervals by running minimum and maximum), then interpolated
    linearly in the logarithm of sigma. The interval is the pointwise one carried through.

    Args:
        recall: in (0, 1].

    Raises:
        MalformedError: recall out of range.
    """
    if not 0 < recall <= 1:
        raise MalformedError(f"recall is {recall}", where="recall", expected="above 0, at most 1")
    # Imported here: half a second, and only a simulation needs it.
    from scipy.optimize import isotonic_regression  # noqa: PLC0415

    points = simulation.points
    sigmas = [float(Fraction(point.sigma)) for point in points]
    mean = isotonic_regression([point.recall.mean for point in points], increasing=False).x
    low = np.minimum.accumulate([point.recall.low for point in points])
    high = np.maximum.accumulate([point.recall.high for point in points][::-1])[::-1]
    best, sure, hopeful = (
        _cost(targets, _crossing(sigmas, curve, recall)) for curve in (mean, low, high)
    )
    return RecallCost(recall, best, sure, hopeful, beyond=bool(mean[-1] >= recall))


def _crossing(
    sigmas: Sequence[float], curve: npt.NDArray[np.float64], recall: float
) -> float | None:
    """Return the largest sigma up to which a falling curve stays at least ``recall``."""
    reached = int(np.count_nonzero(curve >= recall))
    if reached == 0:
        return None
    if reached == len(sigmas):
        return sigmas[-1]
    above, below = float(curve[reached - 1]), float(curve[reached])
    share = (above - recall) / (above - below)
    ends = math.log(sigmas[reached - 1]), math.log(sigmas[reached])
    return math.exp(ends[0] + share * (ends[1] - ends[0]))


def _cost(targets: Targets, sigma: float | None) -> Cost | None:
    if sigma is None:
        return None
    # Four digits, rounded down: less noise than interpolated, a larger epsilon.
    places = max(0, 3 - math.floor(math.log10(sigma)))
    text = floor_decimal(Fraction(sigma), places)
    return Cost(
        text,
        price_of_account(targets, text),
        price_of_coalition(targets, text, windows=targets.windows),
    )
