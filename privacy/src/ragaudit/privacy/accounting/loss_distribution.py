"""Privacy loss distribution: a second accountant, by another library and another method."""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ragaudit.encoding.errors import InternalError
from ragaudit.privacy.accounting.events import NoisyScores

__all__ = ["LARGEST_MU", "agrees", "composed", "composed_epsilon", "epsilon"]

LARGEST_MU = 20.0
"""Beyond it the discretised distribution gets large and the comparison is left out."""

_POINTS_PER_MU = 4_000
_LOG_TRUNCATED_MASS = -60


def epsilon(event: NoisyScores, target: Fraction) -> float | None:
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
