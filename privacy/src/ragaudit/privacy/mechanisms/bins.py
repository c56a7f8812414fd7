"""How MURAG-ADA finds the threshold of a question: noisy running sums over bins of scores."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from ragaudit.privacy.mechanisms.coins import Coins

__all__ = ["bin_counts", "running_sums"]


def bin_counts(scores: npt.NDArray[np.int64], edges: Sequence[int]) -> list[int]:
    """Return how many scores lie in each bin, the highest bin first.

    Args:
        scores: int64, of the documents that count.
        edges: lower edges of the bins, falling. Bins are half open, (edge, edge before it]; the
            first has no upper edge.
    """
    above = [0, *(int(np.count_nonzero(scores > edge)) for edge in edges)]
    return [there - before for before, there in pairwise(above)]


def running_sums(
    counts: Iterable[int], epsilon: Fraction, enough: int, coins: Coins
) -> tuple[Fraction, ...]:
    """Return the noisy running number of documents after each bin that is read (spec 11.6).

    A document lies in one bin, so each count has one draw, of scale ``1/epsilon``, and the sums are
    a function of these. Where reading stops follows from the sums alone.

    Args:
        counts: of the bins, the highest first; at least one.
        epsilon: of a count, for a document that is in it.
        enough: reading stops after the first sum above it.
        coins: of the question; one draw for each sum.
    """
    total, sums = Fraction(0), list[Fraction]()
    for count in counts:
        total += count + coins.laplace(1 / epsilon)
        sums.append(total)
        if total > enough:
            break
    return tuple(sums)
