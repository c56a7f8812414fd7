"""Gaussian differential privacy: the headline accountant (docs/notes/accounting.md §3)."""

from decimal import Decimal
from functools import lru_cache

from ragaudit.encoding.errors import RejectedError
from ragaudit.privacy.accounting.events import NoisyScores, check_scores
from ragaudit.privacy.normal import density, mills, precise, quantile, tail
from ragaudit.privacy.numbers import Number, decimal, exact

__all__ = ["NoFiniteBound", "delta", "epsilon", "gives", "least_delta", "least_epsilon", "meets"]

# Every delta is raised by this share: far above what 80 digits lose, far below any rounding.
_UP = Decimal("1." + 49 * "0" + "1")
_WIDTH = Decimal("1e-18")
# Beyond these arguments the closed values are replaced by plain upper bounds.
_ZERO = Decimal(0)
_CERTAIN = Decimal(-60)
_REMOTE = Decimal(10_000)
_REMOTE_DELTA = Decimal("1e-20000000")


class NoFiniteBound(RejectedError):
    """No epsilon satisfies the delta equation: there is no finite guarantee."""


@precise
def delta(mu: Number, epsilon_value: Number) -> Decimal:
    """Return an upper bound of the least delta of a mu-GDP mechanism at ``epsilon_value``.

    ``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)`` (Balle and Wang 2018, Theorem 8), as
    ``density(a) (mills(a) - mills(a + mu))`` with ``a = eps/mu - mu/2``, because
    ``e^eps density(a + mu) = density(a)``.

    Args:
        mu: >= 0.
        epsilon_value: >= 0.

    Raises:
        MalformedError: a value out of its range.
    """
    mu = decimal(mu, "mu", least=0)
    if mu == 0:
        return _ZERO
    a = decimal(epsilon_value, "epsilon", least=0) / mu - mu / 2
    if a < _CERTAIN:
        return Decimal(1)
    if a > _REMOTE:
        return _REMOTE_DELTA
    # Mills' ratio needs arguments >= 0: its difference keeps digits that two tails would lose.
    if a >= 0:
        return density(a) * (mills(a) - mills(a + mu)) * _UP
    return (tail(a) - density(a) * mills(a + mu)) * _UP


@precise
def least_epsilon(mu: Number, target: Number, slack: Number = 0) -> Decimal | None:
    """Return the least epsilon >= 0 with ``delta(mu, eps) + (1 + e^eps) slack <= target``.

    The left side is convex in ``e^eps`` (claim 4), so it falls until
    ``tail(mu/2 + eps/mu) = slack`` and rises after; the answer lies on the falling part.

    Args:
        mu: >= 0.
        target: the delta to be met, in (0, 1).
        slack: m·g·gamma, >= 0.

    Returns:
        The upper end of an interval of relative width at most 1e-18 around it, or None.

    Raises:
        MalformedError: a value out of its range.
    """
    mu = decimal(mu, "mu", least=0)
    goal = decimal(target, "delta", above=0, below=1)
    share = decimal(slack, "slack", least=0) * _UP
    return _least_epsilon(mu, goal, share)


# Prover, verifier and report ask for the same numbers of a window.
@lru_cache(maxsize=256)
@precise
def _least_epsilon(mu: Decimal, goal: Decimal, share: Decimal) -> Decimal | None:
    low = Decimal(0)
    if _total(mu, low, share) <= goal:
        return low
    # Past the turning point the sum only rises: no answer is there (claim 4).
    high = _turning_point(mu, share) if share else _doubled(mu, goal)
    if high is None or _total(mu, high, share) > goal:
        return None
    # The upper end always satisfies the inequality: it is what is returned, rounded up.
    while high - low > _WIDTH * max(Decimal(1), high):
        middle = (low + high) / 2
        if _total(mu, middle, share) <= goal:
            high = middle
        else:
            low = middle
    return high


def epsilon(event: NoisyScores, target: Number) -> Decimal:
    """Return the headline epsilon of an event (docs/notes/accounting.md §3).

    Args:
        event: what was released.
        target: delta, between 0 and 1.

    Raises:
        InvalidArgumentError: another type, or delta out of range.
        NoFiniteBound: no epsilon solves the equation.
    """
    check_scores(event, "event")
    goal = exact(target, "delta", above=0, below=1)
    least = least_epsilon(event.mu(), goal, event.slack)
    if least is None:
        raise NoFiniteBound(
            "no finite epsilon",
            where=f"{event.queries} queries at delta {float(goal):.3g}",
            expected="more noise, fewer queries or a larger delta",
        )
    return least


def gives(event: NoisyScores, epsilon_value: Number, target: Number) -> bool:
    """Return whether the event is (epsilon_value, target)-DP by the headline accountant.

    Args:
        event: what was released.
        epsilon_value: >= 0.
        target: delta, between 0 and 1.

    Raises:
        InvalidArgumentError: another type, or a value out of range.
    """
    check_scores(event, "event")
    return meets(event.mu(), epsilon_value, target, event.slack)


@precise
def least_delta(mu: Number, epsilon_value: Number, slack: Number = 0) -> Decimal:
    """Return the least ``delta(mu, e) + (1 + e^e) slack`` of the e up to ``epsilon_value``.

    Beyond the turning point of :func:`least_epsilon` the sum rises again, but what holds at a
    smaller epsilon holds at a larger one.

    Args:
        mu: >= 0.
        epsilon_value: >= 0.
        slack: m·g·gamma, >= 0.

    Returns:
        The sum, rounded up; not cut at 1.

    Raises:
        MalformedError: a value out of its range.
    """
    mu = decimal(mu, "mu", least=0)
    share = decimal(slack, "slack", least=0) * _UP
    at = decimal(epsilon_value, "epsilon", least=0)
    if share:
        at = min(at, _turning_point(mu, share) or Decimal(0))
    return _total(mu, at, share)


def meets(mu: Number, epsilon_value: Number, target: Number, slack: Number = 0) -> bool:
    """Return whether some epsilon up to ``epsilon_value`` satisfies `least_epsilon`'s inequality.

    Args:
        mu, slack: as for :func:`least_epsilon`.
        epsilon_value: >= 0.
        target: delta, in (0, 1).

    Raises:
        MalformedError: a value out of its range.
    """
    goal = decimal(target, "delta", above=0, below=1)
    return least_delta(mu, epsilon_value, slack) <= goal


@precise
def _total(mu: Decimal, epsilon_value: Decimal, share: Decimal) -> Decimal:
    loss = delta(mu, epsilon_value)
    return loss + (1 + epsilon_value.exp()) * share if share else loss


@precise
def _turning_point(mu: Decimal, share: Decimal) -> Decimal | None:
    if mu == 0 or share >= 1:
        return None
    # tail(mu/2 + eps/mu) = slack, solved for eps (claim 4).
    point = mu * (quantile(share) - mu / 2)
    return point if point > 0 else None


@precise
def _doubled(mu: Decimal, goal: Decimal) -> Decimal:
    high = max(Decimal(1), mu * mu)
    while delta(mu, high) > goal:
        high *= 2
    return high
