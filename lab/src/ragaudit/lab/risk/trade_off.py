"""Trade-off functions: how far a guarantee lets two records be told apart.

``f(alpha)`` is the least false negative rate of a test with false positive rate alpha. The bounds
need ``gap(alpha) = 1 - f(alpha) - alpha``, concave in alpha, and its maximum over an interval.
Dong, Roth and Su 2022; Balboa et al., Definition 2.4 and Eq. (35). Claims:
docs/notes/disclosure-risk.md §6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.validation import (
    AssumptionError,
    check_delta,
    check_epsilon,
    check_non_negative,
    check_probability,
)
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, TotalVariation
from ragaudit.privacy.numbers import sequence
from scipy import special


def approximate_total_variation(epsilon: float, delta: float) -> float:
    """Return ``(e^eps - 1 + 2 delta)/(e^eps + 1)``, in [0, 1] (Eq. 2).

    The largest total variation of an (epsilon, delta)-DP mechanism; ``tanh(eps/2)`` if pure.

    Args:
        epsilon: >= 0.
        delta: 0 to 1.
    """
    eps, d = check_epsilon(epsilon), check_delta(delta)
    return min(1.0, math.tanh(eps / 2) + 2 * d * float(special.expit(-eps)))


def gaussian_total_variation(mu: float) -> float:
    """Return ``2 Phi(mu/2) - 1``, the total variation of mu-GDP (Dong, Roth and Su 2022).

    Args:
        mu: >= 0.
    """
    return math.erf(check_non_negative(mu, "mu") / (2 * math.sqrt(2)))


def composed_total_variation(value: float, releases: float) -> float:
    """Return ``1 - (1 - value)^releases``: the largest for adaptive releases together.

    Args:
        value: of one release, 0 to 1.
        releases: how many, >= 0; need not be whole.
    """
    variation = check_probability(value, "value")
    count = check_non_negative(releases, "releases")
    if variation == 1:
        return 1.0 if count > 0 else 0.0
    return -math.expm1(count * math.log1p(-variation))


@runtime_checkable
class TradeOff(Protocol):
    """A trade-off function, seen through its gap."""

    @property
    def description(self) -> str:
        """The guarantee in words, for reports."""

    @property
    def total_variation(self) -> float:
        """The largest gap over [0, 1]."""

    @property
    def pairs(self) -> Sequence[tuple[float, float]]:
        """Some (epsilon, delta) under which the guarantee is differentially private."""

    def gap(self, alpha: float) -> float:
        """Return ``1 - f(alpha) - alpha``, in [0, 1].

        Args:
            alpha: false positive rate, 0 to 1.
        """

    def largest_gap(self, low: float, high: float) -> float:
        """Return the maximum of the gap over [low, high].

        Args:
            low, high: false positive rates, 0 <= low <= high <= 1.
        """


@dataclass(frozen=True)
class GaussianTradeOff:
    """mu-GDP: ``f(alpha) = Phi(Phi^-1(1 - alpha) - mu)``.

    Attributes:
        mu: >= 0.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_non_negative(self.mu, "mu"))

    @property
    def description(self) -> str:
        """For reports."""
        return f"{self.mu:g}-GDP"

    @property
    def total_variation(self) -> float:
        """``2 Phi(mu/2) - 1``."""
        return gaussian_total_variation(self.mu)

    @property
    def pairs(self) -> Sequence[tuple[float, float]]:
        """The one at epsilon 0; there is one for every epsilon (:meth:`delta`)."""
        return ((0.0, self.delta(0.0)),)

    def delta(self, epsilon: float) -> float:
        """Return the least delta: ``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)``.

        Args:
            epsilon: >= 0.
        """
        eps = check_epsilon(epsilon)
        if self.mu == 0:
            return 0.0
        shift = eps / self.mu
        # In logarithms: e^eps overflows and the tail underflows long before their product does.
        tail = math.exp(eps + float(special.log_ndtr(-self.mu / 2 - shift)))
        return min(1.0, max(0.0, float(special.ndtr(self.mu / 2 - shift)) - tail))

    def gap(self, alpha: float) -> float:
        """Return ``Phi(Phi^-1(alpha) + mu) - alpha``."""
        level = check_probability(alpha, "alpha")
        if level in (0.0, 1.0):
            return 0.0
        return max(0.0, float(special.ndtr(special.ndtri(level) + self.mu)) - level)

    def largest_gap(self, low: float, high: float) -> float:
        """Return the maximum over [low, high]; the free peak is at ``Phi(-mu/2)``."""
        peak = float(special.ndtr(-self.mu / 2))
        # The peak's own value, in closed form: evaluated there, it is lost once it underflows.
        return _clamped_peak(self, low, high, peak)


@dataclass(frozen=True)
class ApproximateTradeOff:
    """(epsilon, delta)-DP: ``f(a) = max(0, 1 - delta - e^eps a, e^-eps (1 - delta - a))``.

    Attributes:
        epsilon: >= 0. delta: 0 to 1.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))

    @property
    def description(self) -> str:
        """For reports."""
        return f"({self.epsilon:g}, {self.delta:g})-DP"

    @property
    def total_variation(self) -> float:
        """As :func:`approximate_total_variation`."""
        return approximate_total_variation(self.epsilon, self.delta)

    @property
    def pairs(self) -> Sequence[tuple[float, float]]:
        """The one."""
        return ((self.epsilon, self.delta),)

    def gap(self, alpha: float) -> float:
        """Return ``1 - f(alpha) - alpha``."""
        level = check_probability(alpha, "alpha")
        rising = self.delta + times_expm1(level, self.epsilon)
        falling = 1 - level - math.exp(-self.epsilon) * max(0.0, 1 - self.delta - level)
        return max(0.0, min(rising, falling))

    def largest_gap(self, low: float, high: float) -> float:
        """Return the maximum over [low, high]; the free peak is ``(1 - delta)/(1 + e^eps)``."""
        peak = (1 - self.delta) * float(special.expit(-self.epsilon))
        return _clamped_peak(self, low, high, peak)


@dataclass(frozen=True)
class PrivacyProfile:
    """Several (epsilon, delta) guarantees of one mechanism at once.

    Any finite part of the curve ``delta(epsilon)`` of an accountant is sound: each pair alone
    gives a trade-off function below the true one, and so does their maximum.

    Attributes:
        pairs: (epsilon >= 0, delta in [0, 1]), at least one.
        relation: of all pairs.
    """

    pairs: tuple[tuple[float, float], ...]
    relation: NeighboringRelation

    def __init__(self, pairs: Sequence[tuple[float, float]], relation: NeighboringRelation) -> None:
        given = sequence(pairs, "pairs")
        if not given:
            raise InvalidArgumentError("no pairs", where="pairs", expected="at least one")
        checked = []
        for each in given:
            pair = sequence(each, "pairs")
            if len(pair) != 2:
                raise InvalidArgumentError(
                    f"{len(pair)} numbers", where="pairs", expected="epsilon and delta"
                )
            checked.append((check_epsilon(pair[0]), check_delta(pair[1])))
        object.__setattr__(self, "pairs", tuple(checked))
        object.__setattr__(self, "relation", NeighboringRelation.of(relation))

    @property
    def description(self) -> str:
        """For reports."""
        return f"privacy profile of {len(self.pairs)} points"

    @property
    def total_variation(self) -> float:
        """The largest gap over [0, 1]."""
        return self.largest_gap(0.0, 1.0)

    def gap(self, alpha: float) -> float:
        """Return the least gap of the pairs."""
        return min(ApproximateTradeOff(*pair).gap(alpha) for pair in self.pairs)

    def largest_gap(self, low: float, high: float) -> float:
        """Return the maximum over [low, high], never below the true one.

        The gap is the minimum of lines ``a + b alpha``. Bisection finds neighbors low and high
        of its peak; the maximum of the minimum of the two lines active there bounds it.
        """
        lines = self._lines()
        rising, falling = _active(lines, low), _active(lines, high)
        if rising[1] <= 0 or low == high:
            return _height(rising, low)
        if falling[1] >= 0:
            return _height(falling, high)
        for _ in range(60):
            middle = (low + high) / 2
            line = _active(lines, middle)
            if line[1] > 0:
                low, rising = middle, line
            elif line[1] < 0:
                high, falling = middle, line
            else:
                return max(0.0, line[0])
        crossing = (falling[0] - rising[0]) / (rising[1] - falling[1])
        return _height(rising, crossing)

    def _lines(self) -> list[tuple[float, float]]:
        lines = [(1.0, -1.0)]
        for eps, delta in self.pairs:
            shrink = math.exp(-eps)
            lines.append((1 - shrink * (1 - delta), shrink - 1))
            if eps < 700:  # a steeper line is active only below 1e-300
                lines.append((delta, math.expm1(eps)))
        return lines


Guarantee = ApproximateDp | GaussianDp | TotalVariation | PrivacyProfile
"""The guarantees that the bounds understand, each with its relation."""


def trade_off(guarantee: Guarantee) -> TradeOff:
    """Return the guarantee's trade-off function.

    Args:
        guarantee: a total variation tv counts as (0, tv)-DP; rho-zCDP has to be converted by name
            first (``ZeroConcentratedDp.at_delta``).

    Raises:
        AssumptionError: another kind.
    """
    if isinstance(guarantee, PrivacyProfile):
        return guarantee
    if isinstance(guarantee, GaussianDp):
        return GaussianTradeOff(check_non_negative(guarantee.mu, "mu"))
    if isinstance(guarantee, ApproximateDp):
        return ApproximateTradeOff(check_epsilon(guarantee.epsilon), check_delta(guarantee.delta))
    if isinstance(guarantee, TotalVariation):
        return ApproximateTradeOff(0.0, check_probability(guarantee.value, "value"))
    raise AssumptionError(
        f"no trade-off function for the type {type(guarantee).__name__}",
        where="guarantee",
        expected="approximate DP, Gaussian DP, total variation or a privacy profile",
    )


def _clamped_peak(curve: TradeOff, low: float, high: float, peak: float) -> float:
    """The maximum of a concave gap whose free maximum is at ``peak``."""
    least, most = check_probability(low, "low"), check_probability(high, "high")
    if least <= peak <= most:
        return curve.total_variation
    return curve.gap(most if peak > most else least)


def times_expm1(factor: float, exponent: float) -> float:
    """Return ``factor (e^exponent - 1)``, infinite instead of an overflow; 0 if the factor is 0.

    Args:
        factor: >= 0.
        exponent: of any size.
    """
    if factor == 0:
        return 0.0
    if exponent <= 700:
        return factor * math.expm1(exponent)
    logarithm = exponent + math.log(factor)
    return math.exp(logarithm) if logarithm < 700 else math.inf


def _active(lines: Sequence[tuple[float, float]], alpha: float) -> tuple[float, float]:
    return min(lines, key=lambda line: (line[0] + line[1] * alpha, line[1]))


def _height(line: tuple[float, float], alpha: float) -> float:
    return max(0.0, line[0] + line[1] * alpha)
