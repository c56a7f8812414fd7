"""Bounds that know of the mechanism only what it guarantees, and the smallest that applies.

Balboa et al., Theorems 4.2, 5.1, 5.5, Proposition 5.3, Corollary 5.6 and Table 1, corrected
(docs/notes/disclosure-risk.md §6 to §8). Each refuses a scenario outside of its assumptions, and
has them attached.

Reconstruction robustness (ReRo), the older measure, is here for comparison only: a ReRo bound
limits a *success probability*. It counts what could be guessed without the data as risk, and it is
false against attackers who know something about their target. Balle, Cherubin and Hayes 2022
(Eq. 1); Hayes, Balle and Mahloujifar 2023 (Eq. 3).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.mechanisms import channel_total_variation, finite_advantage
from ragaudit.lab.risk.threat import (
    ContinuousPrior,
    FinitePrior,
    SuccessSets,
    ThreatModel,
    continuous_summary,
    largest,
)
from ragaudit.lab.risk.trade_off import (
    GaussianTradeOff,
    Guarantee,
    TradeOff,
    approximate_total_variation,
    times_expm1,
    trade_off,
)
from ragaudit.lab.risk.validation import (
    AssumptionError,
    FloatArray,
    check_delta,
    check_epsilon,
    check_finite,
    check_integer,
    check_probability,
    probability_vector,
    typed,
)
from ragaudit.privacy.accounting.risk import PriorSummary
from ragaudit.privacy.guarantees import ApproximateDp
from ragaudit.privacy.numbers import instance, sequence


class Knowledge(StrEnum):
    """What the attacker may know of the target beforehand.

    NONE: nothing (the paper's empty aux). ANY: any auxiliary knowledge, or it is not known which.
    """

    NONE = "none"
    ANY = "any"


@typed
@dataclass(frozen=True)
class Scenario:
    """Attacker and records as far as bounds for unknown mechanisms depend on them.

    Attributes:
        summary: ``kappa_pi``, ``kappa_minus``, ``kappa_plus``.
        knowledge: of the attacker.
        exact_guesses: whether only the record itself counts.
        prior: the finite prior, if known.
        records: number of records, if finite and known.
        is_uniform: whether the prior is known to be uniform over them.
        relation: the relation between two data sets that differ in the target only. Two
            records in the same place: REPLACE_ONE.
        prior_name: for reports.
    """

    summary: PriorSummary
    knowledge: Knowledge
    exact_guesses: bool
    prior: FinitePrior | None = None
    records: int | None = None
    is_uniform: bool = False
    relation: NeighboringRelation = NeighboringRelation.REPLACE
    prior_name: str = "given"

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", NeighboringRelation.of(self.relation))
        if self.records is not None:
            check_integer(self.records, "records", least=2)

    @classmethod
    @typed
    def of_threat(cls, threat: ThreatModel) -> Self:
        """Return the scenario of a threat model.

        Args:
            threat: its auxiliary knowledge counts as ANY unless it is none; so bounds that ask for
                none refuse it, and those that hold with any remain.
        """
        name = "uniform" if threat.prior.is_uniform else "given"
        return cls(
            threat.summary,
            Knowledge.NONE if threat.auxiliary.is_none else Knowledge.ANY,
            threat.success.is_exact,
            threat.prior,
            threat.records,
            threat.prior.is_uniform,
            prior_name=f"{name}, {threat.records} records",
        )

    @classmethod
    @typed
    def uniform(cls, records: int, knowledge: Knowledge = Knowledge.NONE) -> Self:
        """Return the scenario of a uniform prior and exact guesses; it needs no memory.

        Args:
            records: m >= 2.
            knowledge: of the attacker.
        """
        m = check_integer(records, "records", least=2)
        return cls(
            PriorSummary.uniform(m),
            knowledge,
            exact_guesses=True,
            records=m,
            is_uniform=True,
            prior_name=f"uniform, {m} records",
        )

    @classmethod
    @typed
    def continuous(cls, prior: ContinuousPrior, eta: float) -> Self:
        """Return the scenario of continuous records, loss ``|z' - z|``, no auxiliary knowledge.

        Args:
            prior: of the records.
            eta: >= 0, largest distance that counts as success, in the records' unit.
        """
        summary = continuous_summary(prior, eta)
        return cls(summary, Knowledge.NONE, exact_guesses=False, prior_name=prior.name)

    @classmethod
    def unknown_prior(cls, records: int | None = None) -> Self:
        """Return the scenario of any prior, any knowledge and any eta.

        All that is left is total variation; the "two easiest records" of the paper's protocol can
        understate the risk by half (note, claim 6.6).

        Args:
            records: at most so many, >= 2; None for any number.
        """
        least = 0.0 if records is None else 1 / check_integer(records, "records", least=2)
        summary = PriorSummary.of(least, 0, 1)
        return cls(summary, Knowledge.ANY, exact_guesses=False, records=records, prior_name="any")

    @classmethod
    def absence(
        cls, presence: float = 0.5, relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
    ) -> Self:
        """Return the scenario of one known document, present or not: the "records" are both cases.

        Args:
            presence: prior probability that it is present, in [0, 1].
            relation: ADD_REMOVE, or NULL_REPLACE if absence leaves an empty record behind.
        """
        if NeighboringRelation.of(relation) is NeighboringRelation.REPLACE:
            raise InvalidArgumentError(
                "a document is not absent under replace",
                where="relation",
                expected="add-remove or null-replace",
            )
        share = check_probability(presence, "presence")
        prior = FinitePrior([share, 1 - share])
        threat = ThreatModel.reconstruction(prior, SuccessSets.exact(2))
        scenario = cls.of_threat(threat)
        return replace(scenario, relation=relation, prior_name="a document or its absence")

    @typed
    def require(self, guarantee: Guarantee) -> None:
        """Refuse a guarantee for another relation than the one between the records.

        Args:
            guarantee: of the mechanism.

        Raises:
            AssumptionError: convert it by name: ``guarantee.under(NeighboringRelation.REPLACE)``.
        """
        if guarantee.relation != self.relation:
            raise AssumptionError(
                f"a {guarantee.relation} guarantee does not cover these records",
                where="relation",
                expected=f"{self.relation}; convert with `under`",
            )

    def require_no_knowledge(self) -> None:
        """Refuse auxiliary knowledge: the bound is false with it."""
        if self.knowledge is not Knowledge.NONE:
            raise AssumptionError(
                "the attacker may have auxiliary knowledge",
                where="knowledge",
                expected="none; otherwise Theorem 4.2",
            )


class Assumptions(NamedTuple):
    """Under which a bound holds; words for reports.

    Attributes:
        prior, auxiliary, eta: what is assumed, or "any".
        relation: the relation of the guarantee used.
        mechanism: what is assumed of the mechanism.
    """

    prior: str
    auxiliary: str
    eta: str
    relation: NeighboringRelation
    mechanism: str


@dataclass(frozen=True)
class Bound:
    """An upper bound of the reconstruction advantage of every attack.

    Attributes:
        value: >= 0; a bound above 1 - kappa says nothing.
        theorem: where it is proved.
        assumptions: under which.
        composes: whether the bound of several releases follows from a composed guarantee. Not
            so for the exact optimum: it needs the joint law of all outputs.
    """

    value: float
    theorem: str
    assumptions: Assumptions
    composes: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the bound as JSON values."""
        return {
            "value": self.value,
            "theorem": self.theorem,
            "assumptions": self.assumptions._asdict(),
            "composes": self.composes,
        }


class NormalizedAdvantage(NamedTuple):
    """An advantage as a share of the largest possible one.

    Attributes:
        value: advantage / (1 - kappa); 0 where it is not defined.
        defined: False for a prior that knows the record beforehand (kappa = 1): no risk.
    """

    value: float
    defined: bool


@typed
def normalized(advantage: float, summary: PriorSummary) -> NormalizedAdvantage:
    """Return the advantage divided by ``1 - kappa_pi``.

    Args:
        advantage: an advantage, or a bound of one.
        summary: of the prior.
    """
    value, possible = check_finite(advantage, "advantage"), 1 - float(summary.collision_probability)
    if possible <= 0:
        return NormalizedAdvantage(0.0, False)
    return NormalizedAdvantage(value / possible, True)


# Added to every bound, relative and absolute: more than binary arithmetic loses (note, §11).
_RELATIVE = 1e-12
_ABSOLUTE = 2.0**-52
# Theorem 5.5 adds up to K records' shares one by one.
_RELATIVE_PER_RECORD = 2.0**-51


@typed
def total_variation_bound(scenario: Scenario, guarantee: Guarantee) -> Bound:
    """Return ``TV (1 - kappa)``: any prior, knowledge and eta (Theorem 4.2).

    Args:
        scenario: of any kind.
        guarantee: under the scenario's relation.
    """
    scenario.require(guarantee)
    curve = trade_off(guarantee)
    value = curve.total_variation * (1 - float(scenario.summary.collision_probability))
    return _bound(value, "Theorem 4.2", scenario, curve, auxiliary="any", eta="any")


@typed
def trade_off_forms(summary: PriorSummary, curve: TradeOff) -> tuple[float, float]:
    """Return both forms of Theorem 5.1; the bound is their minimum.

    First: the largest gap over ``[kappa_minus, kappa_plus]``. Second: ``1 - kappa`` times the
    largest over ``[max(0, (kappa_minus - kappa)/(1 - kappa)), min(1, kappa_plus/(1 - kappa))]``,
    0 if kappa = 1. Neither is always the smaller one.

    Args:
        summary: kappa, kappa_minus and kappa_plus of the prior.
        curve: of the guarantee.
    """
    first = curve.largest_gap(float(summary.least_ball), float(summary.largest_ball))
    rest = 1 - float(summary.collision_probability)
    if rest <= 0:
        return first, 0.0
    high = min(1.0, float(summary.largest_ball) / rest)
    low = min(
        high, max(0.0, (float(summary.least_ball) - float(summary.collision_probability)) / rest)
    )
    return first, rest * curve.largest_gap(low, high)


@typed
def trade_off_bound(scenario: Scenario, guarantee: Guarantee) -> Bound:
    """Return the smaller form of Theorem 5.1: no auxiliary knowledge, any eta.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: under the scenario's relation.

    Raises:
        AssumptionError: another relation, or auxiliary knowledge.
    """
    scenario.require(guarantee)
    scenario.require_no_knowledge()
    curve = trade_off(guarantee)
    value = min(trade_off_forms(scenario.summary, curve))
    return _bound(value, "Theorem 5.1", scenario, curve, auxiliary="none", eta="any")


@typed
def approximate_dp_terms(
    summary: PriorSummary, epsilon: float, delta: float, *, tightened: bool = True
) -> tuple[float, float, float]:
    """Return the three terms of Proposition 5.3; the first is infinite beyond all floats.

    ``kappa_plus (e^eps - 1) + (1 - kappa) delta``, ``((1 - kappa_minus)(e^eps - 1) + delta)/e^eps``
    and ``TV (1 - kappa)``.

    Args:
        tightened: False gives the paper's first term, with delta instead of (1 - kappa) delta.

    Returns:
        Three upper bounds, each of which may exceed 1.
    """
    eps, d = check_epsilon(epsilon), check_delta(delta)
    rest = 1 - float(summary.collision_probability)
    first = times_expm1(float(summary.largest_ball), eps) + (rest if tightened else 1.0) * d
    second = (1 - float(summary.least_ball)) * -math.expm1(-eps) + d * math.exp(-eps)
    return first, second, approximate_total_variation(eps, d) * rest


@typed
def approximate_dp_bound(scenario: Scenario, guarantee: Guarantee) -> Bound:
    """Return the least term of Proposition 5.3: no auxiliary knowledge, any eta.

    Never below Theorem 5.1 for the same guarantee (claim 6.7); Gaussian DP is refused.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: approximate DP, total variation or a profile, under the scenario's relation.

    Raises:
        AssumptionError: another relation, auxiliary knowledge, or Gaussian DP.
    """
    scenario.require(guarantee)
    scenario.require_no_knowledge()
    curve = trade_off(guarantee)
    if isinstance(curve, GaussianTradeOff):
        raise AssumptionError(
            f"{curve.description} is no (epsilon, delta) guarantee",
            where="guarantee",
            expected="approximate DP; Theorem 5.1 is at least as good",
        )
    value = _least_over_pairs(
        curve, lambda eps, delta: min(approximate_dp_terms(scenario.summary, eps, delta))
    )
    return _bound(value, "Proposition 5.3", scenario, curve, auxiliary="none", eta="any")


class Knapsack(NamedTuple):
    """The greedy optimum behind Theorem 5.5.

    Attributes:
        value: the bound.
        full: K, how many records have their whole share.
        remainder: R >= 0, what is left for the next record.
    """

    value: float
    full: int
    remainder: float


def exact_guess_knapsack(probabilities: FloatArray, epsilon: float, delta: float) -> Knapsack:
    """Return ``max sum pi_i g_i`` with ``0 <= g_i <= A (1 - pi_i)`` and ``sum g_i <= G``.

    ``A = (e^eps - 1 + 2 delta)/(e^eps + 1)``, ``G = (m-1)(e^eps - 1 + m delta)/(e^eps + m - 1)``:
    a fractional knapsack, so the records of largest probability come first (Lemma 5.4 and
    Theorem 5.5).

    Args:
        probabilities: shape (m,), any order. Records of probability 0 count in m; without
            them the bound is smaller and still holds.
    """
    items = _Items(probability_vector(probabilities, "prior"))
    return _knapsack(items, check_epsilon(epsilon), check_delta(delta))


@typed
def exact_guess_bound(scenario: Scenario, guarantee: Guarantee) -> Bound:
    """Return Theorem 5.5 over the prior's support: no auxiliary knowledge, exact guesses.

    Of a guarantee with many (epsilon, delta), such as mu-GDP, the least over them (claim 7.5).

    Args:
        scenario: with its prior, exact guesses and no auxiliary knowledge.
        guarantee: under the scenario's relation.

    Raises:
        AssumptionError: another scenario, or a prior that is not given.
    """
    scenario.require(guarantee)
    _require_exact(scenario)
    if scenario.prior is None:
        raise AssumptionError(
            "the prior is not given", where="prior", expected="a FinitePrior, or Corollary 5.6"
        )
    curve = trade_off(guarantee)
    prior = scenario.prior.probabilities
    items = _Items(prior if scenario.prior.support == len(prior) else prior[prior > 0])

    def raised(epsilon: float, delta: float) -> float:
        found = _knapsack(items, epsilon, delta)
        return found.value * (1 + found.full * _RELATIVE_PER_RECORD)

    value = _least_over_pairs(curve, raised)
    return _bound(value, "Theorem 5.5", scenario, curve, auxiliary="none", eta="exact guesses")


def uniform_exact_guess_value(records: int, epsilon: float, delta: float) -> float:
    """Return ``(m-1)/m (e^eps - 1 + m delta)/(e^eps + m - 1)`` (Corollary 5.6); may exceed 1.

    Args:
        records: m >= 2.
        epsilon: >= 0.
        delta: 0 to 1.
    """
    m = check_integer(records, "records", least=2)
    return _guess_budget(m, check_epsilon(epsilon), check_delta(delta)) / m


@typed
def uniform_exact_guess_bound(scenario: Scenario, guarantee: Guarantee) -> Bound:
    """Return Corollary 5.6: uniform prior, no auxiliary knowledge, exact guesses.

    Of a guarantee with many (epsilon, delta), such as mu-GDP, the least over them (claim 7.5).

    Args:
        scenario: a uniform prior, exact guesses and no auxiliary knowledge.
        guarantee: under the scenario's relation.

    Raises:
        AssumptionError: another relation or scenario.
    """
    scenario.require(guarantee)
    _require_exact(scenario)
    m = scenario.records
    if not scenario.is_uniform or m is None:
        raise AssumptionError("the prior is not uniform", where="prior", expected="uniform")
    curve = trade_off(guarantee)
    value = _least_over_pairs(curve, lambda eps, delta: _guess_budget(m, eps, delta) / m)
    return _bound(value, "Corollary 5.6", scenario, curve, auxiliary="none", eta="exact guesses")


class _Items:
    """Probabilities of which the largest are sorted, as many as have been asked for.

    Attributes:
        count: of all probabilities.
        largest: the largest probabilities, descending.
        room, worth: running sums of ``1 - pi`` and ``pi (1 - pi)`` over ``largest``.
    """

    def __init__(self, probabilities: FloatArray) -> None:
        self._probabilities = probabilities
        self.count = len(probabilities)
        self.largest = self.room = self.worth = np.empty(0)

    def sort(self, needed: float) -> None:
        """See to it that the ``needed`` largest probabilities, or all, are sorted."""
        if needed <= len(self.largest) or len(self.largest) == self.count:
            return
        wanted = min(self.count, max(needed, 2 * len(self.largest)))
        self.largest = largest(self._probabilities, math.ceil(wanted))
        self.room = np.cumsum(1 - self.largest)
        self.worth = np.cumsum(self.largest * (1 - self.largest))


def _knapsack(items: _Items, epsilon: float, delta: float) -> Knapsack:
    share = approximate_total_variation(epsilon, delta)
    budget = _guess_budget(items.count, epsilon, delta)
    # K records have room for at least K - 1 shares: the probabilities sum to 1.
    items.sort(budget / share + 3 if share > 0 else items.count)
    if len(items.largest) == items.count and share * items.room[-1] <= budget:
        return Knapsack(
            share * float(items.worth[-1]), items.count, budget - share * float(items.room[-1])
        )
    found = int(np.searchsorted(items.room, budget / share, side="right"))
    full = min(found, len(items.room) - 1)  # the quotient may round up to all the room
    room, worth = (items.room[full - 1], items.worth[full - 1]) if full else (0.0, 0.0)
    remainder = max(0.0, budget - share * float(room))
    value = share * float(worth) + remainder * float(items.largest[full])
    return Knapsack(value, full, remainder)


def _guess_budget(records: int, epsilon: float, delta: float) -> float:
    """Lemma 5.4's ``G``, divided by e^eps above and below the line so that nothing overflows."""
    odds = math.exp(-epsilon)
    above = -math.expm1(-epsilon) + records * delta * odds
    return (records - 1) * above / (1 + (records - 1) * odds)


def _least_over_pairs(curve: TradeOff, value: Callable[[float, float], float]) -> float:
    """The least value over the (epsilon, delta) of a guarantee; each alone is sound.

    A Gaussian guarantee has one for every epsilon: the least is searched for on ever finer
    grids, and whatever is found holds.
    """
    if not isinstance(curve, GaussianTradeOff):
        return min(value(eps, delta) for eps, delta in curve.pairs)
    low, high = 0.0, min(40.0, curve.mu**2 / 2 + 8 * curve.mu)
    best = math.inf
    for points in (33, 9, 9, 9):
        grid = np.linspace(low, high, points)
        values = [value(float(eps), curve.delta(float(eps))) for eps in grid]
        least = int(np.argmin(values))
        best = min(best, values[least])
        low, high = float(grid[max(0, least - 1)]), float(grid[min(points - 1, least + 1)])
    return best


def _require_exact(scenario: Scenario) -> None:
    scenario.require_no_knowledge()
    if not scenario.exact_guesses:
        raise AssumptionError(
            "guesses need not be exact", where="exact_guesses", expected="eta below all distances"
        )


def _bound(
    value: float, theorem: str, scenario: Scenario, curve: TradeOff, *, auxiliary: str, eta: str
) -> Bound:
    assumptions = Assumptions(
        prior=scenario.prior_name,
        auxiliary=auxiliary,
        eta=eta,
        relation=scenario.relation,
        mechanism=curve.description,
    )
    raised = value + (_RELATIVE * value + _ABSOLUTE) if value > 0 else 0.0
    return Bound(raised, theorem, assumptions)


LABEL = "success probability, not advantage; not valid with target-specific knowledge"
"""Stands beside every ReRo value that is shown."""


@dataclass(frozen=True)
class SuccessBound:
    """An upper bound of a success probability; no bound of any advantage.

    Attributes:
        value: in [0, 1].
        equation: of the RAD paper.
        assumptions: under which it holds.
        label: ``LABEL``.
    """

    value: float
    equation: str
    assumptions: Assumptions
    label: str = LABEL

    def to_json(self) -> dict[str, Any]:
        """Return the bound as JSON values, label included."""
        return {
            "success_probability_at_most": self.value,
            "equation": self.equation,
            "assumptions": self.assumptions._asdict(),
            "label": self.label,
        }


def pure_dp_success(largest_ball: float, epsilon: float) -> float:
    """Return ``min(1, kappa_plus e^eps)``.

    Args:
        largest_ball: kappa_plus, 0 to 1.
        epsilon: >= 0.
    """
    kappa = check_probability(largest_ball, "largest_ball")
    return min(1.0, kappa + times_expm1(kappa, check_epsilon(epsilon)))


@typed
def trade_off_success(largest_ball: float, curve: TradeOff) -> float:
    """Return ``1 - f(kappa_plus)``.

    Args:
        largest_ball: kappa_plus, 0 to 1.
        curve: f, of the guarantee.
    """
    kappa = check_probability(largest_ball, "largest_ball")
    return min(1.0, curve.gap(kappa) + kappa)


@typed
def pure_dp_success_bound(scenario: Scenario, guarantee: ApproximateDp) -> SuccessBound:
    """Return Eq. (1). With delta > 0 it is false: use :func:`trade_off_success_bound`.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: with delta 0, under the scenario's relation.

    Raises:
        AssumptionError: another scenario or guarantee.
    """
    scenario.require(guarantee)
    scenario.require_no_knowledge()
    if guarantee.delta != 0:
        raise AssumptionError(
            f"delta is {float(guarantee.delta):g}", where="delta", expected="0, or Eq. (3)"
        )
    curve = trade_off(guarantee)
    value = pure_dp_success(float(scenario.summary.largest_ball), check_epsilon(guarantee.epsilon))
    return SuccessBound(value, "Eq. (1)", _assumptions(scenario, curve))


@typed
def trade_off_success_bound(scenario: Scenario, guarantee: Guarantee) -> SuccessBound:
    """Return Eq. (3), for any guarantee with a trade-off function.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: under the scenario's relation.

    Raises:
        AssumptionError: another scenario or relation.
    """
    scenario.require(guarantee)
    scenario.require_no_knowledge()
    curve = trade_off(guarantee)
    value = trade_off_success(float(scenario.summary.largest_ball), curve)
    return SuccessBound(value, "Eq. (3)", _assumptions(scenario, curve))


@typed
def success_bound(scenario: Scenario, guarantee: Guarantee) -> SuccessBound:
    """Return the one that applies: Eq. (1) for pure DP, Eq. (3) otherwise.

    Args:
        scenario: without auxiliary knowledge.
        guarantee: under the scenario's relation.

    Raises:
        AssumptionError: the attacker may know something about the target.
    """
    if isinstance(guarantee, ApproximateDp) and guarantee.delta == 0:
        return pure_dp_success_bound(scenario, guarantee)
    return trade_off_success_bound(scenario, guarantee)


def _assumptions(scenario: Scenario, curve: TradeOff) -> Assumptions:
    return Assumptions(
        prior=scenario.prior_name,
        auxiliary="none",
        eta="any",
        relation=scenario.relation,
        mechanism=curve.description,
    )


_ROWS: tuple[tuple[str, Callable[[Scenario, Guarantee], Bound]], ...] = (
    ("Theorem 4.2", total_variation_bound),
    ("Theorem 5.1", trade_off_bound),
    ("Proposition 5.3", approximate_dp_bound),
    ("Theorem 5.5", exact_guess_bound),
    ("Corollary 5.6", uniform_exact_guess_bound),
)
_ROUNDING = 1e-14  # relative: values that differ by less are equal


@dataclass(frozen=True)
class BestBound:
    """The smallest applicable bound.

    Attributes:
        value: in [0, 1 - kappa]; 1 - kappa itself promises nothing.
        winner: the bound that gave it.
        applicable: all that apply, the winner first, then the smallest.
        refused: theorems that do not apply, with the assumption that is missing.
        normalized: the value divided by 1 - kappa.
    """

    value: float
    winner: Bound
    applicable: tuple[Bound, ...]
    refused: tuple[tuple[str, str], ...]
    normalized: NormalizedAdvantage

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "value": self.value,
            "winner": self.winner.to_json(),
            "applicable": [bound.to_json() for bound in self.applicable],
            "refused": [{"theorem": name, "missing": why} for name, why in self.refused],
            "normalized": self.normalized._asdict(),
        }


@typed
def best_bound(
    scenario: Scenario, guarantees: Sequence[Guarantee], evaluated: Sequence[Bound] = ()
) -> BestBound:
    """Return the minimum of all bounds that hold in the scenario.

    Of bounds that agree up to rounding the first one wins, a known mechanism's own before all:
    which of them is the smaller one in floating point differs between processors.

    Args:
        scenario: attacker and records.
        guarantees: of one mechanism, all under the scenario's relation. Several may be known
            at once; each gives its bounds.
        evaluated: bounds already computed for the known mechanism (:func:`channel_bounds`).

    Raises:
        InvalidArgumentError: neither a guarantee nor an evaluated bound.
        AssumptionError: a guarantee of another kind (``trade_off``), or under another relation
            than the scenario's.
    """
    known = sequence(guarantees, "guarantees")
    applicable = sequence(evaluated, "evaluated")
    for each in applicable:
        instance(each, Bound, "evaluated")
    if not known and not applicable:
        raise InvalidArgumentError("nothing known", where="guarantees", expected="at least one")
    refused: dict[str, str] = {}
    for guarantee in known:
        trade_off(guarantee)
        scenario.require(guarantee)
        for theorem, bound in _ROWS:
            try:
                applicable.append(bound(scenario, guarantee))
            except AssumptionError as error:
                refused[theorem] = str(error)
    least = min(bound.value for bound in applicable)
    winner = next(bound for bound in applicable if bound.value <= least * (1 + _ROUNDING))
    applicable.sort(key=lambda bound: (bound is not winner, bound.value))
    applied = {bound.theorem for bound in applicable}
    value = min(max(0.0, winner.value), 1 - float(scenario.summary.collision_probability))
    return BestBound(
        value,
        winner,
        tuple(applicable),
        tuple((name, why) for name, why in refused.items() if name not in applied),
        normalized(value, scenario.summary),
    )


@typed
def channel_bounds(
    channel: FloatArray | npt.NDArray[np.generic], threat: ThreatModel, name: str
) -> tuple[Bound, Bound]:
    """Return Theorem 4.3 for a known channel, and Theorem 4.2 with its exact total variation.

    The first is the optimum itself. For several releases of the same record the channel must
    be that of all outputs jointly: the values of single releases do not compose.

    Args:
        channel: shape (records, outputs).
        name: of the mechanism, for reports.
    """
    scenario = Scenario.of_threat(threat)
    optimum = max(0.0, finite_advantage(channel, threat))
    variation = channel_total_variation(channel) * (1 - threat.prior.collision_probability)
    exact = Assumptions(
        prior=scenario.prior_name,
        auxiliary="none" if threat.auxiliary.is_none else "as given",
        eta="exact guesses" if threat.success.is_exact else "as given",
        relation=scenario.relation,
        mechanism=f"known: {name}",
    )
    return (
        Bound(optimum, "Theorem 4.3", exact, composes=False),
        Bound(variation, "Theorem 4.2", exact._replace(auxiliary="any", eta="any")),
    )
