"""The optimal reconstruction attack (Balboa et al., Algorithm 1), for any finite threat model.

Seeing an output theta and the target's class x = a(z), the attack names a record z' with the
largest

    W(z') = sum over z of the class with loss(z', z) <= eta of pi_z (p(theta|z) - p(theta)).

Divided by p(theta) > 0, which changes neither order nor sign, a summand is *posterior minus
prior*. So likelihoods are needed up to a common factor only, and are given as logarithms. The
record of largest posterior is in general not optimal: under a skewed prior it is the record that
everybody would have named anyway, which is no advantage. Claims: docs/notes/risk-audits.md.

`GradientAttack` is the optimal attack on DP-SGD with released noisy gradient sums (Example 4.10,
corrected). The printed Algorithm 2 compares a candidate's inner product with the average one. That
is not optimal: a run's law is a mixture over records of products over steps, not a product of
mixtures; Jensen's inequality was used as an equivalence; the squared norms were dropped, which only
records of equal norm allow; and a weight times the prior is not the prior-weighted excess. Here the
exact posterior is formed over the whole run, and a record is named when the run made it likelier.
Full batch, sums (not means) of clipped gradients, noise ``N(0, C^2 sigma^2 I)`` per step.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.threat import ThreatModel
from ragaudit.lab.risk.validation import (
    FloatArray,
    IntegerArray,
    check_integer,
    check_positive,
    integer_array,
    number_array,
    row_stochastic,
    typed,
)

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


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one run of DP-SGD says about each candidate.

    Attributes:
        log_likelihood: shape (records,), up to a constant.
        posterior: shape (records,).
        gain: shape (records,), posterior minus prior; positive: the run speaks for the record.
    """

    log_likelihood: FloatArray
    posterior: FloatArray
    gain: FloatArray


@typed
@dataclass(frozen=True, eq=False)
class GradientAttack:
    """The optimal attack on one run, for exact guesses.

    Attributes:
        threat: prior over the candidates, exact guesses, what is known of the target.
        clipping_norm: C > 0.
        noise_multiplier: sigma > 0; each coordinate of a step has noise of standard deviation
            ``C sigma``.

    Raises:
        InvalidArgumentError: a value out of range, or success sets that are not exact.
    """

    threat: ThreatModel
    clipping_norm: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        for name in ("clipping_norm", "noise_multiplier"):
            object.__setattr__(self, name, check_positive(getattr(self, name), name))
        if not self.threat.success.is_exact:
            raise InvalidArgumentError("not exact guesses", where="success", expected="eta = 0")

    def evidence(self, isolated: npt.ArrayLike, candidates: npt.ArrayLike) -> Evidence:
        """Weigh one run.

        Args:
            isolated: shape (steps, dimension): released sums without the known records
                (:func:`isolate`).
            candidates: shape (records, steps, dimension): each candidate's clipped gradient at
                the weights of each step.

        Raises:
            InvalidArgumentError: shapes that do not belong together, a value that is not finite,
                a gradient longer than C.
        """
        noisy, means = number_array(isolated, "isolated"), number_array(candidates, "candidates")
        if noisy.ndim != 2 or means.shape != (self.threat.records, *noisy.shape):
            raise InvalidArgumentError(
                f"shapes {noisy.shape} and {means.shape}",
                where="candidates",
                expected="isolated (steps, dimension), candidates (records, steps, dimension)",
            )
        squares = np.einsum("mtd,mtd->mt", means, means)
        if squares.max(initial=0.0) > (self.clipping_norm * (1 + 1e-9)) ** 2:
            raise InvalidArgumentError(
                "a gradient is longer than the clipping norm",
                where="candidates",
                expected="clipped gradients",
            )
        inner = np.einsum("td,mtd->m", noisy, means)
        variance = (self.clipping_norm * self.noise_multiplier) ** 2
        likelihood = (inner - squares.sum(axis=1) / 2) / variance
        after = posterior(self.threat.prior, likelihood[None, :])[0]
        return Evidence(likelihood, after, after - self.threat.prior.probabilities)

    def guess(self, evidence: Evidence, label: int, generator: np.random.Generator) -> int:
        """Return the record to name for a target of class ``label``; ties at random.

        The record of the class with the largest gain. If no gain is positive, any record outside
        the class, which declines; if there is none outside, the largest gain all the same.

        Args:
            evidence: of one run.
            label: class of the target, which the attacker knows.
            generator: for ties.

        Raises:
            InvalidArgumentError: no such class.
        """
        classes = self.threat.auxiliary.classes
        number = check_integer(label, "label", least=0, most=len(classes) - 1)
        inside = classes[number]
        gains = evidence.gain[inside]
        if gains.max() <= 0 and len(inside) < self.threat.records:
            outside = np.delete(np.arange(self.threat.records), inside)
            return int(generator.choice(outside))
        return int(generator.choice(inside[gains >= gains.max()]))

    def members(self, evidence: Evidence) -> npt.NDArray[np.bool_]:
        """Return, for each candidate, whether an attacker who knows it whole calls it a member.

        Args:
            evidence: of one run.

        Returns:
            Shape (records,).
        """
        return np.asarray(evidence.gain > 0)


def clip(gradients: npt.ArrayLike, clipping_norm: float) -> FloatArray:
    """Scale vectors (last axis) down to Euclidean length ``clipping_norm`` where they are longer.

    Args:
        gradients: shape (..., dimension).
        clipping_norm: C > 0.

    Raises:
        InvalidArgumentError: ``clipping_norm`` not positive, or a gradient that is not finite.
    """
    values, most = (
        number_array(gradients, "gradients"),
        check_positive(clipping_norm, "clipping_norm"),
    )
    if values.ndim == 0:
        raise InvalidArgumentError("no vector", where="gradients", expected="vectors")
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    # Never longer than norm after rounding.
    return np.asarray(values * (most / np.maximum(lengths, most)))


def isolate(released: npt.ArrayLike, fixed: npt.ArrayLike) -> FloatArray:
    """Take the known records' clipped gradients off the released sums.

    Args:
        released: shape (steps, dimension): the noisy sums.
        fixed: the same shape: sums of the known records' clipped gradients, recomputed at the
            released weights of each step.

    Raises:
        InvalidArgumentError: shapes that differ, or a value that is not finite.
    """
    sums, known = number_array(released, "released"), number_array(fixed, "fixed")
    if sums.shape != known.shape or sums.ndim != 2:
        raise InvalidArgumentError(
            f"shape {known.shape}", where="fixed", expected=f"{sums.shape}, (steps, dimension)"
        )
    return np.asarray(sums - known)


def require_unknown(candidates: npt.ArrayLike, known: npt.ArrayLike) -> None:
    """Refuse a candidate that is one of the records known to be in the data.

    Args:
        candidates: shape (records, ...); known: shape (n, ...): the same representation.

    Raises:
        InvalidArgumentError: a candidate equals a known record, or the shapes differ.
    """
    ours, theirs = number_array(candidates, "candidates"), number_array(known, "known")
    if ours.shape[1:] != theirs.shape[1:]:
        raise InvalidArgumentError(
            f"records of shape {theirs.shape[1:]}", where="known", expected=f"{ours.shape[1:]}"
        )
    if ours.ndim == 0:
        raise InvalidArgumentError("no records", where="candidates", expected="(records, ...)")
    seen = {record.tobytes() for record in theirs + 0.0}  # -0.0 becomes 0.0
    for index, record in enumerate(ours + 0.0):
        if record.tobytes() in seen:
            raise InvalidArgumentError(
                f"candidate {index} is in the known data", where="candidates"
            )


def printed_rule(isolated: npt.ArrayLike, candidates: npt.ArrayLike) -> FloatArray:
    """Return the paper's W of each candidate, for comparison: inner product less the average.

    Eq. (19) with sums over steps; shapes as for :meth:`GradientAttack.evidence`. A positive value
    is the printed test for membership.

    Args:
        isolated: shape (steps, dimension).
        candidates: shape (records, steps, dimension).

    Returns:
        Shape (records,).
    """
    noisy, means = number_array(isolated, "isolated"), number_array(candidates, "candidates")
    if noisy.ndim != 2 or means.shape[1:] != noisy.shape or not len(means):
        raise InvalidArgumentError(
            f"shapes {noisy.shape} and {means.shape}",
            where="candidates",
            expected="isolated (steps, dimension), candidates (records, steps, dimension)",
        )
    inner = np.einsum("td,mtd->m", noisy, means)
    return np.asarray(inner - inner.mean())
