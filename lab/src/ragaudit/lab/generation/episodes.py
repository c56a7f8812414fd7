"""Episodes that teach copying: records with random names, a question, and its answer.

Every name is drawn anew in each episode, so weights can hold none: what helps is to find the asked
disease in the context and to copy what stands beside it, or to say "unknown" where it is not there.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from ragaudit.lab.generation.vocabulary import (
    BEGIN,
    CONTENT,
    END,
    FIRST,
    INNER,
    SYLLABLES,
    UNKNOWN,
    token,
)

__all__ = ["ANSWER", "Episodes", "keyword_episodes", "record_episodes"]

Tokens = npt.NDArray[np.int64]
ANSWER = CONTENT + 1
"""Tokens of an answer of one name, with its end."""


@dataclass(frozen=True)
class Episodes:
    """Episodes of one length.

    Attributes:
        tokens: int64[episodes, length], prompts followed by their answers.
        answers: int64[episodes, positions], the token that follows each of the last positions.
        counts: bool, of the same shape: positions that are part of the answer.
    """

    tokens: Tokens
    answers: Tokens
    counts: npt.NDArray[np.bool_]


def record_episodes(rng: np.random.Generator, episodes: int, records: int) -> Episodes:
    """Return questions about a disease, with so many records as their context.

    Args:
        rng: draws every name.
        episodes: how many, >= 1.
        records: of each context, >= 0; three of four contexts hold the answer.
    """
    disease, answer = _names(rng, episodes), _names(rng, episodes)
    asked = np.where(rng.random(episodes) < 0.5, token(" treatment"), token(" symptom"))
    holds = rng.random(episodes) < 0.75
    where = rng.integers(max(records, 1), size=episodes)
    parts = [np.full((episodes, 1), BEGIN)]
    for place in range(records):
        here = holds & ((where == place) | (rng.random(episodes) < 0.3))
        named = np.where(here[:, None], disease, _other_names(rng, disease))
        values = {}
        for attribute in (" treatment", " symptom"):
            copied = here & (asked == token(attribute))
            values[attribute] = np.where(copied[:, None], answer, _names(rng, episodes))
        parts.append(_record(_names(rng, episodes), named, values))
    parts.append(_question(asked, disease))
    known = holds & (records > 0)
    unknown = np.full((episodes, ANSWER), END)
    unknown[:, 0] = UNKNOWN
    ended = np.concatenate([answer, np.full((episodes, 1), END)], axis=1)
    return _joined(parts, np.where(known[:, None], ended, unknown))


def keyword_episodes(rng: np.random.Generator, episodes: int, keywords: int) -> Episodes:
    """Return questions with keywords as their context; the answer is the keywords.

    Args:
        rng, episodes: as of `record_episodes`.
        keywords: of each context, >= 1.
    """
    words = np.concatenate([_names(rng, episodes) for _ in range(keywords)], axis=1)
    asked = np.where(rng.random(episodes) < 0.5, token(" treatment"), token(" symptom"))
    start = np.tile([BEGIN, token(" keywords")], (episodes, 1))
    stop = np.full((episodes, 1), token(" ."))
    parts = [start, words, stop, _question(asked, _names(rng, episodes))]
    return _joined(parts, np.concatenate([words, np.full((episodes, 1), END)], axis=1))


def _names(rng: np.random.Generator, count: int) -> Tokens:
    names = rng.integers(len(SYLLABLES), size=(count, CONTENT)) + INNER
    names[:, 0] += FIRST - INNER
    return names


def _other_names(rng: np.random.Generator, names: Tokens) -> Tokens:
    """Return other names, every third of them different in one syllable only."""
    fresh = _names(rng, len(names))
    near = names.copy()
    rows, place = np.arange(len(names)), rng.integers(CONTENT, size=len(names))
    base = np.where(place == 0, FIRST, INNER)
    step = rng.integers(1, len(SYLLABLES), size=len(names))
    near[rows, place] = (near[rows, place] - base + step) % len(SYLLABLES) + base
    return np.where((rng.random(len(names)) < 1 / 3)[:, None], near, fresh)


def _record(patient: Tokens, disease: Tokens, values: dict[str, Tokens]) -> Tokens:
    def word(text: str) -> Tokens:
        return np.full((len(patient), 1), token(text))

    parts = [word(" patient"), patient]
    for attribute, value in values.items():
        parts += [word(" ;"), word(attribute), word(" of"), disease, word(" :"), value]
    return np.concatenate([*parts, word(" .")], axis=1)


def _question(asked: Tokens, disease: Tokens) -> Tokens:
    def word(text: str) -> Tokens:
        return np.full((len(disease), 1), token(text))

    return np.concatenate([asked[:, None], word(" of"), disease, word(" ?")], axis=1)


def _joined(parts: list[Tokens], answers: Tokens) -> Episodes:
    # The last token is predicted, never read; what follows an end is not part of the answer.
    tokens = np.concatenate([*parts, answers[:, :-1]], axis=1)
    counts = np.cumsum(answers == END, axis=1) - (answers == END) == 0
    return Episodes(tokens, answers, counts)
