"""What the noise costs: recall against exact search, beside the epsilon it buys.

For the operator's eyes only: recall is an exact statistic of private data. It is computed here
from the operator's own documents and enters no policy, verdict or bundle.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, table
from ragaudit.circuits.selection import scores, select
from ragaudit.privacy.accounting import gaussian
from ragaudit.privacy.accounting.events import NoisyScores

__all__ = ["SIGMAS", "Claim", "UtilityRow", "epsilon_of", "utility_table"]

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
