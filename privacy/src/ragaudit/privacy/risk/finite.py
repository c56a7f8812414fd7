"""Theorem 4.3 for finite outputs: the largest advantage that any attack reaches.

Balboa et al., Theorem 4.3 and Corollary 4.9; corrections in docs/notes/disclosure-risk.md §2.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.risk.mechanisms import LARGEST_CHANNEL
from ragaudit.privacy.risk.threat import ThreatModel
from ragaudit.privacy.risk.validation import FloatArray, row_stochastic

__all__ = ["LARGEST_WORK", "best_gains", "channel_total_variation", "finite_advantage"]

LARGEST_WORK = 2**33
"""Most products records x records x outputs of one evaluation with eta."""


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


def best_gains(
    likelihoods: FloatArray, threat: ThreatModel, *, allow_abstain: bool = False
) -> FloatArray:
    """Return, per output, the sum over classes of the best guess's gain.

    Args:
        likelihoods: shape (records, outputs): probabilities or densities ``p(theta | z)``.

    Returns:
        Shape (outputs,), in the unit of ``likelihoods``.
    """
    prior = threat.prior.probabilities
    gains = prior[:, None] * (likelihoods - prior @ likelihoods)
    if threat.auxiliary.is_full:
        declinable = threat.success.can_be_missed | allow_abstain
        return np.asarray(np.where(declinable[:, None], np.maximum(gains, 0), gains).sum(axis=0))
    total = np.zeros(likelihoods.shape[1])
    for members in threat.auxiliary.classes:
        total += _best_guess(gains, members, threat, allow_abstain)
    return total


def _best_guess(
    gains: FloatArray, members: npt.NDArray[np.int64], threat: ThreatModel, allow_abstain: bool
) -> FloatArray:
    """The best guess's gain per output when the target is one of ``members``.

    All records are guesses, those of other classes too: so an attacker declines.
    """
    if threat.success.is_exact:
        best = gains[members].max(axis=0)
        allow_abstain |= len(members) < threat.records
    else:
        best = threat.success.sums(gains[members], members).max(axis=0)
    return np.asarray(np.maximum(best, 0) if allow_abstain else best)
