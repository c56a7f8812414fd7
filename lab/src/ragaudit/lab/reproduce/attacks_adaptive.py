"""What Figure 4 leaves out: bisection on the hit rate, inversion, the optimal attack on T."""

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import scores
from ragaudit.embedders import registry
from ragaudit.embedders.base import embed_quantised
from ragaudit.encoding.parameters import B
from ragaudit.lab.reproduce.attacks_corpus import PARAGRAPHS
from ragaudit.lab.reproduce.attacks_laws import hit_probability, scalar_auc, sigma_of
from ragaudit.lab.reproduce.attacks_results import Finding, Point, Run, point
from scipy import special

__all__ = ["bisection", "enumeration", "inversion", "set_probabilities"]

Floats = npt.NDArray[np.float64]

# A row that was replaced by a near duplicate, under little noise: the plain probe hits in both
# worlds, always.
SIGMA, LIKENESS, DIMENSION, BACKGROUND, TOP_K = "0.1", 0.95, 32, 50, 5
QUERIES, ACCOUNTS, TRIALS = 20, 20, 2000
_TURNS = np.linspace(0.02, 1.0, 99)


def bisection(run: Run) -> tuple[list[Point], tuple[str, ...]]:
    """Return areas for a near duplicate: the plain probe, a loop, and the best mixed probe.

    The loop turns its probe away from the target until half of its questions hit (Robbins and
    Monro 1951). Where that is says how high the row scores; it knows nothing of the index.

    Args:
        run: with `quick`, a tenth of the trials.
    """
    present, absent = _turned(run.seed)
    trials, random = run.trials(TRIALS), run.generator(4, 8)
    queries = ACCOUNTS * QUERIES
    plain = [random.binomial(queries, chances[-1], size=trials) for chances in (present, absent)]
    middle = (present + absent) / 2
    apart = (present - absent) / np.sqrt(np.maximum(middle * (1 - middle), 1e-12))
    best = int(np.argmax(apart))
    mixed = [random.binomial(queries, chances[best], size=trials) for chances in (present, absent)]
    looped = [_searched(chances, trials, random) for chances in (present, absent)]
    # No probe sees more of the difference than its length.
    cap = scalar_auc(math.sqrt(2 - 2 * LIKENESS), queries, float(SIGMA))
    found = [
        point(f"near duplicate, {name}, sigma {SIGMA}", "", ACCOUNTS, *seen, theory=None,
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
    for step in range(ACCOUNTS):
        share = random.binomial(QUERIES, np.interp(turn, _TURNS, chances)) / QUERIES
        turn = np.clip(turn - (share - 0.5) / math.sqrt(step + 1), _TURNS[0], _TURNS[-1])
        if step >= ACCOUNTS // 4:
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
        trials = run.trials(TRIALS)
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
