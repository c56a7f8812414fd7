"""What an attacker believes about a record before seeing any output: the prior ``pi``.

Balboa et al., "Understanding disclosure risk in differential privacy", §2 and §4. Claims:
docs/notes/disclosure-risk.md §1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.validation import (
    FloatArray,
    check_finite,
    check_integer,
    check_non_negative,
    check_positive,
    number_array,
    probability_vector,
    typed,
)
from ragaudit.privacy.accounting.risk import PriorSummary
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
