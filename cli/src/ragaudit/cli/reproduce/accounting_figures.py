"""The collusion paper's figures, redrawn with what is right beside what is printed."""

from typing import TYPE_CHECKING

import numpy as np
from ragaudit.cli.reproduce.accounting_auc import caption_auc, simulate
from ragaudit.cli.reproduce.accounting_cells import DELTA, PaperCell, exactly_calibrated
from ragaudit.cli.reproduce.accounting_published import LOOKUP, PREDICTED, REPORTED
from ragaudit.cli.reproduce.figures import COLORS, axes, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["figures"]

ACCOUNTS = tuple(sorted({round(10 ** (i / 8)) for i in range(17)}))
"""1 to 100, evenly on a logarithmic scale."""


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
            ("(5.2) with its residual", [cell.total() for cell in cells], "-"),
            ("(5.2), leading term: the lookup", [cell.leading() for cell in cells], "--"),
            ("exact, noise that just meets the promise", exact, "-"),
            ("(3.6), noise of (3.4)", [cell.renyi() for cell in cells], "-."),
            ("exact, noise of (3.4)", [cell.exact() for cell in cells], "-"),
        )
        for (label, values, style), color in zip(curves, COLORS, strict=False):
            place.plot(ACCOUNTS, values, style, color=color, label=label)
        printed = [(k, float(value)) for (budget, k), value in LOOKUP.items() if budget == "1"]
        place.plot(*zip(*printed, strict=True), "o", color=COLORS[1], mfc="white",
                   label="printed in section 3.8")  # fmt: skip
        place.set_xscale("log")
        place.set_yscale("log")
        place.legend(loc="upper left", ncols=1)
        place.set_ylim(0.08, 200)
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
            place.plot(across, [cell.auc() for cell in cells], color=color,
                       label=f"$\\Phi(d'/\\sqrt{{2}})$, eps_acc = {epsilon_acc}")  # fmt: skip
            place.plot(across, [caption_auc(cell) for cell in cells], ":", color=color,
                       label=f"caption's formula, eps_acc = {epsilon_acc}")  # fmt: skip
            _markers(place, epsilon_acc, color)
        place.axhline(0.5, color="#888888", linewidth=0.8)
        place.text(20.4, 0.4965, "chance", ha="right", va="top", fontsize=8, color="#666666")
        place.set_xticks([1, 2, 5, 10, 15, 20])
        place.set_ylim(0.48, 0.84)
        place.legend(loc="upper center", ncols=2, bbox_to_anchor=(0.5, -0.16))
        return render(figure, "auc-by-coalition")


def _markers(place: "Axes", epsilon_acc: str, color: str) -> None:
    """Our simulation with its standard error, and what the paper reports."""
    runs = [
        (k, simulate(PaperCell(epsilon_acc, k), seed))
        for seed, (budget, k) in enumerate(PREDICTED)
        if budget == epsilon_acc
    ]
    place.errorbar(
        [k for k, _ in runs], [run.auc for _, run in runs], [run.error for _, run in runs],
        fmt="s", markersize=3.5, capsize=2, linewidth=1, color=color,
        label=f"our simulation, eps_acc = {epsilon_acc}",
    )  # fmt: skip
    reported = [
        (k, 0.5 + float(twice) / 2)
        for (budget, k), (twice, _) in REPORTED.items()
        if budget == epsilon_acc
    ]
    if reported:
        place.plot(*zip(*reported, strict=True), "o", color=color, mfc="white", markersize=6,
                   label=f"reported, eps_acc = {epsilon_acc}")  # fmt: skip
