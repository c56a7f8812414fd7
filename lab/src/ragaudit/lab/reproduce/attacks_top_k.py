"""Figures 2(b) and 5 of the collusion paper: hits in the top K, from inside and from outside."""

import math
from collections.abc import Sequence
from functools import lru_cache

from ragaudit.lab.reproduce import attacks_plots
from ragaudit.lab.reproduce.attacks_laws import scalar_auc
from ragaudit.lab.reproduce.attacks_results import (
    ACCOUNTS,
    Gate,
    Point,
    Result,
    Run,
    comparisons,
    judged,
    point,
    worst,
)
from ragaudit.lab.reproduce.attacks_service import (
    QUERIES,
    Counts,
    World,
    gap,
    hits,
    predicted,
    world,
)
from ragaudit.lab.reproduce.comparison import Table

__all__ = ["EPSILONS", "TRIALS", "WITHIN", "figure_2b", "figure_5", "same_law"]

EPSILONS = ("4", "8", "16")
TRIALS, QUICK_TRIALS = 2000, 100
SAME, EXTERNAL, SEPARATED = "same tenant", "external, M4 fails", "external, M4 holds"

PAPER_2B = {("16", 1): "0.583", ("16", 20): "0.811", ("4", 20): "0.593"}
PAPER_5 = {("16", 20): "0.810"}
_WHY = (
    "A sample of 2,000 trials, standard error about .009. Growth below sqrt(20) is the bend of the "
    "curve from counts to areas; top K costs a factor of the signal that depends on N."
)
WITHIN = 0.03


def figure_2b(run: Run) -> Result:
    """Return the areas of the number of hits, by the product's mechanism in process.

    Args:
        run: with `quick`, `QUICK_TRIALS`.
    """
    points = [
        each
        for epsilon_acc in EPSILONS
        for each in _points(run, epsilon_acc, SAME, PAPER_2B, "Figure 2(b)")
    ]
    title = "AUC of hits in the top 5 of 51 rows, n = 200, in process"
    remarks = []
    for epsilon_acc in EPSILONS:
        with_row, without = _worlds(run, epsilon_acc)
        alone = scalar_auc(gap(with_row, without), 20 * QUERIES, float(with_row.sigma))
        mine = next(p for p in points if (p.epsilon_acc, p.accounts) == (epsilon_acc, 20))
        remarks.append(
            f"eps_acc = {epsilon_acc}, k = 20: who sees the noised score has {alone:.4f} "
            f"at the same n; the hits keep {(2 * mine.auc - 1) / (2 * alone - 1):.2f} of its "
            "2 AUC - 1."
        )  # fmt: skip
    remarks.append(
        "Coalitions of one epsilon are nested: k accounts are the first k of 20, in one trial."
    )
    table = Table(
        "attacks-2b", title, "Figure 2(b), section 4.4", comparisons(points, (), {SAME: _WHY}),
        tuple(remarks),
    )  # fmt: skip
    return Result(
        "2b", table, tuple(points),
        files=lambda: attacks_plots.areas("attacks-2b", title, points),
    )  # fmt: skip


def figure_5(run: Run) -> Result:
    """Return the same attack from accounts of another tenant, with and without access control.

    Args:
        run: as of `figure_2b`.
    """
    same = [p for each in EPSILONS for p in _points(run, each, SAME, PAPER_2B, "Figure 2(b)")]
    outside = [p for each in EPSILONS for p in _points(run, each, EXTERNAL, PAPER_5, "Figure 5")]
    apart = _separated(run)
    title = "External against same-tenant accounts, top 5 of 51 rows, n = 200"
    table = Table(
        "attacks-5", title, "Figure 5, section 4.7",
        comparisons([*outside, *apart], (), {EXTERNAL: _WHY}),
        ("Noise has no tenant: both regimes have one law, and the difference is a sample of 0.",),
    )  # fmt: skip
    return Result(
        "5", table, (*same, *outside, *apart), gates=(same_law(same, outside),),
        remarks=("Where access control holds, an external account asks its own index; its answers "
                 "are the same function of the noise in both worlds, and the AUC is 1/2.",),
        files=lambda: attacks_plots.areas("attacks-5", title, [*same, *outside, *apart]),
    )  # fmt: skip


def same_law(same: Sequence[Point], outside: Sequence[Point]) -> Gate:
    """Return whether all 15 areas differ by less than `WITHIN`, as equivalence tests do.

    Args:
        same, outside: cells of both regimes, in one order.
    """
    verdict = worst(
        judged(other.auc - one.auc, math.hypot(one.error, other.error), -WITHIN, WITHIN, len(same))
        for one, other in zip(same, outside, strict=True)
    )
    apart = sorted(abs(a.auc - b.auc) for a, b in zip(same, outside, strict=True))
    return Gate(
        "same law", f"external and same-tenant AUC differ by at most {WITHIN} in all 15 cells",
        verdict,
        f"at most {apart[-1]:.4f}, median {apart[len(apart) // 2]:.4f} (paper: .022, .010)",
        "PASS or FAIL is wrong in at most 5 % of runs, all cells together.",
    )  # fmt: skip


def _points(
    run: Run, epsilon_acc: str, curve: str, paper: dict[tuple[str, int], str], name: str
) -> list[Point]:
    with_row, without = _worlds(run, epsilon_acc)
    owner = "victim" if curve == SAME else "stranger"
    members, others = _counts(run, epsilon_acc, owner, name)
    return [
        point(
            curve, epsilon_acc, accounts, members[:, :accounts].sum(axis=1),
            others[:, :accounts].sum(axis=1), theory=predicted(with_row, without, accounts),
            cap=scalar_auc(gap(with_row, without), accounts * QUERIES, float(with_row.sigma)),
            paper=paper.get((epsilon_acc, accounts)),
        )
        for accounts in ACCOUNTS
    ]  # fmt: skip


def _separated(run: Run) -> list[Point]:
    """Accounts of another tenant that reach only that tenant's index: nothing to tell."""
    epsilon_acc = EPSILONS[-1]
    own, _ = _worlds(run, epsilon_acc, 1)
    found = [
        hits(World(own.exact, own.sigma, "stranger"), ACCOUNTS[-1], _trials(run),
             b"%d/separated/%d" % (run.seed, side), "stranger")
        for side in range(2)
    ]  # fmt: skip
    return [
        point(
            SEPARATED, epsilon_acc, accounts, found[0][:, :accounts].sum(axis=1),
            found[1][:, :accounts].sum(axis=1), theory=0.5,
        )
        for accounts in ACCOUNTS
    ]  # fmt: skip


def _trials(run: Run) -> int:
    return QUICK_TRIALS if run.quick else TRIALS


def _worlds(run: Run, epsilon_acc: str, tenant: int = 0) -> tuple[World, World]:
    with_row, without = (
        world(run.generator(5, tenant), epsilon_acc, present=present) for present in (True, False)
    )
    return with_row, without


@lru_cache(maxsize=8)
def _counts(run: Run, epsilon_acc: str, owner: str, name: str) -> tuple[Counts, Counts]:
    """Hits in both worlds; Figure 5 compares with the very trials of Figure 2(b)."""
    trials, side = _trials(run), 0
    total = 2 * trials

    def done(block: int) -> None:
        nonlocal side
        side += block
        run.progress(f"{name}, eps_acc = {epsilon_acc}", side, total)

    seeds = (b"%d/%s/%d" % (run.seed, epsilon_acc.encode(), world) for world in range(2))
    with_row, without = (
        hits(asked, ACCOUNTS[-1], trials, seed, owner, done)
        for asked, seed in zip(_worlds(run, epsilon_acc), seeds, strict=True)
    )
    return with_row, without
