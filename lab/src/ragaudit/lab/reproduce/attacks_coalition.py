"""Figure 7 of the collusion paper: how often its estimator links accounts that have no plan."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import sketches
from ragaudit.lab.reproduce.attacks_coalition_plots import figures
from ragaudit.lab.reproduce.attacks_coalition_texts import BITS, SEED, link, real
from ragaudit.lab.reproduce.attacks_groups import group_sizes
from ragaudit.lab.reproduce.attacks_results import Finding, Result, Run, comparisons
from ragaudit.lab.reproduce.comparison import Table
from scipy import special

__all__ = ["PATTERNS", "THETAS", "false_positive_rate", "figure_7", "nearest", "queries"]

ACCOUNTS, QUERIES, DIMENSION = 30, 100, 32
THETAS = tuple(round(0.20 + 0.05 * step, 2) for step in range(16))
TRUE = (2, 5, 10, 20)
PATTERNS = ("P-A", "P-B", "P-C")
CHOSEN = 0.80
TRIALS = 200
PAPER = {0.75: "0.595", 0.80: "0.040"}
CORRECTED_JITTER = "P-B, jitter over sqrt(d)"

Floats = npt.NDArray[np.float64]

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
