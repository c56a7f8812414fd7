"""The plots of the evasion experiment."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from ragaudit.cli.figures import COLORS, axes, render
from ragaudit.lab.reproduce.attacks_results import Point

__all__ = ["figures"]


class _Trial(Protocol):
    @property
    def worth(self) -> float: ...

    @property
    def scores(self) -> Mapping[str, float]: ...


def figures(
    points: Sequence[Point],
    seen: Mapping[tuple[str, str], Sequence[_Trial]],
    rates: Mapping[tuple[str, str, str], float],
    names: Sequence[str],
    kinds: Sequence[str],
) -> dict[str, bytes]:
    """Return PNG and SVG: detection against the attack's area, and estimate against worth.

    Args:
        points: the attack's area by arm, in its ``curve``.
        seen: trials by honest kind and arm.
        rates: share of trials detected, by honest kind, arm and estimator.
        names: of the estimators; the last one estimates a worth.
        kinds: of honest accounts.
    """
    across = {each.curve: each.auc for each in points}
    files: dict[str, bytes] = {}
    for kind, name in zip(kinds, ("different", "popular"), strict=True):
        with axes(
            f"Detection, among {kind}", "area under the attack's ROC curve", "share detected"
        ) as (figure, place):
            figure.set_size_inches(9.6, 4.6)
            for number, estimator in enumerate(names):
                arms = sorted(across, key=lambda arm: across[arm])
                # Apart from each other, where several are 0 or 1.
                shift = 0.008 * (number - len(names) / 2)
                place.plot(
                    [across[arm] for arm in arms],
                    [rates[kind, arm, estimator] + shift for arm in arms],
                    "osD^vP"[number], color=COLORS[number], markersize=5, label=estimator,
                )  # fmt: skip
            place.legend(loc="center left", bbox_to_anchor=(1, 0.5))
            files |= render(figure, f"attacks-evasion-{name}")
    with axes("k-hat by direction", "accounts' worth of questions about the target", "k-hat") as (
        figure,
        place,
    ):
        for kind, color in zip(kinds, COLORS, strict=False):
            own = [each for (where, _), each in seen.items() if where == kind]
            worth = [float(np.mean([trial.worth for trial in trials])) for trials in own]
            found = [
                float(np.mean([trial.scores[names[-1]] for trial in trials])) for trials in own
            ]
            place.plot(worth, found, "o", color=color, label=f"among {kind}")
        place.plot([0, 20], [0, 20], "-", color="#888888", linewidth=0.8, label="equal")
        place.legend(loc="best")
        return {**files, **render(figure, "attacks-evasion-worth")}
