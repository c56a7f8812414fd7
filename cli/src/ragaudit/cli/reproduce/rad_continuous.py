"""Figure 10: the optimal attack on a continuous record, by quadrature and by simulation.

The paper nests three Monte Carlo procedures to evaluate Theorem 4.3; quadrature needs none. The
simulation runs the attack itself and is only a cross-check.
"""

import math
from dataclasses import dataclass

import numpy as np
from ragaudit.cli.reproduce.rad_bounds import continuous_prior
from ragaudit.privacy.risk.continuous import continuous_advantage
from ragaudit.privacy.risk.mechanisms import ExponentialMechanism
from ragaudit.privacy.risk.priors import ContinuousPrior
from ragaudit.privacy.risk.validation import FloatArray

__all__ = ["ETAS", "Point", "points"]

EPSILONS = (1.0, 2.0, 5.0, 10.0, 15.0)
ETAS = (0.1, 0.5, 0.75)
GRID = 801
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
    """Return every point of the figure."""
    found = []
    for epsilon in EPSILONS:
        for eta in ETAS:
            mechanism, prior = ExponentialMechanism(epsilon), continuous_prior("uniform")
            exact = continuous_advantage(prior, mechanism, eta).value
            drawn = _attacks(prior, mechanism, eta, samples, generator)
            half = NORMAL_95 * float(drawn.std(ddof=1)) / math.sqrt(samples)
            found.append(Point("U(0, 1)", epsilon, eta, exact, samples, float(drawn.mean()), half))
    return tuple(found)


def _attacks(
    prior: ContinuousPrior, mechanism: ExponentialMechanism, eta: float, samples: int,
    generator: np.random.Generator,
) -> FloatArray:  # fmt: skip
    """One sample of the advantage per attack: hit less prior mass of the guess's interval."""
    records = generator.random(samples)  # the uniform prior on [0, 1]
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
