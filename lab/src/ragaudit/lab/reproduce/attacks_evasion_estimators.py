"""Estimators of a coalition: the policy's, and those that would be harder to evade.

Each gives a score to the traffic of all windows; above a threshold that was fixed on honest
traffic it is an alarm. An estimator that links accounts scores the level at which a group of more
than `PLANNED` accounts forms: whatever its own threshold is, it is the best one in hindsight.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.lab.reproduce.attacks_evasion_traffic import (
    ACCOUNTS,
    BITS,
    QUESTIONS,
    TAU,
    WINDOWS,
    Traffic,
)
from ragaudit.lab.reproduce.attacks_groups import group_level
from ragaudit.privacy.coalition import Columns, strongest
from ragaudit.privacy.sample import sample_size

__all__ = [
    "DIRECTION", "ESTIMATORS", "PLANNED", "POLICY", "Estimator", "Index", "k_hat", "worth",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
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
