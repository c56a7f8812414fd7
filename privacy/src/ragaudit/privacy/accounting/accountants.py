"""Accountants: each prices every known event, by a method of its own.

    GaussianAccountant().price(event, delta)           exact curve; the headline
    RenyiAccountant().price(event, delta)              best real order, or a grid of orders
    ZeroConcentratedAccountant().price(event, delta)   Bun and Steinke's closed conversion
    LossDistributionAccountant().price(event, delta)   dp-accounting; a cross-check in floats

The first three are certificates: rounded up, the sampler's error included. Not part of the
package's front page, because guarantees build on it (docs/notes/accounting.md §12).
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, Protocol

from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.privacy.accounting import gaussian, loss_distribution, renyi
from ragaudit.privacy.accounting.events import (
    KERNEL_VARIANCE,
    Event,
    NoisyScores,
    relation_of,
    releases,
)
from ragaudit.privacy.accounting.gaussian import NoFiniteBound
from ragaudit.privacy.guarantees import (
    ApproximateDp,
    GaussianDp,
    NeighboringRelation,
    ZeroConcentratedDp,
)
from ragaudit.privacy.normal import decimal_of, precise, root_up
from ragaudit.privacy.numbers import Number, exact, instance, shown

__all__ = [
    "ACCOUNTANTS",
    "LARGEST_EPSILON",
    "LEAST_ORDER",
    "Accountant",
    "GaussianAccountant",
    "LossDistributionAccountant",
    "RenyiAccountant",
    "ZeroConcentratedAccountant",
]

LEAST_ORDER = 1 + Fraction(1, 10**20)
"""Orders nearer to 1 would lose more digits than the arithmetic can spare."""

# Up to here the factors of claim 2, 1 ± 2^-450 a sample, stay negligible (claim 17).
_MAX_SAMPLES = 10**16
# Of delta, for the sampler's distance (claim 5): the rest is what the conversion may use.
_SET_ASIDE = Fraction(1, 10**6)
LARGEST_EPSILON = 10**4
"""Beyond it the power is astronomically large, and no sampler is that close."""
# What is computed is raised by this share: far above what 80 digits lose.
_UP = Decimal("1." + 59 * "0" + "1")


class Accountant(Protocol):
    """Prices events.

    Attributes:
        name: of the method.
    """

    @property
    def name(self) -> str:
        """Return the method's name, in a word or two."""

    def price(self, event: Event, delta: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP of an event under the event's own relation.

        Args:
            event: what was released.
            delta: between 0 and 1.

        Raises:
            UnsupportedError: an unknown event.
            InvalidArgumentError: delta out of range.
            NoFiniteBound: no epsilon serves.
        """


@dataclass(frozen=True, slots=True)
class GaussianAccountant:
    """The exact curve of Gaussian composition with the variance correction (claims 2 to 4).

    Attributes:
        name: of the method.
    """

    name: str = "Gaussian"

    def gaussian(self, event: Event) -> GaussianDp:
        """Return mu-GDP of the event with an ideal sampler: squares of mu add (claim 17).

        Args:
            event: what was released.

        Raises:
            UnsupportedError: an unknown event.
            RefusedError: more than 10^16 noise samples, beyond what claim 2 covers.
        """
        # Dong, Roth and Su 2022, Corollary 3.3, each release with the variance that claim 2 leaves.
        squared = sum(
            (
                Fraction(part.squared_sensitivity * part.queries)
                / (part.sigma_units**2 - KERNEL_VARIANCE)
                for part in _checked(event)
            ),
            Fraction(0),
        )
        return GaussianDp(Fraction(root_up(squared)), relation_of(event))

    def price(self, event: Event, delta: Number) -> ApproximateDp:
        """Return the least epsilon of the exact curve, rounded up.

        Args:
            event: what was released.
            delta: between 0 and 1.

        Raises:
            UnsupportedError, InvalidArgumentError, NoFiniteBound: as for :class:`Accountant`.
        """
        target = _target(delta)
        ideal = self.gaussian(event)
        least = gaussian.least_epsilon(decimal_of(ideal.mu), target, _slack(event))
        if least is None:
            raise _no_bound(event, target)
        return ApproximateDp(Fraction(least), target, ideal.relation)

    def at_epsilon(self, event: Event, epsilon: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP of an event with the least delta, rounded up.

        Args:
            event: what was released.
            epsilon: >= 0.

        Raises:
            UnsupportedError: an unknown event.
            InvalidArgumentError: epsilon above LARGEST_EPSILON or below 0.
        """
        loss = exact(epsilon, "epsilon", least=0, most=LARGEST_EPSILON)
        ideal = self.gaussian(event)
        least = gaussian.least_delta(decimal_of(ideal.mu), decimal_of(loss), _slack(event))
        # The sampler's share may lift the sum above 1, which promises nothing either.
        return ApproximateDp(loss, min(Fraction(1), Fraction(least)), ideal.relation)

    def within(self, event: Event, budget: ApproximateDp) -> bool:
        """Return whether an event stays within a budget.

        Args:
            event: what was released.
            budget: has to name the event's relation; delta between 0 and 1.

        Raises:
            InvalidArgumentError: another relation, or the budget's delta is not between 0 and 1.
        """
        instance(budget, ApproximateDp, "budget")
        _target(budget.delta)
        ideal = self.gaussian(event)
        # A number under another relation would be compared with what it does not bound.
        if budget.relation != ideal.relation:
            raise InvalidArgumentError(
                f"the budget is for {budget.relation}", where="relation", expected=ideal.relation
            )
        return gaussian.meets(decimal_of(ideal.mu), budget.epsilon, budget.delta, _slack(event))


@dataclass(frozen=True, slots=True)
class ZeroConcentratedAccountant:
    """rho of the discrete Gaussian, exact, and ``rho + 2 sqrt(rho ln(1/delta))``.

    The conversion is Proposition 1.3 of Bun and Steinke (2016); equation (3.6) of the source paper
    is the same number. A millionth of delta pays for the sampler (claim 5).

    Attributes:
        name: of the method.
    """

    name: str = "zCDP"

    def zero_concentrated(self, event: Event) -> ZeroConcentratedDp:
        """Return rho-zCDP of the event with an ideal sampler: the rhos add.

        Args:
            event: what was released.

        Raises:
            UnsupportedError, RefusedError: as for :meth:`GaussianAccountant.gaussian`.
        """
        rho = sum((part.rho() for part in _checked(event)), Fraction(0))
        return ZeroConcentratedDp(rho, relation_of(event))

    @precise
    def price(self, event: Event, delta: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP by the closed conversion, rounded up.

        Args:
            event: what was released.
            delta: between 0 and 1.

        Raises:
            UnsupportedError, InvalidArgumentError, NoFiniteBound: as for :class:`Accountant`.
        """
        target = _target(delta)
        ideal = self.zero_concentrated(event)
        # Bun and Steinke 2016, Proposition 1.3, at the delta that is left.
        rho, goal = decimal_of(ideal.rho), decimal_of(target * (1 - _SET_ASIDE))
        epsilon = (rho + 2 * (-rho * goal.ln()).sqrt()) * _UP
        return _with_sampler(event, epsilon, target, ideal.relation)


@dataclass(frozen=True, slots=True)
class RenyiAccountant:
    """The Rényi divergence ``rho alpha``, converted at the best order (claim 5).

    Attributes:
        orders: a grid of orders, each at least LEAST_ORDER; empty: the best real order.
        conversion: "canonne" (Canonne, Kamath, Steinke 2020, Proposition 12) or "mironov" (Mironov
            2017, Proposition 3; the source paper's R3).
        name: of the method.

    Raises:
        InvalidArgumentError: an order or conversion that is not allowed.
    """

    orders: tuple[Fraction, ...] = ()
    conversion: Literal["canonne", "mironov"] = "canonne"
    name: str = "Rényi"

    def __post_init__(self) -> None:
        instance(self.orders, tuple, "orders")
        orders = tuple(exact(order, "orders", least=LEAST_ORDER) for order in self.orders)
        # The class is frozen: what is stored is exact, whatever kind of number was given.
        object.__setattr__(self, "orders", orders)
        instance(self.conversion, str, "conversion")
        if self.conversion not in ("canonne", "mironov"):
            raise InvalidArgumentError(
                f"unknown conversion {shown(self.conversion)}", where="conversion"
            )
        if not self.orders and self.conversion == "mironov":
            raise InvalidArgumentError(
                "no orders", where="orders", expected="a grid; ZeroConcentratedAccountant has "
                "the best order of this conversion in closed form",
            )  # fmt: skip

    @precise
    def price(self, event: Event, delta: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP at the best of the orders, rounded up.

        Args:
            event: what was released.
            delta: between 0 and 1.

        Raises:
            UnsupportedError, InvalidArgumentError, NoFiniteBound: as for :class:`Accountant`.
        """
        target = _target(delta)
        ideal = ZeroConcentratedAccountant().zero_concentrated(event)
        return _with_sampler(event, self._converted(ideal.rho, target), target, ideal.relation)

    def _converted(self, rho: Fraction, delta: Fraction) -> Decimal:
        share = delta * (1 - _SET_ASIDE)
        if rho == 0:
            return Decimal(0)
        if not self.orders:
            return renyi.optimal(rho, share).epsilon
        convert = renyi.canonne_epsilon if self.conversion == "canonne" else renyi.mironov_epsilon
        level, goal = decimal_of(rho), decimal_of(share)
        # Every order gives a valid bound, so the least of a grid is one.
        return min(convert(level, goal, decimal_of(Fraction(a))) for a in self.orders) * _UP


@dataclass(frozen=True, slots=True)
class LossDistributionAccountant:
    """dp-accounting's discretised distribution of the privacy loss, composed part by part.

    Another method by other people, in binary floating point and pessimistic by its discretisation:
    good to about a tenth of a percent, a cross-check and no certificate.

    Attributes:
        name: of the method.
    """

    name: str = "loss distribution"

    def price(self, event: Event, delta: Number) -> ApproximateDp:
        """Return (epsilon, delta)-DP as the library computes it, in binary floating point.

        Args:
            event: what was released.
            delta: between 0 and 1.

        Raises:
            RefusedError: mu above 20, where the discretised distribution gets large.
            UnsupportedError, InvalidArgumentError, NoFiniteBound: as for :class:`Accountant`.
        """
        target = _target(delta)
        ideal = GaussianAccountant()
        total = float(ideal.gaussian(event).mu)
        relation = relation_of(event)
        # The library divides by the shift, which is 0 here.
        if total == 0:
            return ApproximateDp(Fraction(0), target, relation)
        if total > loss_distribution.LARGEST_MU:
            raise RefusedError(
                f"mu is {total:.3g}", where="event", expected=f"<= {loss_distribution.LARGEST_MU:g}"
            )
        # Part by part: one Gaussian of their total would repeat the first accountant's argument.
        shifts = [float(ideal.gaussian(part).mu) for part in releases(event) if part.queries]
        value = loss_distribution.composed_epsilon(shifts, total, float(target * (1 - _SET_ASIDE)))
        return _with_sampler(event, Decimal(value), target, relation)


ACCOUNTANTS: tuple[Accountant, ...] = (
    GaussianAccountant(),
    RenyiAccountant(),
    ZeroConcentratedAccountant(),
    LossDistributionAccountant(),
)
"""One of each kind, with default settings."""


def _checked(event: Event) -> tuple[NoisyScores, ...]:
    """Return the releases of an event, if claim 2 covers their number of samples."""
    parts = releases(event)
    if sum(part.samples for part in parts) > _MAX_SAMPLES:
        raise RefusedError("too many noise samples", where="event", expected="queries·rows <= 1e16")
    return parts


def _slack(event: Event) -> Fraction:
    """Return the distance of all samples together from the laws that they claim."""
    return sum((part.slack for part in _checked(event)), Fraction(0))


def _target(delta: Number) -> Fraction:
    return exact(delta, "delta", above=0, below=1)


def _no_bound(event: Event, delta: Fraction) -> NoFiniteBound:
    queries = sum(part.queries for part in releases(event))
    return NoFiniteBound(
        "no finite epsilon",
        where=f"{queries} queries at delta {float(delta):.3g}",
        expected="more noise, fewer queries or a larger delta",
    )


def _with_sampler(
    event: Event, epsilon: Decimal, delta: Fraction, relation: NeighboringRelation
) -> ApproximateDp:
    """Return an epsilon for ``delta`` less the share set aside, if that pays the sampler."""
    slack = _slack(event)
    if slack and not _covered(epsilon, slack, delta * _SET_ASIDE):
        raise _no_bound(event, delta)
    return ApproximateDp(Fraction(epsilon), delta, relation)


@precise
def _covered(loss: Decimal, slack: Fraction, share: Fraction) -> bool:
    # Claim 4: two laws within s of their ideals cost (1 + e^epsilon) s of delta.
    return loss < LARGEST_EPSILON and (1 + loss.exp()) * decimal_of(slack) <= decimal_of(share)
