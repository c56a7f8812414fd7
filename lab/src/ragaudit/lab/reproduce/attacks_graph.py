"""HNSW over rows as the prover scores them, and how much of the best it finds."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = ["BUILDING", "LINKS", "SEARCHING", "BestScores", "Graph", "Share", "share_found"]

LINKS, BUILDING, SEARCHING = 32, 40, 128
"""Of HNSW; the paper's are 64, 200, 128, with which a graph takes three times as long."""

_INTERVAL = float(stats.norm.ppf(0.975))

Scores = npt.NDArray[np.float32]


class Graph:
    """HNSW over rows as the prover scores them: products are exact, on any processor."""

    def __init__(self, dimension: int) -> None:
        """Begin without rows.

        Args:
            dimension: d.

        Raises:
            ImportError: FAISS is not installed.
        """
        import faiss  # noqa: PLC0415 - optional

        self._faiss = faiss
        kind = faiss.ScalarQuantizer.QT_8bit_direct_signed
        metric = faiss.METRIC_INNER_PRODUCT
        # C++ overloads it: the stubs know the copying constructor alone.
        self._index = faiss.IndexHNSWSQ(dimension, kind, LINKS, metric)  # type: ignore[arg-type]
        self._index.hnsw.efConstruction, self._index.hnsw.efSearch = BUILDING, SEARCHING

    def add(self, rows: npt.NDArray[np.int8]) -> None:
        """Add rows, int8[N, d]."""
        threads = self._faiss.omp_get_max_threads()
        # Several threads make another graph in every run.
        self._faiss.omp_set_num_threads(1)
        try:
            self._index.add(rows.astype(np.float32))
        finally:
            self._faiss.omp_set_num_threads(threads)

    def search(
        self, questions: npt.NDArray[np.int16], size: int
    ) -> tuple[Scores, npt.NDArray[np.int64]]:
        """Return scores of the rows that are found, best first, and their positions, [Q, size].

        Args:
            questions: int16[Q, d].
            size: of the list, at most `SEARCHING`. Where fewer are found, positions are -1.
        """
        found, places = self._index.search(questions.astype(np.float32), size)
        return found, np.asarray(places, dtype=np.int64)


class BestScores:
    """The largest scores of each of many questions, over rows that come in blocks."""

    def __init__(self, questions: npt.NDArray[np.int16], size: int) -> None:
        """Begin without rows.

        Args:
            questions: int16[Q, d], of norm at most 127: products in binary32 are exact then
                (`ragaudit.circuits.selection.scores`).
            size: how many scores are kept of each question.
        """
        self._questions = questions.astype(np.float32)
        self._best = np.full((len(questions), size), -np.inf, dtype=np.float32)

    def add(self, rows: npt.NDArray[np.int8]) -> None:
        """Look at rows, int8[N, d]."""
        every = np.hstack([self._best, self._questions @ rows.astype(np.float32).T])
        size = self._best.shape[1]
        self._best = np.partition(every, -size, axis=1)[:, -size:]

    def descending(self) -> Scores:
        """Return them, float32[Q, size], the largest first."""
        return np.sort(self._best, axis=1)[:, ::-1]


class Share(NamedTuple):
    """How much of the best rows a list has, over questions.

    Attributes:
        mean: 0 to 1.
        error: standard error of the mean, over questions.
        low, high: 95 % interval of the mean.
    """

    mean: float
    error: float
    low: float
    high: float


def share_found(found: Scores, best: Scores, size: int) -> Share:
    """Return the mean share of the ``size`` best rows that a search found; ties count as found.

    Args:
        found: scores of what was found, float32[Q, >= size], best first, Q >= 2.
        best: the largest scores of all rows, likewise.
        size: of both lists.
    """
    shares = (found[:, :size] >= best[:, size - 1, np.newaxis]).mean(axis=1)
    mean, error = float(shares.mean()), float(shares.std(ddof=1)) / math.sqrt(len(shares))
    apart = _INTERVAL * error
    return Share(mean, error, max(0.0, mean - apart), min(1.0, mean + apart))
