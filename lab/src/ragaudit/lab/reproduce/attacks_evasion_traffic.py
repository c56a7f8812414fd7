"""Who asks what when: honest accounts of three kinds, and coalitions that hide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import hyperplanes, sketches
from ragaudit.embedders import registry
from ragaudit.lab.reproduce.attacks_glosses import glosses

__all__ = [
    "ACCOUNTS", "ARMS", "BITS", "COALITION", "HONEST", "QUESTIONS", "SEED", "WINDOWS", "Arm",
    "Traffic", "pool", "traffic",
]  # fmt: skip

Floats = npt.NDArray[np.float64]

ACCOUNTS, COALITION = 60, 20
"""All of them, and those that act together where there is a coalition."""
QUESTIONS, WINDOWS = 60, 2
"""Of every account in every window, which is its rate limit r; and windows."""
LENGTH, TAU = 28_800, 600
"""Seconds of a window, and of the estimator's tau (the default of the prover)."""
BITS, SEED = 256, bytes(range(32))

_TOPICS, _TOPIC_TEXTS, _POPULAR, _POPULAR_SHARE = 20, 500, 100, 0.2
HONEST = ("different texts", "topics", "topics and popular questions", "one topic")
"""How honest accounts ask: the last one is the hardest to tell from a plan."""


@dataclass(frozen=True, slots=True)
class Arm:
    """How a coalition asks.

    Attributes:
        name: in words.
        aim: squared cosine of a probe and the target.
        aside: where a probe that is off the target goes: "fresh" (another direction every time),
            "account" or "clique" (an orthogonal one for each account, or for two of them), or
            "bits" (where the fewest bits of the sketches agree, every account by itself);
            "opposite" turns every other probe about: its scores fall where the others' rise;
            "decoy" asks every other time for a direction of the account's own.
        staggered: whether each account asks in a time of its own, more than tau from the others'.
        honest: share of the questions that are those of an honest account.
    """

    name: str
    aim: float = 1.0
    aside: str = "fresh"
    staggered: bool = False
    honest: float = 0.0


ARMS = (
    Arm("same probe"),
    Arm("paraphrases, cosine .89", 0.79),
    Arm("paraphrases, cosine .71", 0.5),
    Arm("paraphrases, cosine .50", 0.25),
    Arm("a probe and its opposite", aside="opposite"),
    Arm("own directions, cosine .89", 0.79, "account"),
    Arm("own directions, cosine .50", 0.25, "account"),
    Arm("cliques of two, cosine .89", 0.79, "clique"),
    Arm("knows the hyperplanes, cosine .89", 0.79, "bits"),
    Arm("staggered beyond tau", staggered=True),
    Arm("half honest questions", honest=0.5),
    Arm("nine in ten honest", honest=0.9),
    Arm("half at a decoy of its own", aside="decoy"),
    Arm("own directions .71, staggered, half honest", 0.5, "account", True, 0.5),
)
"""What the collusion paper and its critics name, one by one and together."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """All records of all windows.

    Attributes:
        accounts, windows: int64[n], who and in which window.
        times: int64[n], milliseconds since the window began.
        rows: int16[n, d], embeddings as the prover quantises them.
        sketches: uint8[n, BITS/8], as it sketches them.
        worth: how many accounts that ask nothing but the target the coalition's questions are
            worth, in information about the target; 0 without one.
    """

    accounts: npt.NDArray[np.int64]
    windows: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int16]
    sketches: npt.NDArray[np.uint8]
    worth: float


@lru_cache(maxsize=2)
def pool(count: int) -> Floats:
    """Return unit vectors float64[count, d] of WordNet's glosses, drawn from all of its files.

    Args:
        count: of texts.

    Raises:
        RefusedError: WordNet's glosses are not installed.
        EmbedderUnavailable: WordLlama is not installed.
    """
    texts = glosses(120_000)
    chosen = np.random.default_rng(count).permutation(len(texts))[:count]
    vectors = np.asarray(registry.load().embed([texts[place] for place in chosen]), dtype=float)
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    unit.setflags(write=False)
    return unit


def traffic(
    random: np.random.Generator, texts: Floats, honest: str, arm: Arm | None = None
) -> Traffic:
    """Return the records of `ACCOUNTS` accounts; with an arm, the last `COALITION` follow it.

    Args:
        random: of everything.
        texts: of `pool`.
        honest: of `HONEST`.
        arm: of the coalition; None: everyone is honest.
    """
    shape = (ACCOUNTS, WINDOWS, QUESTIONS)
    asked = texts[_questions(random, texts, honest)]
    times = random.integers(0, 1000 * LENGTH, size=shape)
    worth = 0.0
    if arm is not None:
        target = texts[random.integers(len(texts))]
        aimed = random.random((COALITION, WINDOWS, QUESTIONS)) >= arm.honest
        own = asked[-COALITION:]
        own[aimed] = _probes(random, target, arm)[aimed]
        worth = float(((own @ target) ** 2).sum() / (WINDOWS * QUESTIONS))
        if arm.staggered:
            slot = 1000 * LENGTH // COALITION
            began = slot * np.arange(COALITION)[:, np.newaxis, np.newaxis]
            busy = slot - 1000 * TAU - 1
            times[-COALITION:] = began + random.integers(0, busy, size=own.shape[:-1])
    rows = quantise_rows(asked.reshape(-1, asked.shape[-1])).astype(np.int16)
    every = np.indices(shape).reshape(3, -1)
    return Traffic(
        every[0], every[1], times.reshape(-1), rows, sketches(rows, SEED, BITS), worth
    )  # fmt: skip


def _questions(random: np.random.Generator, texts: Floats, honest: str) -> npt.NDArray[np.int64]:
    """Which text each question is, int64[accounts, windows, questions]."""
    shape = (ACCOUNTS, WINDOWS, QUESTIONS)
    if honest == HONEST[0]:
        # No text twice: the case that is easiest for whoever links accounts that ask alike.
        return random.permutation(len(texts))[: ACCOUNTS * WINDOWS * QUESTIONS].reshape(shape)
    topics = 1 if honest == HONEST[3] else _TOPICS
    centres = texts[random.choice(len(texts), size=topics, replace=False)]
    nearest = np.argpartition(-(centres @ texts.T), _TOPIC_TEXTS, axis=1)[:, :_TOPIC_TEXTS]
    interest = random.integers(topics, size=(ACCOUNTS, 1, 1))
    found = nearest[interest, random.integers(_TOPIC_TEXTS, size=shape)]
    if honest == HONEST[2]:
        popular = random.choice(len(texts), size=_POPULAR, replace=False)
        weight = 1 / np.arange(1, _POPULAR + 1)
        common = random.random(shape) < _POPULAR_SHARE
        found[common] = random.choice(popular, size=int(common.sum()), p=weight / weight.sum())
    return found


def _probes(random: np.random.Generator, target: Floats, arm: Arm) -> Floats:
    """What a coalition would ask, unit vectors float64[COALITION, WINDOWS, QUESTIONS, d]."""
    shape = (COALITION, WINDOWS, QUESTIONS, len(target))
    chosen: Callable[[], Floats] = {
        "fresh": lambda: random.standard_normal(shape),
        "opposite": lambda: random.standard_normal(shape),
        "decoy": lambda: _orthogonal(random, len(target), COALITION),
        "account": lambda: _orthogonal(random, len(target), COALITION),
        "clique": lambda: np.repeat(_orthogonal(random, len(target), COALITION // 2), 2, axis=0),
        "bits": lambda: _against_bits(random, target),
    }[arm.aside]
    aside = chosen()
    aside = aside - (aside @ target)[..., np.newaxis] * target
    aside /= np.linalg.norm(aside, axis=-1, keepdims=True)
    probes: Floats = np.array(
        np.broadcast_to(np.sqrt(arm.aim) * target + np.sqrt(1 - arm.aim) * aside, shape)
    )
    if arm.aside == "opposite":
        probes[:, :, ::2] *= -1
    elif arm.aside == "decoy":
        probes[:, :, ::2] = np.broadcast_to(aside, shape)[:, :, ::2]
    return probes


def _orthogonal(random: np.random.Generator, dimension: int, count: int) -> Floats:
    basis = np.linalg.qr(random.standard_normal((dimension, count)))[0].T
    return np.asarray(basis[:, np.newaxis, np.newaxis])


def _against_bits(random: np.random.Generator, target: Floats) -> Floats:
    """Directions that flip, for each account, a random half of the target's bits, weakest first."""
    planes = hyperplanes(SEED, BITS, len(target)).astype(float)
    signed = planes @ target
    weakest = np.argsort(np.abs(signed))[: int(0.6 * BITS)]
    found = []
    for _ in range(COALITION):
        flipped = random.choice(weakest, size=len(weakest) // 2, replace=False)
        found.append(-np.sign(signed[flipped]) @ planes[flipped])
    return np.array(found)[:, np.newaxis, np.newaxis]
