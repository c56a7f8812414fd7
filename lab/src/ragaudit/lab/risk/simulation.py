"""Targets and the optimal attack's guesses, simulated: the input of an audit of a known mechanism.

Without auxiliary knowledge and for exact guesses, the best guess about GRR, OUE or SS is the
record of largest prior among those that the report supports (docs/notes/risk-audits.md). So of
a report only its first supported record, in the order of falling prior, is drawn, from its exact
law: a run costs the same for 10 records as for 10^7. Among records of equal prior the attack takes
the first, which is as good as any. Whole reports are drawn as the mechanisms define them; the tests
compare both.

All randomness comes from the generator that is passed in. These samplers use floating point: they
are for simulations and audits, never for the protection of real data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

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
from ragaudit.lab.risk.optimal_attack import OptimalAttack
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.threat import SuccessSets, ThreatModel
from ragaudit.lab.risk.validation import (
    FloatArray,
    IntegerArray,
    check_epsilon,
    check_integer,
    check_non_negative,
    check_vector,
    integer_array,
    typed,
)
from scipy.special import gammaln

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
_CHUNK_CELLS = 1 << 22


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
        rows = max(1, _CHUNK_CELLS // prior.records)
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
