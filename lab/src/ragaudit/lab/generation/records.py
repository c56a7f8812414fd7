"""Invented patient records: diseases, treatments and symptoms that nobody has heard of.

All names are drawn, so whoever has not read the records cannot answer: the closed-book score is 0
by construction, but for a chance of one in a million.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from ragaudit.lab.generation.vocabulary import CONTENT, SYLLABLES

ATTRIBUTES = ("treatment", "symptom")
SUPPORT = (10, 40, 120)
"""Patients of a disease, by stratum."""
_FAMILY = 3
"""Diseases whose names share two syllables, one of each stratum."""
_USUAL = 0.85
"""Share of the patients who have the usual treatment; the others have one of their own."""


@dataclass(frozen=True)
class Question:
    """One question of a stream.

    Attributes:
        text: of the question.
        answer: a name.
        support: patients of the disease, of which about `_USUAL` have the answer.
        kind: ``first`` about its disease, ``dependent`` (the other attribute was asked before), or
            ``repeated``.
    """

    text: str
    answer: str
    support: int
    kind: str


@dataclass(frozen=True)
class Corpus:
    """Records, and a stream of questions about them.

    Attributes:
        texts: of the records; their places are their ids.
        questions: in the order in which they are asked.
    """

    texts: tuple[str, ...]
    questions: tuple[Question, ...]


def corpus(rng: np.random.Generator, families: int, questions: int) -> Corpus:
    """Return a corpus and a stream.

    Args:
        rng: draws everything.
        families: of diseases, each with 170 patients, >= 1.
        questions: of the stream; at least as many as diseases: each is asked about.
    """
    names = _Names(rng)
    texts, facts = [], []
    for _ in range(families):
        stem = names.fresh()[:4]
        for support in SUPPORT:
            disease = names.fresh(stem)
            usual = {attribute: names.fresh() for attribute in ATTRIBUTES}
            texts += [_record(names, rng, disease, usual) for _ in range(support)]
            facts += [(disease, support, attribute, usual[attribute]) for attribute in ATTRIBUTES]
    order = rng.permutation(len(texts))
    return Corpus(tuple(texts[place] for place in order), _stream(rng, facts, questions))


def _record(names: "_Names", rng: np.random.Generator, disease: str, usual: dict[str, str]) -> str:
    parts = [f"patient {names.fresh()}"]
    for attribute, value in usual.items():
        own = value if rng.random() < _USUAL else names.fresh()
        parts.append(f"{attribute} of {disease} : {own}")
    return " ; ".join(parts) + " ."


def _stream(
    rng: np.random.Generator, facts: Sequence[tuple[str, int, str, str]], questions: int
) -> tuple[Question, ...]:
    # Everything once, as far as there is room, then some of it again.
    order = [int(each) for each in rng.permutation(len(facts))]
    again = [int(each) for each in rng.integers(len(facts), size=max(0, questions - len(facts)))]
    found, diseases, asked = [], set(), set()
    for place in (*order, *again)[:questions]:
        disease, support, attribute, answer = facts[place]
        kind = "repeated" if place in asked else "dependent" if disease in diseases else "first"
        diseases.add(disease)
        asked.add(place)
        found.append(Question(f"{attribute} of {disease} ?", answer, support, kind))
    return tuple(found)


class _Names:
    """Names that were not drawn before."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._taken: set[str] = set()

    def fresh(self, stem: str = "") -> str:
        while True:
            drawn = self._rng.integers(len(SYLLABLES), size=CONTENT)
            whole = "".join(SYLLABLES[int(each)] for each in drawn)
            name = stem + whole[len(stem) :]
            if name not in self._taken:
                self._taken.add(name)
                return name


def scores(question: str, texts: Sequence[str]) -> list[Fraction]:
    """Return the share of the question's trigrams that each text has.

    A function of that text and the question only, as retrieval in a private mechanism must be.

    Args:
        question: as it was asked.
        texts: of records.
    """
    wanted = _trigrams(question)
    return [Fraction(len(wanted & _trigrams(text)), len(wanted)) for text in texts]


@lru_cache(maxsize=65_536)
def _trigrams(text: str) -> frozenset[str]:
    padded = [f" {word} " for word in text.split() if word.isalpha()]
    return frozenset(word[start : start + 3] for word in padded for start in range(len(word) - 2))
