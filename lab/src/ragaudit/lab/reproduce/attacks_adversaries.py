"""Figure 4 of the collusion paper: other adversaries, and those that it leaves out."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from ragaudit.lab.reproduce import attacks_plots
from ragaudit.lab.reproduce.attacks_adaptive import bisection, enumeration, inversion
from ragaudit.lab.reproduce.attacks_results import (
    ACCOUNTS,
    TESTED,
    Gate,
    Point,
    Result,
    Run,
    comparisons,
    point,
)
from ragaudit.lab.reproduce.attacks_scalar import coalition_mu
from ragaudit.lab.reproduce.comparison import Table
from scipy import special, stats

__all__ = ["STRATEGIES", "figure_4", "hunted", "not_above_cap"]

EPSILON, TRIALS = "4", 5000
BASELINE, RATIO = "pooled mean", "Bayes likelihood ratio"
SHARES = {0.5: "0.593", 0.25: "0.580"}
CANDIDATES = 4
_SPLIT = (
    "A sample of 5,000 trials, standard error .0058. The printed values lie near those of a "
    "coalition that leaves its wasted probes out of the mean, sqrt(rho) of the signal; the mean of "
    "all probes keeps rho of it."
)
_SAMPLED = "A sample of 5,000 trials, standard error .0058."

Floats = npt.NDArray[np.float64]
Choice = Callable[[Floats, int, int, np.random.Generator], npt.NDArray[np.int64]]


def figure_4(run: Run) -> Result:
    """Return the paper's three adversaries, adaptive loops, inversion and the optimal attack on T.

    Args:
        run: with `quick`, a tenth of the trials.
    """
    run.progress("Figure 4", 0, 4)
    scalar = _scalar(run)
    run.progress("Figure 4", 1, 4)
    loops = _loops(run)
    run.progress("Figure 4", 2, 4)
    near, near_remarks = bisection(run)
    listed, listed_findings, listed_remarks = enumeration(run)
    run.progress("Figure 4", 3, 4)
    inverted = inversion(run)
    points = [*scalar, *loops, *near, *listed]
    findings = (*inverted, *listed_findings)
    reasons = {BASELINE: _SAMPLED, RATIO: _SAMPLED}
    reasons |= {_split(share, kept): _SPLIT for share in SHARES for kept in (True, False)}
    title = f"Other adversaries, eps_acc = {EPSILON}"
    table = Table(
        "attacks-4", title, "Figure 4, section 4.6", comparisons(points, findings, reasons),
        ("Loops hunt for one of 4 candidates: each account picks its probe after it saw the "
         "answers of those before. One that knows the candidate has the area `knows it`.",),
    )  # fmt: skip
    run.progress("Figure 4", 4, 4)
    return Result(
        "4", table, tuple(points), findings, (_identity(scalar), not_above_cap(points)),
        (*near_remarks, *listed_remarks),
        lambda: {
            **attacks_plots.areas("attacks-4", title, scalar),
            **attacks_plots.areas("attacks-4-loops", "Adaptive loops, 4 candidates", loops),
        },
    )  # fmt: skip


def _scalar(run: Run) -> list[Point]:
    """The pooled mean, the likelihood ratio on the same draws, and split coalitions."""
    found: list[Point] = []
    trials = run.trials(TRIALS)
    first = coalition_mu(EPSILON, 1, exact=False)
    for column, accounts in enumerate(ACCOUNTS):
        # An account's n answers enter by their mean, here in its own standard deviations.
        draws = run.generator(4, 0, column).standard_normal((2, trials, accounts))
        draws[1] += first
        mean = draws.mean(axis=2)
        ratio = (first * draws - first**2 / 2).sum(axis=2)
        theory = _auc(first * math.sqrt(accounts))
        paper = "0.638" if accounts == ACCOUNTS[-1] else None
        found.append(
            point(BASELINE, EPSILON, accounts, mean[1], mean[0], theory=theory, paper=paper)
        )
        found.append(point(RATIO, EPSILON, accounts, ratio[1], ratio[0], theory=theory))
    for row, share in enumerate(SHARES):
        for column, accounts in enumerate(ACCOUNTS):
            found += _divided(run, share, accounts, (4, 1 + row, column))
    return found


def _divided(run: Run, share: float, accounts: int, path: tuple[int, ...]) -> list[Point]:
    aimed = max(1, round(share * accounts))
    first = coalition_mu(EPSILON, 1, exact=False)
    draws = run.generator(*path).standard_normal((2, run.trials(TRIALS), accounts))
    draws[1, :, :aimed] += first
    signals = {True: first * math.sqrt(aimed), False: first * aimed / math.sqrt(accounts)}
    return [
        point(
            _split(share, kept), EPSILON, accounts, *(side.mean(axis=1) for side in used[::-1]),
            theory=_auc(signals[kept]),
            paper=SHARES[share] if kept and accounts == ACCOUNTS[-1] else None,
        )
        for kept, used in ((True, draws[:, :, :aimed]), (False, draws))
    ]  # fmt: skip


def _split(share: float, kept: bool) -> str:
    return f"split, rho {share}, " + ("wasted probes left out" if kept else "mean of all probes")


def _auc(mu: float) -> float:
    return float(stats.norm.cdf(mu / math.sqrt(2)))


def _all_alike(
    logs: Floats, step: int, steps: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Every candidate in turn, whatever was seen."""
    return np.full(len(logs), step % CANDIDATES)


def _posterior(
    logs: Floats, step: int, steps: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """A candidate drawn from the posterior (Thompson 1933)."""
    return np.asarray(np.argmax(logs + random.gumbel(size=logs.shape), axis=1), dtype=np.int64)


def _best_arm(
    logs: Floats, step: int, steps: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Successive halving (Karnin and others 2013): the better half is asked on, in turn."""
    rounds = round(math.log2(CANDIDATES)) + 1
    left = max(1, CANDIDATES >> min(rounds - 1, step * rounds // steps))
    order = np.argsort(-logs, axis=1, kind="stable")
    return np.asarray(order[:, step % left], dtype=np.int64)


def _knows(
    logs: Floats, step: int, steps: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    return np.zeros(len(logs), dtype=np.int64)


STRATEGIES: dict[str, Choice] = {
    "not adaptive": _all_alike, "posterior sampling": _posterior, "best arm": _best_arm,
    "knows it": _knows,
}  # fmt: skip


def _loops(run: Run) -> list[Point]:
    found = []
    trials = run.trials(TRIALS)
    for row, exact in enumerate((False, True)):
        first = coalition_mu(EPSILON, 1, exact=exact)
        noise = "least noise" if exact else "noise of (3.4)"
        for line, (name, choose) in enumerate(STRATEGIES.items()):
            for column, accounts in enumerate(ACCOUNTS):
                random = run.generator(4, 5 + row, line, column)
                members, others = (
                    hunted(first, accounts, trials, choose, random, present=present,
                           known=name == "knows it")
                    for present in (True, False)
                )  # fmt: skip
                cap = _auc(first * math.sqrt(accounts))
                found.append(
                    point(f"{name}, {noise}", EPSILON, accounts, members, others,
                          theory=cap if name == "knows it" else None, cap=cap)
                )  # fmt: skip
    return found


def hunted(
    first: float, accounts: int, trials: int, choose: Choice, random: np.random.Generator, *,
    present: bool, known: bool = False,
) -> Floats:  # fmt: skip
    """Return the log likelihood ratio of "one of the candidates is there", float64[trials].

    Each account probes one candidate and sees the mean of its answers; the next one chooses after
    it. The ratio is that of a uniform candidate, whatever was probed: nothing scores better.

    Args:
        first: mu of one account.
        accounts: k.
        trials: T.
        choose: the next candidate of every trial, from the log ratios float64[T, candidates].
        random: of candidates, choices and noise.
        present: whether one is there.
        known: whether it is candidate 0, and the coalition knows.
    """
    truth = np.zeros(trials, dtype=np.int64) if known else random.integers(CANDIDATES, size=trials)
    logs = np.zeros((trials, CANDIDATES))
    every = np.arange(trials)
    for step in range(accounts):
        probed = choose(logs, step, accounts, random)
        seen = random.standard_normal(trials) + (first * (probed == truth) if present else 0.0)
        logs[every, probed] += first * seen - first**2 / 2
    if known:
        return logs[:, 0]
    return np.asarray(special.logsumexp(logs, axis=1) - math.log(CANDIDATES))


def _identity(points: list[Point]) -> Gate:
    """Whether mean and ratio rank alike, trial by trial."""
    means = [each.auc for each in points if each.curve == BASELINE]
    ratios = [each.auc for each in points if each.curve == RATIO]
    apart = max(abs(a - b) for a, b in zip(means, ratios, strict=True))
    return Gate(
        "monotone", "the likelihood ratio and the pooled mean have the same AUC on the same draws",
        "PASS" if apart < 1e-6 else "FAIL", f"largest difference {apart:.1e}",
        "Not sampled: an identity, up to ties that rounding breaks.",
    )  # fmt: skip


def not_above_cap(points: list[Point]) -> Gate:
    """Return whether any attack is above the cap of its noise, all of them together.

    Args:
        points: those without a cap are passed over.
    """
    capped = [each for each in points if each.cap is not None]
    level = float(stats.norm.isf(TESTED / len(capped)))
    above = [each for each in capped if each.auc - level * each.error > (each.cap or 1)]
    most = max((each.auc - (each.cap or 1)) / each.error for each in capped)
    return Gate(
        "no attack beats Phi(mu/sqrt 2)", f"of {len(capped)} cells, none is above its cap",
        "FAIL" if above else "PASS", f"{len(above)} are; at most {most:+.1f} standard errors above",
        "FAIL is wrong in at most 5 % of runs; PASS says that nothing above was seen.",
    )  # fmt: skip
