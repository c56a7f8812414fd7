"""What noise does to retrieval, by simulation of the mechanism.

The sampler and the selection come in as arguments, so that a caller simulates exactly what is
deployed, and a researcher anything else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.planning.interval import Interval, mean_interval
from ragaudit.privacy.planning.quality import Ranking, Scores
from ragaudit.privacy.planning.targets import parsed

__all__ = ["NoiseSource", "Retrieval", "Simulation", "simulate"]


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
    losses = values[:, 1][~np.isnan(values[:, 1])]
    return Retrieval(
        sigma=sigma,
        recall=mean_interval(values[:, 0], highest=1.0),
        rank_loss=mean_interval(losses, highest=largest_loss) if len(losses) >= 2 else None,
        returned=float(np.mean(values[:, 2])),
        by_question=tuple(values[:, 0].tolist()),
    )
