"""The collusion paper's figures, redrawn with what is right beside what is printed."""

from typing import TYPE_CHECKING

import numpy as np
from ragaudit.cli.figures import COLORS, axes, render
from ragaudit.lab.reproduce.accounting_auc import caption_auc, simulations
from ragaudit.lab.reproduce.accounting_cells import DELTA, PaperCell, exactly_calibrated
from ragaudit.lab.reproduce.accounting_published import LOOKUP, REPORTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["figures"]

ACCOUNTS = (1, 2, 5, 10, 20, 50, 100)
"""The paper's coalitions."""


def figures() -> dict[str, bytes]:
    """Return the files of both figures, by name.

    Raises:
        RagauditError: matplotlib is not installed.
    """
    return {**_epsilon(), **_auc()}


def _epsilon() -> dict[str, bytes]:
    cells = [PaperCell("1", k) for k in ACCOUNTS]
    exact = [float(exactly_calibrated("1", k).at_delta(DELTA).epsilon) for k in ACCOUNTS]
    with axes(
        "Joint epsilon of k accounts that each are promised (1, 1e-6)-DP",
        "accounts in the coalition, k",
        "epsilon (natural log units)",
    ) as (figure, place):
        curves = (
            (
                "(5.2) with its residual, joint delta (k + 1) 1e-6",
                [cell.total() for cell in cells],
                "-",
                4.5,
            ),
            (
                "(5.2), leading term alone: the lookup",
                [cell.leading() for cell in cells],
                "--",
                1.6,
            ),
            ("exact at 1e-6, noise that just meets the promise", exact, "-", 1.6),
            ("(3.6) at 1e-6, noise of (3.4)", [cell.renyi() for cell in cells], "-.", 1.6),
            ("exact at 1e-6, noise of (3.4)", [cell.exact() for cell in cells], "-", 1.6),
        )
        colors = (COLORS[4], COLORS[1], COLORS[2], COLORS[3], COLORS[0])
        for (label, values, style, width), color in zip(curves, colors, strict=True):
            place.plot(ACCOUNTS, values, style, color=color, label=label, linewidth=width)
        printed = [(k, float(value)) for (budget, k), value in LOOKUP.items() if budget == "1"]
        place.plot(*zip(*printed, strict=True), "o", color=COLORS[1], mfc="white",
                   label="printed in section 3.8")  # fmt: skip
        place.set_xscale("log")
        place.set_yscale("log")
        place.legend(loc="upper left", ncols=1)
        place.set_xticks(
            [1, 2, 5, 10, 20, 50, 100], labels=["1", "2", "5", "10", "20", "50", "100"]
        )
        place.set_yticks([0.1, 1, 10, 100], labels=["0.1", "1", "10", "100"])
        place.set_ylim(0.08, 150)
        return render(figure, "epsilon-by-coalition")


def _auc() -> dict[str, bytes]:
    across = np.unique(np.concatenate([np.arange(1, 6), np.arange(6, 21, 2)])).tolist()
    with axes(
        "Figure 2(a): AUC of the pooled mean, n = 10 000, delta_acc = 1e-6",
        "accounts in the coalition, k",
        "area under the ROC curve",
    ) as (figure, place):
        for color, epsilon_acc in zip(COLORS, ("4", "2", "1"), strict=False):
            cells = [PaperCell(epsilon_acc, k) for k in across]
            place.plot(across, [cell.auc() for cell in cells], color=color)
            place.plot(across, [caption_auc(cell) for cell in cells], ":", color=color)
            _markers(place, epsilon_acc, color)
            place.text(20.3, cells[-1].auc(), f"eps_acc = {epsilon_acc}", color=color,
                       va="center", fontsize=8.5)  # fmt: skip
        place.axhline(0.5, color="#888888", linewidth=0.8)
        place.text(20.3, 0.501, "chance", va="bottom", fontsize=8.5, color="#666666")
        place.set_xticks([1, 2, 5, 10, 15, 20])
        place.set_xlim(0.3, 23)
        place.set_ylim(0.48, 0.84)
        _legend(place)
        return render(figure, "auc-by-coalition")


def _markers(place: "Axes", epsilon_acc: str, color: str) -> None:
    """Our simulation with its standard error, and what the paper reports."""
    runs = [(k, run) for (budget, k), run in simulations().items() if budget == epsilon_acc]
    place.errorbar(
        [k for k, _ in runs], [run.auc for _, run in runs], [run.error for _, run in runs],
        fmt="s", markersize=3.5, capsize=3, linewidth=1, color=color,
    )  # fmt: skip
    reported = [
        (k, 0.5 + float(twice) / 2)
        for (budget, k), (twice, _) in REPORTED.items()
        if budget == epsilon_acc
    ]
    if reported:
        place.plot(*zip(*reported, strict=True), "o", color=color, mfc="none", markersize=8)


def _legend(place: "Axes") -> None:
    """Which mark is what; which color is which epsilon_acc is written at the curves."""
    dark = COLORS[5]
    place.plot([], [], color=dark, label="predicted, $\\Phi(d'/\\sqrt{2})$")
    place.plot([], [], ":", color=dark, label="the caption's formula")
    place.plot([], [], "o", color=dark, mfc="none", markersize=8, label="reported")
    place.errorbar([], [], [], fmt="s", markersize=3.5, capsize=3, linewidth=1, color=dark,
                   label="our simulation, ±1 standard error")  # fmt: skip
    place.legend(loc="upper left", ncols=2, bbox_to_anchor=(0, 0.72))
