"""Privacy guarantees: what is promised, to whom, and how one promise becomes another.

Four kinds, each with its adjacency: approximate DP, Gaussian DP, zero-concentrated DP and total
variation. A guarantee holds for one adjacency only. Nothing is ever converted unasked: a guarantee
is brought :meth:`under` another adjacency, or to another kind, by name, and what does not follow
is refused. Parameters are exact rationals; what is computed is rounded up, against ourselves
(docs/notes/accounting.md §11).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Self

from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.privacy.accounting import gaussian, renyi, risk
from ragaudit.privacy.accounting.normal import decimal_of, precise

__all__ = [
    "Adjacency",
    "ApproximateDp",
    "GaussianDp",
    "Number",
    "TotalVariation",
    "ZeroConcentratedDp",
    "exact",
]

Number = int | float | Fraction | Decimal
"""What :func:`exact` reads. A float stands for the binary number that it is."""

# Differences of smaller arguments would lose too many of 80 digits: they are raised to it.
_LEAST_ARGUMENT = Fraction(1, 10**20)
_UP = Decimal("1." + 59 * "0" + "1")
_LEAST_RESULT = Decimal("1e-1000")
_LARGEST_EXPONENT = 10_000

# At larger mu, 80 digits do not carry epsilon/mu - mu/2; the other two follow from it.
_LARGEST_MU = 10**15
_LARGEST_RHO = 10**30
_LARGEST_EPSILON = 10**31
# e^epsilon beyond this is no different: total variation is 1 to 80 digits, as is any delta.
_LARGEST_POWER = Fraction(10**15)


class Adjacency(StrEnum):
    """Which two data sets are neighbours.

    ADD_REMOVE: one has a record that the other lacks.
    REPLACE_ONE: one record differs; both have the same number of records.
    NULL_REPLACE: one record is the null record in one of them; the same number of records.

    The last two are the values of :class:`~ragaudit.privacy.accounting.NeighboringRelation`.
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace"
    NULL_REPLACE = "null-replace"


def exact(value: Number, where: str) -> Fraction:
    """Return a finite number as the rational that it is.

    Args:
        value: an integer, a fraction, a decimal or a float; never a bool.
        where: the field's name, for the error.

    Raises:
        InvalidArgumentError: another type, NaN or infinite, or a decimal beyond 10^±10000.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise InvalidArgumentError(f"not a number: {type(value).__name__}", where=where)
    # A decimal that is not finite has the exponent 0, and is refused below.
    exponent = value.adjusted() if isinstance(value, Decimal) and value else 0
    if abs(exponent) > _LARGEST_EXPONENT:
        raise InvalidArgumentError(
            "decimal out of range", where=where, expected="10^-10000..10^10000"
        )
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        raise InvalidArgumentError(
            f"not finite: {value}", where=where, expected="a number"
        ) from None


def _check(value: Fraction, where: str, most: int) -> None:
    if not isinstance(value, Fraction):
        raise InvalidArgumentError(
            f"not exact: {type(value).__name__}", where=where, expected="a Fraction (see `of`)"
        )
    if not 0 <= value <= most:
        raise InvalidArgumentError("value out of range", where=where, expected=f"0 to {most:g}")


class _Guarantee:
    """Common to all kinds: the adjacency, and how many steps lead to another."""

    __slots__ = ()
    adjacency: Adjacency

    def _check_adjacency(self) -> None:
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidArgumentError(
                f"not an adjacency: {self.adjacency!r}", where="adjacency", expected="an Adjacency"
            )

    def _steps_to(self, target: Adjacency) -> int:
        """1 or 2 steps of this adjacency lead from any record to any other under ``target``.

        A replacement is a removal and an addition, or two replacements by the null record.
        Nothing else follows: under add-remove the size is private, and the null record need not
        be an admissible one.

        Raises:
            RefusedError: a guarantee under ``target`` does not follow.
        """
        if not isinstance(target, Adjacency):
            raise InvalidArgumentError(
                f"not an adjacency: {target!r}", where="adjacency", expected="an Adjacency"
            )
        if target == self.adjacency:
            return 1
        if target == Adjacency.REPLACE_ONE:
            return 2
        raise RefusedError(
            f"a guarantee under {target} does not follow from one under {self.adjacency}",
            where="adjacency",
            expected="the same adjacency, or replace",
        )

    @classmethod
    def _common(cls, parts: Sequence[Self]) -> Adjacency:
        if not parts:
            raise InvalidArgumentError("nothing to compose", where="parts", expected="at least one")
        for part in parts:
            if not isinstance(part, cls):
                raise InvalidArgumentError(
                    f"a {type(part).__name__}", where="parts", expected=cls.__name__
                )
        if len({part.adjacency for part in parts}) > 1:
            raise InvalidArgumentError(
                "guarantees of different adjacency do not compose",
                where="adjacency",
                expected="one adjacency; convert with `under`",
            )
        return parts[0].adjacency


@dataclass(frozen=True, slots=True)
class ApproximateDp(_Guarantee):
    """(epsilon, delta)-DP: ``P[E] <= e^epsilon P'[E] + delta`` for neighbours and every event.

    Attributes:
        epsilon: natural logarithm, 0 to 10^31.
        delta: 0 to 1.

    Raises:
        InvalidArgumentError: a value out of its range, or not an exact number.
    """

    epsilon: Fraction
    delta: Fraction
    adjacency: Adjacency

    def __post_init__(self) -> None:
        _check(self.epsilon, "epsilon", _LARGEST_EPSILON)
        _check(self.delta, "delta", 1)
        self._check_adjacency()

    @classmethod
    def of(cls, epsilon: Number, delta: Number, adjacency: Adjacency) -> Self:
        """Return the guarantee for numbers of any kind, read by :func:`exact`."""
        return cls(exact(epsilon, "epsilon"), exact(delta, "delta"), adjacency)

    @precise
    def under(self, adjacency: Adjacency) -> "ApproximateDp":
        """Return what follows under another adjacency: ``(2 epsilon, delta (1 + e^epsilon))``.

        A delta of 1 promises nothing; the result is at most that.
        """
        if self._steps_to(adjacency) == 1:
            return self
        factor = 1 + decimal_of(min(self.epsilon, _LARGEST_POWER)).exp()
        delta = _up(decimal_of(self.delta) * factor, most=1)
        return ApproximateDp(2 * self.epsilon, delta, adjacency)

    @precise
    def total_variation(self) -> "TotalVariation":
        """Return ``(e^epsilon - 1 + 2 delta)/(e^epsilon + 1)``, the largest that is possible."""
        if self.epsilon == 0:
            return TotalVariation(self.delta, self.adjacency)
        odds = decimal_of(min(max(self.epsilon, _LEAST_ARGUMENT), _LARGEST_POWER)).exp()
        value = (odds - 1 + 2 * decimal_of(self.delta)) / (odds + 1)
        return TotalVariation(_up(value, most=1), self.adjacency)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return basic composition: sums of the epsilons and of the deltas (at most 1)."""
        adjacency = cls._common(parts)
        epsilon = sum((part.epsilon for part in parts), Fraction(0))
        delta = sum((part.delta for part in parts), Fraction(0))
        return cls(epsilon, min(delta, Fraction(1)), adjacency)


@dataclass(frozen=True, slots=True)
class GaussianDp(_Guarantee):
    """mu-GDP: no easier to tell apart than N(0, 1) and N(mu, 1) (Dong, Roth, Su 2022).

    Attributes:
        mu: 0 to 10^15.

    Raises:
        InvalidArgumentError: a value out of its range, or not an exact number.
    """

    mu: Fraction
    adjacency: Adjacency

    def __post_init__(self) -> None:
        _check(self.mu, "mu", _LARGEST_MU)
        self._check_adjacency()

    @classmethod
    def of(cls, mu: Number, adjacency: Adjacency) -> Self:
        """Return the guarantee for a number of any kind, read by :func:`exact`."""
        return cls(exact(mu, "mu"), adjacency)

    def under(self, adjacency: Adjacency) -> "GaussianDp":
        """Return what follows under another adjacency: ``2 mu``."""
        return GaussianDp(self._steps_to(adjacency) * self.mu, adjacency)

    def at_epsilon(self, epsilon: Fraction) -> ApproximateDp:
        """Return (epsilon, delta)-DP with the least delta: the exact curve, delta rounded up."""
        _check(epsilon, "epsilon", _LARGEST_EPSILON)
        delta = gaussian.delta(self._argument(), decimal_of(epsilon))
        return ApproximateDp(epsilon, _up(delta, most=1), self.adjacency)

    def at_delta(self, delta: Fraction) -> ApproximateDp:
        """Return (epsilon, delta)-DP with the least epsilon, rounded up; 0 < delta < 1."""
        _check_inner(delta, "delta")
        found = gaussian.least_epsilon(self._argument(), delta)
        if found is None:
            raise RefusedError("no finite epsilon", where="delta", expected="a larger delta")
        return ApproximateDp(Fraction(found), delta, self.adjacency)

    def total_variation(self) -> "TotalVariation":
        """Return ``2 Phi(mu/2) - 1``."""
        value = risk.membership_advantage(self._argument())
        return TotalVariation(_up(value, most=1), self.adjacency)

    def zero_concentrated(self) -> "ZeroConcentratedDp":
        """Return ``mu²/2``-zCDP: the divergences of N(0, 1) and N(mu, 1), which nothing exceeds."""
        return ZeroConcentratedDp(self.mu**2 / 2, self.adjacency)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return ``sqrt(sum mu²)``-GDP (Corollary 3.3), the root rounded up."""
        adjacency = cls._common(parts)
        if len(parts) == 1:
            return parts[0]
        return cls(_root(sum((part.mu**2 for part in parts), Fraction(0))), adjacency)

    def _argument(self) -> Decimal:
        return decimal_of(max(self.mu, _LEAST_ARGUMENT)) if self.mu else Decimal(0)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDp(_Guarantee):
    """rho-zCDP: Rényi divergence at most ``rho alpha`` at every order alpha > 1.

    Bun and Steinke 2016, Definition 1.1.

    Attributes:
        rho: 0 to 10^30.

    Raises:
        InvalidArgumentError: a value out of its range, or not an exact number.
    """

    rho: Fraction
    adjacency: Adjacency

    def __post_init__(self) -> None:
        _check(self.rho, "rho", _LARGEST_RHO)
        self._check_adjacency()

    @classmethod
    def of(cls, rho: Number, adjacency: Adjacency) -> Self:
        """Return the guarantee for a number of any kind, read by :func:`exact`."""
        return cls(exact(rho, "rho"), adjacency)

    def under(self, adjacency: Adjacency) -> "ZeroConcentratedDp":
        """Return what follows under another adjacency: ``4 rho`` (Proposition 1.9)."""
        return ZeroConcentratedDp(self._steps_to(adjacency) ** 2 * self.rho, adjacency)

    def at_delta(self, delta: Fraction) -> ApproximateDp:
        """Return (epsilon, delta)-DP at the best real order, epsilon rounded up; 0 < delta < 1.

        Conversion of Canonne, Kamath and Steinke 2020, Proposition 12.
        """
        _check_inner(delta, "delta")
        found = renyi.optimal(self.rho, delta)
        return ApproximateDp(_up(found.epsilon), delta, self.adjacency)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return the sum of the rhos (Lemma 1.7)."""
        adjacency = cls._common(parts)
        return cls(sum((part.rho for part in parts), Fraction(0)), adjacency)


@dataclass(frozen=True, slots=True)
class TotalVariation(_Guarantee):
    """``P[E] - P'[E] <= value`` for neighbours and every event.

    Attributes:
        value: 0 to 1; 1 promises nothing.

    Raises:
        InvalidArgumentError: a value out of its range, or not an exact number.
    """

    value: Fraction
    adjacency: Adjacency

    def __post_init__(self) -> None:
        _check(self.value, "value", 1)
        self._check_adjacency()

    @classmethod
    def of(cls, value: Number, adjacency: Adjacency) -> Self:
        """Return the guarantee for a number of any kind, read by :func:`exact`."""
        return cls(exact(value, "value"), adjacency)

    def under(self, adjacency: Adjacency) -> "TotalVariation":
        """Return what follows under another adjacency: ``min(1, 2 value)``."""
        return TotalVariation(min(Fraction(1), self._steps_to(adjacency) * self.value), adjacency)

    def approximate(self) -> ApproximateDp:
        """Return the same statement as (0, value)-DP."""
        return ApproximateDp(Fraction(0), self.value, self.adjacency)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return ``1 - prod(1 - value)``: couple the releases one after another."""
        adjacency = cls._common(parts)
        kept = Fraction(1)
        for part in parts:
            kept *= 1 - part.value
        return cls(1 - kept, adjacency)


def _check_inner(value: Fraction, where: str) -> None:
    _check(value, where, 1)
    if not 0 < value < 1:
        raise InvalidArgumentError("value out of range", where=where, expected="between 0 and 1")


@precise
def _up(value: Decimal, most: int | None = None) -> Fraction:
    """A computed value as a rational, rounded up; a tiny one becomes 1e-1000."""
    if value <= 0:
        return Fraction(0)
    raised = max(value * _UP, _LEAST_RESULT)
    return Fraction(raised if most is None else min(raised, Decimal(most)))


@precise
def _root(square: Fraction) -> Fraction:
    return _up(decimal_of(square).sqrt())
