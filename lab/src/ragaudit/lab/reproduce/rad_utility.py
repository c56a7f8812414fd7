"""Figure 2: the error that a query has when its Laplace noise is calibrated to a risk.

Ten records at equal steps on an interval of the query's sensitivity, 1; uniform prior, no
knowledge, exact guesses. The error is the one that 95 % of the answers keep, ``b ln 20``.
"""

import math

import numpy as np
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.lab.reproduce.rad_published import FIGURE_2
from ragaudit.lab.risk.calibration import laplace_scale, largest_parameter
from ragaudit.lab.risk.validation import FloatArray

__all__ = ["RECORDS", "advantage_error", "curves", "laplace_success", "success_error", "table"]

RECORDS = 10
CHANCE = 1 / RECORDS
QUANTILE = math.log(20)
"""P[|noise| > b ln 20] = 0.05 for Laplace noise of scale b."""

LARGEST_EPSILON = 1e3

OTHER_MEASURE = (
    "The figure reads one number as an advantage (RAD) and as a success probability (ReRo). An "
    "attack of advantage g succeeds with probability g + 1/10 here; calibrated to that, ReRo's "
    "error is smaller than the figure has it."
)
SOURCE_OF_GAIN = (
    "For uniform priors and exact guesses the optimal success is the optimal advantage plus 1/10, "
    "so the gain is not one of the measure: it is that of the exact optimum (Theorem 4.3) over a "
    "bound that knows no more of the records than their largest distance (Eq. (3))."
)
FORMULA = "Example 4.7; Eq. (3) with Laplace noise's own trade-off function"


def advantage_error(advantage: float) -> float:
    """Return the error at 95 % of the least Laplace noise that keeps an advantage.

    Args:
        advantage: to be kept; the records' range is 1, and so is the error's unit.
    """
    return QUANTILE * laplace_scale(advantage, RECORDS, 1.0)


def success_error(success: float) -> float:
    """Return the error at 95 % of the least Laplace noise for which Eq. (3) keeps a success.

    Args:
        success: probability to be kept; the error's unit is the records' range.
    """
    found = largest_parameter(
        lambda epsilon: laplace_success(CHANCE, epsilon), success, limit=LARGEST_EPSILON
    )
    return QUANTILE / found.parameter


def laplace_success(largest_ball: float, epsilon: float) -> float:
    """Return ``1 - f(kappa_plus)``, f the trade-off function of Laplace noise (Eq. (3)).

    Args:
        largest_ball: kappa_plus, 0 to 1.
        epsilon: sensitivity over scale, >= 0.
    """
    turn = math.exp(-epsilon) / 2
    if largest_ball <= turn:
        return largest_ball * math.exp(epsilon)
    if largest_ball <= 0.5:
        return 1 - turn / (2 * largest_ball)
    return 1 - 2 * turn * (1 - largest_ball)


def curves() -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the figure's curves, error by risk, and ReRo's at the same attack."""
    risks = np.linspace(0.12, 0.88, 77)
    return {
        "RAD: advantage (Example 4.7)": (risks, np.array([*map(advantage_error, risks)])),
        "ReRo: the same number as a success probability": (
            risks, np.array([*map(success_error, risks)]),
        ),
        "ReRo: the success of an attack with that advantage": (
            risks, np.array([success_error(min(risk + CHANCE, 1 - 1e-9)) for risk in risks]),
        ),
    }  # fmt: skip


def table() -> Table:
    """Return the errors at some risks."""
    rows = []
    for risk, (rad, rero, same) in FIGURE_2.items():
        at = float(risk)
        rows += [
            Comparison(f"risk {risk}: RAD", rad, rad, advantage_error(at), formula=FORMULA),
            Comparison(f"risk {risk}: ReRo, the same number", rero, rero, success_error(at),
                       formula=FORMULA),
            Comparison(f"risk {risk}: ReRo, the same attack", rero, same,
                       success_error(at + CHANCE), OTHER_MEASURE, formula=FORMULA),
        ]  # fmt: skip
    return Table(
        "figure-2", "Error of a query that 95 % of the answers keep, m = 10, sensitivity 1",
        "Figure 2", tuple(rows), (SOURCE_OF_GAIN,),
    )  # fmt: skip
