"""The plots of `ragaudit reproduce attacks`."""

from collections.abc import Sequence

from ragaudit.cli.figures import COLORS, axes, render
from ragaudit.lab.reproduce.attacks_results import Point

__all__ = ["areas"]

_MARKS = "osD^vP"


def areas(name: str, title: str, points: Sequence[Point]) -> dict[str, bytes]:
    """Return PNG and SVG of areas by coalition: measured, by theory, and as the paper prints them.

    Args:
        name: of the files.
        title: of the figure.
        points: a curve for each name, promise and number of trials; at most 18 of them.
    """
    with axes(title, "accounts in the coalition, k", "area under the ROC curve") as (figure, place):
        # The legend stands beside the axes and has long lines.
        figure.set_size_inches(9.6, 4.6)
        curves = dict.fromkeys((each.curve, each.epsilon_acc, each.trials) for each in points)
        for number, curve in enumerate(curves):
            own = [p for p in points if (p.curve, p.epsilon_acc, p.trials) == curve]
            color = COLORS[number % len(COLORS)]
            across = [each.accounts for each in own]
            place.errorbar(
                across, [each.auc for each in own],
                [[each.auc - each.low for each in own], [each.high - each.auc for each in own]],
                fmt=_MARKS[number // len(COLORS)], markersize=3.5, capsize=2, linewidth=1,
                color=color, label=f"{curve[0]}, eps {curve[1]}, T {curve[2]}",
            )  # fmt: skip
            known = [(each.accounts, each.theory) for each in own if each.theory is not None]
            if known:
                place.plot(*zip(*known, strict=True), "-", color=color, linewidth=1)
            printed = [(each.accounts, float(each.paper)) for each in own if each.paper is not None]
            if printed:
                place.plot(*zip(*printed, strict=True), "x", color=color, markersize=9)
        place.axhline(0.5, color="#888888", linewidth=0.8)
        place.set_xscale("log")
        place.set_xticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
        place.minorticks_off()
        place.plot([], [], "-", color=COLORS[5], label="by theory")
        if any(each.paper is not None for each in points):
            place.plot([], [], "x", color=COLORS[5], markersize=9, label="paper")
        place.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return render(figure, name)
