"""What noise does to retrieval, by simulation of the mechanism; what a recall costs; the verdict.

The truth is noise-free search by the exact score. A row's *true rank* is 1 plus the number of rows
with a larger score, so rows of equal score share a rank. The sampler and the selection come in as
arguments, so that a caller simulates exactly what is deployed, and a researcher anything else.

`cost_of_recall` looks a recall up in a simulation. `largest_recall` knows no score, corpus or
sigma: a row that answers a question is returned with probability R, recall; a row that does not
with K/N, as any of the others. Replace the first by the second: over m questions with independent
noise the number of times that it is returned changes from Binomial(m, R) to Binomial(m, K/N), and
an attacker may count. So both have to be (epsilon, delta)-indistinguishable, whatever the mechanism
is (docs/notes/accounting.md, claim 25).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import ceil_decimal, floor_decimal
from ragaudit.privacy.guarantees import Strength, strength
from ragaudit.privacy.numbers import Number, count, real
from ragaudit.privacy.planning.budget import (
    Budget,
    Missing,
    Price,
    Targets,
    parsed,
    price_of_account,
    price_of_coalition,
)

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


LARGEST_QUERIES = 10**8
"""Beyond it, sums over tails take too long."""

_STEPS = 60
# Of delta: more than the logarithms lose, so that the limit is never too small.
_LENIENT = 1 + 1e-6
_NEGLIGIBLE = 1e-17


def largest_recall(epsilon: Number, delta: Number, queries: int, blind: Number) -> float:
    """Return the largest R >= blind that the guarantee allows, rounded up by less than 1e-6.

    Args:
        epsilon: natural logarithm, >= 0.
        delta: in [0, 1].
        queries: m, 1 to ``LARGEST_QUERIES``: questions that the guarantee covers, all of which
            the row may answer.
        blind: K/N, the recall of blind choice, in (0, 1].

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    loss = real(epsilon, "epsilon", least=0)
    allowed = real(delta, "delta", least=0, most=1) * _LENIENT
    m = count(queries, "queries", most=LARGEST_QUERIES)
    share = real(blind, "blind", above=0, most=1)
    if share == 1:
        return 1.0
    if allowed == 0:
        # Every count keeps the ratio: m hits bind from above, m misses from below.
        hits = math.log(share) + loss / m
        return min(1.0, math.exp(min(0.0, hits)), 1 - (1 - share) * math.exp(-loss / m))

    def keeps(recall: float) -> bool:
        return (
            _hockey_stick(m, recall, share, loss) <= allowed
            and _hockey_stick(m, 1 - share, 1 - recall, loss) <= allowed
        )

    low, high = share, 1.0
    if keeps(high):
        return high
    # The upper end is returned: what nobody can exceed is rounded up.
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return high


def ceiling_of(price: Price, blind: Number) -> float | Missing:
    """Return the largest recall under what a price promises for its queries.

    Args:
        price: the promise.
        blind: K/N, the recall of blind choice, in (0, 1].

    Returns:
        Missing without a finite epsilon, and for more than ``LARGEST_QUERIES``.
    """
    if price.epsilon is None:
        return Missing("there is no finite epsilon")
    if price.queries > LARGEST_QUERIES:
        return Missing(f"more than {LARGEST_QUERIES} queries")
    return largest_recall(price.epsilon, price.delta, price.queries, blind)


def _hockey_stick(trials: int, more: float, less: float, epsilon: float) -> float:
    """Return ``max over t of P[A >= t] - e^epsilon P[B >= t]``, A ~ Bin(n, more), B ~ Bin(n, less).

    The likelihood ratio rises with t, so the sum of all positive differences begins at the first t
    whose ratio exceeds e^epsilon.
    """
    if less <= 0:
        return -math.expm1(trials * math.log1p(-more)) if more < 1 else 1.0
    if more >= 1:
        # A is n always; B is n with probability less^n.
        return 1 - math.exp(min(0.0, epsilon + trials * math.log(less)))
    up, down = math.log(more / less), math.log1p(-more) - math.log1p(-less)
    # Equal rates: no count tells the two apart.
    if up - down <= 0:
        return 0.0
    start = max(0, math.floor((epsilon - trials * down) / (up - down)) + 1)
    # No count has so large a ratio: e^epsilon covers all of them.
    if start > trials:
        return 0.0
    tail_more = _upper_tail(trials, more, start)
    log_tail_less = _log_upper_tail(trials, less, start) + epsilon
    return max(0.0, tail_more - math.exp(min(0.0, log_tail_less)))


def _upper_tail(trials: int, rate: float, start: int) -> float:
    if start == 0:
        return 1.0
    if start > trials * rate:
        return math.exp(_log_upper_tail(trials, rate, start))
    # P[X <= start - 1], which is P[n - X >= n - start + 1].
    return 1 - math.exp(_log_upper_tail(trials, 1 - rate, trials - start + 1))


def _log_upper_tail(trials: int, rate: float, start: int) -> float:
    """Return ``ln P[X >= start]`` by the first term and the ratios of the following ones."""
    if start == 0:
        return 0.0
    if start <= trials * rate:
        return math.log(_upper_tail(trials, rate, start))
    term = total = 1.0
    odds = rate / (1 - rate)
    for successes in range(start, trials):
        # By ratios: the binomial coefficients themselves exceed every float.
        term *= (trials - successes) / (successes + 1) * odds
        total += term
        if term < _NEGLIGIBLE * total:
            break
    first = (
        math.lgamma(trials + 1)
        - math.lgamma(start + 1)
        - math.lgamma(trials - start + 1)
        + start * math.log(rate)
        + (trials - start) * math.log1p(-rate)
    )
    return min(0.0, first + math.log(total))


USELESS_GAIN = 0.5
"""Retrieval is useless below half of the way from blind choice to perfect recall."""

GOOD_GAIN = 0.9
"""Retrieval is good from nine tenths of that way on."""


class Service(StrEnum):
    """What the noise leaves of retrieval."""

    USELESS = "useless"
    WEAK = "weak"
    GOOD = "good"
    UNDECIDED = "undecided"
    NOT_SIMULATED = "not simulated"


@dataclass(frozen=True)
class Verdict:
    """A plan in two grades and a sentence.

    Attributes:
        service: of retrieval.
        promise: of the guarantee to ``k_max`` accounts over all windows.
        sentence: both, with their figures.
    """

    service: Service
    promise: Strength
    sentence: str


def judge(plan: Budget, simulation: Simulation | None) -> Verdict:
    """Return the verdict on a plan.

    The promise is that of ``k_max`` accounts over *all* windows of the targets, graded by its
    membership advantage (:func:`~ragaudit.privacy.guarantees.strength`); without a finite epsilon
    it is empty. Retrieval is graded by the 95 % interval of recall at the planned sigma, on the way
    from blind choice to perfect recall: useless if it ends at or below USELESS_GAIN, good if it
    begins above GOOD_GAIN, weak if it begins above USELESS_GAIN, else undecided: more questions are
    needed. A promise that sigma does not keep is named whatever the grades.

    Args:
        plan: its sigma is judged.
        simulation: with the planned sigma among its points; None if there was none, and then
            nothing is said about usefulness.
    """
    promise, promise_text = _promise(plan)
    service, service_text = _service(plan, simulation)
    sentence = "; ".join((f"Retrieval {service_text}", f"promise {promise_text}", *_broken(plan)))
    return Verdict(service, promise, f"{sentence}.")


def _promise(plan: Budget) -> tuple[Strength, str]:
    row = plan.judged
    who = "one account" if row.accounts == 1 else f"{row.accounts} accounts together"
    when = "" if row.windows == 1 else f" over {row.windows} windows"
    # Without a finite epsilon nothing is promised, whatever the advantage would say.
    if row.price.epsilon is None:
        return Strength.EMPTY, f"empty: no finite epsilon for {who}{when}"
    advantage = Fraction(row.price.advantage)
    grade = strength(advantage)
    right = ceil_decimal(50 * (1 + advantage), 1)
    return grade, (
        f"{grade}: {who}{when} may be right about whether a {plan.targets.protected_unit} is there "
        f"{right} times in 100 (membership advantage {ceil_decimal(advantage, 3)}, epsilon "
        f"{_rounded(row.price.epsilon)} at delta {row.price.delta})"
    )


def _broken(plan: Budget) -> list[str]:
    """Return a clause on the promise to one account if sigma does not keep it, else nothing."""
    # None is not False: where nothing was promised, nothing can be broken.
    if plan.kept is not False:
        return []
    real = plan.account.epsilon
    return [
        f"the promise is broken, one account has "
        f"{'no finite epsilon' if real is None else f'epsilon {_rounded(real)}'} at delta "
        f"{plan.targets.delta}, not {plan.targets.epsilon}"
    ]


def _rounded(epsilon: str) -> str:
    return ceil_decimal(Fraction(epsilon), 2)


def _service(plan: Budget, simulation: Simulation | None) -> tuple[Service, str]:
    if simulation is None:
        return Service.NOT_SIMULATED, "not simulated"
    # Against blind choice: a recall of 0.5 is nothing where K is half of the rows.
    interval, blind = simulation.at(plan.sigma).recall, simulation.random_recall
    half, most = (blind + gain * (1 - blind) for gain in (USELESS_GAIN, GOOD_GAIN))
    figures = (
        f"recall@{simulation.top_k} {interval.mean:.3f}, 95 % interval {interval.low:.3f} to "
        f"{interval.high:.3f}; blind choice {blind:.3f}, half way {half:.3f}"
    )
    # By the ends of the interval: an estimate alone could be luck with the questions.
    if interval.high <= half:
        return Service.USELESS, f"useless ({figures})"
    if interval.low > most:
        return Service.GOOD, f"good ({figures})"
    if interval.low > half:
        return Service.WEAK, f"weak ({figures})"
    advice = f"{simulation.questions} questions do not tell, ask more"
    return Service.UNDECIDED, f"undecided ({advice}: {figures})"
