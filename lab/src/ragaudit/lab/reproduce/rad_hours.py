"""Figure 6: the optimal attack on working hours released with truncated Laplace noise.

Records 0 to 100, sensitivity 100, outputs clamped to [0, 100], no knowledge. The Adult data are
not used; where the paper takes the prior from them, a prior stands in that has the counts of its
five most frequent values, as printed in many places, and spreads the others evenly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ragaudit.lab.reproduce.comparison import Comparison, Table, sampling_tolerance
from ragaudit.lab.reproduce.rad_published import FIGURE_6, FIGURE_6_CLAIMS
from ragaudit.lab.reproduce.rad_utility import laplace_success
from ragaudit.lab.risk.estimation import contributions
from ragaudit.lab.risk.mechanisms import LaplaceNoise
from ragaudit.lab.risk.one_dimensional import line_advantage
from ragaudit.lab.risk.optimal_attack import OptimalAttack
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.threat import SuccessSets, ThreatModel
from ragaudit.lab.risk.validation import FloatArray, IntegerArray

__all__ = ["ETAS", "PRIORS", "Hours", "cells", "optimum", "points", "priors", "table"]

HOURS = np.arange(101.0)
PRIORS = ("uniform", "stand-in for Adult's", "1/2 at 0 and at 100")
ETAS = (0, 40, 80, 100)
EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)

FREQUENT = {40: 15217, 50: 2819, 45: 1824, 60: 1475, 35: 1297}
PEOPLE = 32561
LEAST, MOST = 1, 99
"""Hours per week in Adult: the five most frequent values, all records, least and greatest."""

GRID = 4001
"""Outputs for which the best guess is looked up; the ends are the clamp's atoms."""

SIMULATED = "Simulated, {runs:,} attacks; standard error {error:.4f}."
WORST = (
    "Half of the records at either end is called the worst case. Three groups 50 hours apart are "
    "worse where epsilon is large: then nearly 2/3 can be gained, and 1/2 with two groups."
)
BEST = (
    "The empirical prior is called the best case. At eta = 0 it is not, with the stand-in: nearly "
    "half of it is one record, which is easier to name than one of 101."
)
NO_PEAK = (
    "Of eta = 40 it is said that the advantage rises up to there and then falls. That is so of the "
    "uniform prior and of the stand-in; with two records it is the same for all eta below 100."
)


@dataclass(frozen=True, slots=True)
class Hours:
    """One prior, epsilon and eta.

    Attributes:
        prior, epsilon, eta: which.
        optimum: advantage of the optimal attack, by quadrature.
        runs: attacks simulated.
        simulated, error: mean advantage of these and its standard error.
        success: share of them that hit (ReRo).
        success_bound: Eq. (3) with Laplace noise's own trade-off function.
    """

    prior: str
    epsilon: float
    eta: int
    optimum: float
    runs: int
    simulated: float
    error: float
    success: float
    success_bound: float


def priors() -> dict[str, FinitePrior]:
    """Return the figure's three priors over 0 to 100 hours."""
    stand_in = np.zeros(len(HOURS))
    stand_in[LEAST : MOST + 1] = 1.0
    stand_in[list(FREQUENT)] = 0.0
    stand_in *= (PEOPLE - sum(FREQUENT.values())) / stand_in.sum()
    stand_in[list(FREQUENT)] = list(FREQUENT.values())
    ends = np.zeros(len(HOURS))
    ends[[0, -1]] = 0.5
    laws = (FinitePrior.uniform(len(HOURS)), FinitePrior(stand_in / PEOPLE), FinitePrior(ends))
    return dict(zip(PRIORS, laws, strict=True))


def cells() -> int:
    """Return how many times :func:`points` calls ``advance``."""
    return len(PRIORS) * len(EPSILONS) * len(ETAS)


def optimum(prior: FinitePrior, epsilon: float, eta: float) -> float:
    """Return the optimal advantage against a prior over 0 to 100 hours.

    Args:
        prior: over the hours 0 to 100.
        epsilon: > 0, of Laplace noise for sensitivity 100; the output is clamped to the range.
        eta: hours by which a guess may be off.
    """
    noise = LaplaceNoise.calibrated(epsilon, 100.0)
    return line_advantage(HOURS, noise, _threat(prior, eta), clamp=(0.0, 100.0)).value


def points(
    runs: int, generator: np.random.Generator, advance: Callable[[int], object]
) -> tuple[Hours, ...]:
    """Attack ``runs`` >= 2 times for each prior, epsilon and eta.

    Args:
        runs: attacks for each.
        generator: of all randomness.
        advance: called with 1 after each.
    """
    found = []
    for name, prior in priors().items():
        for epsilon in EPSILONS:
            for eta in ETAS:
                found.append(_point(name, prior, epsilon, eta, runs, generator))
                advance(1)
    return tuple(found)


def table(found: tuple[Hours, ...]) -> Table:
    """Return optimum and simulation beside the references, and two claims that do not hold."""
    by_cell = {(each.prior, each.epsilon, each.eta): each for each in found}
    rows = []
    for (name, epsilon, eta), corrected in FIGURE_6.items():
        each = by_cell[name, epsilon, eta]
        where = f"{name}, eps = {epsilon:g}, eta = {eta}"
        rows += [
            Comparison(f"{where}: optimum", None, corrected, each.optimum),
            Comparison(f"{where}: attacks", None, corrected, each.simulated,
                       SIMULATED.format(runs=each.runs, error=each.error),
                       sampling_tolerance(each.error, each.runs)),
        ]  # fmt: skip
    certain = [each.success for each in found if each.eta == HOURS[-1]]
    rows.append(
        Comparison("eta = 100: success of the attacks (ReRo), any prior and epsilon", "1", "1",
                   min(certain), formula="maximal risk, section 7.3.2")
    )  # fmt: skip
    return Table(
        "figure-6", "Working hours, truncated Laplace noise: advantage", "Figure 6",
        (*rows, *_claims()), (NO_PEAK,),
    )  # fmt: skip


def _claims() -> list[Comparison]:
    worst, three = FIGURE_6_CLAIMS["worst"]
    best, stand_in = FIGURE_6_CLAIMS["best"]
    thirds = np.zeros(len(HOURS))
    thirds[[0, 50, 100]] = 1 / 3
    return [
        Comparison("1/3 at 0, 50 and 100, eps = 10, eta = 0: optimum", worst, three,
                   optimum(FinitePrior(thirds), 10.0, 0), WORST,
                   formula="prior 1/2 at 0 and at 100 as the worst, section 7.3.3"),
        Comparison("stand-in for Adult's, eps = 4, eta = 0: optimum", best, stand_in,
                   optimum(priors()[PRIORS[1]], 4.0, 0), BEST,
                   formula="uniform prior as worse than the empirical one, section 7.3.3"),
    ]  # fmt: skip


def _threat(prior: FinitePrior, eta: float) -> ThreatModel:
    return ThreatModel.reconstruction(prior, SuccessSets.on_line(HOURS, eta))


def _point(
    name: str, prior: FinitePrior, epsilon: float, eta: int, runs: int,
    generator: np.random.Generator,
) -> Hours:  # fmt: skip
    noise, threat = LaplaceNoise.calibrated(epsilon, 100.0), _threat(prior, eta)
    targets = generator.choice(prior.records, runs, p=prior.probabilities)
    # Clamped after the noise, which is post-processing and leaves epsilon as it is.
    outputs = np.clip(HOURS[targets] + generator.laplace(0.0, noise.scale, runs), 0.0, 100.0)
    guesses = _best(threat, noise, generator)[_nearest(outputs)]
    samples = contributions(targets, guesses, threat)
    hits = np.abs(HOURS[guesses] - HOURS[targets]) <= eta
    return Hours(
        name, epsilon, eta, optimum(prior, epsilon, eta), runs, float(samples.mean()),
        float(samples.std(ddof=1)) / math.sqrt(runs), float(hits.mean()),
        laplace_success(min(1.0, float(threat.success.masses(prior).max())), epsilon),
    )  # fmt: skip


def _best(threat: ThreatModel, noise: LaplaceNoise, generator: np.random.Generator) -> IntegerArray:
    """The best guess for each output of the grid; its ends stand for the clamp's atoms."""
    outputs = np.linspace(0.0, 100.0, GRID)
    logarithms = np.log(noise.density(outputs[:, None] - HOURS))
    logarithms[0] = np.log(noise.cdf(-HOURS))
    logarithms[-1] = np.log(noise.cdf(HOURS - 100.0))
    return OptimalAttack(threat).guess(logarithms, 0, generator)


def _nearest(outputs: FloatArray) -> IntegerArray:
    inner = np.clip(np.rint(outputs / 100.0 * (GRID - 1)).astype(np.int64), 1, GRID - 2)
    return np.where(outputs <= 0.0, 0, np.where(outputs >= 100.0, GRID - 1, inner))
