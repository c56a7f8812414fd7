"""Rényi and zero-concentrated accounting (docs/notes/accounting.md §4)."""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from ragaudit.privacy.accounting.events import NoisyScores, check_scores
from ragaudit.privacy.normal import decimal_of, precise
from ragaudit.privacy.numbers import Number, decimal, exact

LARGEST_RHO = 10**30
"""At larger rho, 80 digits do not carry the conversion."""

# The share of delta set aside for the sampler's distance.
_SET_ASIDE = Fraction(1, 10**6)
_LN2 = Decimal("0.69314718055994530941723212145817656807550013436025525412068000949339362196969")
_STEPS = 80
# e^1000 times any distance that a 128-bit table can have is above any delta.
_HOPELESS = 1000


class RenyiBound(NamedTuple):
    """An epsilon by Rényi divergence.

    Attributes:
        epsilon: natural logarithm, >= 0.
        order: alpha > 1 at which it was computed.
    """

    epsilon: Decimal
    order: Decimal


@precise
def mironov_epsilon(rho: Number, target: Number, order: Number) -> Decimal:
    """Return ``rho·α + ln(1/δ)/(α - 1)`` (Mironov 2017, Proposition 3; the paper's R3).

    Args:
        rho: >= 0.
        target: delta, in (0, 1).
        order: alpha > 1.

    Raises:
        MalformedError: rho < 0, target not between 0 and 1, or order <= 1.
    """
    level, goal, alpha = _read(rho, target, order)
    # Mironov 2017, Proposition 3, for a divergence of rho alpha.
    return level * alpha - goal.ln() / (alpha - 1)


@precise
def canonne_epsilon(rho: Number, target: Number, order: Number) -> Decimal:
    """Return the conversion of Canonne, Kamath and Steinke (2020, Proposition 12), >= 0.

    ``rho·α + (ln(1/δ) + (α - 1) ln(1 - 1/α) - ln α)/(α - 1)``, valid at every order α > 1.

    Args:
        rho, target, order: as for :func:`mironov_epsilon`.

    Raises:
        MalformedError: rho < 0, target not between 0 and 1, or order <= 1.
    """
    level, goal, alpha = _read(rho, target, order)
    return _canonne(level, goal, alpha)


@precise
def bound(event: NoisyScores, target: Number) -> RenyiBound | None:
    """Return the `optimal` epsilon of an event, or None if the sampler's share is not covered.

    A millionth of delta pays for the sampler: valid if ``(1 + e^eps)·m·g·gamma`` stays below it.

    Args:
        event: what was released.
        target: delta, in (0, 1).

    Raises:
        InvalidArgumentError: another type, or delta out of range.
    """
    check_scores(event, "event")
    goal = exact(target, "delta", above=0, below=1)
    best = optimal(event.rho(), goal * (1 - _SET_ASIDE))
    # Compared before the exponential is taken: its argument may be astronomically large.
    if event.slack and (
        best.epsilon > _HOPELESS
        or (1 + best.epsilon.exp()) * decimal_of(event.slack) > decimal_of(goal * _SET_ASIDE)
    ):
        return None
    return best


@precise
def optimal(rho: Number, target: Number) -> RenyiBound:
    """Return the least `canonne_epsilon` of a rho-zCDP release, with its real order.

    The order is found by ternary search; any order gives a valid bound.

    Args:
        rho: 0 to 10^30.
        target: delta, in (0, 1).

    Raises:
        MalformedError: a value out of its range.
    """
    level = decimal(rho, "rho", least=0, most=LARGEST_RHO)
    goal = decimal(target, "delta", above=0, below=1)
    # Nothing was released; the search below would divide by it.
    if level == 0:
        return RenyiBound(Decimal(0), Decimal(2))
    start = (-goal.ln() / level).sqrt()
    # In powers of two around the best order of Mironov's conversion, which is known exactly.
    low, high = Decimal(-6), Decimal(6)
    for _ in range(_STEPS):
        low_third, high_third = low + (high - low) / 3, high - (high - low) / 3
        if _at(level, goal, start, low_third) <= _at(level, goal, start, high_third):
            high = high_third
        else:
            low = low_third
    # Where epsilon is 0 on a whole interval, the search ends at its edge: 0 is at ``high``.
    order = 1 + start * (high * _LN2).exp()
    # Raised by more than 80 digits lose: it is an upper bound at the order that is stated.
    return RenyiBound(_canonne(level, goal, order) * (1 + Decimal("1e-60")), order)


def _read(rho: Number, target: Number, order: Number) -> tuple[Decimal, Decimal, Decimal]:
    return (
        decimal(rho, "rho", least=0),
        decimal(target, "delta", above=0, below=1),
        decimal(order, "order", above=1),
    )


def _canonne(rho: Decimal, goal: Decimal, order: Decimal) -> Decimal:
    # Canonne, Kamath and Steinke 2020, Proposition 12; below 0 it says no more than 0.
    return max(Decimal(0), rho * order + canonne_inner(goal, order) / (order - 1))


def canonne_inner(goal: Decimal, order: Decimal) -> Decimal:
    """Return ``ln(1/δ) + (α - 1) ln(1 - 1/α) - ln α``, over ``α - 1`` what the conversion adds.

    Args:
        goal: delta, in (0, 1).
        order: alpha > 1.
    """
    return -goal.ln() + (order - 1) * (1 - 1 / order).ln() - order.ln()


def _at(rho: Decimal, goal: Decimal, start: Decimal, shift: Decimal) -> Decimal:
    return _canonne(rho, goal, 1 + start * (shift * _LN2).exp())
