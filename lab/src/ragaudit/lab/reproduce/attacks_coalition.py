"""Figure 7 of the collusion paper: how often its estimator links accounts that have no plan.

Groups of accounts form by single linkage. Beside the paper's curve: honest accounts with a real
embedder, under the product's sketches and estimator.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import sketches
from ragaudit.cli.figures import COLORS, axes, render
from ragaudit.embedders import registry
from ragaudit.lab.reproduce.attacks_results import Finding, Result, Run, comparisons
from ragaudit.lab.reproduce.attacks_texts import glosses
from ragaudit.lab.reproduce.comparison import Table
from ragaudit.privacy.coalition import hamming_threshold
from scipy import special
from scipy.cluster.hierarchy import linkage

Floats = npt.NDArray[np.float64]


def group_sizes(alike: npt.NDArray[np.floating], levels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the size of the largest group at each level, int64[levels].

    Two accounts are linked at every level up to how alike they are; a group is what links join.

    Args:
        alike: float[A, A], symmetric, at least two accounts.
        levels: in any order.
    """
    formed, sizes = _merges(alike)
    joins = np.searchsorted(-formed, -np.asarray(levels, dtype=float), side="right")
    return np.concatenate([[1], sizes])[joins]


def group_level(alike: npt.NDArray[np.floating], size: int) -> float:
    """Return the largest level at which a group has so many accounts.

    Args:
        alike: as of `group_sizes`.
        size: 2 to A.
    """
    formed, sizes = _merges(alike)
    return float(formed[np.searchsorted(sizes, size)])


def _merges(alike: npt.NDArray[np.floating]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The levels at which groups merge, falling, and the largest size by then."""
    tree = linkage(-alike[np.triu_indices(len(alike), 1)].astype(float), "single")
    return -tree[:, 2], np.maximum.accumulate(tree[:, 3].astype(np.int64))


BITS, SEED = 512, bytes(range(32))
SIZES = ((10, 10), (30, 100), (100, 100), (300, 100), (1000, 100), (10, 10_000))
"""Honest accounts and questions of each; one window of time."""
MOST_ACCOUNTS, STEPS = 1000, (100, 200, 400, 800, 1600, 3200, 6400, 10_000)
"""The largest cell, and after how many questions of each account k-hat is looked at."""

Integers = npt.NDArray[np.int64]
Sketches = npt.NDArray[np.uint8]


def link(asked: Sketches, accounts: Integers, theta: str, first: int | None = None) -> Integers:
    """Return the smallest account of each account's group, all questions in one window of time.

    Args:
        asked: uint8[n, BITS/8].
        accounts: int64[n], who asked.
        theta: the threshold.
        first: how many questions, from the first on, are compared with all; None: every one is.
    """
    return core.link_accounts(
        accounts.astype(np.int64), np.zeros(len(asked), dtype=np.int64),
        np.zeros(len(asked), dtype=np.uint8), asked, tau=0, life=0,
        threshold=hamming_threshold(theta, BITS), part=None if first is None else (0, first),
    )  # fmt: skip


def real(run: Run) -> Iterator[Finding]:
    """Yield how many honest accounts are linked that ask for WordNet's glosses, each its own ones.

    Args:
        run: with `quick`, no cell of more than a hundred accounts.

    Raises:
        RefusedError: WordNet's glosses are not installed.
        EmbedderUnavailable: WordLlama is not installed.
    """
    sizes = SIZES[:3] if run.quick else SIZES
    texts = _Texts(run)
    asked = texts.sketched(0, max(accounts * count for accounts, count in sizes))
    for number, (accounts, count) in enumerate(sizes):
        owners = np.repeat(np.arange(accounts), count)
        for theta in ("0.8", "0.9"):
            k_hat = np.bincount(link(asked[: accounts * count], owners, theta)).max()
            yield _finding(accounts, count, theta, int(k_hat), "of different glosses; 1 is right")
        run.progress("Figure 7, real texts", number + 1, len(sizes))
    if not run.quick:
        yield from _largest(run, texts)


def _finding(accounts: int, count: int, theta: str, k_hat: int, reason: str) -> Finding:
    return Finding(
        f"honest accounts linked, WordLlama, A = {accounts}, n = {count}, theta {theta}",
        float(k_hat), reason=reason,
    )  # fmt: skip


class _Texts:
    """Texts without end, no two the same: glosses, then two of them at a time."""

    def __init__(self, run: Run) -> None:
        every = glosses(120_000)
        self._texts = [every[place] for place in run.generator(7, 10).permutation(len(every))]
        self._embedder = registry.load()

    def sketched(self, start: int, end: int) -> Sketches:
        """Return the sketches of the texts from one number to another, uint8[n, BITS/8]."""
        found = [
            sketches(
                quantise_rows(self._embedder.embed(list(map(self._text, range(*part))))).astype(
                    np.int16
                ),
                SEED, BITS,
            )
            for part in pairwise([*range(start, end, 20_000), end])
        ]  # fmt: skip
        return np.concatenate(found)

    def _text(self, number: int) -> str:
        turn, place = divmod(number, len(self._texts))
        other = self._texts[(place + turn) % len(self._texts)]
        return f"{self._texts[place]}; {other}" if turn else other


def _largest(run: Run, texts: _Texts) -> Iterator[Finding]:
    """k-hat of most accounts with most questions, exactly, from as few of them as decide it.

    Questions only add links. So what fewer of them have linked stays so, only accounts outside of
    the largest group are still compared with all, and once nobody is outside, k-hat is known.
    """
    parts: list[Sketches] = []
    owners: list[Integers] = []
    groups = {theta: np.arange(MOST_ACCOUNTS) for theta in ("0.8", "0.9")}
    needed = dict.fromkeys(groups, 0)
    for before, count in pairwise((0, *STEPS)):
        open_ones = [theta for theta, found in groups.items() if len(set(found.tolist())) > 1]
        if not open_ones:
            break
        parts.append(texts.sketched(MOST_ACCOUNTS * before, MOST_ACCOUNTS * count))
        owners.append(np.repeat(np.arange(MOST_ACCOUNTS), count - before))
        asked, who = np.concatenate(parts), np.concatenate(owners)
        for theta in open_ones:
            groups[theta] = joined(asked, who, theta, groups[theta])
            needed[theta] = count
        run.progress("Figure 7, most questions", count, STEPS[-1])
    for theta, found in groups.items():
        k_hat = int(np.bincount(found).max())
        whole = f"all of them with {needed[theta]} questions of each; questions only add links"
        reason = whole if k_hat == MOST_ACCOUNTS else "of different texts; 1 is right"
        yield _finding(MOST_ACCOUNTS, STEPS[-1], theta, k_hat, reason)


def joined(asked: Sketches, accounts: Integers, theta: str, groups: Integers) -> Integers:
    """Return the groups of all questions, from those that some of them have linked already.

    Args:
        asked, accounts, theta: as of `link`, of all questions.
        groups: int64[A], the smallest account of each account's group so far.
    """
    own = groups[accounts]
    outside = own != np.bincount(own).argmax()
    order = np.argsort(~outside, kind="stable")
    merged = link(asked[order], own[order], theta, int(outside.sum()))
    found: Integers = merged[groups]
    return found


def figures(
    thetas: Sequence[float], rates: Floats, law: Sequence[float], curves: Mapping[str, Floats]
) -> dict[str, bytes]:
    """Return PNG and SVG of false alarms and of the mean estimate, by threshold.

    Args:
        thetas: thresholds.
        rates: share of honest trials with an alarm.
        law: the same by its law.
        curves: mean k-hat by pattern, at a coalition of 10.
    """
    with axes("False alarms of the estimator", "threshold theta", "share of trials") as (fig, at):
        at.plot(thetas, rates, "o", color=COLORS[0], label="simulated")
        at.plot(thetas, law, "-", color=COLORS[0], label="by its law")
        at.plot([0.75, 0.80], [0.595, 0.040], "x", color=COLORS[1], label="paper", markersize=9)
        at.legend(loc="best")
        files = render(fig, "attacks-7-false-alarms")
    with axes("Estimated size of a coalition of 10", "threshold theta", "mean k-hat") as (fig, at):
        for (pattern, found), color in zip(curves.items(), COLORS, strict=False):
            at.plot(thetas, found, "o-", color=color, label=pattern)
        at.axhline(10, color="#888888", linewidth=0.8)
        at.legend(loc="best")
        return {**files, **render(fig, "attacks-7-estimates")}


ACCOUNTS, QUERIES, DIMENSION = 30, 100, 32
THETAS = tuple(round(0.20 + 0.05 * step, 2) for step in range(16))
TRUE = (2, 5, 10, 20)
PATTERNS = ("P-A", "P-B", "P-C")
CHOSEN = 0.80
TRIALS = 200
PAPER = {0.75: "0.595", 0.80: "0.040"}
CORRECTED_JITTER = "P-B, jitter over sqrt(d)"


_NULL = (
    "A sample of 200 trials, standard error .035 and .015. By its law the rate at .75 is .667; the "
    "paper's is 2.1 standard errors below it."
)
_JITTER = (
    "Jitter .10 N(0, I) has length .57, so two probes have a mean cosine of 1/1.32 = .757, below "
    "the threshold: k-hat is not exact in every trial, as the paper says it is."
)


def figure_7(run: Run) -> Result:
    """Return false alarms and estimates on the paper's null and patterns, and on real texts.

    Args:
        run: with `quick`, a tenth of the trials and fewer real accounts.

    Raises:
        RefusedError: WordNet's glosses are not installed.
        EmbedderUnavailable: WordLlama is not installed.
    """
    trials = run.trials(TRIALS)
    steps = trials * (1 + len(TRUE) * 4)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        run.progress("Figure 7", done, steps)

    null = np.array([_estimates(run.generator(7, 0, t), None, 0, advance) for t in range(trials)])
    rates = (null >= 2).mean(axis=0)
    findings = [
        Finding(
            f"false alarms at theta {theta:.2f}", float(rate), false_positive_rate(theta),
            max(math.sqrt(rate * (1 - rate) / trials), 1 / trials), PAPER.get(theta), _NULL,
        )
        for theta, rate in zip(THETAS, rates, strict=True)
    ]  # fmt: skip
    curves: dict[str, Floats] = {}
    for number, pattern in enumerate((*PATTERNS, CORRECTED_JITTER)):
        for true in TRUE:
            found = np.array([
                _estimates(run.generator(7, 1 + number, true, t), pattern, true, advance)
                for t in range(trials)
            ])  # fmt: skip
            if true == 10:
                curves[pattern] = found.mean(axis=0)
            at = found[:, THETAS.index(CHOSEN)]
            findings += _recovered(pattern, true, at)
    title = f"The paper's estimator, A = {ACCOUNTS}, n = {QUERIES}, d = {DIMENSION}"
    table = Table(
        "attacks-7", title, "Figure 7, section 5.5", comparisons((), findings),
        ("Law of the false alarms: 1 - exp(-pairs tail(theta)), where two random directions reach "
         "a cosine of theta with probability tail.",
         f"{trials} trials of each cell: a share has a standard error of at most "
         f"{0.5 / math.sqrt(trials):.3f}."),
    )  # fmt: skip
    return Result(
        "7", table, findings=(*findings, _sketched(run, trials), *real(run)),
        remarks=(
            "The null does not transfer: texts of one embedder crowd into a part of the sphere, "
            "and the more honest accounts ask, the more of them are linked. A threshold has to be "
            "fixed on the deployment's own honest traffic, at its own number of questions.",
        ),
        files=lambda: figures(THETAS, rates, [false_positive_rate(t) for t in THETAS], curves),
    )  # fmt: skip


def _recovered(pattern: str, true: int, at: Floats) -> list[Finding]:
    printed = pattern != CORRECTED_JITTER
    exact = float(np.mean(at == true))
    reason = _JITTER if pattern == "P-B" else "Honest accounts join by chance, too."
    error = max(math.sqrt(exact * (1 - exact) / len(at)), 1 / len(at))
    name = f"{pattern}, k = {true}, theta {CHOSEN:.2f}"
    return [
        Finding(f"{name}: detected", float(np.mean(at >= 2)), 1.0, 1 / len(at),
                "1.00" if printed else None),
        Finding(f"{name}: k-hat exact (paper: always)" if printed else f"{name}: k-hat exact",
                exact, None, error, None, reason),
    ]  # fmt: skip


def queries(random: np.random.Generator, pattern: str | None, coalition: int) -> Floats:
    """Return unit vectors float64[accounts, queries, d]: the first accounts follow the pattern.

    Args:
        random: of all of them.
        pattern: of `PATTERNS`, or P-B with jitter of length .1; None for honest accounts alone.
        coalition: how many follow it.
    """
    everyone = _unit(random.standard_normal((ACCOUNTS, QUERIES, DIMENSION)))
    shape = (coalition, QUERIES)
    if pattern == "P-A":
        everyone[:coalition] = _unit(random.standard_normal(DIMENSION))
    elif pattern == "P-C":
        intents = _unit(random.standard_normal((5, DIMENSION)))
        everyone[:coalition] = intents[random.integers(0, 5, size=shape)]
    elif pattern is not None:
        size = 0.10 if pattern == "P-B" else 0.10 / math.sqrt(DIMENSION)
        jitter = size * random.standard_normal((*shape, DIMENSION))
        everyone[:coalition] = _unit(_unit(random.standard_normal(DIMENSION)) + jitter)
    return everyone


def _unit(vectors: Floats) -> Floats:
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def _estimates(
    random: np.random.Generator, pattern: str | None, coalition: int, advance: Callable[[], None]
) -> npt.NDArray[np.int64]:
    """k-hat at every threshold: of the true cosines, as the paper computes it."""
    vectors = queries(random, pattern, coalition).astype(np.float32)
    advance()
    return group_sizes(nearest(vectors), THETAS)


def nearest(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the largest cosine of any question of one account and any of another, float32[A, A].

    Args:
        vectors: float32[A, n, d], unit length.
    """
    found = np.empty((len(vectors), len(vectors)), dtype=np.float32)
    for account, own in enumerate(vectors):
        # Small products, one pair of accounts each: they fit the cache, where BLAS starts threads
        # for one large product and waits for them longer than it computes.
        best = (own @ vectors[account:].transpose(0, 2, 1)).max(axis=(1, 2))
        found[account, account:] = found[account:, account] = best
    return found


def false_positive_rate(theta: float) -> float:
    """Return how often honest accounts of random directions are linked, by its law.

    Pairs of questions are nearly independent, so the number of links is Poisson.

    Args:
        theta: the threshold, in (0, 1).
    """
    tail = 0.5 * special.betainc((DIMENSION - 1) / 2, 0.5, 1 - theta**2)
    pairs = math.comb(ACCOUNTS, 2) * QUERIES**2
    return float(-math.expm1(-pairs * tail))


def _sketched(run: Run, trials: int) -> Finding:
    """The same null through the product's sketches and estimator."""
    alarms = 0
    accounts = np.repeat(np.arange(ACCOUNTS), QUERIES)
    for trial in range(trials):
        vectors = queries(run.generator(7, 9, trial), None, 0).reshape(-1, DIMENSION)
        rows = quantise_rows(vectors).astype(np.int16)
        groups = link(sketches(rows, SEED, BITS), accounts, f"{CHOSEN}")
        alarms += len(set(groups.tolist())) < ACCOUNTS
        run.progress("Figure 7, sketches", trial + 1, trials)
    rate = alarms / trials
    error = max(math.sqrt(rate * (1 - rate) / trials), 1 / trials)
    return Finding(
        f"false alarms through {BITS}-bit sketches at theta {CHOSEN:.2f}", rate, None, error,
        reason=f"standard error {error:.3f}; of true cosines the law has .049: a sketch measures "
        "an angle with a deviation of .018 pi",
    )  # fmt: skip
