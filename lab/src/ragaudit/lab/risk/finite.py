"""Theorem 4.3 for finite outputs: the largest advantage that any attack reaches.

By enumeration for any channel, and in closed form for known mechanisms (epsilon in units of the
natural logarithm, values in [0, 1-kappa]). A call outside of what a form covers raises
AssumptionError; then enumerate or integrate (``one_dimensional``). Balboa et al., Theorem 4.3 and
Corollary 4.9; corrections in docs/notes/disclosure-risk.md §2 and §3.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.mechanisms import (
    LARGEST_CHANNEL,
    AdditiveNoise,
    GaussianNoise,
    LaplaceNoise,
    grr_probabilities,
)
from ragaudit.lab.risk.priors import largest
from ragaudit.lab.risk.threat import ThreatModel
from ragaudit.lab.risk.validation import (
    AssumptionError,
    FloatArray,
    IntegerArray,
    check_epsilon,
    check_integer,
    check_non_negative,
    check_vector,
    row_stochastic,
    typed,
)
from scipy import special

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
