"""The plot of Figure 7."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.cli.figures import COLORS, axes, render

__all__ = ["figures"]

Floats = npt.NDArray[np.float64]


def figures(
    thetas: Sequence[float], rates: Floats, law: Sequence[float], curves: Mapping[str, Floats]
) -> dict[str, bytes]:
    """Return PNG and SVG of false alarms and of the mean estimate, by threshold.

    Args:
        thetas: thresholds.
        rates: share of honest trials with an alarm.
        law: the same by its law.
        curves: mean k-hat by pattern, at a coalition of 10.
    """
    with axes("False alarms of the estimator", "threshold theta", "share of trials") as (fig, at):
        at.plot(thetas, rates, "o", color=COLORS[0], label="simulated")
        at.plot(thetas, law, "-", color=COLORS[0], label="by its law")
        at.plot([0.75, 0.80], [0.595, 0.040], "x", color=COLORS[1], label="paper", markersize=9)
        at.legend(loc="best")
        files = render(fig, "attacks-7-false-alarms")
    with axes("Estimated size of a coalition of 10", "threshold theta", "mean k-hat") as (fig, at):
        for (pattern, found), color in zip(curves.items(), COLORS, strict=False):
            at.plot(thetas, found, "o-", color=color, label=pattern)
        at.axhline(10, color="#888888", linewidth=0.8)
        at.legend(loc="best")
        return {**files, **render(fig, "attacks-7-estimates")}
