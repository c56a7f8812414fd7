"""Figures 10 and 11: the optimal attack on a continuous record, by quadrature and by simulation.

The paper nests three Monte Carlo procedures to evaluate Theorem 4.3; quadrature needs none. The
simulation runs the attack itself and is only a cross-check.
"""

import math
from dataclasses import dataclass

import numpy as np
from ragaudit.lab.reproduce.comparison import Comparison, Table, sampling_tolerance
from ragaudit.lab.reproduce.rad_bounds import continuous_prior
from ragaudit.lab.reproduce.rad_published import FIGURE_11
from ragaudit.lab.risk.continuous import continuous_advantage
from ragaudit.lab.risk.mechanisms import ExponentialMechanism
from ragaudit.lab.risk.priors import ContinuousPrior
from ragaudit.lab.risk.validation import FloatArray

__all__ = ["ETAS", "PRIORS", "Point", "points", "table"]

EPSILONS = (1.0, 2.0, 5.0, 10.0, 15.0)
ETAS = (0.1, 0.25, 0.5, 0.75)
PRIORS = {"U(0, 1)": "uniform", "Beta(0.1, 0.1)": "beta"}
"""Of Figures 10 and 11."""

GRID = 801
SIMULATED = "Simulated, {runs:,} attacks; standard error {error:.5f}."
NESTED = (
    "The paper plots means of its nested sampling, J = 500 times, with 95 % intervals, and prints "
    "no digits; these are the values that it estimates. A maximum of sampled gains is too large on "
    "average, so for small N its means are above them."
)
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Point:
    """One prior, epsilon and eta.

    Attributes:
        quadrature: the optimal advantage.
        simulated: mean over ``samples`` attacks; ``half_width`` of its 95 % normal interval.
    """

    prior: str
    epsilon: float
    eta: float
    quadrature: float
    samples: int
    simulated: float
    half_width: float


def points(samples: int, generator: np.random.Generator) -> tuple[Point, ...]:
    """Return every point of both figures, by quadrature and simulated.

    Args:
        samples: attacks at each point.
        generator: of all randomness.
    """
    return tuple(
        _point(name, epsilon, eta, samples, generator)
        for name in PRIORS
        for epsilon in EPSILONS
        for eta in ETAS
    )


def table(found: tuple[Point, ...]) -> Table:
    """Return Figure 11's points, by quadrature and simulated, beside their references."""
    rows = []
    for each in found:
        if each.prior != "Beta(0.1, 0.1)":
            continue
        corrected = FIGURE_11[each.epsilon, each.eta]
        where = f"eps = {each.epsilon:g}, eta = {each.eta:g}"
        error = each.half_width / NORMAL_95
        rows += [
            Comparison(f"{where}: quadrature", None, corrected, each.quadrature),
            Comparison(f"{where}: attacks", None, corrected, each.simulated,
                       SIMULATED.format(runs=each.samples, error=error),
                       sampling_tolerance(error, each.samples)),
        ]  # fmt: skip
    return Table(
        "figure-11", "Exponential mechanism on [0, 1], prior Beta(0.1, 0.1)", "Figure 11",
        tuple(rows), (NESTED,),
    )  # fmt: skip


def _point(
    name: str, epsilon: float, eta: float, samples: int, generator: np.random.Generator
) -> Point:
    mechanism, prior = ExponentialMechanism(epsilon), continuous_prior(PRIORS[name])
    exact = continuous_advantage(prior, mechanism, eta).value
    records = _records(name, samples, generator)
    drawn = _attacks(records, prior, mechanism, eta, generator)
    half = NORMAL_95 * float(drawn.std(ddof=1)) / math.sqrt(samples)
    return Point(name, epsilon, eta, exact, samples, float(drawn.mean()), half)


def _records(name: str, samples: int, generator: np.random.Generator) -> FloatArray:
    if PRIORS[name] == "uniform":
        return generator.random(samples)
    return generator.beta(0.1, 0.1, samples)


def _attacks(
    records: FloatArray, prior: ContinuousPrior, mechanism: ExponentialMechanism, eta: float,
    generator: np.random.Generator,
) -> FloatArray:  # fmt: skip
    """One sample of the advantage per attack: hit less prior mass of the guess's interval."""
    outputs = _released(records, mechanism.scale, generator)
    grid = np.linspace(0.0, 1.0, GRID)
    guesses = _best(prior, mechanism, eta, grid)[np.rint(outputs * (GRID - 1)).astype(np.int64)]
    return np.asarray((np.abs(guesses - records) <= eta) - prior.ball_masses(guesses, eta))


def _released(records: FloatArray, scale: float, generator: np.random.Generator) -> FloatArray:
    """Outputs of the exponential mechanism, by inversion: a two-sided truncated exponential."""
    left, right = -np.expm1(-records / scale), -np.expm1((records - 1) / scale)
    side = generator.random(len(records)) * (left + right) < left
    depth = -scale * np.log1p(-generator.random(len(records)) * np.where(side, left, right))
    return np.asarray(np.clip(np.where(side, records - depth, records + depth), 0.0, 1.0))


def _best(
    prior: ContinuousPrior, mechanism: ExponentialMechanism, eta: float, grid: FloatArray
) -> FloatArray:
    """The best guess on the grid for each output on the grid."""
    middles = (grid[1:] + grid[:-1]) / 2
    masses = np.diff(prior.cdf(grid))
    densities = mechanism.density(grid[:, None], middles[None, :])
    gains = (densities - (densities @ masses)[:, None]) * masses
    sums = np.concatenate([np.zeros((len(grid), 1)), np.cumsum(gains, axis=1)], axis=1)
    reach = round(eta * (len(grid) - 1))
    first = np.maximum(np.arange(len(grid)) - reach, 0)
    last = np.minimum(np.arange(len(grid)) + reach, len(grid) - 1)
    return np.asarray(grid[(sums[:, last] - sums[:, first]).argmax(axis=1)])
