"""What a bound assumes, and the bound with its assumptions attached."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.priors import ContinuousPrior, FinitePrior, continuous_summary
from ragaudit.lab.risk.threat import SuccessSets, ThreatModel
from ragaudit.lab.risk.trade_off import Guarantee
from ragaudit.lab.risk.validation import (
    AssumptionError,
    check_finite,
    check_integer,
    check_probability,
    typed,
)
from ragaudit.privacy.accounting.risk import PriorSummary


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
