"""To and from OpenDP: guarantees as privacy profiles and maps of measurements.

OpenDP's features `contrib` and `honest-but-curious` are enabled on first use: a map that we
define is one that OpenDP has to take our word for.

A measurement of ours maps a distance between data sets, counted in records, to what the release
costs: OpenDP's change-one distance for `replace`, its symmetric distance for `add-remove`, and a
distance of our own name for `null-replace`, which OpenDP does not have.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from ragaudit.encoding.errors import InvalidArgumentError, RefusedError, UnsupportedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.bridges.extra import library
from ragaudit.lab.bridges.loss_distributions import EPSILONS
from ragaudit.privacy.accounting.accountants import LARGEST_EPSILON, GaussianAccountant
from ragaudit.privacy.accounting.events import Event
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, ZeroConcentratedDp
from ragaudit.privacy.numbers import Number, count, instance, real, sequence

if TYPE_CHECKING:
    from ragaudit.lab.risk.trade_off import PrivacyProfile


def opendp_profile(guarantee: "ApproximateDp | GaussianDp | PrivacyProfile | Event") -> Any:
    """Return an ``opendp.mod.PrivacyProfile``: delta by epsilon and epsilon by delta.

    Args:
        guarantee: mu-GDP (its exact curve), (epsilon, delta)-DP or a profile of several pairs
            (what follows from them at every epsilon), or an event (its exact curve with the
            sampler's share).

    Raises:
        InvalidArgumentError: another kind of guarantee.
        UnsupportedError: OpenDP is not installed.
    """
    measures = _opendp("opendp.measures")
    return measures.new_privacy_profile(_curve(guarantee))


def opendp_measurement(
    guarantee: ApproximateDp | GaussianDp | ZeroConcentratedDp,
    release: Callable[[Any], Any],
) -> Any:
    """Return an OpenDP measurement whose privacy map is that of the guarantee.

    The map takes how many records differ: k of them cost k mu, k² rho, or k epsilon and
    ``delta (1 + e^epsilon + .. + e^((k-1) epsilon))``. The measure is SmoothedMaxDivergence,
    ZeroConcentratedDivergence and Approximate(MaxDivergence) in this order.

    Args:
        guarantee: under its own relation, which gives the input metric.
        release: the mechanism, from a data set to an output; only called when the measurement is.

    Raises:
        InvalidArgumentError: what cannot be called as a release.
        UnsupportedError: OpenDP is not installed, or another kind of guarantee.
    """
    if not callable(release):
        raise InvalidArgumentError(
            f"wrong type: {type(release).__name__}", where="release", expected="a function"
        )
    measures, metrics = _opendp("opendp.measures"), _opendp("opendp.metrics")
    divergence, privacy_map = _map(guarantee, measures)
    metric = {
        NeighboringRelation.REPLACE: metrics.change_one_distance,
        NeighboringRelation.ADD_REMOVE: metrics.symmetric_distance,
    }.get(guarantee.relation, lambda: metrics.user_distance(str(guarantee.relation)))
    domain = _opendp("opendp.domains").user_domain("records of a data set", lambda _: True)
    return _opendp("opendp.measurements").make_user_measurement(
        domain, metric(), divergence, release, privacy_map
    )


def opendp_guarantee(
    measurement: Any,
    relation: NeighboringRelation,
    distance: Any = 1,
    epsilons: Sequence[Number] = EPSILONS,
) -> "ApproximateDp | ZeroConcentratedDp | PrivacyProfile":
    """Return what an OpenDP measurement's privacy map says of inputs at a distance.

    Args:
        measurement: of the measure MaxDivergence, Approximate(MaxDivergence),
            ZeroConcentratedDivergence or SmoothedMaxDivergence.
        relation: of the data sets that are at this distance; nobody else knows.
        distance: in the measurement's input metric, of its type.
        epsilons: where a smoothed measurement's profile is evaluated, >= 0.

    Raises:
        InvalidArgumentError: no measurement, another type of distance, an unknown relation, or an
            epsilon out of range.
        RefusedError: OpenDP's map gives no finite bound.
        UnsupportedError: OpenDP is not installed, or another measure.
    """
    if not isinstance(measurement, _opendp("opendp.mod").Measurement):
        raise InvalidArgumentError(
            f"wrong type: {type(measurement).__name__}",
            where="measurement",
            expected="an opendp.mod.Measurement",
        )
    relation = NeighboringRelation.of(relation)
    losses = [real(each, "epsilons", least=0) for each in sequence(epsilons, "epsilons")]
    try:
        measure, found = str(measurement.output_measure.type), measurement.map(distance)
    except _refusals() as error:
        raise InvalidArgumentError(
            f"wrong type, or no distance: type {type(distance).__name__}",
            where="distance",
            expected=str(measurement.input_metric),
        ) from error
    if measure == "MaxDivergence":
        return ApproximateDp.of(_finite(found), 0, relation)
    if measure in ("Approximate<MaxDivergence>", "FixedSmoothedMaxDivergence"):
        return ApproximateDp.of(_finite(found[0]), found[1], relation)
    if measure == "ZeroConcentratedDivergence":
        return ZeroConcentratedDp.of(_finite(found), relation)
    if measure != "SmoothedMaxDivergence":
        raise UnsupportedError(f"measure {measure}", where="measurement")
    from ragaudit.lab.risk.trade_off import PrivacyProfile  # noqa: PLC0415 - loads scipy

    pairs = [(loss, min(1.0, max(0.0, found.delta(loss)))) for loss in losses]
    return PrivacyProfile(pairs, relation)


def _opendp(name: str) -> Any:
    module = library(name)
    module_of_features = library("opendp.mod")
    module_of_features.enable_features("contrib", "honest-but-curious")
    return module


def _refusals() -> tuple[type[Exception], ...]:
    """What OpenDP raises where an argument of a map does not fit."""
    module = _opendp("opendp.mod")
    return (module.OpenDPException, module.UnknownTypeException, TypeError, ValueError,
            OverflowError)  # fmt: skip


def _curve(guarantee: Any) -> Callable[[float], float]:
    """delta by epsilon, rounded up. OpenDP asks at any epsilon, however large."""
    from ragaudit.lab.risk.trade_off import PrivacyProfile  # noqa: PLC0415 - loads scipy

    instance(guarantee, (GaussianDp, ApproximateDp, PrivacyProfile, *get_args(Event)), "guarantee")
    if isinstance(guarantee, GaussianDp):
        return lambda epsilon: _up(guarantee.at_epsilon(min(epsilon, LARGEST_EPSILON)).delta)
    if isinstance(guarantee, ApproximateDp):
        pair = (float(guarantee.epsilon), float(guarantee.delta))
        return lambda epsilon: _least([pair], epsilon)
    if isinstance(guarantee, PrivacyProfile):
        pairs = sorted(guarantee.pairs)
        return lambda epsilon: _least(pairs, epsilon)
    accountant = GaussianAccountant()
    return lambda epsilon: _up(
        accountant.at_epsilon(guarantee, min(epsilon, LARGEST_EPSILON)).delta
    )


def _least(pairs: Sequence[tuple[float, float]], at: float) -> float:
    """The least delta at an epsilon that rising pairs of one mechanism imply."""
    least = min(_implied(*pair, at) for pair in pairs)
    for (low, first), (high, last) in pairwise(pairs):
        if low < at < high and last < first:
            # delta is convex in e^epsilon: between two points it lies below their chord.
            share = (math.exp(at - high) - math.exp(low - high)) / -math.expm1(low - high)
            least = min(least, math.nextafter(first + share * (last - first), 1.0))
    return least


def _implied(epsilon: float, delta: float, at: float) -> float:
    """The least delta at another epsilon that (epsilon, delta)-DP implies (Kairouz et al. 2017)."""
    if at >= epsilon:
        return delta
    # 1 - (1 - delta)(1 + e^at)/(1 + e^epsilon), with powers of negative numbers only.
    share = (math.exp(at - epsilon) + math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    return min(1.0, math.nextafter(1 - (1 - delta) * share, 1.0))


def _map(guarantee: Any, measures: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The measure and the map from a number of records to a distance in it."""
    if isinstance(guarantee, GaussianDp):
        return (
            measures.smoothed_max_divergence(),
            lambda distance: (
                opendp_profile(
                    GaussianDp(_records(distance) * guarantee.mu, guarantee.relation)
                ).curve
            ),
        )
    if isinstance(guarantee, ZeroConcentratedDp):
        return measures.zero_concentrated_divergence(), lambda distance: _up(
            _records(distance) ** 2 * guarantee.rho
        )
    if isinstance(guarantee, ApproximateDp):
        return measures.approximate(measures.max_divergence()), lambda distance: _group(
            guarantee, _records(distance)
        )
    raise UnsupportedError(
        f"wrong type: {type(guarantee).__name__}",
        where="guarantee",
        expected="approximate, Gaussian or zero-concentrated DP",
    )


def _records(distance: Any) -> int:
    return count(distance, "distance", least=0)


def _group(guarantee: ApproximateDp, count: int) -> tuple[float, float]:
    """(epsilon, delta) of ``count`` records: Vadhan 2017, Lemma 2.2."""
    epsilon, delta = _up(count * guarantee.epsilon), float(guarantee.delta)
    if count > 1 and delta:
        step = float(guarantee.epsilon)
        delta = math.inf if epsilon > 700 else delta * sum(math.exp(i * step) for i in range(count))
        delta = math.nextafter(delta, math.inf)
    return (epsilon, delta) if delta < 1 else (epsilon, 1.0)


def _up(value: Fraction) -> float:
    """The least float that is not below."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise RefusedError("no finite bound", where="measurement", expected="a smaller distance")
    return value
