"""Figure 4 of the collusion paper, and what it leaves out: bisection, inversion, optimal attack."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import scores
from ragaudit.embedders import registry
from ragaudit.embedders.base import embed_quantised
from ragaudit.encoding.parameters import B
from ragaudit.lab.reproduce import attacks_results
from ragaudit.lab.reproduce.attacks_results import (
    ACCOUNTS,
    TESTED,
    Finding,
    Gate,
    Point,
    Result,
    Run,
    comparisons,
    point,
)
from ragaudit.lab.reproduce.attacks_scalar import coalition_mu, scalar_auc, sigma_of
from ragaudit.lab.reproduce.attacks_texts import PARAGRAPHS
from ragaudit.lab.reproduce.attacks_top_k import hit_probability
from ragaudit.lab.reproduce.comparison import Table
from scipy import special, stats

Floats = npt.NDArray[np.float64]

# A row that was replaced by a near duplicate, under little noise: the plain probe hits in both
# worlds, always.
SIGMA, LIKENESS, DIMENSION, BACKGROUND, TOP_K = "0.1", 0.95, 32, 50, 5
QUERIES, ADAPTIVE_ACCOUNTS, ADAPTIVE_TRIALS = 20, 20, 2000
_TURNS = np.linspace(0.02, 1.0, 99)


def bisection(run: Run) -> tuple[list[Point], tuple[str, ...]]:
    """Return areas for a near duplicate: the plain probe, a loop, and the best mixed probe.

    The loop turns its probe away from the target until half of its questions hit (Robbins and
    Monro 1951). Where that is says how high the row scores; it knows nothing of the index.

    Args:
        run: with `quick`, a tenth of the trials.
    """
    present, absent = _turned(run.seed)
    trials, random = run.trials(ADAPTIVE_TRIALS), run.generator(4, 8)
    queries = ADAPTIVE_ACCOUNTS * QUERIES
    plain = [random.binomial(queries, chances[-1], size=trials) for chances in (present, absent)]
    middle = (present + absent) / 2
    apart = (present - absent) / np.sqrt(np.maximum(middle * (1 - middle), 1e-12))
    best = int(np.argmax(apart))
    mixed = [random.binomial(queries, chances[best], size=trials) for chances in (present, absent)]
    looped = [_searched(chances, trials, random) for chances in (present, absent)]
    # No probe sees more of the difference than its length.
    cap = scalar_auc(math.sqrt(2 - 2 * LIKENESS), queries, float(SIGMA))
    found = [
        point(f"near duplicate, {name}, sigma {SIGMA}", "", ADAPTIVE_ACCOUNTS, *seen, theory=None,
              cap=cap)
        for name, seen in (("plain probe", plain), ("bisection", looped), ("best probe", mixed))
    ]  # fmt: skip
    return found, (
        f"A near duplicate (cosine {LIKENESS}) under sigma {SIGMA}: the plain probe hits with "
        f"probability {present[-1]:.6f} and {absent[-1]:.6f}; turned to a cosine of "
        f"{_TURNS[best]:.2f} it hits with {present[best]:.3f} and {absent[best]:.3f}. A loop finds "
        "that place without knowing the index: adaptive probes pay where the plain one saturates.",
    )


def _searched(chances: Floats, trials: int, random: np.random.Generator) -> Floats:
    """The mean turn of the later accounts; small where the row scores high."""
    turn, later = np.full(trials, 0.5), np.zeros(trials)
    for step in range(ADAPTIVE_ACCOUNTS):
        share = random.binomial(QUERIES, np.interp(turn, _TURNS, chances)) / QUERIES
        turn = np.clip(turn - (share - 0.5) / math.sqrt(step + 1), _TURNS[0], _TURNS[-1])
        if step >= ADAPTIVE_ACCOUNTS // 4:
            later -= turn
    return later


@lru_cache(maxsize=2)
def _turned(seed: int) -> tuple[Floats, Floats]:
    """Hit probabilities by the cosine of probe and target, for the row and its near duplicate."""
    random = np.random.default_rng([seed, 4, 9])
    vectors = random.standard_normal((BACKGROUND + 3, DIMENSION))
    basis = np.linalg.qr(vectors[-3:].T)[0].T
    target, other, aside = basis
    near = LIKENESS * target + math.sqrt(1 - LIKENESS**2) * other
    found: list[Floats] = []
    for row in (target, near):
        rows = quantise_rows(np.vstack([vectors[:BACKGROUND], row]))
        chances = []
        for turn in _TURNS:
            probe = turn * target + math.sqrt(1 - turn**2) * aside
            exact = scores(rows, quantise_rows(probe[np.newaxis])[0].astype(np.int16))
            chances.append(hit_probability(exact, BACKGROUND, TOP_K, float(SIGMA)))
        found.append(np.array(chances))
    return found[0], found[1]


def inversion(run: Run) -> tuple[Finding, ...]:
    """Return what d questions give away where scores are public, and what noise on them saves.

    Args:
        run: with `quick`, fewer rows.

    Raises:
        EmbedderUnavailable: WordLlama is not installed.
    """
    texts = list(PARAGRAPHS[: 10 if run.quick else len(PARAGRAPHS)])
    rows = embed_quantised(registry.load(), texts).astype(float)
    every = embed_quantised(registry.load(), list(PARAGRAPHS)).astype(float)
    dimension = rows.shape[1]
    random = run.generator(4, 10)
    asked = quantise_rows(random.standard_normal((10 * dimension, dimension))).astype(float)
    solved = np.linalg.solve(asked[:dimension], asked[:dimension] @ rows.T).T
    same = float(np.mean(np.all(np.rint(solved) == rows, axis=1)))
    found = [
        Finding(f"rows recovered exactly from {dimension} exact scores", same, 1.0,
                reason="integer scores of independent questions are a linear system"),
    ]  # fmt: skip
    for sigma in (0.01, 0.1, 1.0, 10.0):
        noise = random.standard_normal((len(asked), len(rows))) * sigma * B * B
        guess = np.linalg.lstsq(asked, asked @ rows.T + noise, rcond=None)[0].T
        cosine = np.sum(guess * rows, axis=1) / np.linalg.norm(guess, axis=1)
        cosine /= np.linalg.norm(rows, axis=1)
        # Mean square error of least squares with Gaussian questions of length B.
        spread = sigma**2 * dimension**2 / (len(asked) - dimension - 1)
        lengths = np.linalg.norm(every, axis=1)
        named = np.argmax(guess @ every.T / lengths, axis=1) == np.arange(len(rows))
        error = float(cosine.std(ddof=1) / math.sqrt(len(rows)))
        found += [
            Finding(
                f"cosine of a row and its inversion, {len(asked)} noised scores, sigma {sigma:g}",
                float(cosine.mean()), 1 / math.sqrt(1 + spread), max(error, 0.005),
                reason="theory: 1/sqrt(1 + sigma² d²/(m - d - 1)), to first order",
            ),
            Finding(
                f"texts named among {len(PARAGRAPHS)}, sigma {sigma:g}", float(named.mean()),
            ),
        ]  # fmt: skip
    return tuple(found)


SMALL, SMALL_K = 8, 3


def enumeration(run: Run) -> tuple[list[Point], tuple[Finding, ...], tuple[str, ...]]:
    """Return the optimal attack on T beside that on hits, where all sets T can be listed.

    Args:
        run: with `quick`, a tenth of the trials.
    """
    random = run.generator(4, 11)
    background = random.standard_normal(SMALL - 1) / math.sqrt(DIMENSION)
    sets = list(combinations(range(SMALL), SMALL_K))
    hit = np.array([SMALL - 1 in each for each in sets])
    points: list[Point] = []
    findings: list[Finding] = []
    shares: list[float] = []
    # The paper's noise over 4,000 questions, and ever less noise over few.
    for sigma, queries in ((sigma_of("16", 200), 4000), (0.5, 4), (0.2, 1)):
        present, absent = (
            set_probabilities(np.append(background, score), SMALL_K, sigma) for score in (1.0, 0.0)
        )
        ratio = np.log(present / absent)
        whole = float(special.rel_entr(present, absent).sum())
        chances = float(present[hit].sum()), float(absent[hit].sum())
        alone = float(special.rel_entr(*chances) + special.rel_entr(1 - chances[0], 1 - chances[1]))
        trials = run.trials(ADAPTIVE_TRIALS)
        drawn = [random.multinomial(queries, law, size=trials) for law in (present, absent)]
        name = f"sigma {sigma:.3g}"
        shares.append(alone / whole)
        cap = scalar_auc(1.0, queries, sigma)
        for attack, weight in (("sets T", ratio), ("hits", hit.astype(float))):
            points.append(
                point(f"{attack} of {SMALL} rows, {queries} questions, {name}", "", 1,
                      drawn[0] @ weight, drawn[1] @ weight, theory=None, cap=cap)
            )  # fmt: skip
        findings.append(Finding(f"share of T's information that the hits have, {name}", shares[-1]))
    remark = (
        f"All {len(sets)} sets of {SMALL_K} of {SMALL} rows are listed, their laws integrated: the "
        f"hits have at least {min(shares):.4f} of the information (Kullback-Leibler) of T. Which "
        "other rows came along says next to nothing; the optimal attack on T is to count hits."
    )
    return points, tuple(findings), (remark,)


def set_probabilities(exact: Floats, top_k: int, sigma: float) -> Floats:
    """Return how often each set of K rows is the best one, float64[sets], in the order of sets.

    Integrated over the least noised score in the set: it belongs to one of the set's rows, the
    others of the set lie above it, all others below.

    Args:
        exact: scores float64[N].
        top_k: K.
        sigma: of the noise, in the same unit.
    """
    grid = np.linspace(exact.min() - 10 * sigma, exact.max() + 10 * sigma, 6001)
    z = (grid - exact[:, np.newaxis]) / sigma
    below, above = special.ndtr(z), special.ndtr(-z)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) / sigma
    found = []
    for chosen in combinations(range(len(exact)), top_k):
        rest = [row for row in range(len(exact)) if row not in chosen]
        outside = below[rest].prod(axis=0)
        inside = sum(
            density[least] * above[[row for row in chosen if row != least]].prod(axis=0)
            for least in chosen
        )
        found.append(np.sum(inside * outside) * (grid[1] - grid[0]))
    # What is left out beyond ten standard deviations, and the steps, are off by less than 1e-9.
    return np.array(found) / math.fsum(found)


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
            **attacks_results.areas("attacks-4", title, scalar),
            **attacks_results.areas("attacks-4-loops", "Adaptive loops, 4 candidates", loops),
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
