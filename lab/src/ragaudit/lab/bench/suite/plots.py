"""The plots of the document: SVG, the same bytes from the same results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from ragaudit.lab.bench.suite.series import Series
from ragaudit.lab.bench.suite.targets import Target

__all__ = ["growth", "save", "speed_up"]

_MARKERS = "osD^vPX*"
# Text stays text, identifiers do not depend on the clock, the figure has no date.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ragaudit",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def growth(
    panels: Mapping[str, Sequence[Series]],
    x: str,
    y: str,
    targets: Mapping[str, Target] | None = None,
) -> Figure:
    """Draw series on two logarithmic axes, one panel beside the other; targets as dashes.

    Args:
        panels: series by the panel's title.
        targets: by the name of the series whose largest values they state.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.6 * len(panels), 4.6), layout="constrained")
        for axes, (title, several) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
        ):
            axes.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
            for number, each in enumerate(several):
                _draw(axes, number, each, (targets or {}).get(each.name))
            if several:
                axes.legend(loc="upper left")
    return figure


def _draw(axes: Axes, number: int, series: Series, target: Target | None) -> None:
    color, marker = f"C{number}", _MARKERS[number % len(_MARKERS)]
    x, y = [a for a, _ in series.points], [b for _, b in series.points]
    axes.plot(x, y, color=color, marker=marker, label=series.name)
    if target is not None:
        allowed = sorted(target.most.items())
        axes.plot(
            [float(a) for a, _ in allowed],
            [b for _, b in allowed],
            color=color,
            linestyle="--",
            linewidth=0.8,
            alpha=0.7,
        )


def speed_up(several: Sequence[Series], x: str, y: str) -> Figure:
    """Draw how many times faster than with the fewest cores, against the number of cores.

    Args:
        several: seconds against cores, with at least two points each.
        x, y: labels of the axes.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.0, 4.6), layout="constrained")
        axes = figure.subplots()
        axes.set(xlabel=x, ylabel=y)
        most = 1.0
        for number, each in enumerate(several):
            (least, longest), *_ = each.points
            cores = [a / least for a, _ in each.points]
            most = max(most, *cores)
            axes.plot(
                cores,
                [longest / b for _, b in each.points],
                color=f"C{number}",
                marker=_MARKERS[number % len(_MARKERS)],
                label=each.name,
            )
        axes.plot([1, most], [1, most], color="black", linestyle=":", label="ideal")
        axes.set_xticks([float(each) for each in range(1, int(most) + 1)])
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        figure.set_size_inches(9.2, 4.2)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write an SVG without a date: the same bytes from the same results."""
    metadata: dict[str, Any] = {"Date": None, "Creator": "ragaudit bench"}
    with mpl.rc_context(_STYLE):
        figure.savefig(path, format="svg", metadata=metadata)
