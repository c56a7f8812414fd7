"""From signals to one score of each document, its AUC, and what chance would do."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.lab.risk.estimation import area_under_curve, proportion_low
from scipy import special, stats

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")

_COMMON: Final = frozenset(
    """a about above after again all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing down during each few for from further had
    has have having he her here hers him his how i if in into is it its itself just me more most my
    no nor not now of off on once only or other our out over own same she should so some such than
    that the their them then there these they this those through to too under until up very was we
    were what when where which while who whom why will with would you your yes""".split()  # noqa: SIM905
)


def is_text(text: str) -> bool:
    """Return whether a text can be sent: JSON can name halves of surrogate pairs, UTF-8 cannot."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def words(text: str) -> list[str]:
    """Return the words of a text in their order, in small letters."""
    return [each.casefold() for each in _WORD.findall(text)]


def content(text: str) -> list[str]:
    """Return the words that are neither common nor of fewer than three letters, in their order."""
    return [each for each in words(text) if len(each) > 2 and each not in _COMMON]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in their order, none empty."""
    return [each.strip() for each in _SENTENCE.split(text.strip()) if each.strip()]


Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
Groups = npt.NDArray[np.int64]

_FOLDS: Final = 5
_RIDGE: Final = 1.0
_STEPS: Final = 25
_EQUAL: Final = 9
"""Decimal places of a document's mean. Documents whose answers measure the same must tie: the order
in which their questions are summed, which is the same for every answer, would tell them apart."""
_ENOUGH: Final = 1e-4
"""Of a step of the weights, in standard deviations of a signal."""
RESAMPLES: Final = 4000
PERMUTATIONS: Final = 999


@dataclass(frozen=True)
class Measured:
    """How well one score tells members from others.

    Attributes:
        auc: Mann-Whitney, ties one half.
        low, high: 95 % percentile interval of a bootstrap over documents, by class.
        p: one-sided, exact Mann-Whitney (asymptotic where scores tie).
        equal: whether all scores are equal, which says nothing.
    """

    auc: float
    low: float
    high: float
    p: float
    equal: bool


def measure(scores: Floats, labels: Labels, seed: int) -> Measured:
    """Return what a score is worth.

    Args:
        scores: one per document, finite.
        labels: whether it is a member.
        seed: of the bootstrap.
    """
    rng = np.random.default_rng(seed)
    members, others = scores[labels], scores[~labels]
    # How often each document is in a resample; the AUC is bilinear in these counts.
    above = (members[:, None] > others) + 0.5 * (members[:, None] == others)
    times = [
        rng.multinomial(len(side), np.full(len(side), 1 / len(side)), RESAMPLES)
        for side in (members, others)
    ]
    drawn = ((times[0] @ above) * times[1]).sum(axis=1) / above.size
    ties = len(np.unique(scores)) < len(scores)
    test = stats.mannwhitneyu(
        members, others, alternative="greater", method="asymptotic" if ties else "exact"
    )
    return Measured(
        area_under_curve(members, others),
        float(np.quantile(drawn, 0.025)),
        float(np.quantile(drawn, 0.975)),
        1.0 if len(np.unique(scores)) == 1 else float(test.pvalue),
        len(np.unique(scores)) == 1,
    )


def cross_fitted(features: Floats, groups: Groups, labels: Labels, seed: int) -> Floats:
    """Return a score per document: the mean of a logistic model that was fitted on other documents.

    Five folds of documents, stratified by class: no document's own answers choose the direction or
    the weights by which it is judged.

    Args:
        features: float64[questions, signals].
        groups: of which document each question is, int64[questions], 0 .. documents-1.
        labels: whether each document is a member, bool[documents].
        seed: of the folds.
    """
    fold = _folded(labels, _FOLDS, np.random.default_rng(seed))
    found = np.empty(len(labels))
    for number in range(_FOLDS):
        test = fold == number
        found[test] = _scores(features, groups, labels, ~test)[test]
    return found


def held_out_low(features: Floats, groups: Groups, labels: Labels, seed: int) -> float:
    """Return a lower limit at 97.5 % of the AUC of a model fitted on half of the documents.

    Clopper and Pearson over pairs of a member and another of the other half. No two pairs share a
    document, and all are judged by one model that knows none of them: where answers about distinct
    documents are independent, so are the pairs, and the limit is exact. Cross-fitted scores are not
    independent, and the bootstrap's interval of a perfect score has no width.

    Args:
        features, groups, labels: as of `cross_fitted`.
        seed: of the halves and of the pairs.
    """
    rng = np.random.default_rng([seed, 2])
    known = _folded(labels, 2, rng) == 0
    scores = _scores(features, groups, labels, known)
    members, others = (rng.permutation(scores[~known & (labels == kind)]) for kind in (True, False))
    pairs = min(len(members), len(others))
    # A tie counts as lost: the limit may be too low, never too high.
    won = members[:pairs] > others[:pairs]
    return proportion_low(int(won.sum()), pairs, 0.975)


def _folded(labels: Labels, folds: int, rng: np.random.Generator) -> Groups:
    """The fold of each document, 0 .. folds-1, as many of each class in each as can be."""
    fold = np.empty(len(labels), dtype=np.int64)
    for kind in (True, False):
        inside = np.flatnonzero(labels == kind)
        fold[rng.permutation(inside)] = np.arange(len(inside)) % folds
    return fold


def _scores(features: Floats, groups: Groups, labels: Labels, known: Labels) -> Floats:
    """The mean logit of each document, by a model that is fitted on the known ones."""
    of_known = known[groups]
    inputs, truth = features[of_known], labels[groups[of_known]]
    center, spread = inputs.mean(axis=0), inputs.std(axis=0)
    spread[spread == 0] = 1
    weights = _fitted((inputs - center) / spread, truth)
    logits = _with_one((features - center) / spread) @ weights
    return document_means(logits, groups, len(labels))


def document_means(values: Floats, groups: Groups, documents: int) -> Floats:
    """Return the mean of each document's questions, rounded so that equal means tie.

    Args:
        values: one per question.
        groups: of which document each question is.
        documents: how many there are.
    """
    sums = np.bincount(groups, values, documents)
    found: Floats = (sums / np.bincount(groups, minlength=documents)).round(_EQUAL)
    return found


def permutation_p(
    features: Floats, groups: Groups, labels: Labels, seed: int, permutations: int = PERMUTATIONS,
    done: Callable[[], object] = lambda: None,
) -> float:  # fmt: skip
    """Return how often permuted labels do at least as well, the whole fit repeated.

    Exact for exchangeable documents, whatever cross-fitting does to the scores: folds share
    documents, so that the ranks of Mann and Whitney are not quite independent.

    Args:
        features, groups, labels, seed: as of `cross_fitted`.
        permutations: at least 19.
        done: is called after each.
    """
    rng = np.random.default_rng([seed, 1])

    def area(truth: Labels) -> float:
        scores = cross_fitted(features, groups, truth, seed)
        return area_under_curve(scores[truth], scores[~truth])

    observed, reached = area(labels), 1
    for _ in range(permutations):
        # Rounding of equal areas is no difference.
        reached += area(rng.permutation(labels)) >= observed - 1e-12
        done()
    return reached / (permutations + 1)


def _fitted(known: Floats, truth: Labels) -> Floats:
    """Logistic regression with a ridge, by Newton's method: it converges for any data."""
    inputs = _with_one(known)
    penalty = np.full(inputs.shape[1], _RIDGE)
    penalty[0] = 1e-6
    ridge = np.diag(penalty)
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        chance = special.expit(inputs @ weights)
        gradient = inputs.T @ (truth - chance) - penalty * weights
        curvature = (inputs * (chance * (1 - chance))[:, None]).T @ inputs + ridge
        step = np.linalg.solve(curvature, gradient)
        # A bounded step: far from the optimum a whole one may overshoot.
        weights = weights + step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < _ENOUGH:
            break
    return weights


def _with_one(values: Floats) -> Floats:
    return np.hstack([np.ones((len(values), 1)), values])
