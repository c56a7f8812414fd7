"""Theorem 4.3 for finite outputs: the largest advantage that any attack reaches.

Balboa et al., Theorem 4.3 and Corollary 4.9; corrections in docs/notes/disclosure-risk.md §2.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.mechanisms import LARGEST_CHANNEL
from ragaudit.lab.risk.threat import ThreatModel
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.validation import FloatArray, IntegerArray, row_stochastic

__all__ = [
    "LARGEST_WORK",
    "Options",
    "best_gains",
    "channel_total_variation",
    "finite_advantage",
    "guess_options",
    "record_gains",
]

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
