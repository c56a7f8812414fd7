"""Figure 2(a) of the collusion paper: the pooled mean of the scalar mechanism, and its gates."""

import math
from collections.abc import Sequence

from ragaudit.lab.reproduce import attacks_plots
from ragaudit.lab.reproduce.accounting_cells import QUERIES, PaperCell, exactly_calibrated
from ragaudit.lab.reproduce.accounting_published import ENDS, REPORTED
from ragaudit.lab.reproduce.attacks_gates import gates
from ragaudit.lab.reproduce.attacks_results import ACCOUNTS, Point, Result, Run, comparisons, point
from ragaudit.lab.reproduce.comparison import Table
from scipy import stats

__all__ = ["EPSILONS", "TRIALS", "figure_2a"]

EPSILONS = ("1", "2", "4")
TRIALS = (10_000, 100_000)
"""The paper's, and what it says would settle P2."""

PRINTED, EXACT = "noise of (3.4)", "least noise"
_MARGIN = (
    "The caption's formula is that of no attack (see `ragaudit reproduce accounting`); the theory "
    "is Phi(mu/sqrt 2). What the paper reports is a sample of 10 000 trials, standard error .0041."
)


def figure_2a(run: Run) -> Result:
    """Return the areas under both calibrations, at both numbers of trials.

    The mean of k n noisy scores is drawn directly: it is Gaussian, with the variance of one score
    over k n. mu of the coalition is its distance between the worlds in standard deviations.

    Args:
        run: with `quick`, the paper's number of trials alone.
    """
    points: list[Point] = []
    every = TRIALS[:1] if run.quick else TRIALS
    steps = len(every) * 2 * len(EPSILONS)
    for size, trials in enumerate(every):
        for kind, curve in enumerate((PRINTED, EXACT)):
            for row, epsilon_acc in enumerate(EPSILONS):
                done = (size * 2 + kind) * len(EPSILONS) + row
                run.progress("Figure 2(a)", done, steps)
                points += [
                    _cell(run, curve, epsilon_acc, accounts, trials, (2, size, kind, row, column))
                    for column, accounts in enumerate(ACCOUNTS)
                ]
    run.progress("Figure 2(a)", steps, steps)
    printed = [each for each in points if each.curve == PRINTED]
    source = "Figure 2(a), sections 4.2 and 4.3"
    title = f"AUC of the pooled mean, n = {QUERIES}, delta_acc = 1e-6"
    table = Table(
        "attacks-2a", title, source, comparisons(points, reasons={PRINTED: _MARGIN}),
        ("With the least noise that keeps the promise, mu is no multiple of eps_acc: those curves "
         "do not collapse, whatever T is.",),
    )  # fmt: skip
    return Result(
        "2a", table, tuple(points), gates=gates(points, printed=PRINTED, exact=EXACT),
        files=lambda: attacks_plots.areas("attacks-2a", title, _shown(printed)),
    )  # fmt: skip


def _shown(points: Sequence[Point]) -> list[Point]:
    most = max(each.trials for each in points)
    return [each for each in points if each.trials == most]


def _cell(
    run: Run, curve: str, epsilon_acc: str, accounts: int, trials: int, path: Sequence[int]
) -> Point:
    mu = coalition_mu(epsilon_acc, accounts, exact=curve == EXACT)
    draws = run.generator(*path).standard_normal((2, trials))
    return point(
        curve, epsilon_acc, accounts, draws[1] + mu, draws[0],
        theory=float(stats.norm.cdf(mu / math.sqrt(2))),
        paper=_reported(epsilon_acc, accounts) if curve == PRINTED else None,
    )  # fmt: skip


def coalition_mu(epsilon_acc: str, accounts: int, *, exact: bool) -> float:
    """Return mu of k accounts that ask n = 10 000 questions each.

    Args:
        epsilon_acc: of one account, at delta 1e-6.
        accounts: k.
        exact: with the least noise that keeps the promise, else with that of (3.4).
    """
    guarantee = (
        exactly_calibrated(epsilon_acc, accounts)
        if exact
        else PaperCell(epsilon_acc, accounts).gaussian
    )
    return float(guarantee.mu)


def _reported(epsilon_acc: str, accounts: int) -> str | None:
    if (epsilon_acc, accounts) in ENDS:
        return ENDS[epsilon_acc, accounts]
    if (epsilon_acc, accounts) in REPORTED:
        return f"{0.5 + float(REPORTED[epsilon_acc, accounts][0]) / 2:.4f}"
    return None
