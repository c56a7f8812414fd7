"""Who attacks what: priors, success sets, auxiliary knowledge, and all joined to a threat.

Balboa et al., "Understanding disclosure risk in differential privacy", §2.2, §4 and Definition 4.1.
Records are the indices ``0 .. records-1``. Claims: docs/notes/disclosure-risk.md §1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self, TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.validation import (
    FloatArray,
    IntegerArray,
    check_finite,
    check_integer,
    check_non_negative,
    check_positive,
    check_vector,
    integer_array,
    number_array,
    probability_vector,
    typed,
)
from ragaudit.privacy.accounting.risk import PriorSummary
from ragaudit.privacy.numbers import instance, sequence
from scipy import special

_SORT_ALL_ABOVE: Final = 8
"""From one in so many entries on, all are sorted: selecting them first is no faster."""

SHORTEST: Final = 1e-100
LONGEST: Final = 1e100
"""Lengths, in any unit, whose squares and quotients are numbers."""

LARGEST_DOMAIN = 10_000_000
"""Most records that a vector of probabilities may have."""


@dataclass(frozen=True)
class FinitePrior:
    """A prior over the records ``0 .. records-1``.

    Attributes:
        probabilities: shape (records,), >= 0, sum 1 within 1e-9; zeros are allowed: such a
            record is never a target, but may be guessed.

    Raises:
        InvalidArgumentError: fewer than 2 records, or no probability vector.
    """

    probabilities: FloatArray

    def __init__(self, probabilities: Sequence[float] | npt.NDArray[np.generic]) -> None:
        vector = probability_vector(probabilities, "prior", least=2)
        if len(vector) > LARGEST_DOMAIN:
            raise InvalidArgumentError(
                f"{len(vector)} records", where="prior", expected=f"at most {LARGEST_DOMAIN}"
            )
        object.__setattr__(self, "probabilities", vector)

    @classmethod
    def uniform(cls, records: int) -> Self:
        """Return the uniform prior over 2 to 10^7 records."""
        m = check_integer(records, "records", least=2, most=LARGEST_DOMAIN)
        return cls(np.full(m, 1 / m))

    @property
    def records(self) -> int:
        """Number of records ``m``, those of probability 0 included."""
        return len(self.probabilities)

    @cached_property
    def support(self) -> int:
        """Number of records of positive probability."""
        return int(np.count_nonzero(self.probabilities))

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all records have the same probability."""
        return bool((self.probabilities == self.probabilities[0]).all())

    @cached_property
    def collision_probability(self) -> float:
        """``kappa_pi``: the probability, in (0, 1], that two independent draws are equal."""
        return min(1.0, float(self.probabilities @ self.probabilities))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FinitePrior) and np.array_equal(
            self.probabilities, other.probabilities
        )

    def __hash__(self) -> int:
        return hash(self.probabilities.tobytes())


@typed
@dataclass(frozen=True)
class ContinuousPrior:
    """A prior without atoms on the interval [low, high].

    Attributes:
        low, high: ends of the interval, in the records' unit.
        cdf: distribution function, vectorised; 0 at ``low``, 1 at ``high`` within 1e-9.
        name: for reports.
        is_smooth: whether the density is smooth between the ends, without jumps or gaps.

    Raises:
        InvalidArgumentError: an empty interval, or no distribution function.
    """

    low: float
    high: float
    cdf: Callable[[FloatArray], FloatArray]
    name: str = "continuous"
    is_smooth: bool = False

    def __post_init__(self) -> None:
        low, high = check_finite(self.low, "low"), check_finite(self.high, "high")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if not low < high:
            raise InvalidArgumentError("empty interval", where="high", expected="above low")
        if not SHORTEST <= high - low <= LONGEST:
            raise InvalidArgumentError(
                f"an interval of length {high - low:g}",
                where="high",
                expected=f"{SHORTEST:g} to {LONGEST:g} above low",
            )
        # A spot check: no number of places proves it, but a density, a law of another interval or
        # one that is not vectorized shows.
        grid = np.asarray(self.cdf(np.linspace(low, high, 129)), dtype=np.float64)
        if grid.shape != (129,):
            raise InvalidArgumentError(
                f"129 places give shape {grid.shape}", where="cdf", expected="a vectorized function"
            )
        ends = abs(grid[0]) <= 1e-9 and abs(grid[-1] - 1) <= 1e-9
        if not (np.isfinite(grid).all() and ends and (np.diff(grid) >= 0).all()):
            raise InvalidArgumentError(
                "not a distribution function on the interval",
                where="cdf",
                expected="non-decreasing from 0 at low to 1 at high",
            )

    @classmethod
    def uniform(cls, low: float, high: float) -> Self:
        """Return the uniform law on [low, high].

        Args:
            low, high: ends of the interval, low < high.
        """
        a, b = check_finite(low, "low"), check_finite(high, "high")
        return cls(a, b, lambda x: np.clip((x - a) / (b - a), 0.0, 1.0), "uniform", True)

    @classmethod
    def beta(cls, a: float, b: float, low: float = 0.0, high: float = 1.0) -> Self:
        """Return the Beta(a, b) law stretched to [low, high].

        Args:
            a, b: > 0; below 1 the density is infinite at that end.
            low, high: ends of the interval, low < high.
        """
        first, second = check_positive(a, "a"), check_positive(b, "b")
        start, end = check_finite(low, "low"), check_finite(high, "high")

        def cdf(x: FloatArray) -> FloatArray:
            share = np.clip((x - start) / (end - start), 0.0, 1.0)
            return np.asarray(special.betainc(first, second, share), dtype=np.float64)

        return cls(start, end, cdf, f"beta({first:g}, {second:g})", True)

    @property
    def collision_probability(self) -> float:
        """``kappa_pi`` = 0: two draws are never equal."""
        return 0.0

    def ball_masses(self, centers: FloatArray, eta: float) -> FloatArray:
        """Return ``pi([x - eta, x + eta])`` for every center x.

        Args:
            centers: places in [low, high], any shape.
            eta: >= 0, in the records' unit.
        """
        reach, places = check_non_negative(eta, "eta"), number_array(centers, "centers")
        upper = self.cdf(np.minimum(places + reach, self.high))
        return np.asarray(upper - self.cdf(np.maximum(places - reach, self.low)))


@typed
def continuous_summary(prior: ContinuousPrior, eta: float, points: int = 4097) -> PriorSummary:
    """Return a safe summary for a continuous prior with loss |z' - z| and threshold eta.

    Ball masses are taken on a grid and widened by what can lie between its points, so
    ``least_ball`` is never too large, ``largest_ball`` never too small.

    Args:
        prior: of the records.
        eta: >= 0, in the records' unit.
        points: of the grid, >= 2.
    """
    centers = np.linspace(prior.low, prior.high, check_integer(points, "points", least=2))
    reach = check_non_negative(eta, "eta")
    step = (prior.high - prior.low) / (points - 1)
    wide = prior.ball_masses(centers, reach + step / 2)
    narrow = prior.ball_masses(centers, reach - step / 2) if reach > step / 2 else [0.0]
    return PriorSummary.of(0, max(0.0, float(np.min(narrow))), min(1.0, float(wide.max())))


def largest(values: FloatArray, count: int) -> FloatArray:
    """Return the ``count`` largest values, or all there are; descending.

    Args:
        values: shape (n,).
        count: >= 1.
    """
    n = len(values)
    if count > n / _SORT_ALL_ABOVE:
        return np.sort(values)[::-1][:count]
    return np.sort(np.partition(values, n - count)[n - count :])[::-1]


LARGEST_LOSS_TABLE = 4096
"""Most records for which all pairs are held in memory."""

BoolArray = npt.NDArray[np.bool_]
Array = TypeVar("Array", bound=npt.NDArray[Any])


@dataclass(frozen=True, eq=False)
class AuxiliaryKnowledge:
    """What the attacker knows of the target beforehand: the class ``a(z)`` of each record.

    Attributes:
        labels: shape (records,); records with equal labels cannot be told apart beforehand.
            Numbered 0, 1, ... in order of first appearance.
    """

    labels: IntegerArray

    def __post_init__(self) -> None:
        labels = integer_array(self.labels, "labels")
        if labels.ndim != 1 or len(labels) < 2 or labels.min() < 0:
            raise InvalidArgumentError(
                "not a vector of class numbers", where="labels", expected="at least 2, from 0"
            )
        object.__setattr__(self, "labels", _frozen(labels))

    @classmethod
    def none(cls, records: int) -> Self:
        """Return no knowledge: one class. Reconstruction of a whole record.

        Args:
            records: 2 to 10^7.
        """
        m = check_integer(records, "records", least=2, most=LARGEST_DOMAIN)
        return cls(_frozen(np.zeros(m, dtype=np.int64)))

    @classmethod
    def full(cls, records: int) -> Self:
        """Return knowledge of the whole record: each is its own class. Membership inference.

        Args:
            records: 2 to 10^7.
        """
        m = check_integer(records, "records", least=2, most=LARGEST_DOMAIN)
        return cls(_frozen(np.arange(m, dtype=np.int64)))

    @classmethod
    def of_labels(cls, labels: Sequence[object]) -> Self:
        """Return the class of each record, by any hashable label. Attribute inference.

        Args:
            labels: one for each record; a text stands for its characters.

        Raises:
            InvalidArgumentError: fewer than two labels, or one that is not hashable.
        """
        given = [*labels] if isinstance(labels, str) else sequence(labels, "auxiliary")
        if len(given) < 2:
            raise InvalidArgumentError("too few labels", where="auxiliary", expected="at least 2")
        numbers: dict[object, int] = {}
        try:
            found = [numbers.setdefault(label, len(numbers)) for label in given]
        except TypeError:
            raise InvalidArgumentError(
                "a label of a type that is not hashable", where="auxiliary", expected="text"
            ) from None
        return cls(_frozen(np.array(found, dtype=np.int64)))

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.labels)

    @cached_property
    def classes(self) -> tuple[IntegerArray, ...]:
        """The records of each class, ascending; classes in the order of their labels."""
        order = np.argsort(self.labels, kind="stable")
        ends = np.cumsum(np.bincount(self.labels))[:-1]
        return tuple(np.split(order, ends))

    @cached_property
    def is_none(self) -> bool:
        """Whether there is one class only."""
        return not self.labels.any()

    @cached_property
    def is_full(self) -> bool:
        """Whether each record is its own class."""
        return int(self.labels.max()) == self.records - 1


@dataclass(frozen=True, eq=False)
class SuccessSets:
    """When a guess counts: guess ``g`` succeeds for record ``z`` iff ``loss(g, z) <= eta``.

    Guesses are the records themselves, those of prior probability 0 included.

    Attributes:
        records: number of records, >= 2.
        table: shape (guesses, records), True where the guess succeeds; None stands for the
            identity (exact guesses only), which is never held in memory.
    """

    records: int
    table: BoolArray | None

    def __post_init__(self) -> None:
        check_integer(self.records, "records", least=2, most=LARGEST_DOMAIN)
        if self.table is None:
            return
        instance(self.table, np.ndarray, "table")
        if self.table.dtype != np.bool_ or self.table.shape != (self.records, self.records):
            raise InvalidArgumentError(
                f"{self.table.dtype} of shape {self.table.shape}", where="table",
                expected="bool, records x records",
            )  # fmt: skip

    @classmethod
    def exact(cls, records: int) -> Self:
        """Return the sets in which only the record itself counts: eta below the least distance.

        Args:
            records: 2 to 10^7.
        """
        return cls(check_integer(records, "records", least=2, most=LARGEST_DOMAIN), None)

    @classmethod
    def from_losses(cls, losses: Sequence[Sequence[float]] | FloatArray, eta: float) -> Self:
        """Return the success sets of a loss table.

        Args:
            losses: shape (records, records), entry ``[g, z]`` the loss of guess ``g`` for
                record ``z``, finite, >= 0, diagonal 0; it need not be symmetric.
            eta: largest loss that counts as success, >= 0, in the loss's unit.
        """
        threshold = check_non_negative(eta, "eta")
        rows = [check_vector(row, "losses", least=2) for row in sequence(losses, "losses")]
        if any(len(row) != len(rows) for row in rows) or len(rows) < 2:
            raise InvalidArgumentError("not square", where="losses", expected="records x records")
        if len(rows) > LARGEST_LOSS_TABLE:
            raise _too_many(len(rows))
        matrix = np.array(rows)
        if (matrix < 0).any() or np.diagonal(matrix).any():
            raise InvalidArgumentError(
                "negative, or not 0 on the diagonal", where="losses", expected="a loss"
            )
        return cls._of_table(matrix <= threshold)

    @classmethod
    def on_line(cls, positions: Sequence[float] | FloatArray, eta: float) -> Self:
        """Return the success sets of records on a line with loss ``|x - x'|``.

        Distances are compared as binary floats: at equality choose eta a little larger.

        Args:
            positions: shape (records,), finite; two records may stand in one place.
            eta: largest distance that counts as success, >= 0, in the positions' unit.

        Raises:
            InvalidArgumentError: more than `LARGEST_LOSS_TABLE` records with guesses that are not
                exact.
        """
        x = check_vector(positions, "positions", least=2)
        threshold = check_non_negative(eta, "eta")
        distinct = np.unique(x)
        if len(distinct) == len(x) and threshold < float(np.diff(distinct).min()):
            return cls.exact(len(x))
        if len(x) > LARGEST_LOSS_TABLE:
            raise _too_many(len(x))
        return cls._of_table(np.abs(x[:, None] - x[None, :]) <= threshold)

    @classmethod
    def _of_table(cls, table: BoolArray) -> Self:
        m = len(table)
        if int(table.sum()) == m:
            return cls.exact(m)
        return cls(m, _frozen(table))

    @property
    def is_exact(self) -> bool:
        """Whether only the record itself counts."""
        return self.table is None

    def hits(self, guess: int, record: int) -> bool:
        """Return whether a guess succeeds.

        Args:
            guess: the record that is named.
            record: the target.
        """
        for index, name in ((guess, "guess"), (record, "record")):
            check_integer(index, name, least=0, most=self.records - 1)
        return guess == record if self.table is None else bool(self.table[guess, record])

    @typed
    def masses(self, prior: FinitePrior) -> FloatArray:
        """Return the prior probability of the success set of each guess; shape (records,).

        Args:
            prior: over the same number of records.
        """
        _check_sizes(prior, self.records, "success")
        if self.table is None:
            return prior.probabilities
        return np.minimum(self.table @ prior.probabilities, 1.0)

    def sums(self, gains: FloatArray, records: IntegerArray | None = None) -> FloatArray:
        """Sum per-record gains over each guess's success set.

        Args:
            gains: shape (len(records), outputs).
            records: which records the rows are, ascending; None for all.

        Returns:
            Shape (guesses, outputs).
        """
        rows = np.arange(self.records) if records is None else records
        if self.table is None:
            total = np.zeros((self.records, gains.shape[1]))
            total[rows] = gains
            return total
        if self._runs is None:
            return np.asarray(self._weights[:, rows] @ gains)
        first, last = np.searchsorted(rows, self._runs)
        sums = np.zeros((len(rows) + 1, gains.shape[1]))
        np.cumsum(gains, axis=0, out=sums[1:])
        return np.asarray(sums[last] - sums[first])

    @cached_property
    def _weights(self) -> FloatArray:
        """The table as 0 and 1, for products with gains."""
        return np.asarray(self.table, dtype=np.float64)

    @cached_property
    def _runs(self) -> IntegerArray | None:
        """First record and end of each success set, shape (2, guesses), if all are runs."""
        assert self.table is not None
        first = self.table.argmax(axis=1)
        end = self.records - self.table[:, ::-1].argmax(axis=1)
        if not np.array_equal(self.table.sum(axis=1), end - first):
            return None
        return np.stack([first, end])

    @cached_property
    def can_be_missed(self) -> BoolArray:
        """For each record, whether some guess fails for it: only then can one decline."""
        if self.table is None:
            return np.ones(self.records, dtype=np.bool_)
        return np.asarray(np.logical_not(self.table.all(axis=0)))


@typed
@dataclass(frozen=True, eq=False)
class ThreatModel:
    """Prior, success sets and auxiliary knowledge over the same records.

    Raises:
        InvalidArgumentError: different numbers of records.
    """

    prior: FinitePrior
    success: SuccessSets
    auxiliary: AuxiliaryKnowledge

    def __post_init__(self) -> None:
        _check_sizes(self.prior, self.success.records, "success")
        _check_sizes(self.prior, self.auxiliary.records, "auxiliary")

    @classmethod
    @typed
    def reconstruction(cls, prior: FinitePrior, success: SuccessSets | None = None) -> Self:
        """Return the threat without auxiliary knowledge.

        Args:
            prior: over the records.
            success: when a guess counts; exact guesses if it is not given.
        """
        sets = SuccessSets.exact(prior.records) if success is None else success
        return cls(prior, sets, AuxiliaryKnowledge.none(prior.records))

    @classmethod
    @typed
    def membership(cls, prior: FinitePrior) -> Self:
        """Return the threat with full auxiliary knowledge and exact guesses.

        Args:
            prior: over the records.
        """
        return cls(prior, SuccessSets.exact(prior.records), AuxiliaryKnowledge.full(prior.records))

    @property
    def records(self) -> int:
        """Number of records."""
        return self.prior.records

    @cached_property
    def summary(self) -> PriorSummary:
        """``kappa_pi``, ``kappa_minus`` and ``kappa_plus``; over all guesses of the domain."""
        masses = self.success.masses(self.prior)
        return PriorSummary.of(
            self.prior.collision_probability,
            float(masses.min()),
            min(1.0, float(masses.max())),
        )


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _check_sizes(prior: FinitePrior, records: int, name: str) -> None:
    if prior.records != records:
        raise InvalidArgumentError(
            f"{records} records", where=name, expected=f"{prior.records}, as the prior has"
        )


def _too_many(records: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{records} records", where="success", expected=f"at most {LARGEST_LOSS_TABLE} with eta"
    )
