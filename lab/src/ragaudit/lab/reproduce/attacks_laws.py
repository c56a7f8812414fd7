"""Exact laws of the top-K service: how often a row is selected, and areas of counts of that."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.reproduce.accounting_cells import DELTA
from ragaudit.privacy.accounting import collusion
from scipy import special, stats

Floats = npt.NDArray[np.float64]

# Of the row's own noise, in standard deviations: the midpoint rule on a smooth integrand that has
# fallen to 1e-32 at both ends is exact to rounding.
_WIDTH, _STEPS = 12.0, 2000
# Scores that agree but for so many bits are counted together: 4 of 16,129 units.
_SHIFT = 2


def sigma_of(epsilon_acc: str, queries: int) -> float:
    """Return the noise of (3.4) for one account's promise at delta 1e-6, in units of a score.

    Args:
        epsilon_acc: in digits.
        queries: n of the account.
    """
    replaced = NeighboringRelation.REPLACE
    release = collusion.ScoreReleaseClass(Fraction(epsilon_acc), DELTA, queries, replaced)
    return float(release.sigma(Fraction(1)))


def scalar_auc(gap: float, queries: int, sigma: float) -> float:
    """Return the area of the pooled mean of so many noisy scores.

    Args:
        gap: between the scores of both worlds.
        queries: of all accounts together.
        sigma: of the noise, in the same unit.
    """
    return float(stats.norm.cdf(gap * math.sqrt(queries / 2) / sigma))


def hit_probability(scores: npt.NDArray[np.int64], target: int, top_k: int, sigma: float) -> float:
    """Return how often a row is among the K best noised ones.

    Over the row's own noised score t, the others above t are a sum of independent indicators
    (Poisson and binomial); fewer than K of them let the row in. The noise is taken as continuous:
    at more than 10^5 score units a standard deviation the lattice is not seen.

    Args:
        scores: int64[N], exact, in units of the lattice.
        target: position of the row.
        top_k: K.
        sigma: of the noise, in cosine units.
    """
    units = sigma * SQUARED_NORM
    step = 2 * _WIDTH / _STEPS
    z = -_WIDTH + step * (np.arange(_STEPS) + 0.5)
    own = float(scores[target]) / units + z
    others = np.delete(scores, target).astype(float) / units
    # fewer[j]: exactly j of the rows so far are above t.
    fewer = np.zeros((top_k, _STEPS))
    fewer[0] = 1
    for other in others:
        above = special.ndtr(other - own)
        fewer[1:] = fewer[1:] * (1 - above) + fewer[:-1] * above
        fewer[0] *= 1 - above
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return min(1.0, float(density @ fewer.sum(axis=0) * step))


def area_of_counts(queries: int, present: float, absent: float) -> float:
    """Return the area of the number of hits, ties half: two binomial laws.

    Args:
        queries: of all accounts together.
        present, absent: probability of a hit in each world.
    """
    counts = np.arange(queries + 1)
    with_row = stats.binom.pmf(counts, queries, present)
    without = stats.binom.pmf(counts, queries, absent)
    below = np.cumsum(without) - without
    return float(with_row @ (below + without / 2))


def hit_probability_at_scale(
    scores: npt.NDArray[np.int64], own: int, top_k: int, sigma: float
) -> float:
    """Return how often a row beside very many others is among the K best noised ones.

    As `hit_probability`; the number of others above t is taken as Poisson, which is off by less
    than the largest of their probabilities where fewer than K of them are expected. Equal scores
    are counted together.

    Args:
        scores: int64[N] of the others, exact.
        own: the row's score.
        top_k: K.
        sigma: of the noise, in cosine units.
    """
    units = sigma * SQUARED_NORM
    step = 2 * _WIDTH / _STEPS
    z = -_WIDTH + step * (np.arange(_STEPS) + 0.5)
    values, counts = np.unique(scores >> _SHIFT, return_counts=True)
    # The middle of the scores that are counted together.
    others = ((values << _SHIFT) + ((1 << _SHIFT) - 1) / 2) / units
    expected = np.zeros(_STEPS)
    for other, count in zip(others, counts, strict=True):
        expected += count * special.ndtr(other - own / units - z)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return float(density @ special.pdtr(top_k - 1, expected) * step)
