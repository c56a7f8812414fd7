"""Accountants: each prices every known event, by a method of its own.

    GaussianAccountant().price(event, delta)           exact curve; the headline
    RenyiAccountant().price(event, delta)              best real order, or a grid of orders
    ZeroConcentratedAccountant().price(event, delta)   Bun and Steinke's closed conversion
    LossDistributionAccountant().price(event, delta)   dp-accounting; a cross-check in floats

The first three are certificates: rounded up, the sampler's error included (docs/notes/accounting.md
§12). What a noise affords (queries, accounts, windows) is in whole numbers, rounded down: one more
would break the guarantee (§7).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Protocol

from ragaudit.encoding.errors import (
    InternalError,
    InvalidArgumentError,
    RefusedError,
    UnsupportedError,
)
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting import gaussian, renyi
from ragaudit.privacy.accounting.events import (
    GAMMA,
    KERNEL_VARIANCE,
    MAX_QUERIES,
    Composition,
    Event,
    NoisyScores,
    check_scores,
    relation_of,
    releases,
)
from ragaudit.privacy.accounting.gaussian import NoFiniteBound, calibrate, gives
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, ZeroConcentratedDp
from ragaudit.privacy.normal import decimal_of, precise, root_up
from ragaudit.privacy.numbers import Number, count, exact, instance, shown

LARGEST_MU = 20.0
"""Beyond it the discretised distribution gets large and the comparison is left out."""

_POINTS_PER_MU = 4_000
_LOG_TRUNCATED_MASS = -60


def library_epsilon(event: NoisyScores, target: Fraction) -> float | None:
    """Return dp-accounting's pessimistic epsilon of the equivalent single Gaussian release.

    m adaptive releases of sensitivity s and variance v lose what one Gaussian release of shift ``mu
    = s sqrt(m/v)`` and variance 1 loses, for Gaussian noise exactly. The shift already is that of
    our relation, hence the library's relation without doubling. The sampler's share is not in it.
    It is binary floating point: a cross-check to about 1e-4 relative, never the guarantee.

    Args:
        event: its sampler is taken for perfect.
        target: delta, between 0 and 1.

    Returns:
        None when mu is 0 or above LARGEST_MU, or where the library finds no finite value.
    """
    mu = float(event.mu_gaussian_limit())
    if not 0 < mu <= LARGEST_MU:
        return None
    value = _of_one_release(mu, float(target))
    # Infinite where more mass than delta was cut off: that says nothing about the mechanism.
    return value if math.isfinite(value) else None


@lru_cache(maxsize=128)  # most of a report's time, and windows of like policies ask for the same
def _of_one_release(mu: float, target: float) -> float:
    return composed_epsilon([mu], mu, target)


def composed_epsilon(shifts: Sequence[float], total: float, target: float) -> float:
    """Return dp-accounting's pessimistic epsilon of releases with these shifts, composed by it.

    Args:
        shifts, total: as for :func:`composed`.
        target: delta, between 0 and 1.
    """
    return float(composed(shifts, total).get_epsilon_for_delta(target))


def composed(shifts: Sequence[float], total: float) -> Any:
    """Return dp-accounting's pessimistic loss distribution of releases with these shifts.

    Args:
        shifts: of each release in units of its noise, > 0; at least one.
        total: the root of the sum of their squares, at most LARGEST_MU; sets the resolution.

    Raises:
        InternalError: no release.
    """
    # Imported here: the library takes longer to load than everything else together, and only
    # a verdict needs it.
    from dp_accounting import NeighboringRelation as LibraryRelation  # noqa: PLC0415
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415

    distribution = None
    # Like releases are composed in one step, not one after another.
    for shift, times in sorted(Counter(shifts).items()):
        # The parameters are those of spec 7.4.2: others would give another text.
        part = privacy_loss_distribution.from_gaussian_mechanism(
            1 / shift,
            value_discretization_interval=total / _POINTS_PER_MU,
            log_mass_truncation_bound=_LOG_TRUNCATED_MASS,
            neighboring_relation=LibraryRelation.ADD_OR_REMOVE_ONE,
        )
        part = part.self_compose(times) if times > 1 else part
        distribution = part if distribution is None else distribution.compose(part)
    if distribution is None:
        raise InternalError("nothing to compose", where="shifts")
    return distribution


def agrees(value: float, reference: Decimal) -> bool:
    """Return whether the cross-check confirms a value: within 0.1 percent plus 0.0005.

    Args:
        value: of the other library, in floating point.
        reference: of the Gaussian limit, exact to 18 digits.
    """
    # Its discretisation is pessimistic by about 1e-4; the second term is for small epsilons.
    return abs(value - float(reference)) <= 1e-3 * float(reference) + 5e-4


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
        if total > LARGEST_MU:
            raise RefusedError(f"mu is {total:.3g}", where="event", expected=f"<= {LARGEST_MU:g}")
        # Part by part: one Gaussian of their total would repeat the first accountant's argument.
        shifts = [float(ideal.gaussian(part).mu) for part in releases(event) if part.queries]
        value = composed_epsilon(shifts, total, float(target * (1 - _SET_ASIDE)))
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


def largest_queries(mechanism: NoisyScores, epsilon: Number, delta: Number) -> int:
    """Return the largest m for which m queries together are (epsilon, delta)-DP.

    Args:
        mechanism: the noise and the relation; its own ``queries`` is not used.
        epsilon: > 0.
        delta: between 0 and 1.

    Returns:
        0 if not even one query is; at most 10^13, the largest number that an event may have.

    Raises:
        InvalidArgumentError: epsilon or delta out of range.
    """
    check_scores(mechanism, "mechanism")
    loss = exact(epsilon, "epsilon", above=0)
    target = exact(delta, "delta", above=0, below=1)
    # Without the sampler's error one evaluation settles a comparison (claim 19).
    ideal = replace(mechanism, gamma=Fraction(0))
    # Invariant of both searches: `low` queries have the guarantee, `high` do not (claim 19).
    high = 1 + _most(lambda m: gives(ideal.with_queries(m), loss, target), 0, MAX_QUERIES + 1)
    # The sampler's error can only lower the number: step down from that of the ideal sampler.
    step, low = 1, high - 1
    while low and not gives(mechanism.with_queries(low), loss, target):
        high, low, step = low, max(0, low - step), 2 * step
    return _most(lambda m: gives(mechanism.with_queries(m), loss, target), low, high)


def _most(allowed: Callable[[int], bool], low: int, high: int) -> int:
    """Return the largest allowed number, where ``low`` is allowed and ``high`` is not."""
    while high - low > 1:
        middle = (low + high) // 2
        if allowed(middle):
            low = middle
        else:
            high = middle
    return low


def remaining_queries(spent: Event, mechanism: NoisyScores, budget: ApproximateDp) -> int:
    """Return how many queries of a mechanism a budget still allows after what was released.

    Args:
        spent: all earlier releases about the same records.
        mechanism: the next ones; its own ``queries`` is not used.
        budget: for all of them together, under their relation.

    Returns:
        0 if the budget is spent or overspent; at most 10^13.

    Raises:
        InvalidArgumentError: different relations, or a budget for another relation.
        UnsupportedError: an unknown event.
    """
    check_scores(mechanism, "mechanism")
    try:
        releases(spent)
    # The error names the argument as the caller knows it.
    except UnsupportedError as error:
        raise UnsupportedError(error.what, where="spent", expected=error.expected) from None
    accountant = GaussianAccountant()

    def allowed(queries: int) -> bool:
        together = Composition((spent, mechanism.with_queries(queries)))
        return accountant.within(together, budget)

    low, high = 0, 1
    if not allowed(low):
        return low
    # Doubled first: a budget for a few queries is found without trying 10^13.
    while high <= MAX_QUERIES and allowed(high):
        low, high = high, 2 * high
    return _most(allowed, low, min(high, MAX_QUERIES + 1))


def largest_rate(
    mechanism: NoisyScores, epsilon: Number, delta: Number, *, accounts: int, windows: int = 1
) -> int:
    """Return the largest r: each of ``accounts`` colluders asks r queries in each window.

    Args:
        mechanism, epsilon, delta: as for :func:`largest_queries`.
        accounts, windows: at least 1.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    return largest_queries(mechanism, epsilon, delta) // _product(
        accounts=accounts, windows=windows
    )


def largest_coalition(
    mechanism: NoisyScores, epsilon: Number, delta: Number, *, rate: int, windows: int = 1
) -> int:
    """Return the largest k: so many accounts may collude at ``rate`` queries per window each.

    Args:
        mechanism, epsilon, delta: as for :func:`largest_queries`.
        rate, windows: at least 1.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    return largest_queries(mechanism, epsilon, delta) // _product(rate=rate, windows=windows)


def calibrate_coalition(
    epsilon: Number,
    delta: Number,
    *,
    accounts: int,
    rate: int,
    relation: str,
    group_size: int,
    windows: int = 1,
    gamma: Number = GAMMA,
    places: int = 6,
) -> str:
    """Return the least sigma for which the coalition's answers are (epsilon, delta)-DP.

    Args:
        epsilon, delta: both above 0, delta below 1.
        accounts: k, at least 1.
        rate: r, queries per account and window, at least 1.
        relation: "replace" or "null-replace".
        group_size: g, rows that one privacy unit may own.
        windows: w, at least 1.
        gamma: total-variation distance of one noise sample.
        places: of the result, 1 to 12.

    Returns:
        A decimal in cosine units, rounded up.

    Raises:
        InvalidArgumentError: a value out of range.
        RefusedError: no sigma in the sampler's range gives it.
    """
    # Pooled answers are those of one analyst who asks all of it (claim 17).
    queries = _product(accounts=accounts, rate=rate, windows=windows)
    return calibrate(epsilon, delta, queries, relation, group_size, gamma=gamma, places=places)


def _product(**counts: int) -> int:
    product = 1
    for where, value in counts.items():
        product *= count(value, where)
    # Refused here, by the names of the factors: the caller gave no number of queries.
    if product > MAX_QUERIES:
        raise InvalidArgumentError(
            "too many queries", where=" x ".join(counts), expected=f"at most {MAX_QUERIES}"
        )
    return product
