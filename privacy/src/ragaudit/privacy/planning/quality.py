"""How good one answer is: recall and rank loss against noise-free search.

The truth is the exact score. A row's *true rank* is 1 plus the number of rows with a larger
score, so rows of equal score share a rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError

__all__ = ["Ranking", "rank_loss", "recall"]

Scores = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ranking:
    """The noise-free ranking of one question.

    Attributes:
        ranks: int64[N], the true rank of every row, 1 to N.
        ideal: int64[K], the true ranks of the K best rows, rising.
        top_k: K.
    """

    ranks: npt.NDArray[np.int64]
    ideal: npt.NDArray[np.int64]

    @classmethod
    def of(cls, scores: Scores, top_k: int) -> "Ranking":
        """Return the ranking of a question's rows by their exact scores.

        Args:
            scores: int64[N], in lattice units.
            top_k: K, 1 <= K < N.

        Raises:
            MalformedError: scores of another type or shape, or K out of range.
        """
        if scores.dtype != np.int64 or scores.ndim != 1:
            raise MalformedError("wrong type or shape", where="scores", expected="int64[N]")
        if isinstance(top_k, bool) or not 1 <= top_k < len(scores):
            raise MalformedError(
                f"top_k is {top_k}", where="top_k", expected=f"1 to {len(scores) - 1}, below N"
            )
        not_larger = np.searchsorted(np.sort(scores), scores, side="right")
        ranks = len(scores) + 1 - not_larger
        return cls(ranks, np.sort(ranks)[:top_k])

    def recall(self, returned: Sequence[int]) -> float:
        """Return ``|T ∩ true top K| / K``, 0 to 1.

        A returned row counts if its true rank is at most K: of rows that tie at the K-th place
        any is as right as another. Fewer than K returned rows cannot reach 1.

        Args:
            returned: T, at most K distinct positions.

        Raises:
            MalformedError: more than K positions, one twice, or one that is no row.
        """
        return int(np.count_nonzero(self._of(returned) <= self.top_k)) / self.top_k

    def rank_loss(self, returned: Sequence[int]) -> float | None:
        """Return by how many places the returned rows are worse than the best, on average.

        The j-th best of the returned rows is compared with the j-th best of the index; the mean of
        the differences of their true ranks, in places: 0 for the best rows, at most N - |T| without
        ties and N - 1 with them.

        Args:
            returned: as for :meth:`recall`.

        Returns:
            None if nothing was returned.

        Raises:
            MalformedError: as for :meth:`recall`.
        """
        ranks = np.sort(self._of(returned))
        return float(np.mean(ranks - self.ideal[: len(ranks)])) if len(ranks) else None

    def random_recall(self) -> float:
        """Return the expected recall of K rows drawn blindly: K/N, more where rows tie."""
        return int(np.count_nonzero(self.ranks <= self.top_k)) / len(self.ranks)

    def random_rank_loss(self) -> float:
        """Return the expected rank loss of K rows drawn blindly: (N - K)/2 without ties."""
        return float(np.mean(self.ranks)) - float(np.mean(self.ideal))

    @property
    def top_k(self) -> int:
        """Return K."""
        return len(self.ideal)

    def _of(self, returned: Sequence[int]) -> npt.NDArray[np.int64]:
        positions = [*returned]
        if len(positions) > self.top_k or len(set(positions)) != len(positions):
            raise MalformedError(
                "rows returned twice or too many",
                where="returned",
                expected=f"at most {self.top_k} distinct positions",
            )
        if positions and not 0 <= min(positions) <= max(positions) < len(self.ranks):
            raise MalformedError(
                "position out of range", where="returned", expected=f"0 to {len(self.ranks) - 1}"
            )
        return self.ranks[positions]


def recall(scores: Scores, returned: Sequence[int], top_k: int) -> float:
    """Return recall@K of one answer (:meth:`Ranking.recall`)."""
    return Ranking.of(scores, top_k).recall(returned)


def rank_loss(scores: Scores, returned: Sequence[int], top_k: int) -> float | None:
    """Return the mean rank loss of one answer (:meth:`Ranking.rank_loss`)."""
    return Ranking.of(scores, top_k).rank_loss(returned)
