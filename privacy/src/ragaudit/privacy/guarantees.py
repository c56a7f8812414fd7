"""Privacy guarantees: what is promised, to whom, and how one promise becomes another.

Four kinds, each with its relation: approximate DP, Gaussian DP, zero-concentrated DP and total
variation. A guarantee holds for one relation only. Nothing is ever converted unasked: a guarantee
is brought :meth:`under` another relation, or to another kind, by name, and what does not follow
is refused. Parameters are exact rationals; what is computed is rounded up, against ourselves
(docs/notes/accounting.md §11).

Each kind has `of` for numbers of any kind, `under` another relation, which a relation or its word
may name, and `compose` for parts about the same records, at least one. At the end stand sentences
on guarantees, to quote in reports, plans and ``ragaudit risk translate``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final, Self

from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import ceil_decimal
from ragaudit.privacy.accounting import gaussian, renyi, risk
from ragaudit.privacy.normal import decimal_of, precise
from ragaudit.privacy.numbers import Number, count, exact, instance

# Differences of smaller arguments would lose too many of 80 digits: they are raised to it.
_LEAST_ARGUMENT = Fraction(1, 10**20)
_UP = Decimal("1." + 59 * "0" + "1")
_LEAST_RESULT = Decimal("1e-1000")

# At larger mu, 80 digits do not carry epsilon/mu - mu/2; the other two follow from it.
_LARGEST_MU = 10**15
_LARGEST_EPSILON = 10**31
# e^epsilon beyond this is no different: total variation is 1 to 80 digits, as is any delta.
_LARGEST_POWER = Fraction(10**15)


class _Guarantee:
    """Common to all kinds: parameters read as exact numbers, the relation, and their words."""

    __slots__ = ()
    relation: NeighboringRelation

    def _read(self, **largest: int) -> None:
        """Read the named parameters, each from 0 to its largest, and the relation."""
        for where, most in largest.items():
            value = exact(getattr(self, where), where, least=0, most=most)
            object.__setattr__(self, where, value)
        object.__setattr__(self, "relation", NeighboringRelation.of(self.relation))

    def _steps_to(self, target: NeighboringRelation) -> int:
        """Return how many steps of this relation, 1 or 2, reach any neighbor under ``target``.

        A replacement is a removal and an addition, or two replacements by the null record. Nothing
        else follows: under add-remove the size is private, and the null record need not be an
        admissible one.

        Raises:
            RefusedError: a guarantee under ``target`` does not follow.
        """
        target = NeighboringRelation.of(target)
        if target == self.relation:
            return 1
        if target is NeighboringRelation.REPLACE:
            return 2
        raise RefusedError(
            f"a guarantee under {target} does not follow from one under {self.relation}",
            where="relation",
            expected="the same relation, or replace",
        )

    @classmethod
    def _common(cls, parts: Sequence[Self]) -> NeighboringRelation:
        instance(parts, Sequence, "parts")
        if not parts:
            raise InvalidArgumentError("nothing to compose", where="parts", expected="at least one")
        for part in parts:
            if not isinstance(part, cls):
                raise InvalidArgumentError(
                    f"a {type(part).__name__}", where="parts", expected=cls.__name__
                )
        if len({part.relation for part in parts}) > 1:
            raise InvalidArgumentError(
                "guarantees of different relation do not compose",
                where="relation",
                expected="one relation; convert with `under`",
            )
        return parts[0].relation


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
    relation: NeighboringRelation

    def __post_init__(self) -> None:
        self._read(epsilon=_LARGEST_EPSILON, delta=1)

    @classmethod
    def of(cls, epsilon: Number, delta: Number, relation: NeighboringRelation) -> Self:
        """Return the guarantee for numbers of any kind (:mod:`ragaudit.privacy.numbers`)."""
        return cls(epsilon, delta, relation)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"({_shown(self.epsilon)}, {_shown(self.delta)})-DP, {self.relation}"

    @precise
    def under(self, relation: NeighboringRelation) -> "ApproximateDp":
        """Return what follows under another relation: ``(2 epsilon, delta (1 + e^epsilon))``.

        A delta of 1 promises nothing; the result is at most that.

        Raises:
            RefusedError: nothing follows under that relation.
        """
        if self._steps_to(relation) == 1:
            return self
        # P <= e^eps Q + delta and Q <= e^eps R + delta, one put into the other.
        factor = 1 + decimal_of(min(self.epsilon, _LARGEST_POWER)).exp()
        delta = _up(decimal_of(self.delta) * factor, most=1)
        return ApproximateDp(2 * self.epsilon, delta, relation)

    @precise
    def total_variation(self) -> "TotalVariation":
        """Return ``(e^epsilon - 1 + 2 delta)/(e^epsilon + 1)``, the largest that is possible."""
        # The same statement in other words: exact, with nothing to round.
        if self.epsilon == 0:
            return TotalVariation(self.delta, self.relation)
        odds = decimal_of(min(max(self.epsilon, _LEAST_ARGUMENT), _LARGEST_POWER)).exp()
        # Both error rates are equal there: the corner of the region that (epsilon, delta) leaves.
        value = (odds - 1 + 2 * decimal_of(self.delta)) / (odds + 1)
        return TotalVariation(_up(value, most=1), self.relation)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return basic composition: sums of the epsilons and of the deltas (at most 1).

        Raises:
            InvalidArgumentError: no part, another kind, or different relations.
        """
        relation = cls._common(parts)
        epsilon = sum((part.epsilon for part in parts), Fraction(0))
        delta = sum((part.delta for part in parts), Fraction(0))
        return cls(epsilon, min(delta, Fraction(1)), relation)


@dataclass(frozen=True, slots=True)
class GaussianDp(_Guarantee):
    """mu-GDP: no easier to tell apart than N(0, 1) and N(mu, 1) (Dong, Roth, Su 2022).

    Attributes:
        mu: 0 to 10^15.

    Raises:
        InvalidArgumentError: a value out of its range, or not an exact number.
    """

    mu: Fraction
    relation: NeighboringRelation

    def __post_init__(self) -> None:
        self._read(mu=_LARGEST_MU)

    @classmethod
    def of(cls, mu: Number, relation: NeighboringRelation) -> Self:
        """Return the guarantee for a number of any kind (:mod:`ragaudit.privacy.numbers`)."""
        return cls(mu, relation)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{_shown(self.mu)}-GDP, {self.relation}"

    def under(self, relation: NeighboringRelation) -> "GaussianDp":
        """Return what follows under another relation: ``2 mu``.

        Raises:
            RefusedError: nothing follows under that relation.
        """
        return GaussianDp(self._steps_to(relation) * self.mu, relation)

    def at_epsilon(self, epsilon: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP with the least delta: the exact curve, delta rounded up.

        Args:
            epsilon: 0 to 10^31.

        Raises:
            InvalidArgumentError: out of range.
        """
        loss = exact(epsilon, "epsilon", least=0, most=_LARGEST_EPSILON)
        delta = gaussian.delta(self._argument(), decimal_of(loss))
        return ApproximateDp(loss, _up(delta, most=1), self.relation)

    def at_delta(self, delta: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP with the least epsilon, rounded up.

        Args:
            delta: between 0 and 1.

        Raises:
            InvalidArgumentError: out of range.
            RefusedError: no finite epsilon.
        """
        target = exact(delta, "delta", above=0, below=1)
        least = gaussian.least_epsilon(self._argument(), target)
        if least is None:
            raise RefusedError("no finite epsilon", where="delta", expected="a larger delta")
        return ApproximateDp(Fraction(least), target, self.relation)

    def total_variation(self) -> "TotalVariation":
        """Return ``2 Phi(mu/2) - 1``."""
        value = risk.membership_advantage(self._argument())
        return TotalVariation(_up(value, most=1), self.relation)

    def zero_concentrated(self) -> "ZeroConcentratedDp":
        """Return ``mu²/2``-zCDP: the divergences of N(0, 1) and N(mu, 1), which nothing exceeds."""
        return ZeroConcentratedDp(self.mu**2 / 2, self.relation)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return ``sqrt(sum mu²)``-GDP (Corollary 3.3), the root rounded up.

        Raises:
            InvalidArgumentError: no part, another kind, or different relations.
        """
        relation = cls._common(parts)
        if len(parts) == 1:
            return parts[0]
        # Rounded up in the root only; the squares are exact.
        return cls(_root(sum((part.mu**2 for part in parts), Fraction(0))), relation)

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
    relation: NeighboringRelation

    def __post_init__(self) -> None:
        self._read(rho=renyi.LARGEST_RHO)

    @classmethod
    def of(cls, rho: Number, relation: NeighboringRelation) -> Self:
        """Return the guarantee for a number of any kind (:mod:`ragaudit.privacy.numbers`)."""
        return cls(rho, relation)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{_shown(self.rho)}-zCDP, {self.relation}"

    def under(self, relation: NeighboringRelation) -> "ZeroConcentratedDp":
        """Return what follows under another relation: ``4 rho`` (Proposition 1.9).

        Raises:
            RefusedError: nothing follows under that relation.
        """
        return ZeroConcentratedDp(self._steps_to(relation) ** 2 * self.rho, relation)

    def at_delta(self, delta: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP at the best real order, epsilon rounded up.

        Conversion of Canonne, Kamath and Steinke 2020, Proposition 12.

        Args:
            delta: between 0 and 1.

        Raises:
            InvalidArgumentError: out of range.
        """
        target = exact(delta, "delta", above=0, below=1)
        best = renyi.optimal(self.rho, target)
        return ApproximateDp(_up(best.epsilon), target, self.relation)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return the sum of the rhos (Lemma 1.7).

        Raises:
            InvalidArgumentError: no part, another kind, or different relations.
        """
        relation = cls._common(parts)
        return cls(sum((part.rho for part in parts), Fraction(0)), relation)


@dataclass(frozen=True, slots=True)
class TotalVariation(_Guarantee):
    """``P[E] - P'[E] <= value`` for neighbours and every event.

    Attributes:
        value: 0 to 1; 1 promises nothing.

    Raises:
        InvalidArgumentError: a value out of its range, or not an exact number.
    """

    value: Fraction
    relation: NeighboringRelation

    def __post_init__(self) -> None:
        self._read(value=1)

    @classmethod
    def of(cls, value: Number, relation: NeighboringRelation) -> Self:
        """Return the guarantee for a number of any kind (:mod:`ragaudit.privacy.numbers`)."""
        return cls(value, relation)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"total variation {_shown(self.value)}, {self.relation}"

    def under(self, relation: NeighboringRelation) -> "TotalVariation":
        """Return what follows under another relation: ``min(1, 2 value)``.

        Raises:
            RefusedError: nothing follows under that relation.
        """
        return TotalVariation(min(Fraction(1), self._steps_to(relation) * self.value), relation)

    def approximate(self) -> ApproximateDp:
        """Return the same statement as (0, value)-DP."""
        return ApproximateDp(Fraction(0), self.value, self.relation)

    @classmethod
    def compose(cls, parts: Sequence[Self]) -> Self:
        """Return ``1 - prod(1 - value)``: couple the releases one after another.

        Raises:
            InvalidArgumentError: no part, another kind, or different relations.
        """
        relation = cls._common(parts)
        # Maximal couplings: the releases agree with probability 1 - value each.
        agreement = Fraction(1)
        for part in parts:
            agreement *= 1 - part.value
        return cls(1 - agreement, relation)


@precise
def _shown(value: Fraction) -> str:
    """Return five significant digits, rounded up, without an exponent from 1e-4 to 1e6."""
    if value == 0:
        return "0"
    # The error of a float such as 0.1 must not raise the last digit.
    meant = decimal_of(value) * (1 - Decimal("1e-15"))
    rounded = Context(prec=5, rounding=ROUND_CEILING).plus(meant).normalize()
    low, high = -4, 6
    if low <= rounded.adjusted() < high:
        return f"{rounded:f}"
    return f"{rounded:e}".replace("e+", "e")


@precise
def _up(value: Decimal, most: int | None = None) -> Fraction:
    """Return a computed value as a rational, rounded up; a tiny one becomes 1e-1000."""
    if value <= 0:
        return Fraction(0)
    raised = max(value * _UP, _LEAST_RESULT)
    return Fraction(raised if most is None else min(raised, Decimal(most)))


@precise
def _root(square: Fraction) -> Fraction:
    return _up(decimal_of(square).sqrt())


EMPTY_ADVANTAGE: Final = Fraction(1, 2)
"""From this membership advantage on a promise is empty.

An attacker who has to say whether a document is there, with even odds, may then be right three
times in four: half of the way from guessing to certainty.
"""

WEAK_ADVANTAGE: Final = Fraction(1, 10)
"""A promise is weak from this membership advantage on: right 55 times in 100."""

_CHOICE: Final = {
    NeighboringRelation.ADD_REMOVE: "whether it is in the collection or not",
    NeighboringRelation.NULL_REPLACE: (
        "whether it is in the collection or an empty one in its place"
    ),
    NeighboringRelation.REPLACE: "whether it or another given {unit} is in the collection",
}


class Strength(StrEnum):
    """How much a promise excludes, by its membership advantage."""

    MEANINGFUL = "meaningful"
    WEAK = "weak"
    EMPTY = "empty"


def strength(advantage: Number) -> Strength:
    """Return the strength of a guarantee.

    Args:
        advantage: membership advantage, true less false positive rate of the best test, in [0, 1];
            1 if there is no finite guarantee.

    Raises:
        InvalidArgumentError: not a number in [0, 1].
    """
    value = _advantage(advantage)
    # The worse grade has the border: in doubt the promise is the weaker one.
    if value >= EMPTY_ADVANTAGE:
        return Strength.EMPTY
    return Strength.WEAK if value >= WEAK_ADVANTAGE else Strength.MEANINGFUL


def membership_sentence(
    advantage: Number,
    relation: str,
    *,
    seen: str = "every answer",
    unit: str = "document",
) -> str:
    """Return one sentence on how well anybody can tell whether something is in the collection.

    Args:
        advantage: as for :func:`strength`; shown rounded up.
        relation: neighbouring relation under which it holds; decides what is told apart.
        seen: what the attacker sees, to stand after "who sees".
        unit: what is protected, in the singular.

    Raises:
        InvalidArgumentError: no advantage, or no relation.
    """
    # Rounded up, against the provider: a smaller number would promise more.
    points = ceil_decimal(100 * _advantage(advantage), 2)
    return (
        f"An attacker who sees {seen} and knows a {unit} word for word, and has to tell "
        f"{_choice(relation, unit)}, raises true alarms at a rate at most {points} percentage "
        "points above the rate of false alarms (0: no better than guessing; 100: certainty)."
    )


def guarantee_sentence(
    advantage: Number,
    relation: str,
    *,
    accounts: int,
    unit: str = "document",
) -> str:
    """Return what a window's guarantee means, in one sentence with its strength.

    Args:
        advantage: of the coalition of ``accounts`` accounts, as for :func:`strength`.
        relation, unit: as for :func:`membership_sentence`.
        accounts: accounts that may pool their answers, at least 1.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    pooled = "one account" if count(accounts, "accounts") == 1 else f"{accounts} accounts together"
    # With even odds the best test is right with probability (1 + advantage)/2.
    right = ceil_decimal(50 * (1 + _advantage(advantage)), 1)
    return (
        f"Anybody who sees every answer of {pooled}, knows a {unit} word for word and has to tell "
        f"{_choice(relation, unit)}, both equally likely, is right at most {right} times in 100 "
        f"(50: guessing; 100: certainty): the guarantee is {strength(advantage)}."
    )


def _choice(relation: str, unit: str) -> str:
    return _CHOICE[NeighboringRelation.of(relation)].format(unit=unit)


def _advantage(value: Number) -> Fraction:
    return exact(value, "advantage", least=0, most=1)
