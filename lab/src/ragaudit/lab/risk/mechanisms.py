"""Mechanisms whose laws are known: channels with finite outputs and noise on the line.

Generalized randomized response, optimal unary encoding and subset selection as matrices
``p(theta | z)``; Laplace, Gaussian and the exponential mechanism as densities. Epsilon is in
natural-logarithm units. Balboa et al., Examples 4.4 to 4.7 and Appendix A.

Theorem 4.3 for finite outputs, the largest advantage that any attack reaches, by enumeration for
any channel, and in closed form for these mechanisms; a call outside of what a form covers raises
AssumptionError. Theorem 4.3 and Corollary 4.9; corrections in docs/notes/disclosure-risk.md §2, §3.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.threat import ThreatModel, largest
from ragaudit.lab.risk.validation import (
    AssumptionError,
    FloatArray,
    IntegerArray,
    check_epsilon,
    check_finite,
    check_integer,
    check_non_negative,
    check_positive,
    check_vector,
    row_stochastic,
    typed,
)
from ragaudit.privacy.numbers import shown
from scipy import special

LARGEST_CHANNEL = 2**24
"""Most entries of a channel matrix that is built."""


def grr_probabilities(records: int, epsilon: float) -> tuple[float, float]:
    """Return ``(p, q)``: P[output = record] and P[output = one given other record].

    Generalized randomized response: ``p = e^eps/(e^eps + m - 1)``, ``q = 1/(e^eps + m - 1)``.

    Args:
        records: m >= 2.
        epsilon: >= 0.
    """
    m = check_integer(records, "records", least=2)
    odds = math.exp(-check_epsilon(epsilon))
    p = 1 / (1 + (m - 1) * odds)
    return p, odds * p


def grr_channel(records: int, epsilon: float) -> FloatArray:
    """Return the (records, records) channel of generalized randomized response.

    Args:
        records: m >= 2, at most 4,096 (`LARGEST_CHANNEL`).
        epsilon: >= 0.

    Returns:
        Entry ``[z, theta]`` is ``p(theta | z)``.

    Raises:
        InvalidArgumentError: a value out of its range, or more entries than are built.
    """
    p, q = grr_probabilities(records, epsilon)
    _check_size("records", records, records)
    channel = np.full((records, records), q)
    np.fill_diagonal(channel, p)
    return channel


def oue_probabilities(epsilon: float) -> tuple[float, float]:
    """Return ``(1/2, q)``: P[bit = 1] at the record and elsewhere, ``q = 1/(e^eps + 1)``.

    Args:
        epsilon: >= 0.
    """
    return 0.5, float(special.expit(-check_epsilon(epsilon)))


def oue_outputs(records: int) -> npt.NDArray[np.bool_]:
    """Return all outputs of optimal unary encoding, shape (2^records, records).

    Row ``k`` is the binary expansion of ``k``, record 0 at the most significant bit.

    Args:
        records: m, 2 to 19 (`LARGEST_CHANNEL`).
    """
    m = check_integer(records, "records", least=2)
    if m > 24:
        raise _too_large("records")
    _check_size("records", 2**m, m)
    bits = np.arange(2**m)[:, None] >> np.arange(m)[::-1]
    return np.asarray((bits & 1).astype(np.bool_))


def oue_channel(records: int, epsilon: float) -> FloatArray:
    """Return the (records, 2^records) channel of optimal unary encoding.

    Columns are in the order of :func:`oue_outputs`.

    Args:
        records: as of :func:`oue_outputs`.
        epsilon: >= 0.
    """
    bits = oue_outputs(records)
    _, q = oue_probabilities(epsilon)
    # Products over the other bits: ones^q, zeros^(1-q); the record's own bit has 1/2 either way.
    others = np.where(bits, q, 1 - q)
    channel = np.empty((records, len(bits)))
    for record in range(records):
        channel[record] = 0.5 * np.prod(np.delete(others, record, axis=1), axis=1)
    return channel


@typed
def subset_size(records: int, epsilon: float, rule: Literal["floor", "rint"] = "floor") -> int:
    """Return omega, the reported subset's size: ``max(1, round(m/(e^eps + 1)))``.

    Args:
        records: m >= 2.
        epsilon: >= 0.
        rule: "floor" is the paper's; "rint" (half to even) is that of multi-freq-ldpy, which
            the audited code uses. They differ: m = 10, eps = 1 gives 2 and 3. In an audit, read
            omega off the reports instead.
    """
    m = check_integer(records, "records", least=2)
    share = m * float(special.expit(-check_epsilon(epsilon)))
    if rule == "floor":
        return max(1, math.floor(share))
    if rule == "rint":
        return max(1, round(share))
    raise InvalidArgumentError(
        f"unknown rule {shown(rule)}", where="rule", expected="floor or rint"
    )


def ss_probability(records: int, epsilon: float, subset: int) -> float:
    """Return P[the record is in the reported subset]: ``w e^eps/(w e^eps + m - w)``.

    Args:
        subset: omega, 1 to records - 1.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    m = check_integer(records, "records", least=2)
    omega = check_integer(subset, "subset", least=1, most=m - 1)
    return omega / (omega + (m - omega) * math.exp(-check_epsilon(epsilon)))


def ss_outputs(records: int, subset: int) -> npt.NDArray[np.bool_]:
    """Return all subsets of ``subset`` records, lexicographic; shape (outputs, records).

    Args:
        records: m >= 2.
        subset: omega, 1 to records - 1.

    Raises:
        InvalidArgumentError: a value out of its range, or more than `LARGEST_CHANNEL` bits.
    """
    m = check_integer(records, "records", least=2)
    omega = check_integer(subset, "subset", least=1, most=m - 1)
    count = math.comb(m, omega)
    _check_size("records", count, m)
    rows = np.fromiter(
        (index for chosen in combinations(range(m), omega) for index in chosen),
        dtype=np.int64,
        count=count * omega,
    ).reshape(count, omega)
    members = np.zeros((count, m), dtype=np.bool_)
    np.put_along_axis(members, rows, True, axis=1)
    return members


def ss_channel(records: int, epsilon: float, subset: int) -> FloatArray:
    """Return the (records, outputs) channel of subset selection; columns as `ss_outputs`.

    Args:
        records: m >= 2.
        epsilon: >= 0.
        subset: omega, 1 to records - 1.
    """
    members = ss_outputs(records, subset)
    p = ss_probability(records, epsilon, subset)
    inside = p / math.comb(records - 1, subset - 1)
    outside = (1 - p) / math.comb(records - 1, subset)
    return np.where(members.T, inside, outside)


@runtime_checkable
class AdditiveNoise(Protocol):
    """A symmetric noise law on the line; the output is the record's position plus noise."""

    @property
    def scale(self) -> float:
        """The law's scale, in the records' unit."""

    @property
    def reach(self) -> float:
        """Distance beyond which the law has less than 1e-19 of its mass."""

    @property
    def has_kink(self) -> bool:
        """Whether the density's slope jumps at 0."""

    def density(self, x: FloatArray) -> FloatArray:
        """Return the density at noise value x, element by element.

        Args:
            x: any shape, in the records' unit.
        """

    def cdf(self, x: FloatArray) -> FloatArray:
        """Return P[noise <= x], element by element and precise in the lower tail.

        Args:
            x: any shape, in the records' unit.
        """

    def total_variation(self, distance: float) -> float:
        """Return the total variation, in [0, 1], between the outputs of two records.

        Args:
            distance: of the records, >= 0, in their unit.
        """


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise with density ``exp(-|x|/b)/(2b)``.

    Attributes:
        scale: b > 0, in the records' unit; eps-DP needs ``b = sensitivity/eps``.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_positive(self.scale, "scale"))

    @classmethod
    def calibrated(cls, epsilon: float, sensitivity: float) -> "LaplaceNoise":
        """Return the noise that makes a query of this sensitivity epsilon-DP; epsilon > 0."""
        return cls(check_positive(sensitivity, "sensitivity") / check_positive(epsilon, "epsilon"))

    @property
    def reach(self) -> float:
        """45 b: ``exp(-45)`` is 3e-20."""
        return 45 * self.scale

    @property
    def has_kink(self) -> bool:
        """Yes."""
        return True

    def density(self, x: FloatArray) -> FloatArray:
        """Return the density at noise value x."""
        heights: FloatArray = np.asarray(np.divide(x, self.scale))
        np.abs(heights, out=heights)
        np.exp(np.negative(heights, out=heights), out=heights)
        heights /= 2 * self.scale
        return heights

    def cdf(self, x: FloatArray) -> FloatArray:
        """Return P[noise <= x], precise in the lower tail."""
        tail = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.asarray(np.where(x < 0, tail, 1 - tail))

    def total_variation(self, distance: float) -> float:
        """Return ``1 - exp(-distance/(2b))``."""
        return -math.expm1(-check_non_negative(distance, "distance") / (2 * self.scale))


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise.

    Attributes:
        scale: standard deviation > 0, in the records' unit (the paper's ``N(0, sigma)``).
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_positive(self.scale, "scale"))

    @property
    def reach(self) -> float:
        """12 standard deviations."""
        return 12 * self.scale

    @property
    def has_kink(self) -> bool:
        """No."""
        return False

    def density(self, x: FloatArray) -> FloatArray:
        """Return the density at noise value x."""
        heights: FloatArray = np.asarray(np.divide(x, self.scale))
        np.square(heights, out=heights)
        heights *= -0.5
        np.exp(heights, out=heights)
        heights /= self.scale * math.sqrt(2 * math.pi)
        return heights

    def cdf(self, x: FloatArray) -> FloatArray:
        """Return P[noise <= x], precise in the lower tail."""
        return np.asarray(special.ndtr(np.asarray(x) / self.scale))

    def total_variation(self, distance: float) -> float:
        """Return ``2 Phi(distance/(2 sd)) - 1``."""
        d = check_non_negative(distance, "distance")
        return math.erf(d / (2 * math.sqrt(2) * self.scale))


_INTERVAL: Final = {
    "epsilon": check_positive,
    "sensitivity": check_positive,
    "low": check_finite,
    "high": check_finite,
}


@dataclass(frozen=True)
class ExponentialMechanism:
    """Output theta of [low, high] with density proportional to ``exp(-|z - theta|/s)``.

    The exponential mechanism with utility ``-|z - theta|``, ``s = 2 sensitivity/epsilon``,
    normalized for each record (Appendix A.2).

    Attributes:
        epsilon: > 0.
        low, high: ends of the interval of records and outputs.
        sensitivity: of the utility, > 0, in the records' unit.
    """

    epsilon: float
    low: float = 0.0
    high: float = 1.0
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        for name, read in _INTERVAL.items():
            object.__setattr__(self, name, read(getattr(self, name), name))
        if not self.low < self.high:
            raise InvalidArgumentError("empty interval", where="high", expected="above low")

    @property
    def scale(self) -> float:
        """``s = 2 sensitivity/epsilon``, in the records' unit."""
        return 2 * self.sensitivity / self.epsilon

    @property
    def largest_density(self) -> float:
        """``M = max p(theta | z)``, reached at an end: ``1/(s (1 - exp(-(high-low)/s)))``."""
        s = self.scale
        return -1 / (s * math.expm1(-(self.high - self.low) / s))

    def density(self, theta: FloatArray, record: FloatArray) -> FloatArray:
        """Return ``p(theta | record)``, broadcast over both.

        Args:
            theta: outputs in [low, high].
            record: records in [low, high].
        """
        s = self.scale
        total = -s * (np.expm1((self.low - record) / s) + np.expm1((record - self.high) / s))
        heights: FloatArray = np.asarray(np.subtract(theta, record))
        np.abs(heights, out=heights)
        heights /= -s
        np.exp(heights, out=heights)
        heights /= total
        return heights


def _too_large(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        "the channel would be too large",
        where=name,
        expected=f"at most {LARGEST_CHANNEL} entries; use the closed form",
    )


def _check_size(name: str, rows: int, columns: int) -> None:
    if rows * columns > LARGEST_CHANNEL:
        raise _too_large(name)


Options = Callable[[FloatArray], FloatArray]
"""See :func:`guess_options`."""

LARGEST_WORK = 2**33
"""Most products records x records x outputs of one evaluation with eta."""


@typed
def finite_advantage(
    channel: Sequence[Sequence[float]] | npt.NDArray[np.generic],
    threat: ThreatModel,
    *,
    allow_abstain: bool = False,
) -> float:
    """Return the optimal reconstruction advantage, in [-(1-kappa), 1-kappa].

    ``sum over theta and classes x of max over guesses g of sum over z in class x and in the
    success set of g of pi_z (p(theta|z) - p(theta))``. Exact up to rounding (about 1e-15).

    Args:
        channel: shape (records, outputs), rows sum to 1 within 1e-9.
        threat: prior, success sets and auxiliary knowledge over the same records.
        allow_abstain: let the attacker give no answer, which never succeeds. The paper's
            definition (the default) demands a record; an attacker who knows the target's class
            declines by a record that certainly fails, if there is one.

    Raises:
        InvalidArgumentError: a bad channel, other records than the threat's, or a size beyond
            ``LARGEST_CHANNEL`` and ``LARGEST_WORK``: use a closed form then.
    """
    matrix = row_stochastic(channel, "channel")
    records, outputs = matrix.shape
    if records != threat.records:
        raise InvalidArgumentError(
            f"{records} records", where="channel", expected=f"{threat.records}, as the threat has"
        )
    work = records * outputs * (1 if threat.success.is_exact else records)
    if matrix.size > LARGEST_CHANNEL or work > LARGEST_WORK:
        raise InvalidArgumentError(
            f"{records} records with {outputs} outputs are too many to enumerate",
            where="channel",
            expected="a smaller channel, or the mechanism's closed form",
        )
    return math.fsum(best_gains(matrix, threat, allow_abstain=allow_abstain))


def channel_total_variation(
    channel: Sequence[Sequence[float]] | npt.NDArray[np.generic],
) -> float:
    """Return the largest total variation between two rows of a channel, in [0, 1].

    Args:
        channel: shape (records, outputs), rows sum to 1 within 1e-9.

    Raises:
        InvalidArgumentError: a bad channel, or more than ``LARGEST_WORK`` differences.
    """
    matrix = row_stochastic(channel, "channel")
    if matrix.size * len(matrix) > LARGEST_WORK:
        raise InvalidArgumentError(
            f"{len(matrix)} records with {matrix.shape[1]} outputs are too many to compare",
            where="channel",
            expected="a smaller channel, or the mechanism's closed form",
        )
    return min(
        1.0,
        max(
            float(np.abs(matrix[row:] - matrix[row]).sum(axis=1).max())
            for row in range(len(matrix))
        )
        / 2,
    )


@typed
def best_gains(
    likelihoods: FloatArray, threat: ThreatModel, *, allow_abstain: bool = False
) -> FloatArray:
    """Return, per output, the sum over classes of the best guess's gain.

    Args:
        likelihoods: shape (records, outputs): probabilities or densities ``p(theta | z)``.

    Returns:
        Shape (outputs,), in the unit of ``likelihoods``.
    """
    gains = record_gains(likelihoods, threat)
    total = np.zeros(gains.shape[1])
    for options in guess_options(threat, allow_abstain=allow_abstain):
        total += options(gains).max(axis=1).sum(axis=0)
    return total


@typed
def record_gains(likelihoods: FloatArray, threat: ThreatModel) -> FloatArray:
    """Return ``pi_z (p(theta|z) - p(theta))``, shape (records, outputs).

    Args:
        likelihoods: shape (records, outputs): probabilities or densities ``p(theta | z)``.
        threat: its prior counts.
    """
    prior = threat.prior.probabilities
    gains = likelihoods - prior @ likelihoods
    gains *= prior[:, None]
    return gains


@typed
def guess_options(threat: ThreatModel, *, allow_abstain: bool = False) -> tuple[Options, ...]:
    """Return what an attacker can choose from who knows the target's class.

    Guesses that gain the same stand for each other. All records are guesses, those of other
    classes too: so an attacker declines, which gains 0.

    Args:
        threat: success sets and auxiliary knowledge count.
        allow_abstain: as of :func:`finite_advantage`.

    Returns:
        Functions from the records' gains to those of the guesses, one function for classes of
        the same kind: shape (records, outputs) to (classes, guesses, outputs).
    """
    if threat.auxiliary.is_full:
        return (_hit_or_miss(threat, allow_abstain),)
    classes = threat.auxiliary.classes
    if threat.success.is_exact:
        decline = allow_abstain or len(classes) > 1
        sizes = sorted({len(members) for members in classes})
        return tuple(
            _members([members for members in classes if len(members) == size], decline)
            for size in sizes
        )
    return tuple(_all_guesses(threat, members, allow_abstain) for members in classes)


def _hit_or_miss(threat: ThreatModel, allow_abstain: bool) -> Options:
    """Each record is a class: name it, or a record that fails for it if there is one."""
    declinable = threat.success.can_be_missed | allow_abstain
    declining = np.where(declinable, 0.0, -np.inf)[:, None]

    def options(gains: FloatArray) -> FloatArray:
        return np.stack([gains, np.broadcast_to(declining, gains.shape)], axis=1)

    return options


def _members(classes: list[IntegerArray], decline: bool) -> Options:
    """Exact guesses: a member of the class, or none; classes of one size."""
    rows = np.array(classes)

    def options(gains: FloatArray) -> FloatArray:
        if not decline:  # there is one class, in order
            return gains[None]
        nothing = np.zeros((len(rows), 1, gains.shape[1]))
        return np.concatenate([gains[rows], nothing], axis=1)

    return options


def _all_guesses(threat: ThreatModel, members: IntegerArray, allow_abstain: bool) -> Options:
    """One class, success sets of any kind: every record is a guess of its own."""

    def options(gains: FloatArray) -> FloatArray:
        sums = threat.success.sums(gains[members], members)
        if allow_abstain:
            sums = np.concatenate([sums, np.zeros((1, gains.shape[1]))])
        return sums[None]

    return options


_NEGLIGIBLE = 60.0
"""Weights below ``exp(-60)`` of the largest are left out."""


def grr_total_variation(records: int, epsilon: float) -> float:
    """Return ``(e^eps - 1)/(e^eps + m - 1)``.

    Args:
        records: m >= 2.
        epsilon: >= 0.
    """
    p, _ = grr_probabilities(records, epsilon)
    return -math.expm1(-check_epsilon(epsilon)) * p


def oue_total_variation(epsilon: float) -> float:
    """Return ``tanh(eps/2)/2``; it does not depend on the number of records.

    Args:
        epsilon: >= 0.
    """
    return math.tanh(check_epsilon(epsilon) / 2) / 2


def ss_total_variation(records: int, epsilon: float, subset: int) -> float:
    """Return ``(p m - w)/(m - 1)``, w = subset, p the probability that it has the record.

    Args:
        records: m >= 2.
        epsilon: >= 0.
        subset: omega, 1 to records - 1.
    """
    m = check_integer(records, "records", least=2)
    return ss_advantage_uniform(m, epsilon, subset) * m * subset / (m - 1)


@typed
def grr_advantage(threat: ThreatModel, epsilon: float) -> float:
    """Return the optimal advantage against generalized randomized response (Example 4.4).

    Covers any prior with: full auxiliary knowledge and any eta; exact guesses and any auxiliary
    knowledge; no auxiliary knowledge and any eta.

    Args:
        threat: prior, success sets and auxiliary knowledge.
        epsilon: >= 0.

    Raises:
        AssumptionError: partial auxiliary knowledge together with inexact guesses.
    """
    variation = grr_total_variation(threat.records, epsilon)
    if threat.success.is_exact or threat.auxiliary.is_full:
        return variation * _spread(threat)
    if not threat.auxiliary.is_none:
        raise AssumptionError(
            "no closed form for partial knowledge and inexact guesses",
            where="threat",
            expected="full or no auxiliary knowledge, or exact guesses",
        )
    prior, masses = threat.prior.probabilities, threat.success.masses(threat.prior)
    assert threat.success.table is not None
    smallest = np.where(threat.success.table, masses[:, None], np.inf).min(axis=0)
    return max(0.0, variation * float(prior @ (1 - smallest)))


@typed
def oue_advantage(threat: ThreatModel, epsilon: float) -> float:
    """Return the optimal advantage against optimal unary encoding (Example 4.5).

    Covers any prior with full auxiliary knowledge and any eta, or with none and exact guesses.

    Args:
        threat: prior, success sets and auxiliary knowledge.
        epsilon: >= 0.

    Raises:
        AssumptionError: another threat.
    """
    if threat.auxiliary.is_full:
        return oue_total_variation(epsilon) * _spread(threat)
    _require_plain(threat)
    loss = check_epsilon(epsilon)
    odds = math.exp(-loss)
    # p = 1/(1 + odds), q = odds p, p - q = (1 - odds) p; the factor is (p - q)/(2p).
    descending = _leading(threat, math.log1p(odds))
    powers = np.exp(-np.arange(len(descending)) * math.log1p(odds))
    after = (1 - np.cumsum(descending)).clip(0)
    q = odds / (1 + odds)
    terms = powers * descending * (1 - descending - q * after)
    return max(0.0, -math.expm1(-loss) / 2 * float(terms.sum()))


def oue_advantage_uniform(records: int, epsilon: float) -> float:
    """Return the uniform prior's value, no auxiliary knowledge, exact guesses.

    ``expm1(eps)/(2m) (1 - (e^eps/(1+e^eps))^(m-1))``, which tends to ``(m-1)/(2m)``.

    Args:
        records: m >= 2, of any size.
        epsilon: >= 0, of any size: nothing overflows or cancels.
    """
    m = check_integer(records, "records", least=2)
    loss = check_epsilon(epsilon)
    odds = math.exp(-loss)
    exponent = (m - 1) * math.log1p(odds)
    # e^eps (1 - exp(-exponent)), written as a product of ratios that tend to 1.
    log_ratio = math.log1p(odds) / odds if odds > 0 else 1.0
    power_ratio = -math.expm1(-exponent) / exponent if exponent > 0 else 1.0
    return -math.expm1(-loss) * (m - 1) / (2 * m) * log_ratio * power_ratio


@typed
def ss_advantage(threat: ThreatModel, epsilon: float, subset: int) -> float:
    """Return the optimal advantage against subset selection with omega = ``subset``.

    Covers any prior with full auxiliary knowledge and any eta, or with none and exact guesses
    (the latter for a non-uniform prior is not in the paper: note, claim 3.5).

    Args:
        threat: prior, success sets and auxiliary knowledge.
        epsilon: >= 0.
        subset: omega, 1 to records - 1.

    Raises:
        AssumptionError: another threat.
    """
    m = threat.records
    omega = check_integer(subset, "subset", least=1, most=m - 1)
    if threat.auxiliary.is_full:
        return ss_total_variation(m, epsilon, omega) * _spread(threat)
    _require_plain(threat)
    descending = _leading(threat, (omega - 1) / m)
    behind = m - np.arange(1, len(descending) + 1)  # records of lower rank
    # leads[i]: share of the subsets with record i in which it is the most probable one.
    shares = (behind[:-1] - omega + 1).clip(0) / behind[:-1]
    leads = np.concatenate([[1.0], np.cumprod(shares)])
    after = (1 - np.cumsum(descending)).clip(0)
    others = (omega - 1) / behind.clip(1)  # nothing comes after the last record
    terms = leads * descending * (1 - descending - others * after)
    loss = check_epsilon(epsilon)
    odds = math.exp(-loss)
    contrast = -math.expm1(-loss) * omega / (omega + (m - omega) * odds)
    return max(0.0, contrast * float(terms.sum()))


def ss_advantage_uniform(records: int, epsilon: float, subset: int) -> float:
    """Return the uniform prior's value, no auxiliary knowledge, exact guesses.

    ``(p m - w)/(m w) = (m - w)(e^eps - 1)/(m (w e^eps + m - w))`` with w = subset.

    Args:
        records: m >= 2.
        epsilon: >= 0.
        subset: omega, 1 to records - 1.
    """
    m = check_integer(records, "records", least=2)
    omega = check_integer(subset, "subset", least=1, most=m - 1)
    loss = check_epsilon(epsilon)
    odds = math.exp(-loss)
    return (m - omega) * -math.expm1(-loss) / (m * (omega + (m - omega) * odds))


@typed
def noise_advantage_uniform(positions: Sequence[float] | FloatArray, noise: AdditiveNoise) -> float:
    """Return the uniform prior's value for records on a line, no knowledge, exact guesses.

    ``sum over gaps of TV(gap)/m`` for Laplace and Gaussian noise (any unimodal symmetric law).

    Args:
        positions: shape (records,), distinct, in the unit of the noise's scale.
    """
    x = check_vector(positions, "positions", least=2)
    gaps = np.diff(np.sort(x))
    if (gaps <= 0).any():
        raise AssumptionError(
            "two records at the same place", where="positions", expected="distinct positions"
        )
    return float(_variations(noise, gaps).sum()) / len(x)


@typed
def noise_bound_uniform(records: int, span: float, noise: AdditiveNoise) -> float:
    """Return ``(m-1)/m TV(span/(m-1))``: the largest value over positions in that range.

    Reached by equal gaps (Jensen: the total variation is concave in the gap).

    Args:
        records: m >= 2.
        span: distance of the extreme records, >= 0, in the unit of the noise's scale.
    """
    m = check_integer(records, "records", least=2)
    gap = check_non_negative(span, "span") / (m - 1)
    return (m - 1) / m * noise.total_variation(gap)


def _variations(noise: AdditiveNoise, gaps: FloatArray) -> FloatArray:
    if isinstance(noise, LaplaceNoise):
        return np.asarray(-np.expm1(-gaps / (2 * noise.scale)))
    if isinstance(noise, GaussianNoise):
        return np.asarray(special.erf(gaps / (2 * math.sqrt(2) * noise.scale)))
    return np.array([noise.total_variation(float(gap)) for gap in gaps])


def _leading(threat: ThreatModel, decay: float) -> FloatArray:
    """The most probable records, descending, of weights that fall by ``exp(-decay)`` or more.

    Those left out weigh less than 1e-26 together.
    """
    count = math.ceil(min(threat.records, 1 + _NEGLIGIBLE / decay)) if decay else threat.records
    return largest(threat.prior.probabilities, count)


def _spread(threat: ThreatModel) -> float:
    """``sum of pi (1 - pi)`` over the records for which an attacker can decline."""
    if threat.success.is_exact:
        return 1 - threat.prior.collision_probability
    prior = threat.prior.probabilities
    return float((prior * (1 - prior))[threat.success.can_be_missed].sum())


def _require_plain(threat: ThreatModel) -> None:
    if not (threat.success.is_exact and threat.auxiliary.is_none):
        raise AssumptionError(
            "no closed form for this threat",
            where="threat",
            expected="full auxiliary knowledge, or none and exact guesses",
        )
