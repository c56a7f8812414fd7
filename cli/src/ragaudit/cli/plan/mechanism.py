"""The deployed mechanism for the simulation: the compiled sampler, exact scores, selection."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, table
from ragaudit.circuits.selection import select
from ragaudit.cli.plan.collection import Collection
from ragaudit.encoding.digests import structure
from ragaudit.privacy.planning import Interval, NoiseSource, Ranking, mean_interval

__all__ = ["SeededNoise", "noise_of", "quantised_recall", "scored", "select"]

# Cosines are ranked as integers; steps of 2^-50 are finer than single precision.
_COSINE_UNIT = 2.0**50


class SeededNoise:
    """The discrete Gaussian "ragaudit/v1/dgs" of one sigma, repeatable by a seed.

    Another key for every (seed, sigma, question, trial); these keys serve no deployed window.

    Raises:
        MalformedError: sigma is no decimal, or outside the sampler's range.
    """

    def __init__(self, sigma: str, seed: str) -> None:
        self._sigma = sigma
        self._seed = seed
        self._parameters = NoiseParameters.for_sigma(sigma)
        self._thresholds = table(self._parameters).thresholds

    def __call__(self, question: int, trial: int, count: int) -> npt.NDArray[np.int64]:
        """Return int64[count], the noise of every row in lattice units."""
        key = structure("plan/noise", self._seed, self._sigma, question, trial)
        return core.sample_noise(
            self._thresholds, self._parameters.factor, self._parameters.levels, key, count
        )


def noise_of(sigmas: Sequence[str], seed: str) -> Mapping[str, NoiseSource]:
    """Return sigma (decimal, cosine units) -> its noise.

    Args:
        sigmas: decimals, cosine units.
        seed: makes the draws repeatable.

    Raises:
        MalformedError: as :class:`SeededNoise`.
    """
    return {sigma: SeededNoise(sigma, seed) for sigma in sigmas}


def scored(collections: Sequence[Collection]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the exact scores int64[N] of every question of every collection, one at a time.

    Args:
        collections: their questions follow one another in this order.
    """
    for collection in collections:
        scorer = core.Scorer(collection.rows)
        for question in collection.questions:
            yield scorer.scores(question.astype(np.int16))


def quantised_recall(collections: Sequence[Collection], top_k: int) -> Interval:
    """Return recall@K of noise-free search among the integer vectors, against the real ones.

    What quantisation costs before any noise; the simulation's truth is the integer scores.

    Args:
        collections: each with more than K rows.
        top_k: K, at least 1.
    """
    values = []
    exact = scored(collections)
    for collection in collections:
        rows, queries = _normalized(collection.vectors), _normalized(collection.question_vectors)
        for real in queries:
            truth = np.rint(rows @ real * _COSINE_UNIT).astype(np.int64)
            returned = select(next(exact), top_k)
            values.append(Ranking.of(truth, top_k).recall(returned))
    return mean_interval(np.array(values, dtype=np.float64), highest=1.0)


def _normalized(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    wide /= np.max(np.abs(wide), axis=1, keepdims=True)  # so that no square overflows
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    return wide
