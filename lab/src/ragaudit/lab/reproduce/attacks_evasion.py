"""How coalitions evade an estimator, what each estimator sees, and what evading costs.

Honest accounts are of three kinds. Each estimator, the policy's and others that would be harder to
evade, gives a score to the traffic of all windows; above a threshold that was fixed on honest
traffic it is an alarm. An estimator that links accounts scores the level at which a group of more
than `PLANNED` accounts forms: whatever its own threshold is, it is the best one in hindsight.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import hyperplanes, sketches
from ragaudit.cli.figures import COLORS, axes, render
from ragaudit.embedders import registry
from ragaudit.lab.reproduce.attacks_coalition import group_level
from ragaudit.lab.reproduce.attacks_results import Finding, Gate, Point, Result, Run, point
from ragaudit.lab.reproduce.attacks_results import comparisons as compared
from ragaudit.lab.reproduce.attacks_scalar import coalition_mu
from ragaudit.lab.reproduce.attacks_texts import glosses
from ragaudit.lab.reproduce.comparison import Table
from ragaudit.privacy.coalition import Columns, hamming_threshold, strongest
from ragaudit.privacy.sample import sample_size
from scipy import stats

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


Signs = npt.NDArray[np.float32]

PLANNED = 10
"""k_max of the policy."""
SAMPLE = sample_size(ACCOUNTS * QUESTIONS, "0.01", Fraction(1, 2**20))
"""Records of each window that V draws (docs/spec/07-coalition.md §7.3)."""
TOP_K = 5
HASHES = 64


@dataclass(frozen=True, slots=True)
class Index:
    """What is asked.

    Attributes:
        rows: float32[N, d], unit vectors.
        sigma: of the noise, in units of a score.
    """

    rows: npt.NDArray[np.float32]
    sigma: float


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to see a coalition.

    Attributes:
        name: in words.
        evidence: what V needs for it.
        score: of all windows; larger is more suspicious.
    """

    name: str
    evidence: str
    score: Callable[[Traffic, Index, np.random.Generator], float]


def k_hat(seen: Traffic, window: int, threshold: int) -> int:
    """Return the policy's estimate in one window, by the product's code.

    Args:
        seen: the records.
        window: which one.
        threshold: bits.
    """
    own = np.flatnonzero(seen.windows == window)
    own = own[np.argsort(seen.times[own], kind="stable")]
    labels = core.link_accounts(
        seen.accounts[own], seen.times[own], np.zeros(len(own), dtype=np.uint8),
        seen.sketches[own], tau=1000 * TAU, life=0, threshold=threshold,
    )  # fmt: skip
    return int(np.bincount(labels).max())


def _policy(seen: Traffic, index: Index, random: np.random.Generator) -> float:
    """The largest cosine theta, through sketches, at which k-hat is above k_max in a window."""
    low, high = 0, BITS // 2
    while low < high:
        middle = (low + high) // 2
        if max(k_hat(seen, window, middle) for window in range(WINDOWS)) > PLANNED:
            high = middle
        else:
            low = middle + 1
    return math.cos(math.pi * low / BITS)


def _sampled(seen: Traffic, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The records that V draws from each window, after its log is final."""
    return np.concatenate([
        random.choice(np.flatnonzero(seen.windows == window), size=SAMPLE, replace=False)
        for window in range(WINDOWS)
    ])  # fmt: skip


def _same_rows(seen: Traffic, index: Index, random: np.random.Generator) -> float:
    """Accounts of which a sampled record has the same row among its true K best, in any window."""
    drawn = _sampled(seen, random)
    best = np.argpartition(-_scores(seen, index, drawn), TOP_K, axis=1)[:, :TOP_K]
    exposed = np.zeros((ACCOUNTS, len(index.rows)), dtype=bool)
    exposed[seen.accounts[drawn][:, np.newaxis], best] = True
    return float(exposed.sum(axis=0).max())


def _scores(seen: Traffic, index: Index, records: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    vectors = seen.rows[records].astype(np.float32)
    return vectors @ index.rows.T / np.float32(127)


def _receipts(seen: Traffic, index: Index, random: np.random.Generator) -> float:
    """Minhash (Broder 1997) of the rows that accounts were served, if all of them submitted."""
    served = np.zeros((ACCOUNTS, len(index.rows)), dtype=bool)
    noise = random.standard_normal((len(seen.accounts), len(index.rows)), dtype=np.float32)
    noised = _scores(seen, index, np.arange(len(seen.accounts)))
    noised += np.float32(index.sigma) * noise
    best = np.argpartition(-noised, TOP_K, axis=1)[:, :TOP_K]
    served[seen.accounts[:, np.newaxis], best] = True
    ranks = np.argsort(random.random((HASHES, len(index.rows))), axis=1)
    least = np.stack([np.where(served, rank, len(index.rows)).min(axis=1) for rank in ranks])
    alike = (least[:, :, np.newaxis] == least[:, np.newaxis, :]).mean(axis=0)
    return group_level(alike, PLANNED + 1)


def _sequential(seen: Traffic, index: Index, random: np.random.Generator) -> float:
    """How alike two accounts are over all of their questions, summed over windows, by CUSUM.

    A pair's statistic is the mean agreement of their sketches in a window above the mean of all
    pairs, in standard deviations of those; the sum restarts at 0 (Page 1954).
    """
    sums = np.zeros((ACCOUNTS, ACCOUNTS))
    above, signs = np.triu_indices(ACCOUNTS, 1), _signs(seen)
    for window in range(WINDOWS):
        means = np.zeros((ACCOUNTS, BITS))
        own = seen.windows == window
        np.add.at(means, seen.accounts[own], signs[own])
        agreement = means @ means.T / (BITS * QUESTIONS**2)
        middle = float(np.median(agreement[above]))
        # By a quantile that the pairs of a coalition, a tenth of all, do not reach.
        spread = (float(np.quantile(agreement[above], 0.8)) - middle) / 0.84
        sums = np.maximum(0, sums + (agreement - middle) / spread - 1)
    return group_level(sums, PLANNED + 1)


def _signs(seen: Traffic) -> Signs:
    """Sketches as float32[n, BITS] of -1 and +1."""
    bits = np.unpackbits(seen.sketches, axis=1, bitorder="little")
    return np.asarray(2 * bits.astype(np.float32) - 1)


def _direction(seen: Traffic, index: Index, random: np.random.Generator) -> float:
    """Accounts' worth of questions about one direction, of all accounts together.

    The largest eigenvalue of the sampled embeddings' second moment, times the accounts: mu of all
    answers together about any row is at most that of so many accounts that ask nothing else.
    """
    largest = 0.0
    drawn = _sampled(seen, random)
    for window in range(WINDOWS):
        vectors = seen.rows[drawn[seen.windows[drawn] == window]].astype(float) / 127
        moment = vectors.T @ vectors / len(vectors)
        largest = max(largest, float(np.linalg.eigvalsh(moment)[-1]))
    return ACCOUNTS * largest


def _aimed(seen: Traffic, index: Index, random: np.random.Generator) -> float:
    return float(max(worth(seen, window) for window in range(WINDOWS)))


def worth(seen: Traffic, window: int) -> int:
    """Return the policy's other estimate in one window, by the product's code.

    Args:
        seen, window: as of `k_hat`.
    """
    own = seen.windows == window
    columns = Columns(
        [], seen.accounts[own], seen.times[own], np.zeros(int(own.sum()), dtype=np.uint8),
        seen.sketches[own],
    )  # fmt: skip
    return strongest(columns, QUESTIONS).k_hat


POLICY, DIRECTION = "alike within tau", "aimed at one direction"
"""The two that a policy may name."""

ESTIMATORS = (
    Estimator(POLICY, "sketches and times of all records", _policy),
    Estimator("same top rows, union of windows", "sampled records and true scores", _same_rows),
    Estimator("sequential similarity", "sketches of all records", _sequential),
    Estimator("minhash of served rows", "private receipts of all accounts", _receipts),
    Estimator("largest direction, all accounts", "embeddings of sampled records", _direction),
    Estimator(DIRECTION, "sketches of all records", _aimed),
)


class _Trial(Protocol):
    @property
    def worth(self) -> float: ...

    @property
    def scores(self) -> Mapping[str, float]: ...


def figures(
    points: Sequence[Point],
    seen: Mapping[tuple[str, str], Sequence[_Trial]],
    rates: Mapping[tuple[str, str, str], float],
    names: Sequence[str],
    kinds: Sequence[str],
) -> dict[str, bytes]:
    """Return PNG and SVG: detection against the attack's area, and estimate against worth.

    Args:
        points: the attack's area by arm, in its ``curve``.
        seen: trials by honest kind and arm.
        rates: share of trials detected, by honest kind, arm and estimator.
        names: of the estimators; the last one estimates a worth.
        kinds: of honest accounts.
    """
    across = {each.curve: each.auc for each in points}
    files: dict[str, bytes] = {}
    for kind, name in zip(kinds, ("different", "popular"), strict=True):
        with axes(
            f"Detection, among {kind}", "area under the attack's ROC curve", "share detected"
        ) as (figure, place):
            figure.set_size_inches(9.6, 4.6)
            for number, estimator in enumerate(names):
                arms = sorted(across, key=lambda arm: across[arm])
                # Apart from each other, where several are 0 or 1.
                shift = 0.008 * (number - len(names) / 2)
                place.plot(
                    [across[arm] for arm in arms],
                    [rates[kind, arm, estimator] + shift for arm in arms],
                    "osD^vP"[number], color=COLORS[number], markersize=5, label=estimator,
                )  # fmt: skip
            place.legend(loc="center left", bbox_to_anchor=(1, 0.5))
            files |= render(figure, f"attacks-evasion-{name}")
    with axes("k-hat by direction", "accounts' worth of questions about the target", "k-hat") as (
        figure,
        place,
    ):
        for kind, color in zip(kinds, COLORS, strict=False):
            own = [each for (where, _), each in seen.items() if where == kind]
            worth = [float(np.mean([trial.worth for trial in trials])) for trials in own]
            found = [
                float(np.mean([trial.scores[names[-1]] for trial in trials])) for trials in own
            ]
            place.plot(worth, found, "o", color=color, label=f"among {kind}")
        place.plot([0, 20], [0, 20], "-", color="#888888", linewidth=0.8, label="equal")
        place.legend(loc="best")
        return {**files, **render(figure, "attacks-evasion-worth")}


TEXTS, ROWS = 20_000, 500
EPSILON = "4"
CALIBRATION, ALONE, TRIALS, DRAWS = 20, 8, 4, 5000
THETA = "0.9"
AMONG = (HONEST[0], HONEST[2])
"""The honest accounts that coalitions hide among."""
KEEPS = COALITION / 2
"""An arm that keeps so much is worth detecting: half of the information."""

_NAMES = [each.name for each in ESTIMATORS]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one trial shows: a score by estimator, the policy's k-hat, what the arm is worth."""

    scores: Mapping[str, float]
    linked: int
    worth: float


def evasion(run: Run) -> Result:
    """Return what every estimator sees of every arm, beside the signal that the arm keeps.

    Args:
        run: with `quick`, one trial of two arms, the same probe and the staggered one.

    Raises:
        RefusedError: WordNet's glosses are not installed.
        EmbedderUnavailable: WordLlama is not installed.
    """
    arms = ARMS[::9] if run.quick else ARMS
    trials = 1 if run.quick else TRIALS
    honest = {kind: _share(run, CALIBRATION if kind in AMONG else ALONE) for kind in HONEST}
    steps = sum(honest.values()) + len(AMONG) * len(arms) * trials
    done = 0

    def trial(kind: str, arm: Arm | None, number: int) -> Seen:
        nonlocal done
        place = 0 if arm is None else 1 + ARMS.index(arm)
        found = _trial(run.generator(8, HONEST.index(kind), place, number), kind, arm)
        done += 1
        run.progress("Evasion", done, steps)
        return found

    run.progress("Evasion", 0, steps)
    alone = {kind: [trial(kind, None, n) for n in range(count)] for kind, count in honest.items()}
    levels = {kind: {name: threshold(alone[kind], name) for name in _NAMES} for kind in AMONG}
    seen = {
        (kind, arm.name): [trial(kind, arm, n) for n in range(trials)]
        for kind in AMONG for arm in arms
    }  # fmt: skip
    rates = {
        (*key, name): float(np.mean([each.scores[name] > levels[key[0]][name] for each in own]))
        for key, own in seen.items()
        for name in _NAMES
    }
    points = [_area(run, arm, seen[AMONG[0], arm.name]) for arm in arms]
    found = [*_honest(alone), *_detected(seen, rates)]
    title = f"Evasion: {COALITION} of {ACCOUNTS} accounts, k_max = {PLANNED}"
    table = Table(
        "attacks-evasion", title, "section 7.1, left open there", compared(points),
        ("An arm's area is by the law of the pooled mean with the best weights; the noise is that "
         f"of eps_acc = {EPSILON}, the same for all arms.",),
    )  # fmt: skip
    return Result(
        "evasion", table, tuple(points), tuple(found),
        tuple(_gate(name, seen, rates) for name in _NAMES),
        (
            f"Thresholds: the largest value of {honest[AMONG[0]]} honest trials of the same kind, "
            f"so an alarm is false in at most one of {honest[AMONG[0]] + 1}.",
            "`alike within tau` and other estimators that link accounts have the best threshold in "
            "hindsight. True scores and private receipts of all accounts are granted to those that "
            "need them; V has neither.",
            f"`{DIRECTION}` gave less than the arm is worth, rounded down, in {_below(seen)} of "
            f"{sum(map(len, seen.values()))} trials.",
        ),
        lambda: figures(points, seen, rates, _NAMES, AMONG),
        _table(seen, rates),
    )  # fmt: skip


def _share(run: Run, full: int) -> int:
    return 2 if run.quick else full


def _trial(random: np.random.Generator, kind: str, arm: Arm | None) -> Seen:
    texts = pool(TEXTS)
    records = traffic(random, texts, kind, arm)
    sigma = math.sqrt(COALITION * WINDOWS * QUESTIONS) / coalition_mu(
        EPSILON, COALITION, exact=False
    )
    index = Index(texts[:ROWS].astype(np.float32), sigma)
    limit = hamming_threshold(THETA, BITS)
    return Seen(
        {each.name: each.score(records, index, random) for each in ESTIMATORS},
        max(k_hat(records, window, limit) for window in range(WINDOWS)), records.worth,
    )  # fmt: skip


def threshold(honest: list[Seen], name: str) -> float:
    """Return the largest score of honest trials: one more exceeds it once in their number + 1.

    Args:
        honest: trials of one kind, exchangeable.
        name: of the estimator.
    """
    return max(each.scores[name] for each in honest)


def _area(run: Run, arm: Arm, own: list[Seen]) -> Point:
    """The attack's area with what the arm keeps of the signal."""
    kept = float(np.mean([each.worth for each in own])) / COALITION
    mu = coalition_mu(EPSILON, COALITION, exact=False) * math.sqrt(kept)
    draws = run.generator(8, 9, ARMS.index(arm)).standard_normal((2, run.trials(DRAWS)))
    plain = arm == ARMS[0]
    return point(
        arm.name, EPSILON, COALITION, draws[1] + mu, draws[0],
        theory=float(stats.norm.cdf(mu / math.sqrt(2))), paper="0.638" if plain else None,
    )  # fmt: skip


def _honest(alone: Mapping[str, list[Seen]]) -> list[Finding]:
    found = []
    for kind, own in alone.items():
        for name, values in (
            (f"{POLICY}, theta {THETA}", [each.linked for each in own]),
            (DIRECTION, [each.scores[DIRECTION] for each in own]),
        ):
            found.append(
                Finding(
                    f"honest, {kind}: k-hat, {name}", float(np.mean(values)),
                    reason=f"at most {max(values):g} in {len(own)} trials",
                )
            )  # fmt: skip
    return found


def _detected(
    seen: Mapping[tuple[str, str], list[Seen]], rates: Mapping[tuple[str, str, str], float]
) -> list[Finding]:
    found = []
    for (kind, arm), own in seen.items():
        found.append(Finding(f"{arm}, among {kind}: worth", _mean_worth(own)))
        found.append(Finding(f"{arm}, among {kind}: k-hat, {DIRECTION}", _mean(own)))
        found += [
            Finding(f"{arm}, among {kind}: detected, {name}", rates[kind, arm, name])
            for name in _NAMES
        ]
    return found


def _below(seen: Mapping[tuple[str, str], list[Seen]]) -> int:
    trials = [each for own in seen.values() for each in own]
    return sum(each.scores[DIRECTION] < math.floor(each.worth) for each in trials)


def _mean_worth(own: list[Seen]) -> float:
    return float(np.mean([each.worth for each in own]))


def _mean(own: list[Seen]) -> float:
    return float(np.mean([each.scores[DIRECTION] for each in own]))


def _gate(
    name: str,
    seen: Mapping[tuple[str, str], list[Seen]],
    rates: Mapping[tuple[str, str, str], float],
) -> Gate:
    strong = [key for key, own in seen.items() if _mean_worth(own) >= KEEPS - 0.5]
    caught = sum(rates[(*key, name)] * len(seen[key]) for key in strong)
    total = sum(len(seen[key]) for key in strong)
    return Gate(
        f"hard to evade: {name}",
        f"detects nine in ten coalitions that keep half of what {COALITION} accounts learn",
        hard_to_evade(round(caught), total),
        f"{caught:.0f} of {total} trials of {len(strong)} cells",
        "PASS and FAIL are each wrong in at most 5 % of runs, over a coalition drawn like these.",
    )  # fmt: skip


def hard_to_evade(caught: int, total: int) -> str:
    """Return whether nine in ten are detected: one-sided and exact (Clopper and Pearson 1934).

    Args:
        caught: of the trials.
        total: trials.
    """
    low = float(stats.beta.ppf(0.05, caught, total - caught + 1)) if caught else 0.0
    high = float(stats.beta.ppf(0.95, caught + 1, total - caught)) if caught < total else 1.0
    return "PASS" if low >= 0.9 else "FAIL" if high < 0.9 else "UNDECIDED"


def _table(
    seen: Mapping[tuple[str, str], list[Seen]], rates: Mapping[tuple[str, str, str], float]
) -> str:
    """Detection by arm and estimator, as text."""
    numbered = [f"  ({number}) {name}" for number, name in enumerate(_NAMES, 1)]
    width = max(len(arm.name) for arm in ARMS)
    head = f"{'share of trials detected':{width}}  worth  k-hat(6)" + "".join(
        f"{f'({number})':>6}" for number in range(1, len(_NAMES) + 1)
    )
    lines = [*numbered]
    for kind in AMONG:
        lines += ["", f"among accounts that ask: {kind}", head]
        for (place, arm), own in seen.items():
            if place == kind:
                cells = "".join(f"{rates[kind, arm, name]:6.2f}" for name in _NAMES)
                lines.append(f"{arm:{width}}  {_mean_worth(own):5.1f}  {_mean(own):8.1f}{cells}")
    return "\n".join(lines)
