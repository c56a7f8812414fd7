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

Simulated, it is the input of an audit of a known mechanism. Without auxiliary knowledge and for
exact guesses, the best guess about GRR, OUE or SS is the record of largest prior among those that
the report supports. So of a report only its first supported record, in the order of falling prior,
is drawn, from its exact law: a run costs the same for 10 records as for 10^7. Among records of
equal prior the attack takes the first, which is as good as any. Whole reports are drawn as the
mechanisms define them; the tests compare both. All randomness comes from the generator that is
passed in. These samplers use floating point: they are for simulations and audits, never for the
protection of real data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    grr_probabilities,
    oue_probabilities,
    ss_probability,
)
from ragaudit.lab.risk.threat import FinitePrior, SuccessSets, ThreatModel
from ragaudit.lab.risk.validation import (
    FloatArray,
    IntegerArray,
    check_epsilon,
    check_integer,
    check_non_negative,
    check_positive,
    check_vector,
    integer_array,
    number_array,
    row_stochastic,
    typed,
)
from scipy.special import gammaln

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


LARGEST_REPORTS = 2**28
"""Most bits of all reports of one call."""

BoolArray = npt.NDArray[np.bool_]


@typed
def randomized_response(
    targets: IntegerArray, records: int, epsilon: float, generator: np.random.Generator
) -> IntegerArray:
    """Draw reports of generalized randomized response: one record per target, shape (n,).

    Args:
        targets: shape (n,), the true records.
        records: m >= 2.
        epsilon: >= 0.
        generator: of all randomness.
    """
    keep, _ = grr_probabilities(records, epsilon)
    true = _targets(targets, records)
    kept = generator.random(len(true)) < keep
    others = generator.integers(0, records - 1, len(true))
    return np.asarray(np.where(kept, true, others + (others >= true)), dtype=np.int64)


@typed
def unary_encoding(
    targets: IntegerArray, records: int, epsilon: float, generator: np.random.Generator
) -> BoolArray:
    """Draw reports of optimal unary encoding: one vector of bits per target, shape (n, records).

    Args:
        targets, records, epsilon, generator: as of :func:`randomized_response`.

    Raises:
        InvalidArgumentError: a value out of its range, or more than `LARGEST_REPORTS` bits.
    """
    at_target, elsewhere = oue_probabilities(epsilon)
    true = _targets(targets, records, cells=records)
    bits = generator.random((len(true), records)) < elsewhere
    bits[np.arange(len(true)), true] = generator.random(len(true)) < at_target
    return np.asarray(bits)


@typed
def subset_selection(
    targets: IntegerArray, records: int, epsilon: float, subset: int, generator: np.random.Generator
) -> BoolArray:
    """Draw reports of subset selection: membership in the reported subset, shape (n, records).

    Args:
        targets, records, epsilon, generator: as of :func:`randomized_response`.
        subset: omega, 1 to records - 1.

    Raises:
        InvalidArgumentError: a value out of its range, or more than `LARGEST_REPORTS` bits.
    """
    share = ss_probability(records, epsilon, subset)
    true = _targets(targets, records, cells=records)
    inside = generator.random(len(true)) < share
    keys = generator.random((len(true), records))
    # The target comes first or last in the random order, as the coin says.
    keys[np.arange(len(true)), true] = np.where(inside, -1.0, 2.0)
    chosen = np.argpartition(keys, subset - 1, axis=1)[:, :subset]
    members = np.zeros((len(true), records), dtype=np.bool_)
    np.put_along_axis(members, chosen, True, axis=1)
    return members


def _targets(targets: IntegerArray, records: int, cells: int = 1) -> IntegerArray:
    """The targets as a vector of records, if so many cells each can be held.

    Raises:
        InvalidArgumentError: no vector of such records, or too many reports.
    """
    m = check_integer(records, "records", least=2)
    true = integer_array(targets, "targets")
    if true.ndim != 1 or (true.size and not 0 <= true.min() <= true.max() < m):
        raise InvalidArgumentError(
            "not a vector of record numbers", where="targets", expected=f"0 to {m - 1}"
        )
    if len(true) * cells > LARGEST_REPORTS:
        raise InvalidArgumentError(
            f"{len(true)} reports on {m} records", where="records",
            expected=f"at most {LARGEST_REPORTS} bits in all",
        )  # fmt: skip
    return true


LARGEST_RUNS = 10_000_000
"""Most runs of one simulation; an audit of so many takes about 1 GiB."""

_CHUNK_RUNS = 100_000
_GUESSED_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Guesses:
    """Attacks, one per entry: the true record and the one that was named.

    Attributes:
        targets, guesses: shape (n,), records ``0 .. records-1``.
    """

    targets: IntegerArray
    guesses: IntegerArray

    @property
    def successes(self) -> int:
        """Number of exact guesses."""
        return int(np.count_nonzero(self.targets == self.guesses))

    def hits(self, success: SuccessSets) -> int:
        """Return the number of guesses that count as right.

        Args:
            success: over the records that targets and guesses are numbers of.
        """
        if success.table is None:
            return self.successes
        return int(np.count_nonzero(success.table[self.guesses, self.targets]))


@runtime_checkable
class Attacked(Protocol):
    """A mechanism together with the optimal attack on it."""

    def guess(
        self, targets: IntegerArray, prior: FinitePrior, generator: np.random.Generator
    ) -> IntegerArray:
        """Release something about each target and name a record from it.

        Args:
            targets: shape (n,), the true records; the attack sees only what is released of them.
            prior: over all records.
            generator: of all randomness, the mechanism's and the attack's.

        Returns:
            Shape (n,), the record named for each target.
        """


@dataclass(frozen=True)
class RandomizedResponse:
    """GRR at ``epsilon``: the best guess is the report."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    def guess(
        self, targets: IntegerArray, prior: FinitePrior, generator: np.random.Generator
    ) -> IntegerArray:
        """See :class:`Attacked`."""
        return randomized_response(targets, prior.records, self.epsilon, generator)


@dataclass(frozen=True)
class UnaryEncoding:
    """OUE at ``epsilon``: the best guess is the set bit of largest prior."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    def guess(
        self, targets: IntegerArray, prior: FinitePrior, generator: np.random.Generator
    ) -> IntegerArray:
        """See :class:`Attacked`."""
        at_target, elsewhere = oue_probabilities(self.epsilon)
        inside = generator.random(len(targets)) < at_target
        # How many of the other bits come before the first that is set; by inversion, since the
        # library's geometric law overflows for the smallest probabilities.
        uniform = 1 - generator.random(len(targets))
        with np.errstate(divide="ignore"):
            unset = np.log(uniform) / np.log1p(-elsewhere) if elsewhere > 0 else np.inf
        others = np.minimum(np.floor(unset), prior.records).astype(np.int64)
        return _first_supported(targets, prior, inside, np.broadcast_to(others, targets.shape))


@dataclass(frozen=True)
class SubsetSelection:
    """SS at ``epsilon`` with subsets of ``subset`` records: the best guess is the likeliest."""

    epsilon: float
    subset: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        check_integer(self.subset, "subset", least=1)

    def guess(
        self, targets: IntegerArray, prior: FinitePrior, generator: np.random.Generator
    ) -> IntegerArray:
        """See :class:`Attacked`."""
        share = ss_probability(prior.records, self.epsilon, self.subset)
        inside = generator.random(len(targets)) < share
        uniform = generator.random(len(targets))
        first = np.where(
            inside,
            _least_of_subset(uniform, prior.records - 1, self.subset - 1),
            _least_of_subset(uniform, prior.records - 1, self.subset),
        )
        return _first_supported(targets, prior, inside, first)


@typed
@dataclass(frozen=True, eq=False)
class NoisyPosition:
    """Records on a line, released with noise.

    Attributes:
        positions: shape (records,), rising strictly.
        noise: Laplace or Gaussian, in the positions' unit.
        eta: >= 0: a guess within this distance of the target is a success.
    """

    positions: FloatArray
    noise: LaplaceNoise | GaussianNoise
    eta: float = 0.0

    def __post_init__(self) -> None:
        positions = check_vector(self.positions, "positions", least=2)
        if not (np.diff(positions) > 0).all():
            raise InvalidArgumentError("not rising", where="positions", expected="strictly rising")
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "eta", check_non_negative(self.eta, "eta"))

    def guess(
        self, targets: IntegerArray, prior: FinitePrior, generator: np.random.Generator
    ) -> IntegerArray:
        """See :class:`Attacked`."""
        if isinstance(self.noise, LaplaceNoise):
            noise = generator.laplace(0.0, self.noise.scale, len(targets))
        else:
            noise = generator.normal(0.0, self.noise.scale, len(targets))
        released = self.positions[targets] + noise
        threat = ThreatModel.reconstruction(prior, SuccessSets.on_line(self.positions, self.eta))
        if threat.success.is_exact and prior.is_uniform:
            # The likeliest record is the nearest.
            middles = (self.positions[1:] + self.positions[:-1]) / 2
            return np.asarray(np.searchsorted(middles, released), dtype=np.int64)
        attack = OptimalAttack(threat)
        found = np.empty(len(targets), dtype=np.int64)
        rows = max(1, _GUESSED_CELLS // prior.records)
        for start in range(0, len(targets), rows):
            part = released[start : start + rows, None] - self.positions
            found[start : start + rows] = attack.guess(self._log_density(part), 0, generator)
        return found

    def _log_density(self, x: FloatArray) -> FloatArray:
        scaled = x / self.noise.scale
        if isinstance(self.noise, LaplaceNoise):
            return np.asarray(-np.abs(scaled))
        return np.asarray(-(scaled**2) / 2)


@typed
def simulate(
    attacked: Attacked,
    prior: FinitePrior,
    runs: int,
    generator: np.random.Generator,
    advance: Callable[[int], object] = lambda done: None,
) -> Guesses:
    """Attack ``runs`` targets drawn from the prior.

    Args:
        runs: 1 to ``LARGEST_RUNS``.
        advance: called with the number of runs done since the last call.

    Raises:
        InvalidArgumentError: too few runs or too many.
    """
    count = check_integer(runs, "runs", least=1, most=LARGEST_RUNS)
    targets = np.empty(count, dtype=np.int64)
    guesses = np.empty(count, dtype=np.int64)
    for start in range(0, count, _CHUNK_RUNS):
        part = _draw(prior, min(_CHUNK_RUNS, count - start), generator)
        targets[start : start + len(part)] = part
        guesses[start : start + len(part)] = attacked.guess(part, prior, generator)
        advance(len(part))
    return Guesses(targets, guesses)


def _draw(prior: FinitePrior, count: int, generator: np.random.Generator) -> IntegerArray:
    if prior.is_uniform:
        return generator.integers(0, prior.records, count)
    total = np.cumsum(prior.probabilities)
    drawn = np.searchsorted(total / total[-1], generator.random(count), side="right")
    return np.asarray(drawn, dtype=np.int64)


def _first_supported(
    targets: IntegerArray, prior: FinitePrior, inside: BoolArray, first_other: IntegerArray
) -> IntegerArray:
    """The first record that the report supports, in the order of falling prior.

    Args:
        inside: whether the report supports the target.
        first_other: how many of the *other* records, in that order, come before the first that
            is supported; records - 1 or more if none is.
    """
    if prior.is_uniform:
        order = rank = np.arange(prior.records)
    else:
        order = np.argsort(-prior.probabilities, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(prior.records)
    mine = rank[targets]
    other = first_other + (first_other >= mine)
    best = np.where(inside, np.minimum(mine, other), other)
    # A report that supports nobody says nothing: any record is as good, the first is taken.
    return np.asarray(order[np.where(best < prior.records, best, 0)], dtype=np.int64)


def _least_of_subset(uniform: FloatArray, population: int, subset: int) -> IntegerArray:
    """The least element of a uniform subset of ``0 .. population-1``, by inversion.

    ``P[least >= j] = C(population - j, subset)/C(population, subset)``; ``population`` for the
    empty subset.
    """
    if subset == 0:
        return np.full(len(uniform), population, dtype=np.int64)
    # The least element is the number of j with uniform < P[least >= j], which falls with j.
    return np.asarray(np.searchsorted(_negative_survival(population, subset), -uniform))


@lru_cache(maxsize=2)
def _negative_survival(population: int, subset: int) -> FloatArray:
    """``-P[least >= j]`` for j = 1, 2, ..., rising."""
    j = np.arange(1, population - subset + 1)
    logarithm = (
        gammaln(population - j + 1)
        - gammaln(population - j - subset + 1)
        - gammaln(population + 1)
        + gammaln(population - subset + 1)
    )
    return np.asarray(-np.exp(logarithm))
