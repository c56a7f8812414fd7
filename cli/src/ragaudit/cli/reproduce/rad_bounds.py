"""Curves of bounds and optima: Figures 1, 3 and 10, and Table 1."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from ragaudit.cli.reproduce.comparison import Comparison, Table
from ragaudit.cli.reproduce.rad_published import (
    CONTINUOUS,
    CONTINUOUS_DENSITY,
    FIGURE_1,
    FIGURE_3,
    TABLE_1,
)
from ragaudit.privacy.guarantees import Adjacency, ApproximateDp, GaussianDp, TotalVariation
from ragaudit.privacy.risk.best_bound import best_bound
from ragaudit.privacy.risk.closed_forms import noise_bound_uniform, oue_advantage_uniform
from ragaudit.privacy.risk.continuous import continuous_advantage
from ragaudit.privacy.risk.general_bounds import (
    approximate_dp_bound,
    total_variation_bound,
    trade_off_bound,
    uniform_exact_guess_bound,
)
from ragaudit.privacy.risk.known_mechanisms import LocalMechanism, exact_bounds
from ragaudit.privacy.risk.mechanisms import ExponentialMechanism, GaussianNoise, LaplaceNoise
from ragaudit.privacy.risk.priors import ContinuousPrior, FinitePrior
from ragaudit.privacy.risk.scenario import Bound, Scenario
from ragaudit.privacy.risk.threat import SuccessSets, ThreatModel
from ragaudit.privacy.risk.trade_off import Guarantee

__all__ = [
    "Applicability", "applicability", "black_box_curves", "continuous_prior", "mechanism_curves",
    "tables",
]  # fmt: skip

EPSILONS = np.linspace(0.0, 14.0, 141)
DELTA = 1e-5


def tables() -> tuple[Table, ...]:
    """Return the tables of this module."""
    return _figure_1(), _figure_3(), _figure_10()


def mechanism_curves() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Figure 1: optimum by epsilon, m = 11, and Theorem 4.2; Gaussian: eps = 1/sd."""
    positive = EPSILONS[1:]
    scenario = Scenario.uniform(11)

    def bound(epsilon: float) -> float:
        return total_variation_bound(scenario, _pure(epsilon)).value

    return {
        "Theorem 4.2 from epsilon": (positive, np.array([bound(e) for e in positive])),
        "Laplace, scale 1/eps": (
            positive,
            np.array([noise_bound_uniform(11, 1.0, LaplaceNoise(1 / e)) for e in positive]),
        ),
        "OUE": (positive, np.array([oue_advantage_uniform(11, e) for e in positive])),
        "Gaussian, sd 1/eps": (
            positive,
            np.array([noise_bound_uniform(11, 1.0, GaussianNoise(1 / e)) for e in positive]),
        ),
    }


def black_box_curves() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Figure 3: bounds by epsilon, m = 10, delta = 1e-5, and OUE's own optimum."""
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
    """The prior of Figure 10 ("uniform") or 11 ("beta")."""
    return (
        ContinuousPrior.uniform(0.0, 1.0) if name == "uniform" else ContinuousPrior.beta(0.1, 0.1)
    )


@dataclass(frozen=True, slots=True)
class Applicability:
    """A row of Table 1.

    Attributes:
        mechanism, auxiliary, eta: what is known.
        paper: the bound that the paper lists.
        corrected, ours: all that hold: as corrected, and as our code finds.
        reason: what is to be added to the paper's row.
    """

    mechanism: str
    auxiliary: str
    eta: str
    paper: str
    corrected: tuple[str, ...]
    ours: tuple[str, ...]
    reason: str

    @property
    def agrees(self) -> bool:
        """Whether ours is the corrected row."""
        return self.corrected == self.ours


def applicability() -> tuple[Applicability, ...]:
    """Table 1, as our code applies it."""
    return tuple(
        Applicability(known, aux, eta, paper, corrected, _applied(known, aux, eta), reason)
        for known, aux, eta, paper, corrected, reason in TABLE_1
    )


def _applied(known: str, auxiliary: str, eta: str) -> tuple[str, ...]:
    prior = FinitePrior.uniform(4)
    reach = 0.0 if eta == "exact" else 1.0
    success = SuccessSets.on_line(np.arange(4.0), reach)
    if auxiliary == "none":
        threat = ThreatModel.reconstruction(prior, success)
    else:
        threat = ThreatModel(prior, success, ThreatModel.membership(prior).auxiliary)
    scenario = Scenario.of_threat(threat)
    if known == "mechanism":
        bounds = exact_bounds(LocalMechanism("grr"), threat, 1.0)
        found = best_bound(scenario, [], bounds)
    else:
        guarantees: dict[str, Guarantee] = {
            "total variation": TotalVariation.of(0.25, Adjacency.REPLACE_ONE),
            "f-DP": GaussianDp.of(1, Adjacency.REPLACE_ONE),
            "(epsilon, delta)": _approximate(1.0),
        }
        found = best_bound(scenario, [guarantees[known]])
    return tuple(sorted({bound.theorem.split(",")[0] for bound in found.applicable}))


def _figure_1() -> Table:
    rows = []
    for (name, value), corrected in FIGURE_1.items():
        if name == "oue":
            ours = oue_advantage_uniform(11, value)
        else:
            noise = LaplaceNoise(1 / value) if name == "laplace" else GaussianNoise(value)
            ours = noise_bound_uniform(11, 1.0, noise)
        what = "sd" if name == "gaussian" else "eps"
        rows.append(Comparison(f"{name}, {what} = {value:g}", None, corrected, ours))
    return Table("figure-1", "Optimal advantage, m = 11, uniform prior", "Figure 1", tuple(rows))


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
    return ApproximateDp.of(epsilon, 0, Adjacency.REPLACE_ONE)


def _approximate(epsilon: float) -> ApproximateDp:
    return ApproximateDp.of(epsilon, DELTA, Adjacency.REPLACE_ONE)
