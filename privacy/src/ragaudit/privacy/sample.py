"""How many records are checked, and which: one code for prover and verifier.

`sample_size` follows from what an undetected share of bad records may be
(docs/spec/07-coalition.md §7.3, 09-audit.md §9.1). The verifier draws with `draw_sample`, charge
entries of the generation channel with `draw_charges`, rows of each tenant's index with `draw_rows`
(§9.11); the prover recomputes the draw before it opens anything.
"""

import hashlib
import hmac
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import nsmallest
from typing import Final, Protocol

from ragaudit.encoding.digests import structure
from ragaudit.encoding.tagged import enc
from ragaudit.encoding.text import parse_decimal
from ragaudit.privacy.numbers import Number, count, exact

# (1 - beta)^s is computed in whole numbers of this many bits, rounded up.
_BITS = 256
_LEAST_SHARE = Fraction(1, 10**12)


def bad_records(population: int, beta: Number) -> int:
    """Return ``ceil(beta · population)``, the bad records that a share beta amounts to.

    Args:
        population: n, >= 0.
        beta: in [10^-12, 1).

    Raises:
        InvalidArgumentError: a value out of range.
    """
    n, share = count(population, "population", least=0), _share(beta, "beta")
    return -(-n * share.numerator // share.denominator)


def miss_probability(population: int, bad: int, sample: int) -> Fraction:
    """Return exactly ``C(n - b, s) / C(n, s)``: a sample without replacement has no bad one.

    Args:
        population: n, records in all.
        bad: b of them.
        sample: s, drawn records.

    Raises:
        InvalidArgumentError: not 0 <= b, s <= n.
    """
    count(population, "population", least=0)
    count(bad, "bad", least=0, most=population)
    count(sample, "sample", least=0, most=population)
    if bad + sample > population:
        return Fraction(0)
    # The product has min(b, s) factors: C(n-b, s)/C(n, s) is symmetric in b and s.
    few, many = sorted((bad, sample))
    numerator = denominator = 1
    for i in range(few):
        numerator *= population - many - i
        denominator *= population - i
    return Fraction(numerator, denominator)


def sample_size(population: int, beta: Number, eta: Number) -> int:
    """Return the least s for which ``ceil(beta·n)`` bad records are missed with <= eta.

    Exact in integers; the whole population when only that suffices.

    Args:
        population: n, >= 0.
        beta: share of bad records, in [10^-12, 1).
        eta: largest probability to miss all of them, in [10^-12, 1).

    Raises:
        InvalidArgumentError: population < 0, or beta or eta outside (0, 1).
    """
    risk, bad = _share(eta, "eta"), bad_records(population, beta)
    if population == 0:
        return 0
    # At the first bound some bad record is in the sample; the second suffices even with
    # replacement, because there are at least beta·n bad records.
    high = min(population - bad + 1, sample_size_unbounded(beta, risk))
    return bisect_left(range(high), True, key=lambda s: _missed_at_most(population, bad, s, risk))


def sample_size_unbounded(beta: Number, eta: Number) -> int:
    """Return the least s with ``(1 - beta)^s <= eta``: sampling with replacement.

    Args:
        beta, eta: as for :func:`sample_size`.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    good, risk = 1 - _share(beta, "beta"), _share(eta, "eta")
    high = 1
    while not _power_at_most(good, high, risk):
        high *= 2
    return bisect_left(range(high), True, high // 2, key=lambda s: _power_at_most(good, s, risk))


def detection(beta: Number, sample: int) -> Fraction:
    """Return a lower bound, tight to 2^-200, of ``1 - (1 - beta)^s``.

    Args:
        beta: share of bad records, between 0 and 1.
        sample: s, >= 0.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    good = 1 - exact(beta, "beta", above=0, below=1)
    return 1 - Fraction(_power_up(good, count(sample, "sample", least=0)), 1 << _BITS)


def _share(value: Number, where: str) -> Fraction:
    """Return a policy's share: it has at most 12 places, and smaller ones are beyond 256 bits."""
    return exact(value, where, least=_LEAST_SHARE, below=1)


def _missed_at_most(population: int, bad: int, sample: int, eta: Fraction) -> bool:
    """Decide ``C(n-b, s)/C(n, s) <= eta``: by intervals, exactly only when they do not settle."""
    if bad + sample > population:
        return True
    few, many = sorted((bad, sample))
    low = high = 1 << _BITS
    for i in range(few):
        numerator, denominator = population - many - i, population - i
        low = low * numerator // denominator
        high = -(-high * numerator // denominator)
    scaled = Fraction(eta.numerator << _BITS, eta.denominator)
    if high <= scaled:
        return True
    if low > scaled:
        return False
    return miss_probability(population, bad, sample) <= eta


def _power_at_most(base: Fraction, exponent: int, eta: Fraction) -> bool:
    """Decide ``base^exponent <= eta`` for exponents small enough to be computed exactly."""
    high = Fraction(_power_up(base, exponent), 1 << _BITS)
    if high <= eta:
        return True
    # 2^-200 above eta is far beyond the rounding of at most 2·64 multiplications.
    if high > eta + Fraction(1, 1 << (_BITS - 40)):
        return False
    return base**exponent <= eta


def _power_up(base: Fraction, exponent: int) -> int:
    """Return an upper bound of ``base^exponent`` in units of 2^-_BITS, for 0 <= base <= 1."""
    result = 1 << _BITS
    square = -(-(base.numerator << _BITS) // base.denominator)
    while exponent:
        if exponent & 1:
            result = -((-result * square) >> _BITS)
        square = -((-square * square) >> _BITS)
        exponent >>= 1
    return result


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
    """Records, or rows of an index, from which one sample is drawn.

    Attributes:
        id: as of the functions below.
        population: leaf indices, or positions of the index, rising.
        rule: how the sample is drawn.
    """

    id: str
    population: Sequence[int]
    rule: StratumRule


@dataclass(frozen=True, slots=True)
class DrawnStratum:
    """A stratum and its sample.

    Attributes:
        stratum: from which it was drawn.
        sample: of the population, rising.
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


def strata(
    records: Iterable[LoggedRecord],
    *,
    tenants: Collection[str],
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
        submitted = {_receipts_id(tenant): [] for tenant in tenants}
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


def order(seed: bytes, stratum_id: str, population: Sequence[int], most: int) -> list[int]:
    """Return the first of ``population`` by rising HMAC-SHA-256(seed, (stratum, index)).

    Args:
        seed: of `sampling_seed`, 32 bytes.
        most: how many; the ranks of the others are not kept.
    """

    def rank(index: int) -> bytes:
        # Nobody has the seed before the log is final: no bad record is placed out of the draw.
        return hmac.digest(seed, enc("ragaudit/v1/sample", stratum_id, index), hashlib.sha256)

    return nsmallest(most, population, key=rank)


def draw_sample(
    records: Iterable[LoggedRecord],
    *,
    tenants: Collection[str],
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
    return tuple(draw(seed, rule, stratum) for stratum in populations)


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


def draw(seed: bytes, rule: SamplingRule, stratum: Stratum) -> DrawnStratum:
    """Return a stratum with its sample."""
    population = stratum.population
    if rule.mode == "A":
        return DrawnStratum(stratum, tuple(population))
    size = stratum_size(len(population), parse_decimal(rule.beta), stratum.rule)
    return DrawnStratum(stratum, tuple(sorted(order(seed, stratum.id, population, size))))


def _submitted_id(record: LoggedRecord, rule: SamplingRule) -> str:
    by_account = rule.submitters_by == "account"
    return f"account:{record.pseudonym.hex()}" if by_account else _receipts_id(record.tenant)


def _receipts_id(tenant: str) -> str:
    return f"receipts:{tenant}"


CHARGES = "charges:"
"""What the ids of these strata begin with."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """A rule by which strata are taken whole, else as another one says."""

    rule: SamplingRule
    mode: str = "A"

    @property
    def beta(self) -> str:
        return self.rule.beta

    @property
    def tenants(self) -> StratumRule:
        return self.rule.tenants

    @property
    def submitters(self) -> StratumRule:
        return self.rule.submitters

    @property
    def submitters_by(self) -> str:
        return self.rule.submitters_by


def charge_stratum_id(tenant: str) -> str:
    """Return the id of the stratum with all charge entries of a tenant."""
    return f"{CHARGES}{tenant}"


def draw_charges(
    charges: Iterable[LoggedRecord],
    *,
    tenants: Collection[str],
    rule: SamplingRule,
    whole: bool,
    seed: bytes,
) -> tuple[DrawnStratum, ...]:
    """Return one stratum of charge entries for each tenant, with its sample.

    Args:
        charges: all charge entries of the log, in its order.
        tenants: the policy's, in its order; each has a stratum, even an empty one.
        rule: the policy's; strata are drawn as those of a tenant's records.
        whole: whether the policy has all charge entries proven.
        seed: of `sampling_seed`.
    """
    of_tenants: dict[str, list[int]] = {tenant: [] for tenant in tenants}
    for charge in charges:
        if charge.tenant in of_tenants:
            of_tenants[charge.tenant].append(charge.index)
    drawn_by: SamplingRule = _Whole(rule) if whole else rule
    return tuple(
        draw(seed, drawn_by, Stratum(charge_stratum_id(tenant), tuple(found), rule.tenants))
        for tenant, found in of_tenants.items()
    )


ROWS: Final = "rows:"
"""What the ids of these strata begin with."""

MOST_SAMPLED: Final = 4096
"""Rows of one tenant, whatever the policy: a response opens each with its whole text."""


class RowRule(Protocol):
    """The policy's ``owners.rows``: `ragaudit.ledger.messages.policy_terms.RowTerms`."""

    @property
    def beta(self) -> str:
        """Return the share of bad rows that a sample is to find, a decimal in (0, 1)."""

    @property
    def sample(self) -> StratumRule:
        """Return the rule of each tenant's stratum."""


def row_stratum_id(tenant: str) -> str:
    """Return the id of the stratum with all positions of a tenant's index."""
    return f"{ROWS}{tenant}"


def row_sample_size(rows: int, rule: RowRule) -> int:
    """Return how many of ``rows`` rows are sampled, whatever the audit's mode.

    Args:
        rows: N.
        rule: the policy's.

    Raises:
        MalformedError: the rule's decimals.
    """
    return stratum_size(rows, parse_decimal(rule.beta), rule.sample)


def largest_sample(rule: RowRule) -> int:
    """Return how many rows a sample has at most, however large the index.

    A beta above 1/2, which no terms allow, takes small indexes whole beside that.

    Args:
        rule: the policy's.

    Raises:
        MalformedError: the rule's decimals.
    """
    bound = sample_size_unbounded(parse_decimal(rule.beta), parse_decimal(rule.sample.eta))
    return max(bound, rule.sample.minimum)


def draw_rows(rows: Mapping[str, int], *, rule: RowRule, seed: bytes) -> tuple[DrawnStratum, ...]:
    """Return one stratum of positions for each tenant, with its sample.

    Args:
        rows: N of the last version of each tenant's index, in the policy's order.
        rule: the policy's.
        seed: of `sampling_seed`.

    Raises:
        MalformedError: the rule's decimals.
    """
    drawn = []
    for tenant, size in rows.items():
        # A range, not a list: of a large index only the sample is held.
        stratum = Stratum(row_stratum_id(tenant), range(size), rule.sample)
        chosen = order(seed, stratum.id, stratum.population, row_sample_size(size, rule))
        drawn.append(DrawnStratum(stratum, tuple(sorted(chosen))))
    return tuple(drawn)
