"""Rényi and zero-concentrated accounting (docs/notes/accounting.md §4)."""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.accounting.checks import check_decimal, check_inside
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.normal import decimal_of, precise

__all__ = ["RenyiBound", "bound", "canonne_epsilon", "mironov_epsilon", "optimal"]

# The share of delta set aside for the sampler's distance.
_SET_ASIDE = Fraction(1, 10**6)
_LN2 = Decimal("0.69314718055994530941723212145817656807550013436025525412068000949339362196969")
_STEPS = 80
# e^1000 times any distance that a 128-bit table can have is above any delta.
_HOPELESS = 1000


class RenyiBound(NamedTuple):
    """An epsilon with the order at which it was found."""

    epsilon: Decimal
    order: Decimal


@precise
def mironov_epsilon(rho: Decimal, target: Decimal, order: Decimal) -> Decimal:
    """Return ``rho·α + ln(1/δ)/(α - 1)`` (Mironov 2017, Proposition 3; the paper's R3).

    Raises:
        MalformedError: rho < 0, target not between 0 and 1, or order <= 1.
    """
    _check(rho, target, order)
    return rho * order - target.ln() / (order - 1)


@precise
def canonne_epsilon(rho: Decimal, target: Decimal, order: Decimal) -> Decimal:
    """Return the conversion of Canonne, Kamath and Steinke (2020, Proposition 12), >= 0.

    ``rho·α + (ln(1/δ) + (α - 1) ln(1 - 1/α) - ln α)/(α - 1)``, valid at every order α > 1.

    Raises:
        MalformedError: rho < 0, target not between 0 and 1, or order <= 1.
    """
    _check(rho, target, order)
    inner = -target.ln() + (order - 1) * (1 - 1 / order).ln() - order.ln()
    return max(Decimal(0), rho * order + inner / (order - 1))


@precise
def bound(event: NoisyScores, target: Fraction) -> RenyiBound | None:
    """Return the best such epsilon of an event, or None if the sampler's share is not covered.

    A millionth of delta pays for the sampler: valid if ``(1 + e^eps)·m·g·gamma`` stays below
    it.
    """
    found = optimal(event.rho(), target * (1 - _SET_ASIDE))
    if event.slack and (
        found.epsilon > _HOPELESS
        or (1 + found.epsilon.exp()) * decimal_of(event.slack) > decimal_of(target * _SET_ASIDE)
    ):
        return None
    return found


@precise
def optimal(rho: Fraction, target: Fraction) -> RenyiBound:
    """Return the best such epsilon of a rho-zCDP release, with its real order.

    The order is found by ternary search; any order gives a valid bound.

    Args:
        rho: >= 0.
        target: delta, in (0, 1).

    Raises:
        MalformedError: a value out of its range.
    """
    check_inside(target, "delta")
    level, goal = decimal_of(rho), decimal_of(target)
    if level == 0:
        return RenyiBound(Decimal(0), Decimal(2))
    start = (-goal.ln() / level).sqrt()
    low, high = Decimal(-6), Decimal(6)
    for _ in range(_STEPS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if _at(level, goal, start, left) <= _at(level, goal, start, right):
            high = right
        else:
            low = left
    order = 1 + start * (low * _LN2).exp()
    return RenyiBound(canonne_epsilon(level, goal, order) * (1 + Decimal("1e-60")), order)


def _check(rho: Decimal, target: Decimal, order: Decimal) -> None:
    check_decimal(rho, "rho", least=Decimal(0))
    check_decimal(target, "delta", above=Decimal(0))
    check_decimal(order, "order", above=Decimal(1))
    if target >= 1:
        raise MalformedError("value out of range", where="delta", expected="below 1")


def _at(rho: Decimal, goal: Decimal, start: Decimal, shift: Decimal) -> Decimal:
    return canonne_epsilon(rho, goal, 1 + start * (shift * _LN2).exp())
