"""Curves of bounds and optima: Figures 1, 3 and 10."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.lab.reproduce.rad_published import (
    CONTINUOUS,
    CONTINUOUS_DENSITY,
    CROSSINGS,
    FIGURE_1,
    FIGURE_3,
)
from ragaudit.lab.risk.closed_forms import noise_bound_uniform, oue_advantage_uniform
from ragaudit.lab.risk.continuous import continuous_advantage
from ragaudit.lab.risk.general_bounds import (
    approximate_dp_bound,
    total_variation_bound,
    trade_off_bound,
    uniform_exact_guess_bound,
)
from ragaudit.lab.risk.mechanisms import ExponentialMechanism, GaussianNoise, LaplaceNoise
from ragaudit.lab.risk.priors import ContinuousPrior
from ragaudit.lab.risk.scenario import Bound, Scenario
from ragaudit.privacy.guarantees import ApproximateDp
from scipy import optimize

__all__ = [
    "black_box_curves", "continuous_prior", "mechanism_curves", "tables",
]  # fmt: skip

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
