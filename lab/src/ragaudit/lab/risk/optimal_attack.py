"""The optimal reconstruction attack (Balboa et al., Algorithm 1), for any finite threat model.

Seeing an output theta and the target's class x = a(z), the attack names a record z' with the
largest

    W(z') = sum over z of the class with loss(z', z) <= eta of pi_z (p(theta|z) - p(theta)).

Divided by p(theta) > 0, which changes neither order nor sign, a summand is *posterior minus
prior*. So likelihoods are needed up to a common factor only, and are given as logarithms. The
record of largest posterior is in general not optimal: under a skewed prior it is the record that
everybody would have named anyway, which is no advantage. Claims: docs/notes/risk-audits.md.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.threat import ThreatModel
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.validation import (
    FloatArray,
    IntegerArray,
    check_integer,
    integer_array,
    number_array,
    row_stochastic,
)

__all__ = ["OptimalAttack", "advantage_of", "posterior"]

_TIE: Final = 1e-12
"""Weights (differences of probabilities) this close count as equal."""

_CHUNK_CELLS: Final = 1 << 22


@typed
def posterior(prior: FinitePrior, log_likelihoods: npt.ArrayLike) -> FloatArray:
    """Return the posterior of each record for each output, shape (outputs, records).

    Args:
        log_likelihoods: shape (outputs, records), natural logarithms of ``p(theta|z)``, each row
            up to a constant of its own; minus infinity is a likelihood of zero.

    Raises:
        InvalidArgumentError: another shape, NaN, plus infinity, or an output that no record of
            positive prior can give.
    """
    values = number_array(log_likelihoods, "log_likelihoods", finite=False)
    if values.ndim != 2 or values.shape[1] != prior.records:
        raise InvalidArgumentError(
            f"shape {values.shape}", where="log_likelihoods", expected=f"(n, {prior.records})"
        )
    with np.errstate(divide="ignore"):
        joint = np.log(prior.probabilities) + values
    peak = joint.max(axis=1, keepdims=True)
    if not np.isfinite(peak).all() or np.isposinf(values).any():
        raise InvalidArgumentError(
            "not the likelihoods of a possible output",
            where="log_likelihoods",
            expected="no NaN, and a finite value for some record of positive prior in each row",
        )
    # Less the peak: the likelihoods of a whole run underflow by themselves.
    weights = np.exp(joint - peak)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@typed
@dataclass(frozen=True)
class OptimalAttack:
    """Algorithm 1 under a threat model: no attack has a larger advantage."""

    threat: ThreatModel

    def weights(self, log_likelihoods: npt.ArrayLike, label: int = 0) -> FloatArray:
        """Return ``W/p(theta)`` of each guess, shape (outputs, guesses).

        Args:
            log_likelihoods: as for :func:`posterior`; but an output that only records of prior 0
                can give, which never occurs, is let pass: no guess gains anything.
            label: number of the target's class.

        Raises:
            InvalidArgumentError: as :func:`posterior`, or no such class.
        """
        classes = self.threat.auxiliary.classes
        number = check_integer(label, "label", least=0, most=len(classes) - 1)
        prior = self.threat.prior
        gains = posterior(prior, _possible(prior, log_likelihoods)) - prior.probabilities
        members = classes[number]
        return self.threat.success.sums(gains[:, members].T, members).T

    def best_guesses(self, log_likelihoods: npt.ArrayLike, label: int = 0) -> list[int]:
        """Return every optimal guess for one output, shape (records,); any of them is right.

        Args:
            log_likelihoods: shape (records,), as a row of :func:`posterior`.
            label: number of the target's class.
        """
        row = self.weights(np.atleast_2d(np.asarray(log_likelihoods, dtype=np.float64)), label)[0]
        return [int(guess) for guess in np.flatnonzero(row >= row.max() - _TIE)]

    def guess(
        self, log_likelihoods: npt.ArrayLike, label: int, generator: np.random.Generator
    ) -> IntegerArray:
        """Return an optimal guess for each output, ties broken uniformly; shape (outputs,).

        Args:
            log_likelihoods: shape (outputs, records), as for :meth:`weights`.
            label: number of the class that all targets are of.
            generator: for ties.
        """
        values = np.asarray(log_likelihoods, dtype=np.float64)
        found = np.empty(len(values), dtype=np.int64)
        rows = max(1, _CHUNK_CELLS // self.threat.records)
        for start in range(0, len(values), rows):
            weights = self.weights(values[start : start + rows], label)
            found[start : start + rows] = _largest(weights, generator)
        return found


@typed
def advantage_of(channel: Any, threat: ThreatModel, guesses: npt.ArrayLike) -> float:
    """Return the exact advantage (RAD) of a deterministic attack on a finite mechanism.

    ``sum_z pi_z sum_theta [the guess succeeds for z] (p(theta|z) - p(theta))``.

    Args:
        channel: shape (records, outputs): ``p(theta|z)``.
        guesses: shape (outputs,) or (outputs, classes): the record named for each output and
            class of the target.

    Returns:
        A value in [-1, 1].

    Raises:
        InvalidArgumentError: no channel, or shapes that do not belong together.
    """
    table = row_stochastic(channel, "channel")
    classes = threat.auxiliary.classes
    named = integer_array(guesses, "guesses")
    if named.ndim == 1:
        named = named[:, None]
    if table.shape[0] != threat.records or named.shape != (table.shape[1], len(classes)):
        raise InvalidArgumentError(
            f"shape {named.shape} for a channel of shape {table.shape}",
            where="guesses",
            expected=f"channel ({threat.records}, outputs), guesses (outputs, {len(classes)})",
        )
    if named.min() < 0 or named.max() >= threat.records:
        raise InvalidArgumentError(
            "no such record", where="guesses", expected=f"0 to {threat.records - 1}"
        )
    weights = threat.prior.probabilities
    excess = weights[:, None] * (table - weights @ table)
    outputs = np.arange(table.shape[1])
    total = 0.0
    for label, members in enumerate(classes):
        gains = threat.success.sums(excess[members], members)
        total += float(gains[named[:, label], outputs].sum())
    return total


def _possible(prior: FinitePrior, log_likelihoods: npt.ArrayLike) -> FloatArray:
    """The same, but where no target can give an output as if all could give it alike."""
    values = np.array(log_likelihoods, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == prior.records:
        never = np.isneginf(values[:, prior.probabilities > 0]).all(axis=1)
        values[never & np.isfinite(values).any(axis=1)] = 0.0
    return values


def _largest(weights: FloatArray, generator: np.random.Generator) -> IntegerArray:
    """The index of a largest entry of each row, uniformly among those that tie."""
    ties = weights >= weights.max(axis=1, keepdims=True) - _TIE
    found = ties.argmax(axis=1)
    tied = np.flatnonzero(ties.sum(axis=1) > 1)
    if tied.size:
        keys = np.where(ties[tied], generator.random((tied.size, weights.shape[1])), -1.0)
        found[tied] = keys.argmax(axis=1)
    return np.asarray(found, dtype=np.int64)
