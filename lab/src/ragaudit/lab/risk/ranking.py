"""Tests that rank: how often members score above non-members, and how often by chance.

The area under the ROC curve of a score is the probability that a member's is above a
non-member's, ties counting half (Mann and Whitney 1947). The largest that a guarantee admits is
:func:`ragaudit.lab.risk.translation.largest_auc`.
"""

import math
from collections.abc import Sequence

import numpy as np
from ragaudit.lab.risk.validation import (
    FloatArray,
    check_integer,
    check_probability,
    check_vector,
)
from scipy import stats

__all__ = ["area_under_curve", "false_alarm", "null_deviation"]


def area_under_curve(
    members: Sequence[float] | FloatArray, others: Sequence[float] | FloatArray
) -> float:
    """Return the area under the ROC curve of scores, ties half; 1/2 says nothing, 1 tells all.

    Args:
        members, others: scores of each class, at least one.

    Raises:
        InvalidArgumentError: a class without scores, or a score that is not finite.
    """
    above, below = check_vector(members, "members"), check_vector(others, "others")
    # Ranks of ties are their mean, which counts each tied pair half.
    ranks = stats.rankdata(np.concatenate([above, below]))[: len(above)]
    least = len(above) * (len(above) + 1) / 2
    return float((ranks.sum() - least) / (len(above) * len(below)))


def null_deviation(members: int, others: int) -> float:
    """Return the standard deviation of that area where scores say nothing, without ties.

    ``sqrt((n + m + 1)/(12 n m))``; an upper limit for Gaussian scores with a signal.

    Args:
        members, others: scores of each class, >= 1.
    """
    n = check_integer(members, "members", least=1)
    m = check_integer(others, "others", least=1)
    return math.sqrt((n + m + 1) / (12 * n * m))


def false_alarm(members: int, others: int, threshold: float) -> float:
    """Return how often scores that say nothing reach an area, by the normal approximation.

    Args:
        members, others: scores of each class, >= 1.
        threshold: of the area, 0 to 1.
    """
    apart = check_probability(threshold, "threshold") - 0.5
    return float(stats.norm.sf(apart / null_deviation(members, others)))
