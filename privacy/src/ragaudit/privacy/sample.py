"""Which records are sampled (docs/spec/09-audit.md §9.1): one function for prover and verifier.

The verifier draws with it, the prover recomputes with it before it opens anything.
"""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from ragaudit.encoding.digests import structure
from ragaudit.encoding.tagged import enc
from ragaudit.encoding.text import parse_decimal
from ragaudit.privacy.accounting.sampling import bad_records, sample_size

_SAMPLE_TAG = "ragaudit/v1/sample"


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """What sampling needs to know of a record.

    Attributes:
        index: of its leaf.
        tenant: by name.
        pseudonym: of its account, 32 bytes.
    """

    index: int
    tenant: str
    pseudonym: bytes


class StratumRule(Protocol):
    """How strata of one kind are drawn in mode B."""

    @property
    def eta(self) -> str:
        """Return the largest probability to miss every bad record, a decimal in (0, 1)."""

    @property
    def minimum(self) -> int:
        """Return the least sample; a smaller stratum is taken whole."""


class SamplingRule(Protocol):
    """The policy's ``audit`` member, as `ragaudit.ledger.messages.policy.AuditTerms` holds it."""

    @property
    def mode(self) -> str:
        """Return "A", every record, or "B", samples."""

    @property
    def beta(self) -> str:
        """Return the share of bad records that a sample is to find, a decimal in (0, 1)."""

    @property
    def tenants(self) -> StratumRule:
        """Return the rule of the strata that hold all records of a tenant."""

    @property
    def submitters(self) -> StratumRule:
        """Return the rule of the strata of records whose receipts were submitted."""

    @property
    def submitters_by(self) -> str:
        """Return whether those strata are one per "account" or one per "tenant"."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Records from which one sample is drawn.

    Attributes:
        id: as of the functions below.
        population: leaf indices, rising.
        rule: how the sample is drawn.
    """

    id: str
    population: tuple[int, ...]
    rule: StratumRule


@dataclass(frozen=True, slots=True)
class DrawnStratum:
    """A stratum and its sample.

    Attributes:
        stratum: from which it was drawn.
        sample: leaf indices, rising.
    """

    stratum: Stratum
    sample: tuple[int, ...]


def sampling_seed(final_root: bytes, last_preimage: bytes, beacon: bytes = b"") -> bytes:
    """Return the seed of every sample of a window, 32 bytes.

    Args:
        final_root: of the log.
        last_preimage: n_A, the last value of the verifier's activation chain.
        beacon: its randomness; empty without one.
    """
    return structure("sampling", final_root, beacon, last_preimage)


def tenant_stratum_id(tenant: str) -> str:
    """Return the id of the stratum with all records of a tenant."""
    return f"tenant:{tenant}"


def account_stratum_id(pseudonym: bytes) -> str:
    """Return the id of the stratum with the submitted records of an account."""
    return f"account:{pseudonym.hex()}"


def receipts_stratum_id(tenant: str) -> str:
    """Return the id of the stratum with the submitted records of a tenant."""
    return f"receipts:{tenant}"


def strata(
    records: Iterable[LoggedRecord],
    *,
    tenants: Sequence[str],
    receipts: Collection[int],
    rule: SamplingRule,
) -> tuple[Stratum, ...]:
    """Return the strata in their order: each tenant's records, then the submitted ones.

    Args:
        records: all records of the log.
        tenants: the policy's, in its order; each has a stratum, even an empty one.
        receipts: leaf indices of the records for which a validly signed receipt was submitted. An
            account, or tenant, without any has no stratum of submitted records.
        rule: the policy's.
    """
    of_tenants: dict[str, list[int]] = {tenant: [] for tenant in tenants}
    submitted: dict[str, list[int]] = {}
    if rule.submitters_by == "tenant":
        submitted = {receipts_stratum_id(tenant): [] for tenant in tenants}
    for record in records:
        if record.tenant in of_tenants:
            of_tenants[record.tenant].append(record.index)
        if record.index in receipts:
            submitted.setdefault(_submitted_id(record, rule), []).append(record.index)
    if rule.submitters_by == "account":
        submitted = dict(sorted(submitted.items()))  # hexadecimal sorts as the bytes do
    return (
        *(
            Stratum(tenant_stratum_id(tenant), tuple(sorted(indices)), rule.tenants)
            for tenant, indices in of_tenants.items()
        ),
        *(
            Stratum(name, tuple(sorted(indices)), rule.submitters)
            for name, indices in submitted.items()
            if indices
        ),
    )


def order(seed: bytes, stratum_id: str, population: Iterable[int]) -> list[int]:
    """Return ``population`` by rising HMAC-SHA-256(seed, (stratum, index))."""

    def rank(index: int) -> bytes:
        return hmac.digest(seed, enc(_SAMPLE_TAG, stratum_id, index), hashlib.sha256)

    return sorted(population, key=rank)


def draw_sample(
    records: Iterable[LoggedRecord],
    *,
    tenants: Sequence[str],
    receipts: Collection[int],
    rule: SamplingRule,
    seed: bytes,
) -> tuple[DrawnStratum, ...]:
    """Return the strata of the log's records, each with its sample.

    In mode A a sample is the whole stratum, in mode B the smallest by `order`.

    Args:
        records, tenants, receipts, rule: as of `strata`.
        seed: of `sampling_seed`.

    Raises:
        MalformedError: the rule's decimals.
    """
    populations = strata(records, tenants=tenants, receipts=receipts, rule=rule)
    return tuple(_draw_one(seed, rule, stratum) for stratum in populations)


def stratum_size(population: int, beta: Fraction, rule: StratumRule) -> int:
    """Return how many records of a stratum of ``population`` are sampled in mode B.

    The least number that misses all of b = ceil(beta n) bad records with probability at most eta,
    at least ``rule.minimum``. Where b = n the stratum is taken whole: a single record would do, but
    the stated probability of 0 would then hold for a wholly bad stratum only.

    Args:
        population: n, number of records.
        beta: share of bad records to find, in (0, 1).
        rule: of the stratum.

    Raises:
        MalformedError: eta is not a decimal.
    """
    if population == 0 or bad_records(population, beta) == population:
        return population
    size = sample_size(population, beta, parse_decimal(rule.eta))
    return max(size, min(population, rule.minimum))


def _draw_one(seed: bytes, rule: SamplingRule, stratum: Stratum) -> DrawnStratum:
    if rule.mode == "A":
        return DrawnStratum(stratum, stratum.population)
    size = stratum_size(len(stratum.population), parse_decimal(rule.beta), stratum.rule)
    chosen = order(seed, stratum.id, stratum.population)[:size]
    return DrawnStratum(stratum, tuple(sorted(chosen)))


def _submitted_id(record: LoggedRecord, rule: SamplingRule) -> str:
    if rule.submitters_by == "account":
        return account_stratum_id(record.pseudonym)
    return receipts_stratum_id(record.tenant)
