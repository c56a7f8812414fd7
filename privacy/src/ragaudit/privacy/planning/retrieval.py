"""What noise does to retrieval, by simulation of the mechanism.

The truth is noise-free search by the exact score. A row's *true rank* is 1 plus the number of rows
with a larger score, so rows of equal score share a rank. The sampler and the selection come in as
arguments, so that a caller simulates exactly what is deployed, and a researcher anything else.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.planning.price import parsed

__all__ = [
    "CONFIDENCE",
    "Interval",
    "NoiseSource",
    "Ranking",
    "Retrieval",
    "Simulation",
    "mean_interval",
    "rank_loss",
    "recall",
    "simulate",
]

CONFIDENCE = 0.95
"""Coverage of every interval of a plan, two-sided."""


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval, in the unit of the values.

    Attributes:
        mean: the estimate.
        low, high: ends of the interval, ``low <= mean <= high``.
    """

    mean: float
    low: float
    high: float


def mean_interval(
    values: npt.NDArray[np.float64], *, lowest: float = 0.0, highest: float
) -> Interval:
    """Return the mean of independent values with Student's t interval at 95 %.

    The unit is one value, here one question with all its trials averaged, so the interval covers
    the questions that these are a sample of, not these alone. It is cut to the range of possible
    means. Where all n values agree, t would give no width; then other values have a probability of
    at most ``1 - 0.025^(1/n)``, which bounds the mean.

    Args:
        values: float64[n], n >= 2, each between ``lowest`` and ``highest``.
        lowest, highest: finite ends of the range that a value can have.

    Raises:
        MalformedError: fewer than two values, one outside the range, or an infinite range.
    """
    if not math.isfinite(highest - lowest):
        raise MalformedError("an infinite range", where="highest", expected="a finite number")
    if values.ndim != 1 or len(values) < 2:
        raise MalformedError(
            f"{values.size} questions", where="questions", expected="at least 2 for an interval"
        )
    if not np.all((values >= lowest) & (values <= highest)):
        raise MalformedError(
            "value out of range", where="values", expected=f"{lowest} to {highest}"
        )
    # Imported here: half a second, and only a simulation needs it.
    from scipy.special import stdtrit  # noqa: PLC0415

    mean = float(np.mean(values))
    # Agreement of a few questions is no certainty about the others.
    if np.all(values == values[0]):
        others = 1 - ((1 - CONFIDENCE) / 2) ** (1 / len(values))
        return Interval(mean, mean - others * (mean - lowest), mean + others * (highest - mean))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    margin = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * error
    return Interval(mean, max(lowest, mean - margin), min(highest, mean + margin))


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
        # Ties share the better rank: of equal scores any is as right as another.
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
        # NumPy would take -1 for the last row.
        if positions and not 0 <= min(positions) <= max(positions) < len(self.ranks):
            raise MalformedError(
                "position out of range", where="returned", expected=f"0 to {len(self.ranks) - 1}"
            )
        return self.ranks[positions]


def recall(scores: Scores, returned: Sequence[int], top_k: int) -> float:
    """Return recall@K of one answer (:meth:`Ranking.recall`).

    Args:
        scores: int64[N], exact, in lattice units.
        returned: at most K distinct positions.
        top_k: K, 1 <= K < N.
    """
    return Ranking.of(scores, top_k).recall(returned)


def rank_loss(scores: Scores, returned: Sequence[int], top_k: int) -> float | None:
    """Return the mean rank loss of one answer (:meth:`Ranking.rank_loss`).

    Args:
        scores, returned, top_k: as for :func:`recall`.
    """
    return Ranking.of(scores, top_k).rank_loss(returned)


class NoiseSource(Protocol):
    """Noise of one sigma."""

    def __call__(self, question: int, trial: int, count: int) -> Scores:
        """Return int64[count], one independent draw for every row, in lattice units.

        Draws of different (question, trial) are independent.
        """


Select = Callable[[Scores, int], Sequence[int]]
"""Noised scores int64[N] and K to the returned positions, at most K."""


@dataclass(frozen=True)
class Retrieval:
    """Quality of retrieval at one sigma, averaged over questions.

    Attributes:
        sigma: decimal, cosine units.
        recall: recall@K, 0 to 1.
        rank_loss: mean rank loss in places, over the questions that returned anything; None if
            fewer than two did.
        returned: mean number of returned rows, 0 to K.
        by_question: recall of every question in its order, the mean of its trials.
    """

    sigma: str
    recall: Interval
    rank_loss: Interval | None
    returned: float
    by_question: tuple[float, ...]


@dataclass(frozen=True)
class Simulation:
    """The results for several sigmas, with what blind choice would give.

    Attributes:
        points: in rising sigma.
        random_recall, random_rank_loss: expectations for K rows drawn blindly.
        top_k: K.
        questions: number of questions, the unit of the intervals.
        trials: draws of noise for every question and sigma.
    """

    points: tuple[Retrieval, ...]
    random_recall: float
    random_rank_loss: float
    top_k: int
    questions: int
    trials: int

    def at(self, sigma: str) -> Retrieval:
        """Return the point of one sigma.

        Args:
            sigma: decimal; 0.1 and 0.10 are the same.

        Raises:
            MalformedError: it was not simulated.
        """
        for point in self.points:
            if Fraction(point.sigma) == Fraction(sigma):
                return point
        raise MalformedError(f"sigma {sigma} was not simulated", where="sigma")


def simulate(
    scored: Iterable[Scores],
    noise: Mapping[str, NoiseSource],
    select: Select,
    *,
    top_k: int,
    trials: int,
    progress: Callable[[int], object] = lambda _: None,
) -> Simulation:
    """Return the quality of noise-then-select at every sigma.

    Args:
        scored: for each question the exact scores of all rows, int64[N] in lattice units; made
            one at a time, so that large indexes need memory for one question only. N may differ.
        noise: sigma (decimal, cosine units) to its noise.
        select: the selection from the noised scores.
        top_k: K, 1 <= K < N.
        trials: draws of noise for each question and sigma, >= 1.
        progress: called with the number of questions done.

    Raises:
        MalformedError: no sigma, one that is not a decimal, fewer than two questions, K or
            trials out of range; ``where`` names the argument.
    """
    if not noise:
        raise MalformedError("no sigma to simulate", where="noise", expected="at least one")
    if isinstance(trials, bool) or trials < 1:
        raise MalformedError(f"trials is {trials}", where="trials", expected="at least 1")
    # As numbers: as texts, 10 would come before 2.
    sigmas = sorted(noise, key=lambda expectation: parsed(expectation, "noise"))
    measured = []
    blind = []
    largest_loss = 0
    for question, scores in enumerate(scored):
        ranking = Ranking.of(scores, top_k)
        largest_loss = max(largest_loss, len(scores) - 1)  # one row returned, the worst
        blind.append((ranking.random_recall(), ranking.random_rank_loss()))
        measured.append(
            [_ask(scores, ranking, noise[sigma], select, question, trials) for sigma in sigmas]
        )
        progress(question + 1)
    values = np.array(measured, dtype=np.float64).reshape(len(measured), len(sigmas), 3)
    return Simulation(
        points=tuple(_point(sigma, values[:, at], largest_loss) for at, sigma in enumerate(sigmas)),
        random_recall=float(np.mean([expectation[0] for expectation in blind])),
        random_rank_loss=float(np.mean([expectation[1] for expectation in blind])),
        top_k=top_k,
        questions=len(measured),
        trials=trials,
    )


def _ask(
    scores: Scores,
    ranking: Ranking,
    noise: NoiseSource,
    select: Select,
    question: int,
    trials: int,
) -> tuple[float, float, float]:
    """Return mean recall, mean rank loss (NaN if no trial returned a row), mean number of rows."""
    recalls, losses, counts = [], [], []
    for trial in range(trials):
        # Fresh noise for every row and trial, as a deployed window draws it.
        returned = select(scores + noise(question, trial, len(scores)), ranking.top_k)
        recalls.append(ranking.recall(returned))
        counts.append(len(returned))
        loss = ranking.rank_loss(returned)
        if loss is not None:
            losses.append(loss)
    mean_loss = float(np.mean(losses)) if losses else float("nan")
    return float(np.mean(recalls)), mean_loss, float(np.mean(counts))


def _point(sigma: str, values: npt.NDArray[np.float64], largest_loss: int) -> Retrieval:
    # A question that returned nothing has no rank loss; it counts in recall and in the rows.
    losses = values[:, 1][~np.isnan(values[:, 1])]
    return Retrieval(
        sigma=sigma,
        recall=mean_interval(values[:, 0], highest=1.0),
        rank_loss=mean_interval(losses, highest=largest_loss) if len(losses) >= 2 else None,
        returned=float(np.mean(values[:, 2])),
        by_question=tuple(values[:, 0].tolist()),
    )
