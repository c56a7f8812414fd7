"""To and from other libraries: dp-accounting, OpenDP and riskcal.

    dp_event(event)                                      an event for dp-accounting's accountants
    loss_distribution(event)                             its composed privacy loss distribution
    profile_of(distribution, relation)                   a bound's guarantee from any distribution
    approximate_of(distribution, delta, relation)

    opendp_profile(guarantee)                            OpenDP's curve, delta by epsilon
    opendp_measurement(guarantee, release)               a measurement with our privacy map
    opendp_guarantee(measurement, relation, distance)    a guarantee from a measurement's map

    attack_rates(event)                                  riskcal's attack rates of an event
    risk_evaluator(relation, group_size, queries)        our mechanism, for riskcal's calibration

dp-accounting comes with this package. OpenDP and riskcal come with its extra `bridges`; without
it their functions say so. What goes through a bridge is binary arithmetic and no certificate.

dp-accounting doubles sensitivities for *its* REPLACE_ONE in some accountants and not in others
(google/differential-privacy issue 378). Our events carry the shift of their own relation already,
so what is made here is for its ADD_OR_REMOVE_ONE, and stands for the relation of the event. What
comes from there has no relation of ours: it has to be named.

OpenDP's features `contrib` and `honest-but-curious` are enabled on first use: a map that we
define is one that OpenDP has to take our word for. A measurement of ours maps a distance between
data sets, counted in records, to what the release costs: OpenDP's change-one distance for
`replace`, its symmetric distance for `add-remove`, and a distance of our own name for
`null-replace`, which OpenDP does not have.

riskcal reads a privacy loss distribution and gives the rates of the best membership attack. Its
numbers describe the *distribution* that it is handed, which is dp-accounting's pessimistic one of
an ideal sampler. There is no way back from a rate: a point of a trade-off curve bounds nothing
between two points (a convex curve lies below its chords), so no guarantee is made of one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from ragaudit.encoding.errors import InvalidArgumentError, RefusedError, UnsupportedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.accountants import (
    LARGEST_EPSILON,
    LARGEST_MU,
    GaussianAccountant,
    composed,
)
from ragaudit.privacy.accounting.events import Event, NoisyScores, releases
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, ZeroConcentratedDp
from ragaudit.privacy.numbers import Number, count, exact, instance, real, sequence

if TYPE_CHECKING:
    from ragaudit.lab.risk.trade_off import PrivacyProfile


def _library(name: str) -> Any:
    """Return a module of an optional library.

    Args:
        name: of the module; its first part is the library that the error names.

    Raises:
        UnsupportedError: the library is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"{name.partition('.')[0]} is not installed",
            where="bridges",
            expected="ragaudit-lab with its extra `bridges`",
        ) from error


# --- dp-accounting -------------------------------------------------------------------------------

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
    if not 0 < total <= LARGEST_MU:
        raise RefusedError(
            f"mu is {total:.3g}", where="event", expected=f"above 0, up to {LARGEST_MU:g}"
        )
    shifts = [float(accountant.gaussian(part).mu) for part in releases(event) if part.queries]
    return composed(shifts, total)


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


# --- OpenDP --------------------------------------------------------------------------------------


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
    module = _library(name)
    module_of_features = _library("opendp.mod")
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


# --- riskcal -------------------------------------------------------------------------------------

_RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class AttackRates:
    """What riskcal says of the best attack that tells two neighbours apart.

    Attributes:
        advantage: largest true positive rate less false positive rate.
        false_positives, false_negatives: rates of the best tests; the second by the first.
        accuracy: largest share of right answers where both neighbours are equally likely.
    """

    advantage: float
    false_positives: tuple[float, ...]
    false_negatives: tuple[float, ...]
    accuracy: float


def attack_rates(source: Event | Any, false_positives: Sequence[Number] = _RATES) -> AttackRates:
    """Return riskcal's rates of the best attack.

    Args:
        source: an event, or a privacy loss distribution of dp-accounting.
        false_positives: rates at which the least false negative rate is wanted, 0 to 1.

    Raises:
        InvalidArgumentError: a rate out of range, or neither an event nor a distribution.
        RefusedError: the event's mu is 0, or above 20.
        UnsupportedError: riskcal is not installed.
    """
    analysis = _library("riskcal.analysis")
    rates = [
        real(each, "false_positives", least=0, most=1)
        for each in sequence(false_positives, "false_positives")
    ]
    distribution = source
    if not hasattr(source, "get_delta_for_epsilon"):
        instance(source, get_args(Event), "source")
        distribution = loss_distribution(source)
    advantage = float(analysis.get_advantage_from_pld(distribution))
    missed = (float(analysis.get_beta_from_pld(distribution, alpha=rate)) for rate in rates)
    error = float(analysis.get_bayes_risk_from_pld(distribution, 0.5))
    return AttackRates(advantage, tuple(rates), tuple(missed), 1 - error)


def risk_evaluator(
    relation: NeighboringRelation,
    group_size: int,
    queries: int,
    *,
    false_positive: Number = 0.1,
    delta: Number = "1e-6",
) -> Callable[[float], Any]:
    """Return a function from sigma to ``riskcal.calibration`` metrics of one account.

    For ``riskcal.calibration.core.calibrate_parameter``, whose search is for the sigma that has
    an advantage, a pair of error rates, or (epsilon, delta). More sigma is less risk: give its
    configuration ``increasing=False`` for an advantage or an epsilon.

    Args:
        relation, group_size, queries: of the account's policy.
        false_positive: at which the metrics' false negative rate is.
        delta: at which their epsilon is.

    Raises:
        InvalidArgumentError: a value out of range.
        UnsupportedError: riskcal is not installed.
    """
    core = _library("riskcal.calibration.core")
    rate = real(false_positive, "false_positive", least=0, most=1)
    target = real(delta, "delta", above=0, below=1)
    NoisyScores.of_policy(1, relation, group_size, queries)  # bad terms are told at once

    def evaluate(sigma: float) -> Any:
        event = NoisyScores.of_policy(sigma, relation, group_size, queries)
        distribution = loss_distribution(event)
        found = attack_rates(distribution, [rate])
        return core.PrivacyMetrics(
            advantage=found.advantage,
            alpha=rate,
            beta=found.false_negatives[0],
            epsilon=float(distribution.get_epsilon_for_delta(target)),
            delta=target,
        )

    return evaluate
