"""What the arms achieved: shares with bootstrap intervals over corpora, beside the papers'."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from ragaudit.cli.figures import COLORS, axes, panels, render
from ragaudit.lab.generation.records import SUPPORT
from ragaudit.lab.reproduce.generation_arms import (
    ARMS,
    BASELINES,
    EPSILON,
    PAYING,
    REUSING,
    USES,
    Asked,
    Point,
    cap,
)

KINDS = ("first", "dependent", "repeated")
_RESAMPLES = 2000

COMPARISON = (
    ("MURAG, Figure 2: better than the model alone on all four data sets at a total epsilon of 10 "
     "(M = 1); the naive stream needs more than 1,000.",
     "Comparable in direction. Our questions cannot be answered without records (closed book 0), "
     "theirs partly can; our vocabulary has 213 tokens, theirs 50,272 or more, so theirs needs a "
     "larger epsilon per token; their epsilon is for add-remove, their best of 27 settings is "
     "chosen on the private data."),
    ("MURAG, Figure 3: M = 5 retrieves better and costs more; M = 1 has the better trade-off.",
     "Comparable at equal totals: rows M = 1 and M = 5 of one column."),
    ("MURAG, Table 1: precision 78.8, 72.2 % (independent), 13.3, 17.6 % (dependent) for MURAG; "
     "92.6, 94.6, 67.2, 40.7 % for MURAG-ADA.",
     "Of the documents that were read, the share that is of the best m of the whole corpus. Ours "
     "stands under `precision`. Our lexical scores tell diseases apart, so a fixed threshold does "
     "better here than with their embeddings."),
    ("DP-KSA, Figure 5: F1 21.67 without documents, 22.55 at epsilon 2, 25.18 at 8 (Llama 3.2, 3B, "
     "NQ, 80 voters).",
     "Not comparable: their epsilon is of ONE question, ours of the whole stream; and their "
     "accounting states 2.13 where what is printed costs 3.14 (docs/notes/generation.md, 3)."),
)  # fmt: skip
"""What the papers report, and what of it can be held against ours."""


@dataclass(frozen=True)
class Cell:
    """One arm at one total, on some of the questions.

    Attributes:
        arm: of `BASELINES` or `ARMS`.
        epsilon: total; None of a baseline.
        group: ``all``, a number of supporting documents, or a kind of question.
        questions: of all corpora.
        right, low, high: share of right answers, and its 95 % bootstrap interval; the unit is the
            corpus.
        charged: documents that paid, a question.
        used: that were read, a question.
        precision: of those that were read, the share of the best ones; None if none was read.
        refused: share of the questions that found no document alive; of arms that charge.
        private: tokens drawn or keywords released, a question.
        reused: share of the questions that had a stored answer.
    """

    arm: str
    epsilon: int | None
    group: str
    questions: int
    right: float
    low: float
    high: float
    charged: float
    used: float
    precision: float | None
    refused: float
    private: float
    reused: float


def cells(asked: Sequence[Asked]) -> tuple[Cell, ...]:
    """Return every arm at every total, over all questions and by group.

    Args:
        asked: of all corpora.
    """
    groups: dict[str, Callable[[Asked], bool]] = {"all": lambda each: True}
    groups |= {f"{support} documents": _supported(support) for support in SUPPORT}
    groups |= {kind: _of_kind(kind) for kind in KINDS}
    found = []
    for arm in (*BASELINES, *ARMS):
        own = [each for each in asked if each.arm == arm]
        for epsilon in dict.fromkeys(each.epsilon for each in own):
            at = [each for each in own if each.epsilon == epsilon]
            for group, belongs in groups.items():
                chosen = [each for each in at if belongs(each)]
                if chosen:
                    found.append(_cell(arm, epsilon, group, chosen))
    return tuple(found)


def _supported(support: int) -> Callable[[Asked], bool]:
    return lambda each: each.support == support


def _of_kind(kind: str) -> Callable[[Asked], bool]:
    return lambda each: each.kind == kind


def _cell(arm: str, epsilon: int | None, group: str, asked: Sequence[Asked]) -> Cell:
    def mean(values: Iterable[float]) -> float:
        return float(np.mean(list(values)))

    low, high = _interval(asked)
    used = sum(each.used for each in asked)
    charging = arm.startswith("MURAG")
    return Cell(
        arm, epsilon, group, len(asked), mean(each.right for each in asked), low, high,
        mean(each.charged for each in asked), mean(each.used for each in asked),
        sum(each.precise for each in asked) / used if used else None,
        mean(charging and not each.charged and not each.reused for each in asked),
        mean(each.private for each in asked),
        mean(each.reused for each in asked),
    )  # fmt: skip


def _interval(asked: Sequence[Asked]) -> tuple[float, float]:
    """Return the 2.5 and 97.5 % points of the share under resampling of whole corpora."""
    seeds = sorted({each.seed for each in asked})
    right = np.array([sum(e.right for e in asked if e.seed == seed) for seed in seeds])
    count = np.array([sum(e.seed == seed for e in asked) for seed in seeds])
    drawn = np.random.default_rng(1).integers(len(seeds), size=(_RESAMPLES, len(seeds)))
    shares = right[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


def text(found: Sequence[Cell], attack: Sequence[Point]) -> str:
    """Return the tables as text.

    Args:
        found: of `cells`.
        attack: by each coalition.
    """
    lines = ["Right answers (95 % bootstrap interval over corpora), by total epsilon", ""]
    epsilons = sorted({each.epsilon for each in found if each.epsilon is not None})
    at = {(each.arm, each.epsilon, each.group): each for each in found}
    lines.append(f"{'':24}" + "".join(f"{each:>18}" for each in epsilons))
    lines += [f"{arm:24}{_share(at[arm, None, 'all']):>18}  (no epsilon)" for arm in BASELINES]
    lines += [
        f"{arm:24}" + "".join(f"{_share(at[arm, each, 'all']):>18}" for each in epsilons)
        for arm in ARMS
    ]
    most = epsilons[-1]
    groups = list(dict.fromkeys(each.group for each in found if each.group != "all"))
    lines += ["", f"By group at epsilon {most}", ""]
    lines.append(f"{'':24}" + "".join(f"{each:>15}" for each in groups))
    for arm in (*BASELINES, *ARMS):
        epsilon = None if arm in BASELINES else most
        shares = [at.get((arm, epsilon, group)) for group in groups]
        lines.append(
            f"{arm:24}" + "".join(f"{'-' if each is None else f'{each.right:.3f}':>15}"
                                  for each in shares)
        )  # fmt: skip
    lines += ["", f"Money at epsilon {most}, a question", ""]
    lines.append(
        f"{'':24}{'charged':>10}{'used':>8}{'charged/used':>14}{'refused':>10}{'precision':>11}"
        f"{'private':>9}{'reused':>8}"
    )
    for arm in ARMS:
        each = at[arm, most, "all"]
        ratio = f"{each.charged / each.used:.2f}" if each.used and each.charged else "-"
        precision = "-" if each.precision is None else f"{each.precision:.3f}"
        lines.append(
            f"{arm:24}{each.charged:>10.1f}{each.used:>8.1f}{ratio:>14}{each.refused:>10.3f}"
            f"{precision:>11}{each.private:>9.2f}{each.reused:>8.2f}"
        )
    lines += [
        "", f"Membership of one record at M eps_q = {EPSILON}, M = {USES}: AUC, at most "
        f"{cap(EPSILON):.3f} for any attack", "",
        f"{'accounts':>8}{'simulated':>20}{'by the law':>12}{'retrieval channel':>19}",
    ]  # fmt: skip
    for point in attack:
        simulated = f"{point.auc:.3f} ({point.error:.3f})"
        lines.append(
            f"{point.accounts:>8}{simulated:>20}{point.exact:>12.3f}{point.retrieval:>19.3f}"
        )
    lines += ["", "The papers, and what of theirs can be held against ours", ""]
    for theirs, judged in COMPARISON:
        lines += [f"- {theirs}", f"  {judged}"]
    return "\n".join(lines) + "\n"


def _share(cell: Cell) -> str:
    return f"{cell.right:.3f} ({cell.low:.2f}-{cell.high:.2f})"


def document(found: Sequence[Cell], attack: Sequence[Point], terms: Any) -> dict[str, Any]:
    """Return everything as a JSON value.

    Args:
        found, attack: as of `text`.
        terms: of the run, a JSON value.
    """
    return {
        "format": "ragaudit/v1/reproduce-generation",
        "terms": terms,
        "cells": [asdict(each) for each in found],
        "membership": {
            "epsilon": EPSILON,
            "uses": USES,
            "cap": cap(EPSILON),
            "points": [asdict(each) for each in attack],
        },
        "papers": [{"reported": theirs, "comparable": judged} for theirs, judged in COMPARISON],
    }


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
