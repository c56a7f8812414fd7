"""The top-K service in process: integer scores, keyed noise on all rows, the K best.

What is drawn is what the prover draws: the sampler, its table and its keys are the product's
(`ragaudit.core.sample_noise`, `noise_key`), rows are quantised as it quantises them, and a row is
selected by its rule (`ragaudit.circuits.selection.select`). An account's queries have consecutive
parts of one key stream, where the service gives each query a key of its own.
"""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import noise_key, table_for
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import scores
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.reproduce.attacks_laws import area_of_counts, hit_probability, sigma_of

__all__ = ["BACKGROUND", "DIMENSION", "QUERIES", "TOP_K", "World", "hits", "world"]

TOP_K = 5
BACKGROUND = 50
DIMENSION = 32
QUERIES = 200
"""n, questions of an account."""
TARGET = BACKGROUND
"""Position of the row that differs: the last one."""

_THREADS = 2
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """An index and one question about it.

    Attributes:
        exact: s, int64[N], the scores of all rows, the row in question last.
        sigma: of the policy, a decimal string in cosine units.
        tenant: whose index it is.
    """

    exact: Counts = field(repr=False)
    sigma: str
    tenant: str = "victim"

    def probability(self) -> float:
        """Return how often the row in question is selected, by its law."""
        return hit_probability(self.exact, TARGET, TOP_K, float(self.sigma))


def world(random: np.random.Generator, epsilon_acc: str, *, present: bool) -> World:
    """Return an index of unit vectors, with the row that is asked for or one orthogonal to it.

    Args:
        random: of the rows; the same state gives both worlds the same background.
        epsilon_acc: whose noise of (3.4) is used.
        present: whether the last row is the question itself.
    """
    rows = random.standard_normal((BACKGROUND + 2, DIMENSION))
    query, decoy = rows[-2], rows[-1]
    decoy -= query * (query @ decoy) / (query @ query)
    index = np.vstack([rows[:BACKGROUND], query if present else decoy])
    quantised = quantise_rows(index)
    exact = scores(quantised, quantise_rows(query[np.newaxis])[0].astype(np.int16))
    return World(exact, f"{sigma_of(epsilon_acc, QUERIES):.9f}")


def hits(
    asked: World, accounts: int, trials: int, seed: bytes, owner: str,
    done: Callable[[int], None] = lambda trials: None,
) -> Counts:  # fmt: skip
    """Return how often the row in question came back, int64[trials, accounts].

    Args:
        asked: the index.
        accounts: that ask the same question `QUERIES` times each.
        trials: T; each has accounts, and so noise, of its own.
        seed: of the noise; equal ones give equal results.
        owner: tenant that the accounts belong to.
        done: called with the trials of a block.
    """
    count = len(asked.exact)
    sampler = table_for(asked.sigma)
    terms = (sampler.thresholds, sampler.parameters.factor, sampler.parameters.levels)

    def ask(trial: int) -> Counts:
        found = np.empty(accounts, dtype=np.int64)
        for account in range(accounts):
            key = _key(seed, asked.tenant, owner, trial, account)
            noise = core.sample_noise(*terms, key, QUERIES * count).reshape(QUERIES, count)
            found[account] = np.count_nonzero(selected(noise + asked.exact))
        return found

    block = 20
    rows: list[Counts] = []
    with ThreadPoolExecutor(_THREADS) as pool:  # the sampler runs without Python's lock
        for start in range(0, trials, block):
            rows += pool.map(ask, range(start, min(start + block, trials)))
            done(min(block, trials - start))
    return np.array(rows)


def selected(noised: Counts) -> npt.NDArray[np.bool_]:
    """Return for each query whether the last row is above the (K+1)-th largest value.

    It is what `select` decides, for many queries at once: at most K values reach the row's own.

    Args:
        noised: int64[queries, N].
    """
    reach: npt.NDArray[np.bool_] = (noised >= noised[:, -1:]).sum(axis=1) <= TOP_K
    return reach


def _key(seed: bytes, tenant: str, owner: str, trial: int, account: int) -> bytes:
    digest = hashlib.sha256(seed).digest()
    return noise_key(
        digest, window=f"trial-{trial}", tenant=tenant, version=1,
        pseudonym=hashlib.sha256(f"{owner}/{account}".encode()).digest(), epoch=0, slot=account,
        counter=0, activation_randomness=digest, nonce=b"",
    )  # fmt: skip


def predicted(present: World, absent: World, accounts: int) -> float:
    """Return the area of the number of hits of a coalition, by its law.

    Args:
        present, absent: both worlds.
        accounts: k.
    """
    queries = accounts * QUERIES
    return area_of_counts(queries, present.probability(), absent.probability())


def gap(present: World, absent: World) -> float:
    """Return how far the scores of the row are apart in both worlds, in cosine units."""
    return float(present.exact[TARGET] - absent.exact[TARGET]) / SQUARED_NORM
