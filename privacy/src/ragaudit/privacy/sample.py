"""Which records are sampled (docs/spec/09-audit.md §1): one function for prover and verifier.

The verifier draws with it, the prover recomputes with it before it opens anything.
"""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, perm

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import enc

_SAMPLE_TAG = "ragaudit/v1/sample"


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """What sampling needs to know of a record: its leaf index, tenant and 32-byte pseudonym."""

    index: int
    tenant: str
    pseudonym: bytes


@dataclass(frozen=True, slots=True)
class Stratum:
    """Leaf indices, rising, from which one sample is drawn; ``minimum`` bounds its size below."""

    id: str
    population: tuple[int, ...]
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class DrawnStratum:
    """A stratum and the leaf indices drawn from it, rising."""

    stratum: Stratum
    sample: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SamplingRule:
    """The policy's ``audit`` member: mode "A" (all) or "B", decimals beta and eta."""

    mode: str
    beta: str
    eta: str
    minimum_per_tenant: int

    def __post_init__(self) -> None:
        if self.mode not in ("A", "B"):
            raise MalformedError(f"sampling mode {self.mode!r}", expected="A or B")


def sampling_seed(final_root: bytes, last_preimage: bytes, beacon: bytes = b"") -> bytes:
    """The seed: the final root, the beacon's randomness (empty for none) and n_A."""
    return structure("sampling", final_root, beacon, last_preimage)


def tenant_stratum_id(tenant: str) -> str:
    return f"tenant:{tenant}"


def account_stratum_id(pseudonym: bytes) -> str:
    return f"account:{pseudonym.hex()}"


def strata(
    records: Iterable[LoggedRecord],
    *,
    tenants: Sequence[str],
    receipts: Collection[int],
    disputed: Collection[int],
    minimum_per_tenant: int,
) -> tuple[Stratum, ...]:
    """The strata in their order: each tenant's records, then each account's receipts.

    Args:
        records: all records of the log.
        tenants: the policy's, in its order; each has a stratum, even an empty one.
        receipts: leaf indices of the records for which a validly signed receipt was submitted.
            An account without any has no stratum.
        disputed: leaf indices that belong to no stratum.
    """
    by_tenant: dict[str, list[int]] = {tenant: [] for tenant in tenants}
    by_account: dict[bytes, list[int]] = {}
    for record in records:
        if record.index in disputed:
            continue
        if record.tenant in by_tenant:
            by_tenant[record.tenant].append(record.index)
        if record.index in receipts:
            by_account.setdefault(record.pseudonym, []).append(record.index)
    of_tenants = (
        Stratum(tenant_stratum_id(tenant), tuple(sorted(indices)), minimum_per_tenant)
        for tenant, indices in by_tenant.items()
    )
    of_accounts = (
        Stratum(account_stratum_id(pseudonym), tuple(sorted(by_account[pseudonym])))
        for pseudonym in sorted(by_account)
    )
    return (*of_tenants, *of_accounts)


def order(seed: bytes, stratum_id: str, population: Iterable[int]) -> list[int]:
    """``population`` by rising HMAC-SHA-256(seed, (stratum, index))."""

    def rank(index: int) -> bytes:
        return hmac.digest(seed, enc(_SAMPLE_TAG, stratum_id, index), hashlib.sha256)

    return sorted(population, key=rank)


def bad_count(population: int, beta: Fraction) -> int:
    """b = ceil(beta·n): the number of bad records that a sample is sized to meet."""
    return ceil(beta * population)


def miss_probability(population: int, bad: int, sample: int) -> Fraction:
    """C(n-b, s) / C(n, s): that ``sample`` records drawn without repetition miss all bad ones."""
    # Both quotients are the same number; the shorter products are the cheaper ones.
    few, many = sorted((bad, sample))
    return Fraction(perm(population - many, few), perm(population, few))


def sample_size(population: int, beta: Fraction, eta: Fraction) -> int:
    """The least s with ``miss_probability(n, ceil(beta·n), s) <= eta``, in exact arithmetic.

    Args:
        population: n >= 0; an empty stratum needs no sample.
        beta: in (0, 1).
        eta: in (0, 1).
    """
    bad = bad_count(population, beta)
    low, high = 0, population - bad + 1 if population else 0  # high always meets one
    while low < high:
        middle = (low + high) // 2
        if miss_probability(population, bad, middle) <= eta:
            high = middle
        else:
            low = middle + 1
    return low


def draw(
    seed: bytes, rule: SamplingRule, strata_in_order: Iterable[Stratum]
) -> tuple[DrawnStratum, ...]:
    """The sample of each stratum: in mode A all of it, in mode B the smallest by ``order``."""
    return tuple(_draw_one(seed, rule, stratum) for stratum in strata_in_order)


def draw_sample(
    records: Iterable[LoggedRecord],
    *,
    tenants: Sequence[str],
    receipts: Collection[int],
    disputed: Collection[int],
    rule: SamplingRule,
    seed: bytes,
) -> tuple[DrawnStratum, ...]:
    """The whole draw: the strata of the log's records, and the sample of each.

    Raises:
        MalformedError: the rule's mode or decimals.
    """
    populations = strata(
        records,
        tenants=tenants,
        receipts=receipts,
        disputed=disputed,
        minimum_per_tenant=rule.minimum_per_tenant,
    )
    return draw(seed, rule, populations)


def _draw_one(seed: bytes, rule: SamplingRule, stratum: Stratum) -> DrawnStratum:
    population = len(stratum.population)
    if rule.mode == "A":
        return DrawnStratum(stratum, stratum.population)
    size = sample_size(population, Fraction(rule.beta), Fraction(rule.eta))
    size = max(size, min(population, stratum.minimum))
    chosen = order(seed, stratum.id, stratum.population)[:size]
    return DrawnStratum(stratum, tuple(sorted(chosen)))
