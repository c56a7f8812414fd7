"""The plots of `ragaudit reproduce generation`."""

from collections.abc import Sequence

from ragaudit.cli.figures import COLORS, axes, panels, render
from ragaudit.lab.reproduce.generation_arms import ARMS, BASELINES, PAYING, REUSING
from ragaudit.lab.reproduce.generation_attack import EPSILON, Point, cap
from ragaudit.lab.reproduce.generation_results import Cell

__all__ = ["figures"]

_STYLES = (":", "--", "-.")
_LOOKS = {
    **{arm: ("o-", color) for arm, color in zip(PAYING, COLORS, strict=True)},
    **{arm: ("s--", COLORS[PAYING.index(base)]) for arm, base in REUSING.items()},
}
"""Line and color of each arm: stored answers are dashed."""


def figures(found: Sequence[Cell], attack: Sequence[Point]) -> dict[str, bytes]:
    """Return PNG and SVG files by name.

    Args:
        found: of `generation_results.cells`.
        attack: by each coalition.
    """
    return {**_utility(found), **_groups(found), **_membership(attack)}


def _utility(found: Sequence[Cell]) -> dict[str, bytes]:
    with axes(
        "100 questions on invented records", "total epsilon of the stream", "right answers"
    ) as (figure, place):
        for arm in ARMS:
            line, color = _LOOKS[arm]
            own = [each for each in found if each.arm == arm and each.group == "all"]
            totals = [each.epsilon or 0 for each in own]
            place.plot(totals, [each.right for each in own], line, color=color, label=arm)
            place.fill_between(
                totals, [each.low for each in own], [each.high for each in own],
                color=color, alpha=0.2, linewidth=0,
            )  # fmt: skip
        for arm, style in zip(BASELINES, _STYLES, strict=True):
            (own_cell,) = [each for each in found if each.arm == arm and each.group == "all"]
            place.axhline(own_cell.right, linestyle=style, color=COLORS[5], label=arm)
        place.set_ylim(-0.02, 1.02)
        place.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return render(figure, "utility")


def _groups(found: Sequence[Cell]) -> dict[str, bytes]:
    groups = list(dict.fromkeys(each.group for each in found if each.group != "all"))
    with panels(
        "Right answers by supporting documents and kind of question", "total epsilon",
        "right answers", groups,
    ) as (figure, places):  # fmt: skip
        for group, place in zip(groups, places, strict=True):
            for arm in ARMS:
                line, color = _LOOKS[arm]
                own = [each for each in found if each.arm == arm and each.group == group]
                place.plot(
                    [each.epsilon or 0 for each in own], [each.right for each in own],
                    line, color=color, label=arm, markersize=3,
                )  # fmt: skip
        places[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return render(figure, "groups")


def _membership(attack: Sequence[Point]) -> dict[str, bytes]:
    with axes(
        "Is one record there? A coalition asks", "accounts that pool their answers", "AUC"
    ) as (figure, place):
        accounts = [each.accounts for each in attack]
        place.errorbar(
            accounts, [each.auc for each in attack], yerr=[2 * each.error for each in attack],
            fmt="o-", color=COLORS[0], capsize=3, label="generation channel (±2 s.e.)",
        )  # fmt: skip
        place.plot(
            accounts, [each.retrieval for each in attack], "s--", color=COLORS[1],
            label="retrieval channel, as much for one account",
        )  # fmt: skip
        place.axhline(cap(EPSILON), linestyle=":", color=COLORS[5],
                      label=f"any attack at epsilon {EPSILON}")  # fmt: skip
        place.set_ylim(0.48, 1.02)
        place.legend(loc="best")
        return render(figure, "membership")
