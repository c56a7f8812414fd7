"""Documents of a test, and whether both classes may be compared at all."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.embedders.base import Embedder
from ragaudit.encoding.errors import MalformedError, RefusedError
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


LEAST = 10
"""Documents of a class: with fewer no outcome means anything."""
RECOMMENDED = 25
_LEAST_WORDS = 12
_LARGEST_BYTES = 64 * 2**20
SEPARABLE = 0.01
"""Sets are refused if their texts alone tell them apart at this level."""
_PERMUTATIONS = 499


@dataclass(frozen=True)
class Document:
    """One document, the unit of the test.

    Attributes:
        id: as the corpus calls it.
        title: may be empty.
        text: at least twelve words.
    """

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Matching:
    """How far texts alone tell members from others.

    Attributes:
        auc: of a classifier that sees the texts and no answer, cross-fitted.
        p: how often permuted labels do as well.
    """

    auc: float
    p: float


def read(path: Path, option: str) -> list[Document]:
    """Return the documents of a file or folder.

    Args:
        path: JSON lines with ``id``, ``text`` and perhaps ``title``; or a folder of ``*.txt``,
            whose names are the ids.
        option: of the command line, for errors.

    Raises:
        MalformedError: not readable, no text, or an id twice.
    """
    try:
        if path.is_dir():
            names = sorted(path.glob("*.txt"))
            found = [Document(each.stem, "", each.read_text("utf-8")) for each in names]
        elif path.stat().st_size > _LARGEST_BYTES:
            raise MalformedError("too large", where=option, expected="at most 64 MiB")
        else:
            # Not splitlines: JSON may have other separators of lines within its texts.
            lines = enumerate(path.read_text("utf-8").split("\n"), start=1)
            found = [_parsed(line, f"{option} line {at}") for at, line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError(
            "not readable as text", where=f"{option} {path}", expected="JSON lines or *.txt"
        ) from error
    if not found:
        raise MalformedError("no document", where=f"{option} {path}")
    for document in found:
        if len(words(document.text)) < _LEAST_WORDS:
            raise MalformedError(
                f"document {document.id!r} is too short to ask about",
                where=option, expected=f"at least {_LEAST_WORDS} words",
            )  # fmt: skip
    _distinct([document.id for document in found], option)
    return found


def _parsed(line: str, where: str) -> Document:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    match value:
        case {"id": str(name), "text": str(text), **rest} if name:
            title = str(rest.get("title") or "")
            if is_text(name + title + text):
                return Document(name, title, text)
            raise MalformedError(
                "half of a surrogate pair", where=where, expected="whole characters"
            )
    raise MalformedError("no document", where=where, expected='{"id": ..., "text": ...}')


def _distinct(values: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise MalformedError(f"{value!r} twice", where=where, expected="distinct documents")
        seen.add(value)


def check_matched(
    members: Sequence[Document], others: Sequence[Document], embedder: Embedder, seed: int
) -> Matching:
    """Check that the classes are distinct, balanced, large enough and about the same topics.

    Texts that a classifier tells apart without asking anybody would make any RAG look leaky.

    Args:
        members, others: both classes.
        embedder: of the texts.
        seed: of folds and permutations.

    Raises:
        MalformedError: a document in both classes.
        RefusedError: unbalanced, too few, or told apart by their texts; says what to do.
    """
    _distinct([each.id for each in (*members, *others)], "--members and --non-members")
    both = {" ".join(words(each.text)) for each in members}
    for each in others:
        if " ".join(words(each.text)) in both:
            raise MalformedError(f"text of {each.id!r} is a member's", where="--non-members")
    sizes = len(members), len(others)
    if min(sizes) < LEAST:
        raise RefusedError(
            f"{sizes[0]} members and {sizes[1]} non-members", where="documents",
            expected=f"at least {LEAST} of each, better {RECOMMENDED} or more",
        )  # fmt: skip
    if max(sizes) > 1.25 * min(sizes):
        raise RefusedError(
            f"unbalanced: {sizes[0]} members, {sizes[1]} non-members", where="documents",
            expected="as many of each: leave some out, or give more candidates with --pool",
        )  # fmt: skip
    vectors = embedder.embed([each.text for each in (*members, *others)]).astype(np.float64)
    # Words are few numbers beside hundreds of dimensions: their length stands beside the topic.
    length = [[np.log1p(len(words(each.text)))] for each in (*members, *others)]
    features = np.hstack([_principal(vectors), np.array(length)])
    labels = np.arange(len(features)) < len(members)
    groups = np.arange(len(features))
    scores = cross_fitted(features, groups, labels, seed)
    p = permutation_p(features, groups, labels, seed, _PERMUTATIONS)
    found = Matching(area_under_curve(scores[labels], scores[~labels]), p)
    if p < SEPARABLE:
        raise RefusedError(
            f"texts alone tell members from others (AUC {found.auc:.2f}, p {p:.3f})",
            where="--non-members",
            expected="documents of the same topics, kind, time and length; give many candidates "
            "with --pool and matching ones are chosen",
        )
    return found


def choose(
    members: Sequence[Document], pool: Sequence[Document], embedder: Embedder
) -> list[Document]:
    """Return as many candidates as members, each the nearest that is left to one of them.

    Args:
        members: to be matched, in the order in which they choose.
        pool: candidates that are not in the corpus, at least as many.
        embedder: of the texts.

    Raises:
        RefusedError: too few candidates.
    """
    if len(pool) < len(members):
        raise RefusedError(
            f"{len(pool)} candidates for {len(members)} members", where="--pool",
            expected="at least as many, better ten times as many",
        )  # fmt: skip
    wanted, offered = (
        _unit(embedder.embed([each.text for each in side]).astype(np.float64))
        for side in (members, pool)
    )
    similarity = wanted @ offered.T
    chosen: list[int] = []
    for row in similarity:
        row[chosen] = -np.inf
        chosen.append(int(row.argmax()))
    return [pool[at] for at in chosen]


def _principal(vectors: Floats, most: int = 8) -> Floats:
    """The leading principal components: topics, fewer than documents."""
    centered = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    kept: Floats = (left * sizes)[:, :most]
    return kept


def _unit(vectors: Floats) -> Floats:
    found: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found
