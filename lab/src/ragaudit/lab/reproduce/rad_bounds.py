"""Curves of bounds and optima: Figures 1 and 3; Figures 10 and 11 for a continuous record.

The paper nests three Monte Carlo procedures to evaluate Theorem 4.3; quadrature needs none. The
simulation runs the attack itself and is only a cross-check.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.reproduce.comparison import Comparison, Table, sampling_tolerance
from ragaudit.lab.reproduce.rad_published import (
    CONTINUOUS,
    CONTINUOUS_DENSITY,
    CROSSINGS,
    FIGURE_1,
    FIGURE_3,
    FIGURE_11,
)
from ragaudit.lab.risk.continuous import continuous_advantage
from ragaudit.lab.risk.general_bounds import (
    Bound,
    Scenario,
    approximate_dp_bound,
    total_variation_bound,
    trade_off_bound,
    uniform_exact_guess_bound,
)
from ragaudit.lab.risk.mechanisms import (
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    noise_bound_uniform,
    oue_advantage_uniform,
)
from ragaudit.lab.risk.threat import ContinuousPrior
from ragaudit.lab.risk.validation import FloatArray
from ragaudit.privacy.guarantees import ApproximateDp
from scipy import optimize

SCALING = (
    "The paper plots Gaussian noise against epsilon and does not say at which sd. No Gaussian "
    "noise is epsilon-DP; here it has sd 1/epsilon, as Laplace noise has scale 1/epsilon."
)
STRONGER = (
    "After Example 4.8 Gaussian noise is called substantially stronger than OUE and Laplace. At "
    "sd 1/epsilon it is the strongest up to 11.9, by at most a fifth against Laplace, and the "
    "weakest of the three at 14, where the figure ends."
)

EPSILONS = np.linspace(0.0, 14.0, 141)
DELTA = 1e-5


def tables() -> tuple[Table, ...]:
    """Return the tables of this module."""
    return _figure_1(), _figure_3(), _figure_10()


def mechanism_curves() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return Figure 1: optimum by epsilon, m = 11, and Theorem 4.2; Gaussian: sd 1/epsilon."""
    positive = EPSILONS[1:]
    scenario = Scenario.uniform(11)

    def bound(epsilon: float) -> float:
        return total_variation_bound(scenario, _pure(epsilon)).value

    curves: dict[str, Callable[[float], float]] = {
        "any mechanism, Theorem 4.2 from epsilon": bound,
        "Laplace, scale 1/epsilon": _OPTIMA["Laplace"],
        "OUE": _OPTIMA["OUE"],
        "Gaussian, sd 1/epsilon (our choice: it is not epsilon-DP)": _OPTIMA["Gaussian"],
    }
    return {
        name: (positive, np.array([curve(epsilon) for epsilon in positive]))
        for name, curve in curves.items()
    }


def black_box_curves() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return Figure 3: bounds by epsilon, m = 10, delta = 1e-5, and OUE's own optimum."""
    scenario, across = Scenario.uniform(10), EPSILONS[:101]

    def curve(bound: Callable[..., Bound]) -> np.ndarray:
        found: list[Bound] = [bound(scenario, _approximate(epsilon)) for epsilon in across]
        return np.array([min(each.value, 0.9) for each in found])

    return {
        "Theorem 4.2": (across, curve(total_variation_bound)),
        "Proposition 5.3": (across, curve(approximate_dp_bound)),
        "Theorem 5.5, Corollary 5.6": (across, curve(uniform_exact_guess_bound)),
        "OUE, Theorem 4.3": (across, np.array([oue_advantage_uniform(10, e) for e in across])),
    }


def continuous_prior(name: str) -> ContinuousPrior:
    """Return the prior of Figure 10 or 11.

    Args:
        name: "uniform" for Figure 10, else Beta(0.1, 0.1), on [0, 1].
    """
    return (
        ContinuousPrior.uniform(0.0, 1.0) if name == "uniform" else ContinuousPrior.beta(0.1, 0.1)
    )


def _figure_1() -> Table:
    rows = []
    for (name, value), corrected in FIGURE_1.items():
        what = "sd" if name == "Gaussian" else "eps"
        ours = _OPTIMA[name](1 / value if name == "Gaussian" else value)
        shown = "1/14" if value == 1 / 14 else f"{value:g}"
        rows.append(Comparison(f"{name}, {what} = {shown}", None, corrected, ours))
    rows += [
        Comparison(f"Gaussian, sd = 1/eps, is below {name} up to epsilon", "14", corrected,
                   _crossing(name), STRONGER, formula="sentence after Example 4.8, to the end")
        for name, corrected in CROSSINGS.items()
    ]  # fmt: skip
    return Table(
        "figure-1", "Optimal advantage, m = 11, uniform prior", "Figure 1", tuple(rows), (SCALING,)
    )


_OPTIMA: dict[str, Callable[[float], float]] = {
    "Laplace": lambda epsilon: noise_bound_uniform(11, 1.0, LaplaceNoise(1 / epsilon)),
    "OUE": lambda epsilon: oue_advantage_uniform(11, epsilon),
    "Gaussian": lambda epsilon: noise_bound_uniform(11, 1.0, GaussianNoise(1 / epsilon)),
}
"""Figure 1's optimal advantage by epsilon; Gaussian noise has sd 1/epsilon."""


def _crossing(name: str) -> float:
    """The epsilon from which on Gaussian noise protects less than the named mechanism."""

    def gap(epsilon: float) -> float:
        return _OPTIMA["Gaussian"](epsilon) - _OPTIMA[name](epsilon)

    return float(optimize.brentq(gap, 10.0, 14.0, xtol=1e-12))


def _figure_3() -> Table:
    scenario = Scenario.uniform(10)
    theorems = {"Corollary 5.6": uniform_exact_guess_bound, "Theorem 5.1": trade_off_bound}
    rows = [
        Comparison(f"{name}, eps = {epsilon:g}", None, corrected,
                   theorems[name](scenario, _approximate(epsilon)).value)
        for (name, epsilon), corrected in FIGURE_3.items()
    ]  # fmt: skip
    return Table(
        "figure-3", "Bounds for unknown mechanisms, m = 10, delta 1e-5", "Figure 3", tuple(rows)
    )


@lru_cache
def _figure_10() -> Table:
    rows = [
        Comparison(f"largest density M, eps = {epsilon:g}", None, corrected,
                   ExponentialMechanism(epsilon).largest_density)
        for epsilon, corrected in CONTINUOUS_DENSITY.items()
    ]  # fmt: skip
    for (prior, epsilon, eta), corrected in CONTINUOUS.items():
        ours = continuous_advantage(continuous_prior(prior), ExponentialMechanism(epsilon), eta)
        name = "Beta(0.1, 0.1)" if prior == "beta" else "U(0, 1)"
        rows.append(
            Comparison(f"{name}, eps = {epsilon:g}, eta = {eta:g}", None, corrected, ours.value)
        )
    return Table(
        "figure-10", "Exponential mechanism on [0, 1], by quadrature", "Figures 10 and 11, A.2",
        tuple(rows),
    )  # fmt: skip


def _pure(epsilon: float) -> ApproximateDp:
    return ApproximateDp.of(epsilon, 0, NeighboringRelation.REPLACE)


def _approximate(epsilon: float) -> ApproximateDp:
    return ApproximateDp.of(epsilon, DELTA, NeighboringRelation.REPLACE)


CONTINUOUS_EPSILONS = (1.0, 2.0, 5.0, 10.0, 15.0)
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
        for epsilon in CONTINUOUS_EPSILONS
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
