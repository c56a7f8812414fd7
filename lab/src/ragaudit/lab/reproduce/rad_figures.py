"""The RAD paper's figures, redrawn with what is right beside what is printed."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from ragaudit.cli.figures import COLORS, axes, panels, render
from ragaudit.lab.reproduce.rad_audits import KINDS, REPEATS, UNIVERSES, Audit, mechanism
from ragaudit.lab.reproduce.rad_bounds import ETAS, Point, black_box_curves, mechanism_curves
from ragaudit.lab.reproduce.rad_examples import (
    CANDIDATES,
    NOISE_MULTIPLIERS,
    Attack,
    bound_at,
    printed_gradient_bound,
    simplex_advantage,
)
from ragaudit.lab.reproduce.rad_utility import ETAS as REACHES
from ragaudit.lab.reproduce.rad_utility import PRIORS as HOUR_PRIORS
from ragaudit.lab.reproduce.rad_utility import Hours, curves
from ragaudit.lab.risk.threat import FinitePrior, ThreatModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from ragaudit.lab.reproduce.rad import Simulations

MARKERS = ("o", "s", "^")
TOP = 16
"""Of Figure 8; infinite estimates are marked there."""
SIGMAS = np.geomspace(3.0, 100.0, 60)
EPSILON = "epsilon (natural log units)"
ADVANTAGE = "reconstruction advantage (RAD)"


def figures(found: "Simulations") -> dict[str, bytes]:
    """Return the files of all figures, by name.

    Args:
        found: all that was simulated.

    Raises:
        RagauditError: matplotlib is not installed.
    """
    files = {
        **_fixed(),
        **_digits(found.attacks),
        **_hours(found.hours),
        **_continuous("figure-10", "U(0, 1)", found.points),
        **_continuous("figure-11", "Beta(0.1, 0.1)", found.points),
    }  # fmt: skip
    for universe, records in UNIVERSES.items():
        chosen = [audit for audit in found.audits if audit.records == records]
        files |= _advantages(universe, records, chosen) | _estimates(universe, records, chosen)
    return files


Curves = Mapping[str, tuple[np.ndarray, np.ndarray]]


def _fixed() -> dict[str, bytes]:
    """The figures in which nothing is sampled."""
    bounds, gradients = (EPSILON, ADVANTAGE), ("noise multiplier sigma", ADVANTAGE)
    against = "admitted risk", "error, in units of the sensitivity"
    dashed_first = ("--", "-", "-", "-")
    return {
        **_lines("figure-1", "Figure 1: optimal advantage, m = 11, uniform prior, exact guesses",
                 bounds, mechanism_curves(), dashed_first,
                 {"loc": "center right", "bbox_to_anchor": (1, 0.69)}, ylim=(0, 1)),
        **_lines("figure-3", "Figure 3: bounds without the mechanism, m = 10, delta = 1e-5",
                 bounds, black_box_curves(), dashed_first, {"loc": "lower right"}, ylim=(0, 1)),
        **_lines("figure-2", "Figure 2: error of a query that 95 % of the answers keep, m = 10",
                 against, curves(), ("-", "--", ":"), yscale="log"),
        **_lines("dp-sgd-refutation",
                 "Example 5.7: an attack exceeds the printed bound (m = 3, T = 100)", gradients,
                 _of_gradients(), ("-", "-", "--"), colors=(COLORS[0], COLORS[2], COLORS[1]),
                 xscale="log"),
    }  # fmt: skip


def _lines(
    name: str, title: str, labels: tuple[str, str], shown: Curves, styles: Sequence[str],
    legend: Mapping[str, Any] = MappingProxyType({"loc": "upper right"}), *,
    colors: Sequence[str] = COLORS, **how: Any,
) -> dict[str, bytes]:  # fmt: skip
    with axes(title, *labels) as (figure, place):
        for (label, (x, y)), color, style in zip(shown.items(), colors, styles, strict=False):
            place.plot(x, y, style, color=color, label=label)
        place.set(**how)
        place.legend(**legend)
        return render(figure, name)


def _of_gradients() -> Curves:
    found: dict[str, Callable[[float], float]] = {
        "bound, mu = 2 sqrt(T)/sigma": partial(printed_gradient_bound, 3, replaced=True),
        "optimal attack, gradients a regular simplex": partial(simplex_advantage, 3),
        "bound as printed, mu = sqrt(T)/sigma": partial(printed_gradient_bound, 3, replaced=False),
    }
    return {name: (SIGMAS, np.array([*map(bound, SIGMAS)])) for name, bound in found.items()}


def _advantages(universe: str, records: int, found: Sequence[Audit]) -> dict[str, bytes]:
    title = f"Figure 7: optimal attacks, {records} synthetic records (for {universe})"
    threat = ThreatModel.reconstruction(FinitePrior.uniform(records))
    across = np.linspace(0.5, 14.0, 271)
    with axes(title, EPSILON, ADVANTAGE) as (figure, place):
        for kind, color, marker in zip(KINDS, COLORS, MARKERS, strict=False):
            exact = [mechanism(kind, records, e).advantage(threat, e) for e in across]
            place.plot(across, exact, "-", color=color, label=f"{kind}, Theorem 4.3")
            mine = [audit for audit in found if audit.kind == kind]
            place.plot([audit.epsilon for audit in mine],
                       [float(np.mean(audit.advantages)) for audit in mine],
                       marker, color=color, mfc="white", label=f"{kind}, simulated")  # fmt: skip
        place.legend(loc="upper left")
        return render(figure, f"figure-7-{records}")


def _estimates(universe: str, records: int, found: Sequence[Audit]) -> dict[str, bytes]:
    runs = found[0].runs if found else 0
    title = f"Figure 8: audits, {records} records (for {universe}), {runs:,} runs, {REPEATS} times"
    bottom = min([0.0, *(math.floor(low) for low in _finite_means(found))])
    with panels(title, "true epsilon", "epsilon found", KINDS) as (figure, places):
        for kind, place in zip(KINDS, places, strict=True):
            mine = [audit for audit in found if audit.kind == kind]
            across = [audit.epsilon for audit in mine]
            place.plot([0, 15], [0, 15], "-", color="#999999", linewidth=0.8)
            place.axhline(0, color="#999999", linewidth=0.8)
            _spread(place, across, [audit.estimates for audit in mine], "o", COLORS[0],
                    "from its formula (no certificate)")  # fmt: skip
            _spread(place, across, [audit.certified for audit in mine], "s", COLORS[2],
                    "certified, any mechanism")  # fmt: skip
            _spread(place, across, [audit.ldp_auditor for audit in mine], "x", COLORS[1],
                    "LDP-Auditor")  # fmt: skip
            place.set_xlim(0, 15)
            place.set_ylim(bottom, TOP)
            place.set_xticks(range(0, 15, 2))
            place.set_yticks(range(2 * math.ceil(bottom / 2), TOP + 1, 2))
        if any(math.isinf(value) for audit in found for value in _values(audit)):
            places[0].plot([], [], "^", color=COLORS[5], mfc="none", markersize=8,
                           label=f"k/{REPEATS}: infinite in k")  # fmt: skip
        marks, labels = places[0].get_legend_handles_labels()
        figure.legend(marks, labels, loc="outside lower center", ncols=4, fontsize=9.5)
        return render(figure, f"figure-8-{records}")


def _values(audit: Audit) -> tuple[float, ...]:
    return audit.estimates + audit.certified + audit.ldp_auditor


def _finite_means(found: Sequence[Audit]) -> list[float]:
    """Of LDP-Auditor, whose values may be below 0."""
    means = (float(np.mean(audit.ldp_auditor)) for audit in found)
    return [mean for mean in means if math.isfinite(mean)]


def _spread(
    place: "Axes", across: Sequence[float], values: Sequence[Sequence[float]], marker: str,
    color: str, label: str,
) -> None:  # fmt: skip
    """Mean and standard deviation over the repeats; where some are infinite, a mark says so.

    The mean of the finite ones alone would be biased.
    """
    series = list(zip(across, values, strict=True))
    kept = [(x, row) for x, row in series if np.all(np.isfinite(row))]
    place.errorbar(
        [x for x, _ in kept], [float(np.mean(row)) for _, row in kept],
        yerr=[float(np.std(row)) for _, row in kept], fmt=marker, color=color, mfc="none",
        markersize=5.5, linewidth=1, capsize=2, label=label,
    )  # fmt: skip
    for x, row in series:
        _infinite(place, x, row, color)


def _infinite(place: "Axes", x: float, row: Sequence[float], color: str) -> None:
    """An open arrowhead at the edge, and how many of the repeats are infinite there."""
    for edge, height, mark, offset in ((math.inf, 1.0, "^", -6), (-math.inf, 0.0, "v", 6)):
        count = sum(value == edge for value in row)
        if count:
            place.annotate(
                f"{count}/{len(row)}", (x, height), xycoords=("data", "axes fraction"),
                xytext=(0, offset), textcoords="offset points", ha="center",
                va="top" if offset < 0 else "bottom", fontsize=7.5, color=color,
            )  # fmt: skip
            place.plot([x], [height], mark, color=color, mfc="none", markersize=8, clip_on=False,
                       transform=place.get_xaxis_transform())  # fmt: skip


def _digits(attacks: Sequence[Attack]) -> dict[str, bytes]:
    title = f"Figure 4 on scikit-learn's digits (for MNIST): DP-SGD, m = {CANDIDATES}, T = 100"
    dense = np.geomspace(min(NOISE_MULTIPLIERS) / 1.1, max(NOISE_MULTIPLIERS) * 1.1, 60)
    kinds = (("none", "Theorem 5.1", 0.97), ("label", "", 1.0), ("full", "Theorem 4.2", 1.03))
    with axes(title, "noise multiplier sigma", ADVANTAGE) as (figure, place):
        for (knowledge, theorem, shift), color, marker in zip(kinds, COLORS, MARKERS, strict=False):
            mine = [attack for attack in attacks if attack.knowledge == knowledge]
            place.errorbar([shift * attack.noise_multiplier for attack in mine],
                           [attack.advantage for attack in mine],
                           yerr=[2 * attack.error for attack in mine], fmt=marker, color=color,
                           mfc="white", capsize=2,
                           label=f"attack, knowledge: {knowledge} (2 s.e.)")  # fmt: skip
            if not theorem:
                continue
            for replaced, style, words in ((True, "-", "mu = 2 sqrt(T)/sigma"),
                                           (False, "--", "as printed")):  # fmt: skip
                heights = [bound_at(knowledge, sigma, replaced=replaced) for sigma in dense]
                place.plot(dense, heights, style, color=color, label=f"{theorem}: {words}")
        place.set_xscale("log")
        place.set_xticks(NOISE_MULTIPLIERS, [f"{sigma:g}" for sigma in NOISE_MULTIPLIERS])
        place.minorticks_off()
        place.set_ylim(0, 1)
        place.legend(loc="upper right", fontsize=7.5)
        return render(figure, "figure-4-digits")


def _continuous(name: str, prior: str, points: Sequence[Point]) -> dict[str, bytes]:
    title = f"Figure {name[7:]}: exponential mechanism on [0, 1], prior {prior}"
    with axes(title, EPSILON, ADVANTAGE) as (figure, place):
        for eta, color, marker in zip(ETAS, COLORS, (*MARKERS, "D"), strict=False):
            mine = [point for point in points if (point.prior, point.eta) == (prior, eta)]
            across = [point.epsilon for point in mine]
            place.plot(across, [point.quadrature for point in mine], "-", color=color,
                       label=f"eta = {eta:g}, quadrature")  # fmt: skip
            place.errorbar(across, [point.simulated for point in mine],
                           yerr=[point.half_width for point in mine], fmt=marker, color=color,
                           mfc="white", capsize=2,
                           label=f"eta = {eta:g}, {mine[0].samples:,} attacks, 95 %")  # fmt: skip
        place.set_ylim(bottom=0)
        place.legend(loc="upper left")
        return render(figure, name)


def _hours(found: Sequence[Hours]) -> dict[str, bytes]:
    """Lines: optimum (RAD) and Eq. (3) (ReRo); crosses and dots: what the attacks reached."""
    error = max(each.error for each in found)
    title = (
        f"Figure 6: working hours, truncated Laplace noise (s.e. of crosses at most {error:.1g})"
    )
    with panels(title, EPSILON, "risk", HOUR_PRIORS) as (figure, places):
        for prior, place in zip(HOUR_PRIORS, places, strict=True):
            for eta, color in zip(REACHES, COLORS, strict=False):
                mine = [each for each in found if (each.prior, each.eta) == (prior, eta)]
                across = [each.epsilon for each in mine]
                for values, style, label in (
                    ([each.optimum for each in mine], "-", f"eta = {eta}: RAD, Theorem 4.3"),
                    ([each.simulated for each in mine], "x", "RAD of the attacks"),
                    ([each.success_bound for each in mine], "--", "ReRo, Eq. (3)"),
                    ([each.success for each in mine], ".", "ReRo of the attacks"),
                ):
                    place.plot(across, values, style, color=color, label=label)
            place.set_ylim(-0.02, 1.02)
        marks, labels = places[0].get_legend_handles_labels()
        figure.legend(marks, labels, loc="outside lower center", ncols=len(REACHES), fontsize=8)
        return render(figure, "figure-6")
