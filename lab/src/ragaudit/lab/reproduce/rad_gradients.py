"""Figure 4 with scikit-learn's digits instead of MNIST: the optimal attack on DP-SGD.

1 797 handwritten digits of 8 x 8 pixels; softmax regression in place of a network. Full batch,
sums of clipped gradients, T = 100, C = 0.1, 999 known records, 8 candidates, exact guesses: as in
the paper.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.reproduce.rad_examples import STEPS, printed_gradient_bound
from ragaudit.lab.risk.estimation import contributions
from ragaudit.lab.risk.gradient_attack import (
    Evidence,
    GradientAttack,
    printed_rule,
    require_unknown,
)
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, SuccessSets, ThreatModel
from ragaudit.lab.risk.trade_off import gaussian_total_variation
from ragaudit.lab.risk.validation import FloatArray, IntegerArray

__all__ = ["NOISE_MULTIPLIERS", "RUNS", "Attack", "attack_digits", "batches", "bound_at"]

_Float = TypeVar("_Float", np.float32, np.float64)

CLIPPING_NORM = 0.1
LEARNING_RATE = 0.5
KNOWN = 999
CANDIDATES = 8
CLASSES = 10
NOISE_MULTIPLIERS = (40.0, 20.0, 10.0, 5.0)
RUNS = 32
"""Trainings per noise multiplier."""
BATCH = 16
"""Trainings side by side: as many as keep memory below about 200 MB."""


@dataclass(frozen=True, slots=True)
class Attack:
    """Attacks at one noise multiplier.

    Attributes:
        noise_multiplier: sigma.
        knowledge: of the attacker: "none", "label" or "full".
        advantage: of the optimal attack, the mean over trainings of its expectation given the
            training's output; ``error`` is the standard error.
        observed: the same from hits and misses only, which says less and assumes less.
        printed_rule: as ``advantage``, of the paper's Algorithm 2 on the same trainings.
        printed_bound: of the paper, mu = sqrt(T)/sigma.
        bound: with mu = 2 sqrt(T)/sigma: Theorem 5.1 without knowledge, else Theorem 4.2.
    """

    noise_multiplier: float
    knowledge: str
    advantage: float
    error: float
    observed: float
    printed_rule: float
    printed_bound: float
    bound: float


def batches(runs: int = RUNS) -> int:
    """Return how many times :func:`attack_digits` calls ``advance``.

    Args:
        runs: trainings per noise multiplier.
    """
    return len(NOISE_MULTIPLIERS) * math.ceil(runs / BATCH)


def attack_digits(
    generator: np.random.Generator, advance: Callable[[int], object], trainings: int = RUNS
) -> tuple[Attack, ...]:
    """Train on scikit-learn's digits and attack every training.

    Args:
        generator: of all randomness.
        advance: called with 1 after each batch of trainings.
        trainings: >= 2, per noise multiplier.

    Returns:
        One result for each noise multiplier and kind of knowledge.

    Raises:
        RagauditError: scikit-learn is not installed.
    """
    images, labels = _digits()
    order = generator.permutation(len(images))
    known, candidates = order[:KNOWN], order[KNOWN : KNOWN + CANDIDATES]
    require_unknown(images[candidates], images[known])
    world = _World(images[known], labels[known], images[candidates], labels[candidates])
    found: list[Attack] = []
    for sigma in NOISE_MULTIPLIERS:
        runs: list[_Run] = []
        while len(runs) < trainings:
            size = min(BATCH, trainings - len(runs))
            runs += _trained(world, sigma, generator.integers(0, CANDIDATES, size), generator)
            advance(1)
        found += [_attacked(name, world, sigma, runs, generator) for name in _KNOWLEDGE]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _World:
    known: FloatArray
    known_labels: IntegerArray
    candidates: FloatArray
    candidate_labels: IntegerArray


@dataclass(frozen=True, slots=True)
class _Run:
    """One training: the target, what the run says, and the printed rule's W."""

    target: int
    evidence: Evidence
    printed: FloatArray


_KNOWLEDGE: dict[str, Callable[[_World], AuxiliaryKnowledge]] = {
    "none": lambda world: AuxiliaryKnowledge.none(CANDIDATES),
    "label": lambda world: AuxiliaryKnowledge.of_labels(world.candidate_labels.tolist()),
    "full": lambda world: AuxiliaryKnowledge.full(CANDIDATES),
}


def _digits() -> tuple[FloatArray, IntegerArray]:
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra, and slow to load
    except ModuleNotFoundError as error:
        raise RagauditError(
            "the digits need scikit-learn", expected="install ragaudit-lab with its extra `digits`"
        ) from error
    bundle = load_digits()
    pixels = np.asarray(bundle.data, dtype=np.float64) / 16
    ones = np.ones((len(pixels), 1))
    return np.hstack([pixels, ones]), np.asarray(bundle.target, dtype=np.int64)


def _trained(
    world: _World, sigma: float, targets: IntegerArray, generator: np.random.Generator
) -> list[_Run]:
    """Train once per target, side by side; the weights start at zero."""
    runs, features = len(targets), world.known.shape[1]
    weights = np.zeros((features, runs, CLASSES))
    isolated = np.empty((runs, STEPS, features * CLASSES))
    means = np.empty((runs, CANDIDATES, STEPS, features * CLASSES))
    for step in range(STEPS):
        fixed = _clipped_sum(world.known, world.known_labels, weights)
        single = _clipped_each(world.candidates, world.candidate_labels, weights)
        noise = generator.normal(0.0, CLIPPING_NORM * sigma, fixed.shape)
        mine = np.moveaxis(single[targets, :, np.arange(runs)], 0, 1)
        released = fixed + mine + noise
        flat = (runs, features * CLASSES)
        isolated[:, step] = np.moveaxis(released - fixed, 1, 0).reshape(flat)
        means[:, :, step] = np.moveaxis(single, 2, 0).reshape(runs, CANDIDATES, -1)
        # The size of the batch is public: dividing the released sum by it tells nothing more.
        weights -= LEARNING_RATE * released / (KNOWN + 1)
    attack = GradientAttack(_threat(AuxiliaryKnowledge.none(CANDIDATES)), CLIPPING_NORM, sigma)
    return [
        _Run(int(target), attack.evidence(noisy, mean), printed_rule(noisy, mean))
        for target, noisy, mean in zip(targets, isolated, means, strict=True)
    ]


def _errors(
    images: npt.NDArray[_Float], labels: IntegerArray, weights: npt.NDArray[_Float]
) -> npt.NDArray[_Float]:
    """Softmax probabilities less the true class, times the clipping factor; (n, runs, classes).

    A gradient is the outer product of image and error, so its length is the product of theirs.
    """
    features, runs, classes = weights.shape
    logits = (images @ weights.reshape(features, -1)).reshape(len(images), runs, classes)
    logits -= logits.max(axis=2, keepdims=True)
    errors = np.exp(logits)
    errors /= errors.sum(axis=2, keepdims=True)
    errors[np.arange(len(images)), :, labels] -= 1
    lengths = np.linalg.norm(images, axis=1)[:, None] * np.linalg.norm(errors, axis=2)
    factors = CLIPPING_NORM / np.maximum(lengths, CLIPPING_NORM)
    return np.asarray(errors * factors[:, :, None], dtype=images.dtype)


def _clipped_sum(images: FloatArray, labels: IntegerArray, weights: FloatArray) -> FloatArray:
    """Sum of clipped gradients; shape (features, runs, classes).

    In single precision: releasing it and taking it off again uses the same numbers.
    """
    pixels = images.astype(np.float32)
    errors = _errors(pixels, labels, weights.astype(np.float32))
    total = pixels.T @ errors.reshape(len(images), -1)
    return np.asarray(total.reshape(weights.shape), dtype=np.float64)


def _clipped_each(images: FloatArray, labels: IntegerArray, weights: FloatArray) -> FloatArray:
    """Each clipped gradient; shape (n, features, runs, classes)."""
    errors = _errors(images, labels, weights)
    return images[:, :, None, None] * errors[:, None]


def _threat(knowledge: AuxiliaryKnowledge) -> ThreatModel:
    return ThreatModel(FinitePrior.uniform(CANDIDATES), SuccessSets.exact(CANDIDATES), knowledge)


def _attacked(
    name: str, world: _World, sigma: float, runs: list[_Run], generator: np.random.Generator
) -> Attack:
    threat = _threat(_KNOWLEDGE[name](world))
    attack = GradientAttack(threat, CLIPPING_NORM, sigma)
    classes = range(len(threat.auxiliary.classes))
    best = [[attack.guess(run.evidence, label, generator) for label in classes] for run in runs]
    printed = [
        [attack.guess(_as_printed(run), label, generator) for label in classes] for run in runs
    ]
    targets = np.array([run.target for run in runs])
    samples = np.array([_expected(run, row, threat) for run, row in zip(runs, best, strict=True)])
    other = [_expected(run, row, threat) for run, row in zip(runs, printed, strict=True)]
    return Attack(
        sigma, name, float(samples.mean()), float(samples.std(ddof=1) / math.sqrt(len(runs))),
        float(contributions(targets, np.array(best), threat).mean()), float(np.mean(other)),
        bound_at(name, sigma, replaced=False), bound_at(name, sigma, replaced=True),
    )  # fmt: skip


def _expected(run: _Run, guesses: list[int], threat: ThreatModel) -> float:
    """The advantage given a training's output: the gains of the records that are named."""
    labels = threat.auxiliary.labels
    named = (guess for label, guess in enumerate(guesses) if labels[guess] == label)
    return math.fsum(float(run.evidence.gain[guess]) for guess in named)


def _as_printed(run: _Run) -> Evidence:
    """The printed rule in the form of evidence: W in the place of the gain."""
    return Evidence(run.evidence.log_likelihood, run.evidence.posterior, run.printed)


def bound_at(knowledge: str, sigma: float, *, replaced: bool) -> float:
    """Return Theorem 5.1 without knowledge, else Theorem 4.2.

    Args:
        knowledge: "none" or another of the attacker's.
        sigma: the noise multiplier.
        replaced: as of `printed_gradient_bound`.
    """
    if knowledge == "none":
        return printed_gradient_bound(CANDIDATES, sigma, replaced=replaced)
    mu = (2 if replaced else 1) * math.sqrt(STEPS) / sigma
    return (1 - 1 / CANDIDATES) * gaussian_total_variation(mu)
