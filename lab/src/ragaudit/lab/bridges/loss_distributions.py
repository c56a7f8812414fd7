"""To and from dp-accounting: our events as theirs, their loss distributions as our guarantees.

dp-accounting doubles sensitivities for *its* REPLACE_ONE in some accountants and not in others
(google/differential-privacy issue 378). Our events carry the shift of their own relation already,
so what is made here is for its ADD_OR_REMOVE_ONE, and stands for the relation of the event. What
comes from there has no relation of ours: it has to be named. Binary arithmetic, no certificate.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting import accountants as library
from ragaudit.privacy.accounting.accountants import GaussianAccountant
from ragaudit.privacy.accounting.events import Event, releases
from ragaudit.privacy.guarantees import ApproximateDp
from ragaudit.privacy.numbers import Number, exact, real, sequence

if TYPE_CHECKING:
    from ragaudit.lab.risk.trade_off import PrivacyProfile

EPSILONS = (0.0, 0.01, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)


def dp_event(event: Event) -> Any:
    """Return a ``dp_accounting.DpEvent`` of the same releases, for its ADD_OR_REMOVE_ONE.

    Each part is a self-composition of Gaussian releases whose noise multiplier is the reciprocal
    of one query's mu, variance correction included; the sampler's distance is not in it.

    Args:
        event: noisy scores, coalitions, and compositions of those.

    Raises:
        UnsupportedError: an unknown event.
        RefusedError: a part without a query.
    """
    from dp_accounting import (  # noqa: PLC0415 - loads slowly
        ComposedDpEvent,
        GaussianDpEvent,
        SelfComposedDpEvent,
    )

    parts = []
    for release in releases(event):
        if release.queries == 0:
            raise RefusedError("nothing was released", where="event", expected="a query")
        single = float(GaussianAccountant().gaussian(release.with_queries(1)).mu)
        parts.append(SelfComposedDpEvent(GaussianDpEvent(1 / single), release.queries))
    return parts[0] if len(parts) == 1 else ComposedDpEvent(parts)


def loss_distribution(event: Event) -> Any:
    """Return dp-accounting's pessimistic ``PrivacyLossDistribution`` of an event, composed by it.

    Args:
        event: as of `dp_event`; parts without a query are left out.

    Raises:
        UnsupportedError: an unknown event.
        RefusedError: mu is 0, or above 20, where the discretised distribution gets large.
    """
    accountant = GaussianAccountant()
    total = float(accountant.gaussian(event).mu)
    if not 0 < total <= library.LARGEST_MU:
        raise RefusedError(
            f"mu is {total:.3g}", where="event", expected=f"above 0, up to {library.LARGEST_MU:g}"
        )
    shifts = [float(accountant.gaussian(part).mu) for part in releases(event) if part.queries]
    return library.composed(shifts, total)


def profile_of(
    distribution: object,
    relation: NeighboringRelation,
    epsilons: Sequence[Number] = EPSILONS,
) -> "PrivacyProfile":
    """Return the (epsilon, delta) pairs of a privacy loss distribution, for bounds on risk.

    Args:
        distribution: a ``PrivacyLossDistribution``, or anything with ``get_delta_for_epsilon``.
        relation: between which data sets it was made; nobody else knows.
        epsilons: where it is evaluated, >= 0.

    Raises:
        InvalidArgumentError: another object, no epsilon, or one that is out of range.
    """
    from ragaudit.lab.risk.trade_off import PrivacyProfile  # noqa: PLC0415 - loads scipy

    find = _method(distribution, "get_delta_for_epsilon")
    losses = [real(each, "epsilons", least=0) for each in sequence(epsilons, "epsilons")]
    # Binary rounding may leave the unit interval by a hair; what is above it promises nothing.
    pairs = [(loss, min(1.0, max(0.0, float(find(loss))))) for loss in losses]
    return PrivacyProfile(pairs, relation)


def approximate_of(
    distribution: object, delta: Number, relation: NeighboringRelation
) -> ApproximateDp:
    """Return (epsilon, delta)-DP of a privacy loss distribution, as that library has it.

    Args:
        distribution: anything with ``get_epsilon_for_delta``.
        delta: between 0 and 1.
        relation: between which data sets it was made.

    Raises:
        InvalidArgumentError: another object, or a value out of range.
        RefusedError: no finite epsilon.
    """
    target = exact(delta, "delta", above=0, below=1)
    found = Decimal(float(_method(distribution, "get_epsilon_for_delta")(float(target))))
    if not found.is_finite():
        raise RefusedError("no finite epsilon", where="delta", expected="a larger delta")
    return ApproximateDp(max(Fraction(0), Fraction(found)), target, relation)


def _method(distribution: object, name: str) -> Any:
    method = getattr(distribution, name, None)
    if not callable(method):
        raise InvalidArgumentError(
            f"wrong type: {type(distribution).__name__}",
            where="distribution",
            expected=f"a privacy loss distribution, with {name}",
        )
    return method
