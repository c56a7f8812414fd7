"""The RAD paper's worked examples, claims in words, and the bounds of DP-SGD that do not hold.

Figure 4 is with scikit-learn's digits instead of MNIST: 1 797 handwritten digits of 8 x 8 pixels,
and softmax regression in place of a network. Full batch, sums of clipped gradients, T = 100, C =
0.1, 999 known records, 8 candidates, exact guesses: as in the paper.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.lab.reproduce.rad_published import SCALES, SIMPLEX
from ragaudit.lab.risk.calibration import grr_epsilon, largest_parameter
from ragaudit.lab.risk.estimation import contributions, ldp_auditor_epsilon
from ragaudit.lab.risk.general_bounds import trade_off_forms
from ragaudit.lab.risk.mechanisms import (
    LaplaceNoise,
    grr_advantage,
    grr_channel,
    noise_bound_uniform,
    oue_advantage_uniform,
    ss_advantage_uniform,
    subset_size,
)
from ragaudit.lab.risk.optimal_attack import (
    Evidence,
    GradientAttack,
    advantage_of,
    printed_rule,
    require_unknown,
)
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, FinitePrior, SuccessSets, ThreatModel
from ragaudit.lab.risk.trade_off import GaussianTradeOff, gaussian_total_variation
from ragaudit.lab.risk.validation import FloatArray, IntegerArray
from ragaudit.privacy.accounting.risk import PriorSummary
from scipy import integrate, optimize
from scipy.special import log_ndtr

STEPS = 100
"""T of Example 5.7."""

ARITHMETIC = "(1 + r 99)/(1 - r) at r = 0.1/0.99 is 12.23596; at the printed epsilon RAD is .09987."
CROSSING = (
    "14 is the end of the paper's claim, for all epsilon in [0, 14]. The curves cross at 20 ln 2: "
    "it is false on (13.863, 14]."
)
POSTERIOR = (
    "The prose after Algorithm 1 names the record of largest posterior; under a skewed prior "
    "that is the prior's favorite. The box is right: posterior minus prior, times p(theta)."
)
TWO_POINT = (
    "Section 4 takes 1/2, 1/2 on the two records that are easiest to tell apart as the worst "
    "prior; other priors are worse. If the prior is not known, total variation bounds the risk."
)
WORST = "prior 1/2, 1/2 as the worst, section 4"
PRINTED_BOUND = "Theorem 5.1 with mu = sqrt(T)/sigma, Example 5.7"
PLOT = "Read off a plot; n true and no false positives at alpha .01, n = 10^6, give 12.025."
OMEGA = (
    "The paper rounds down, the code that it audits with rounds to the nearest (rint). In an "
    "audit, read the size off the reports."
)
ABSENT = (
    "Example 5.7 takes mu = sqrt(T)/sigma, for a record that is there or not. RAD compares two "
    "records, whose clipped gradients differ by up to 2C: mu = 2 sqrt(T)/sigma."
)


def tables() -> tuple[Table, ...]:
    """Return the tables of this module."""
    return _worked(), _claims(), _scales(), _refutation()


def simplex_advantage(records: int, noise_multiplier: float, steps: int = STEPS) -> float:
    """Return the exact optimum against DP-SGD whose candidates' gradients form a simplex of norm C.

    Uniform prior, no knowledge, exact guesses. Such gradients are as far apart as ``records``
    vectors of norm C can be; they stand to each other as orthogonal ones of norm
    ``C sqrt(m/(m-1))``, so the success is ``E[Phi(X + a)^(m-1)]``, X standard normal.

    Args:
        records: m >= 2.
        noise_multiplier: sigma > 0.
        steps: T, full batch.
    """
    m = records
    a = math.sqrt(steps) / noise_multiplier * math.sqrt(m / (m - 1))

    def integrand(x: float) -> float:
        density = math.exp(-(x * x) / 2) / math.sqrt(2 * math.pi)
        return density * math.exp((m - 1) * float(log_ndtr(x + a)))

    value, _ = integrate.quad(integrand, -12, 12, epsabs=1e-12, epsrel=1e-12, limit=400)
    return float(value) - 1 / m


def printed_gradient_bound(
    records: int, noise_multiplier: float, *, replaced: bool, steps: int = STEPS
) -> float:
    """Return Theorem 5.1 for DP-SGD.

    Args:
        records: m >= 2, uniform prior.
        noise_multiplier: sigma > 0.
        replaced: whether to take the mu of two records, ``2 sqrt(T)/sigma``, or the printed one,
            ``sqrt(T)/sigma``, which is for an absent record.
        steps: T, full batch.
    """
    mu = (2 if replaced else 1) * math.sqrt(steps) / noise_multiplier
    return min(trade_off_forms(PriorSummary.uniform(records), GaussianTradeOff(mu)))


def _worked() -> Table:
    binary = grr_epsilon(0.1, 2, 0.5)
    hundred = grr_epsilon(0.1, 100, 0.01)
    threat = ThreatModel.reconstruction(FinitePrior.uniform(100))
    rows = (
        Comparison("Example 4.4, m = 2, RAD 0.1: epsilon", "0.405", "0.405465", binary),
        Comparison("Example 4.4, m = 100, RAD 0.1: e^epsilon", "12.2087", "12.235955",
                   math.exp(hundred), ARITHMETIC),
        Comparison("Example 4.4, m = 100, RAD 0.1: epsilon", "2.503", "2.504379", hundred,
                   ARITHMETIC),
        Comparison("RAD at the printed epsilon, m = 100", "0.1", "0.099865",
                   grr_advantage(threat, 2.503), ARITHMETIC),
        Comparison("Example 4.5, m = 100, eps = 40: OUE's limit (m-1)/(2m)", "0.495", "0.4950000",
                   oue_advantage_uniform(100, 40.0), formula="(m-1)/(2m), Example 4.5"),
        Comparison("Example 4.5, m = 11, eps = 14: OUE", None, "0.4545430",
                   oue_advantage_uniform(11, 14.0)),
        Comparison("Example 4.6, m = 8, eps = 1, subsets of 4: SS", None, "0.05776464",
                   ss_advantage_uniform(8, 1.0, 4)),
        Comparison("Example 4.6, m = 10, eps = 1: size by the paper's rule", "2", "2.0",
                   subset_size(10, 1.0), formula="rule for the size, Example 4.6"),
        Comparison("Example 4.6, m = 10, eps = 1: size by the audited code's rule", None, "3.0",
                   subset_size(10, 1.0, "rint"), OMEGA),
        Comparison("Example 4.7, m = 11: Laplace is below OUE up to epsilon", "14", "13.8629",
                   _crossing(), CROSSING),
        Comparison("Section 7.3.4: largest epsilon that LDP-Auditor can report", "12.25", "12.025",
                   ldp_auditor_epsilon(10**6, 0, 10**6, 0.01), PLOT),
    )  # fmt: skip
    return Table("worked-examples", "Worked examples", "Examples 4.4 to 4.7, section 7", rows)


def _crossing() -> float:
    def gap(epsilon: float) -> float:
        laplace = noise_bound_uniform(11, 1.0, LaplaceNoise(1 / epsilon))
        return laplace - oue_advantage_uniform(11, epsilon)

    return float(optimize.brentq(gap, 10.0, 20.0, xtol=1e-12))


def _claims() -> Table:
    rows = []
    cases = (([0.9, 0.05, 0.05], 0.2, "0.0000", "0.0127"),
             ([0.4, 0.3, 0.15, 0.1, 0.05], 1.0, "0.1324", "0.1829"))  # fmt: skip
    for prior, epsilon, by_posterior, optimal in cases:
        threat = ThreatModel.reconstruction(FinitePrior(prior))
        channel = grr_channel(len(prior), epsilon)
        likeliest = (np.array(prior)[:, None] * channel).argmax(axis=0)
        where = f"GRR, prior {', '.join(map(_short, prior))}, eps = {epsilon:g}"
        rows += [
            Comparison(f"{where}: naming the largest posterior", None, by_posterior,
                       advantage_of(channel, threat, likeliest), POSTERIOR),
            Comparison(f"{where}: Algorithm 1", None, optimal, grr_advantage(threat, epsilon),
                       POSTERIOR),
        ]  # fmt: skip
    two = ThreatModel.reconstruction(FinitePrior([0.5, 0.5, *[0.0] * 98]))
    rows += [
        Comparison("GRR, m = 100, eps = 3: prior 1/2, 1/2", "0.0801", "0.0801",
                   grr_advantage(two, 3.0), formula=WORST),
        Comparison("GRR, m = 100, eps = 3: uniform prior", "0.0801", "0.1587",
                   grr_advantage(ThreatModel.reconstruction(FinitePrior.uniform(100)), 3.0),
                   TWO_POINT, formula=WORST),
        Comparison("Laplace, m = 11, eps = 50: prior 1/2, 1/2", "0.5", "0.500000",
                   noise_bound_uniform(2, 1.0, LaplaceNoise(1 / 50)), formula=WORST),
        Comparison("Laplace, m = 11, eps = 50: uniform prior", "0.5", "0.834468",
                   noise_bound_uniform(11, 1.0, LaplaceNoise(1 / 50)), TWO_POINT, formula=WORST),
    ]  # fmt: skip
    return Table("claims", "Claims in words, computed", "section 4", tuple(rows))


def _short(probability: float) -> str:
    return f"{probability:g}".removeprefix("0")


def _scales() -> Table:
    summary, root = PriorSummary.uniform(10), math.sqrt(STEPS)

    def first(mu: float) -> float:
        return trade_off_forms(summary, GaussianTradeOff(mu))[0]

    def second(mu: float) -> float:
        return trade_off_forms(summary, GaussianTradeOff(mu))[1]

    def variation(mu: float) -> float:
        return 0.9 * GaussianTradeOff(mu).total_variation

    found = {
        "Theorem 5.1, second form": root / _mu(second),
        "Theorem 5.1, first form": root / _mu(first),
        "Theorem 4.2": root / _mu(variation),
        "Theorem 5.1, two records": 2 * root / _mu(second),
        "Theorem 4.2, two records": 2 * root / _mu(variation),
    }
    rows = tuple(
        Comparison(f"least sigma: {name}", printed, corrected, found[name],
                   ABSENT if "two records" in name else "")
        for name, (printed, corrected) in SCALES.items()
    )  # fmt: skip
    return Table(
        "dp-sgd-scales", "DP-SGD: noise for an advantage of 0.1, m = 10, T = 100", "Example 5.7",
        rows,
    )  # fmt: skip


def _mu(bound: Callable[[float], float]) -> float:
    return largest_parameter(bound, 0.1, limit=100.0).parameter


def _refutation() -> Table:
    rows = []
    for (m, sigma), (printed, right, exact) in SIMPLEX.items():
        where = f"m = {m}, sigma = {sigma:g}"
        optimum = simplex_advantage(m, sigma)
        as_printed = printed_gradient_bound(m, sigma, replaced=False)
        corrected = printed_gradient_bound(m, sigma, replaced=True)
        rows += [
            Comparison(f"{where}: bound as printed", printed, None, as_printed,
                       formula=PRINTED_BOUND),
            Comparison(f"{where}: bound with mu = 2 sqrt(T)/sigma", printed, right, corrected,
                       ABSENT, formula=PRINTED_BOUND),
            Comparison(f"{where}: advantage of the optimal attack", printed, exact, optimum,
                       ABSENT, formula=PRINTED_BOUND),
        ]  # fmt: skip
    return Table(
        "dp-sgd-refutation",
        "DP-SGD: gradients that form a regular simplex exceed the printed bound, T = 100",
        "Example 5.7", tuple(rows),
    )  # fmt: skip


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
