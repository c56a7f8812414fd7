"""What happens in the demonstration: who asks what, under which policy, when; what the noise costs.

Recall against exact search, beside the epsilon that the noise buys, is for the operator's eyes
only: it is an exact statistic of private data, computed here from the operator's own documents, and
enters no policy, verdict or bundle.
"""

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, table
from ragaudit.circuits.selection import scores, select
from ragaudit.cli.corpus import Passage, candidates, distinct, load_corpus
from ragaudit.embedders.base import Embedder, embed_quantised
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.privacy.accounting import gaussian
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.gaussian import calibrate

SIGMAS = ("0.01", "0.03", "0.1", "0.3", "1", "10")
"""Shown beside the chosen sigma: from useful to private."""


@dataclass(frozen=True)
class Claim:
    """Who is protected against how many answers, and at which deltas.

    Attributes:
        relation: neighbouring relation of the policy.
        queries: r, of one account.
        coalition: k_max accounts.
        delta_acc, delta_policy: decimals.
    """

    relation: str
    queries: int
    coalition: int
    delta_acc: str
    delta_policy: str

    def epsilon_acc(self, sigma: str) -> Decimal | None:
        """Return epsilon of one account's answers at delta_acc; None if no finite one exists."""
        return epsilon_of(sigma, self.relation, self.queries, self.delta_acc)

    def epsilon_audit(self, sigma: str) -> Decimal | None:
        """Return epsilon of the largest coalition's answers at delta_policy; None as above."""
        queries = self.queries * self.coalition
        return epsilon_of(sigma, self.relation, queries, self.delta_policy)


@dataclass(frozen=True)
class UtilityRow:
    """One sigma: the share of the true K nearest that is served, and what is promised."""

    sigma: str
    recall: float
    epsilon_acc: Decimal | None
    epsilon_audit: Decimal | None


def epsilon_of(sigma: str, relation: str, queries: int, delta: str) -> Decimal | None:
    """Return the headline epsilon (docs/spec/07-coalition.md §7.4) rounded up to three places.

    Args:
        sigma: a decimal.
        relation: of the policy.
        queries: how many are seen together.
        delta: a decimal.

    Returns:
        The epsilon; None if no finite one exists.
    """
    event = NoisyScores.of_policy(sigma, relation, 1, queries)
    try:
        value = gaussian.epsilon(event, Fraction(delta))
    except gaussian.NoFiniteBound:
        return None
    return value.quantize(Decimal("0.001"), ROUND_CEILING)


def utility_table(
    sigmas: Sequence[str],
    indexes: Mapping[str, npt.NDArray[np.int8]],
    queries: Mapping[str, npt.NDArray[np.int8]],
    top_k: int,
    claim: Claim,
    progress: Callable[[float], object] = lambda _: None,
) -> list[UtilityRow]:
    """Return one row per sigma, in rising order.

    Args:
        indexes: tenant -> int8[N, d].
        queries: tenant -> int8[n, d], the questions that recall is averaged over.
        top_k: K.
        progress: called with the done share.
    """
    exact = {
        tenant: [scores(indexes[tenant], e.astype(np.int16)) for e in rows]
        for tenant, rows in queries.items()
    }
    ordered = sorted(set(sigmas), key=Fraction)
    result = []
    for number, sigma in enumerate(ordered, 1):
        recall = _recall(sigma, [each for rows in exact.values() for each in rows], top_k)
        row = UtilityRow(sigma, recall, claim.epsilon_acc(sigma), claim.epsilon_audit(sigma))
        result.append(row)
        progress(number / len(ordered))
    return result


def _recall(sigma: str, scored: Sequence[npt.NDArray[np.int64]], top_k: int) -> float:
    """Mean share of the exact K nearest among the served, with fresh noise."""
    parameters = NoiseParameters.for_sigma(sigma)
    thresholds = table(parameters).thresholds
    found = []
    for each in scored:
        # Not a key of the windows: an estimate for the operator must not tell of their noise.
        key = secrets.token_bytes(32)
        noise = core.sample_noise(thresholds, parameters.factor, parameters.levels, key, len(each))
        nearest = set(np.argpartition(each, -top_k)[-top_k:].tolist())
        found.append(len(nearest & set(select(each + noise, top_k))) / top_k)
    return float(np.mean(found))


TOP_K = 5
MAIN_WINDOW, SMALL_WINDOW, EXACT_WINDOW = "demo-b", "demo-a", "demo-exact"
QUERIES_PER_ACCOUNT = 40
COALITION_MAX = 2
SLOTS = 16
EPSILON_ACC, DELTA_ACC, DELTA_POLICY = "10", "0.000001", "0.00001"
RELATION = "null-replace"
ACCOUNTS_PER_TENANT = 4
PAIR_TENANT = "language"  # its last two accounts ask the same questions
MOST_QUESTIONS, LEAST_QUESTIONS, SMALL_QUESTIONS = 27, 300, 5
LARGEST_PACE = 20.0
ACTIVATION_SECONDS = 5  # who registers late waits this long, on a usual machine
_YARDSTICKS = 3
_YARDSTICK_SECONDS = 0.3  # of the loop below, on an idle core of the usual speed


@dataclass(frozen=True)
class AccountPlan:
    """One account: what it asks in each window, and what befalls it.

    Attributes:
        anchored: asks through a nonce chain where there is noise; otherwise plain.
        crashes: its process ends between a promise and its nonce, and comes back.
        submits: gives the verifier the public parts of its receipts.
        disputes: shows one receipt to the verifier.
        questions: window -> its questions, in order.
    """

    name: str
    tenant: str
    anchored: bool
    crashes: bool
    submits: bool
    disputes: bool
    questions: dict[str, list[str]] = field(repr=False)


@dataclass(frozen=True)
class WindowPlan:
    """A window: its name, mode, terms, and its instants in seconds from its creation on.

    Attributes:
        opens_after, length, sampling_after: on an idle machine of the usual speed.
        terms: the other overrides that the operator asks for.
    """

    name: str
    mode: str
    opens_after: int
    length: int
    sampling_after: int
    terms: dict[str, Any] = field(repr=False)

    @property
    def noised(self) -> bool:
        """Whether answers are noised and an epsilon is claimed."""
        return self.terms.get("privacy") != "none"

    def overrides(self, pace: float) -> dict[str, Any]:
        """Return what the operator asks for when the machine is ``pace`` times slower.

        Args:
            pace: by which all times are stretched; mode, beta, eta and minimum stay.
        """
        sampling_after = round(pace * self.sampling_after)
        return {
            **self.terms,
            "opens_after_seconds": round(pace * self.opens_after),
            "length_seconds": round(pace * self.length),
            "activation_every_seconds": round(pace * ACTIVATION_SECONDS),
            "sampling_after_seconds": sampling_after,
            # The sampling instant is no earlier than both after the end (docs/spec 9.4).
            "clock_skew_seconds": sampling_after // 3,
            "merge_delay_seconds": sampling_after - sampling_after // 3,
            "release_seconds": round(15 * pace),
            "audit": {
                "mode": self.mode,
                "beta": "0.1",
                "tenants": {"eta": "0.0009765625", "minimum": 10},
                "submitters": {"by": "account", "eta": "0.5", "minimum": 1},
                "deadline_seconds": round(60 * pace),
            },
        }


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the services start."""

    corpus: dict[str, list[Passage]] = field(repr=False)
    indexes: dict[str, npt.NDArray[np.int8]] = field(repr=False)
    accounts: list[AccountPlan]
    windows: list[WindowPlan]
    claim: Claim
    embedder: Embedder = field(repr=False)

    def sigma(self) -> str:
        """Return the noise parameter: the one chosen, or the least that gives epsilon_acc."""
        chosen = self.windows[0].terms["sigma"]
        return str(chosen or calibrate(EPSILON_ACC, DELTA_ACC, QUERIES_PER_ACCOUNT, RELATION, 1))

    def sample_questions(self, count: int) -> dict[str, list[str]]:
        """Return some of the questions of each tenant, for estimating recall.

        Args:
            count: about how many of each tenant, the same number of each of its accounts.
        """
        sample: dict[str, list[str]] = {}
        for account in self.accounts:
            mine = account.questions[self.windows[0].name][: -(-count // ACCOUNTS_PER_TENANT)]
            sample.setdefault(account.tenant, []).extend(mine)
        return sample

    def anchored(self, account: AccountPlan, window: str) -> bool:
        """Return whether an account asks through a nonce chain in a window.

        Args:
            account: of this plan.
            window: name of one; where nothing is drawn there is nothing to anchor.
        """
        return account.anchored and any(w.name == window and w.noised for w in self.windows)

    def questions(self, window: str) -> int:
        """Return how many questions are asked in a window."""
        return sum(len(account.questions.get(window, ())) for account in self.accounts)


def make_plan(embedder: Embedder, *, sigma: str | None, seed: str | None) -> Plan:
    """Return the plan.

    Args:
        sigma: instead of the one calibrated for epsilon_acc; epsilon_acc is then restated.
        seed: makes the provider's randomness repeatable, and the verdicts worthless.

    Raises:
        UnsupportedError: this Python lacks its documentation.
    """
    corpus = load_corpus()
    indexes = {
        tenant: embed_quantised(embedder, [each.text for each in passages])
        for tenant, passages in corpus.items()
    }
    accounts = _accounts(corpus, embedder)
    claim = Claim(RELATION, QUERIES_PER_ACCOUNT, COALITION_MAX, DELTA_ACC, DELTA_POLICY)
    windows = _windows(sigma, seed)
    return Plan(corpus, indexes, accounts, windows, claim, embedder)


def measure_pace() -> float:
    """Return how much longer than usual things take here and now, from 1 to `LARGEST_PACE`.

    The windows' instants have to be fixed beforehand, in seconds: on a slow or busy machine
    they are chosen further apart. Twice the usual time is within the margin that they have.
    A busy machine is uneven: the slowest of a few measurements counts, and how many others wait
    for a processor.
    """
    waiting = (os.getloadavg()[0] + 1) / (os.cpu_count() or 1)
    slowest = max(_yardstick() for _ in range(_YARDSTICKS)) / _YARDSTICK_SECONDS
    return min(LARGEST_PACE, max(1.0, slowest / 2, waiting / 2))


def _yardstick() -> float:
    start = time.perf_counter()
    digest = b""
    for _ in range(400_000):
        digest = sha256(digest).digest()
    return time.perf_counter() - start


def _windows(sigma: str | None, seed: str | None) -> list[WindowPlan]:
    shared = {
        "top_k_max": TOP_K,
        "queries_per_account": QUERIES_PER_ACCOUNT,
        "slots": SLOTS,
        "claim_margin_seconds": 2,
        "estimator": {"sketch_bits": 512, "tau_seconds": 600},
    }
    terms = {
        **shared,
        "epsilon_acc": EPSILON_ACC if sigma is None else None,
        "sigma": sigma,
        "delta_acc": DELTA_ACC,
        "delta_policy": DELTA_POLICY,
        "relation": RELATION,
        "coalition_max": COALITION_MAX,
        "experiment_seed": seed,
    }
    return [
        WindowPlan(MAIN_WINDOW, "B", 16, 30, 6, terms),
        # One after the other: they answer from the same documents, and no verifier that takes its
        # epsilon seriously allows that at the same time (docs/spec 9.10).
        WindowPlan(SMALL_WINDOW, "A", 46, 14, 6, terms),
        WindowPlan(EXACT_WINDOW, "A", 70, 10, 6, {**shared, "privacy": "none"}),
    ]


def _accounts(corpus: dict[str, list[Passage]], embedder: Embedder) -> list[AccountPlan]:
    taken: list[npt.NDArray[np.int8]] = []
    accounts: list[AccountPlan] = []
    for tenant, passages in corpus.items():
        pair = tenant == PAIR_TENANT
        asking = ACCOUNTS_PER_TENANT - pair
        asked = list(candidates(passages))
        vectors = embed_quantised(embedder, asked)
        chosen = distinct(vectors, taken, asking * MOST_QUESTIONS)
        taken += [vectors[i] for i in chosen]
        each = len(chosen) // asking
        shares = [[asked[i] for i in chosen[n * each : (n + 1) * each]] for n in range(asking)]
        accounts += _tenant_accounts(tenant, shares + shares[-1:] * pair)
    total = sum(len(account.questions[MAIN_WINDOW]) for account in accounts)
    if total < LEAST_QUESTIONS:
        raise UnsupportedError(
            f"only {total} questions in this Python's documentation", expected=f"{LEAST_QUESTIONS}"
        )
    return accounts


def _tenant_accounts(tenant: str, shares: Sequence[Sequence[str]]) -> list[AccountPlan]:
    return [
        AccountPlan(
            name=f"{tenant}-{number + 1}",
            tenant=tenant,
            anchored=number < ACCOUNTS_PER_TENANT // 2,
            crashes=tenant == "language" and number == 0,
            submits=number % 2 == 0,
            disputes=tenant == "data" and number == 0,
            questions={
                MAIN_WINDOW: list(share),
                SMALL_WINDOW: list(share[:SMALL_QUESTIONS]) if number in (0, 2) else [],
                EXACT_WINDOW: list(share[:SMALL_QUESTIONS]) if number in (0, 2) else [],
            },
        )
        for number, share in enumerate(shares)
    ]
