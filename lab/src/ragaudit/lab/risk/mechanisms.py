"""Mechanisms whose laws are known: channels with finite outputs and noise on the line.

Generalized randomized response, optimal unary encoding and subset selection as matrices
``p(theta | z)``; Laplace, Gaussian and the exponential mechanism as densities. Epsilon is in
natural-logarithm units. Balboa et al., Examples 4.4 to 4.7 and Appendix A.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.validation import (
    FloatArray,
    check_epsilon,
    check_finite,
    check_integer,
    check_non_negative,
    check_positive,
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
