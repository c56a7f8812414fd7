"""Documents of a test, and whether both classes may be compared at all."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ragaudit.embedders.base import Embedder
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.lab.attacks.membership.scoring import (
    Floats,
    cross_fitted,
    is_text,
    permutation_p,
    words,
)
from ragaudit.lab.risk.estimation import area_under_curve

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
