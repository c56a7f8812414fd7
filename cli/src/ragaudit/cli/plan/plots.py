"""The plots of a plan, PNG and SVG, the same bytes for the same plan and library version.

All of them are written, or none.
"""

import errno
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragaudit.cli.figures import COLORS, axes, render
from ragaudit.cli.plan.run import Plan, RetrievalPlan
from ragaudit.encoding.errors import UnavailableError
from ragaudit.privacy.planning.budget import (
    Budget,
    BudgetRow,
    Missing,
    epsilon_by_accounts,
    sigma_by_queries,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_OURS, _PAPER, *_, _MARK = COLORS
_BLIND = "#999999"


@dataclass(frozen=True)
class Plots:
    """What was drawn.

    Attributes:
        files: written, in the order of their names.
        left_out: plot that could not be drawn -> why.
    """

    files: list[Path]
    left_out: dict[str, str]


def check_folder(folder: Path) -> None:
    """Check that plots could be written into a folder, which need not exist yet.

    Args:
        folder: where plots are to go.

    Raises:
        UnavailableError: it is no folder, or nothing can be written there.
    """
    try:
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    except OSError:
        writable = False  # not even allowed to look
    if not writable:
        raise UnavailableError(
            f"cannot write into {folder}", where="plots", expected="a folder that can be written"
        )


def write(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write all files and return their paths; on a failure none is written.

    Args:
        folder: made if it is missing.
        files: name -> content; files of the same names are replaced.

    Raises:
        UnavailableError: the folder cannot be made or written.
    """
    missing: list[Path] = []
    try:
        missing = [path for path in (folder, *folder.absolute().parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        if folders := [name for name in files if (folder / name).is_dir()]:
            raise IsADirectoryError(errno.EISDIR, f"{folders[0]} is a folder")
        # In the folder itself, so that moving a file to its place cannot fail half-way.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".plan-") as draft:
            for name, content in files.items():
                (Path(draft) / name).write_bytes(content)
            for name in files:
                (Path(draft) / name).replace(folder / name)
    except OSError as error:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        raise UnavailableError(
            f"cannot write the plots: {error.strerror}", where="plots", expected="another folder"
        ) from error
    return [folder / name for name in sorted(files)]


def draw(plan: Plan) -> dict[str, bytes]:
    """Return file name -> content: each plot of the plan as PNG and as SVG.

    ``epsilon-by-accounts`` and, unless there is no finite epsilon, ``sigma-by-queries``; with a
    simulation ``recall-by-sigma`` and ``recall-by-epsilon``.

    Args:
        plan: with or without a simulation.

    Raises:
        RagauditError: matplotlib is not installed.
    """
    budget, retrieval = plan.budget, plan.retrieval
    files = _epsilon_by_accounts(budget)
    if not left_out(plan):
        files |= _sigma_by_queries(budget)
    if retrieval is not None:
        files |= {**_recall_by_sigma(budget, retrieval), **_recall_by_epsilon(budget, retrieval)}
    return files


def left_out(plan: Plan) -> dict[str, str]:
    """Return plot -> why it is left out.

    Args:
        plan: as for :func:`draw`.
    """
    if plan.budget.targets.epsilon is not None:
        return {}
    return {"sigma-by-queries": "there is no finite epsilon to calibrate for"}


def _epsilon_by_accounts(plan: Budget) -> dict[str, bytes]:
    targets = plan.targets
    rows = epsilon_by_accounts(plan)
    finite = [row for row in rows if row.price.epsilon is not None]
    formula = [
        (row.accounts, float(row.closed_form))
        for row in rows
        if not isinstance(row.closed_form, Missing)
    ]
    with axes(
        f"What a coalition learns, r = {targets.queries}",
        "accounts that pool their answers, k",
        f"epsilon at delta {targets.delta_policy}",
    ) as (figure, place):
        if finite:
            place.plot(
                [row.accounts for row in finite],
                [float(row.price.epsilon or 0) for row in finite],
                color=_OURS, marker="o", markersize=3.5, label=f"this sigma, {_short(plan.sigma)}",
            )  # fmt: skip
        if formula:
            place.plot(
                *zip(*formula, strict=True),
                color=_PAPER, marker="s", markersize=3.5, linestyle="--",
                label="the paper's (5.2), for its own larger noise",
            )  # fmt: skip
        _planned(place, targets.coalition, f"k_max = {targets.coalition}")
        if len(rows) > 1:
            place.set_xscale("log")
            _plain_numbers(place.xaxis)
        else:
            place.set_xlim(0, 3)
            place.set_xticks([1])
        if len(finite) < len(rows):
            _ideal(place, rows[max(0, len(finite) - 1) :], plan.sigma)
            first = rows[len(finite)].accounts
            edge = (finite[-1].accounts * first) ** 0.5 if finite else first / 1.2
            _no_guarantee(place, edge, rows[-1].accounts * 1.1)
        place.set_ylim(0, 1.05 * place.dataLim.y1)  # room for the highest marker
        place.legend(loc="best")
        return render(figure, "epsilon-by-accounts")


def _ideal(place: "Axes", rows: list[BudgetRow], sigma: str) -> None:
    """Plot what a perfect sampler would give from the last row with a guarantee on."""
    place.plot(
        [row.accounts for row in rows], [float(row.price.ideal_epsilon) for row in rows],
        color=_OURS, marker="o", markersize=3.5, markerfacecolor="white", linestyle=":",
        label=f"a perfect sampler at sigma {_short(sigma)}: no guarantee",
    )  # fmt: skip


def _sigma_by_queries(budget: Budget) -> dict[str, bytes]:
    targets = budget.targets
    points = sigma_by_queries(targets)
    paper = [
        (point.queries, float(point.paper_sigma))
        for point in points
        if not isinstance(point.paper_sigma, Missing)
    ]
    with axes(
        f"Noise for epsilon {_short(targets.epsilon or '')} at delta {targets.delta}",
        "queries of one account, r",
        "sigma (cosine units)",
    ) as (figure, place):
        place.plot(
            [point.queries for point in points], [float(point.sigma) for point in points],
            color=_OURS, marker="o", markersize=3.5, label="exact calibration",
        )  # fmt: skip
        if paper:
            place.plot(
                *zip(*paper, strict=True),
                color=_PAPER, marker="s", markersize=3.5, linestyle="--",
                label="the paper's (3.4)",
            )  # fmt: skip
        _planned(place, targets.queries, f"r = {targets.queries}")
        if len(points) > 1:
            place.set_xscale("log")
            _plain_numbers(place.xaxis)
        place.set_yscale("log")
        _plain_numbers(place.yaxis)
        place.legend(loc="best")
        return render(figure, "sigma-by-queries")


def _recall_by_sigma(budget: Budget, retrieval: RetrievalPlan) -> dict[str, bytes]:
    with axes(
        "What the noise does to retrieval", "sigma (cosine units)", _recall_label(retrieval)
    ) as (figure, place):  # fmt: skip
        _recall(place, [float(point.sigma) for point in retrieval.simulation.points], retrieval)
        _planned(place, float(budget.sigma), f"planned, {_short(budget.sigma)}")
        place.set_xscale("log")
        place.legend(loc="best")
        return render(figure, "recall-by-sigma")


def _recall_by_epsilon(budget: Budget, retrieval: RetrievalPlan) -> dict[str, bytes]:
    targets = budget.targets
    prices = [retrieval.prices[point.sigma][1] for point in retrieval.simulation.points]
    finite = [float(price.epsilon) for price in prices if price.epsilon is not None]
    none = [float(price.ideal_epsilon) for price in prices if price.epsilon is None]
    with axes(
        "What a recall costs",
        f"epsilon at delta {targets.delta_policy}, accounts together: {targets.coalition}",
        _recall_label(retrieval),
    ) as (figure, place):
        _recall(place, [float(price.ideal_epsilon) for price in prices], retrieval)
        _planned(place, float(budget.coalition.price.ideal_epsilon), "planned")
        place.set_xscale("log")
        if none:
            edge = (min(none) * max(finite)) ** 0.5 if finite else min(none) / 2
            _no_guarantee(place, edge, max(none) * 1.5)
        place.legend(loc="best")
        return render(figure, "recall-by-epsilon")


def _recall_label(retrieval: RetrievalPlan) -> str:
    return f"recall@{retrieval.simulation.top_k}"


def _recall(place: "Axes", x: list[float], retrieval: RetrievalPlan) -> None:
    recalls = [point.recall for point in retrieval.simulation.points]
    blind = retrieval.simulation.random_recall
    place.fill_between(
        x, [interval.low for interval in recalls], [interval.high for interval in recalls],
        color=_OURS, alpha=0.25, linewidth=0, label="95 % interval over questions",
    )  # fmt: skip
    place.plot(
        x, [interval.mean for interval in recalls], color=_OURS, marker="o", markersize=3.5,
        label=_recall_label(retrieval),
    )  # fmt: skip
    place.axhline(blind, color=_BLIND, linestyle=":", label=f"blind choice, {blind:.3f}")
    place.set_ylim(0, 1.02)


def _planned(place: "Axes", x: float, label: str) -> None:
    place.axvline(x, color=_MARK, linestyle="-.", linewidth=1, label=label)


def _no_guarantee(place: "Axes", left: float, right: float) -> None:
    place.axvspan(
        left, right, color=_BLIND, alpha=0.18, linewidth=0, label="no finite guarantee"
    )  # fmt: skip
    place.set_xlim(right=right)


def _plain_numbers(axis: "Axis") -> None:
    """Set ticks such as 20 instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: PLC0415

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _short(number: str) -> str:
    return f"{float(number):.4g}"
