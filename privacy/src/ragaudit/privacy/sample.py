"""Which records are sampled (docs/spec/09-audit.md §1): one function for prover and verifier.

The verifier draws with it, the prover recomputes with it before it opens anything.
"""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ragaudit.encoding.decimals import parse_decimal
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import enc
from ragaudit.privacy.accounting.sampling import sample_size

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
    size = sample_size(population, parse_decimal(rule.beta), parse_decimal(rule.eta))
    size = max(size, min(population, stratum.minimum))
    chosen = order(seed, stratum.id, stratum.population)[:size]
    return DrawnStratum(stratum, tuple(sorted(chosen)))
