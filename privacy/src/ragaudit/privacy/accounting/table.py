"""The epsilon table of a verdict, and each of its members with its one JSON form (spec 7.4).

:func:`ragaudit.privacy.accounting.report.epsilon_report` computes it. Every number is exact and
already rounded as the table states it, so that writing and reading lose nothing. Every `from_json`
takes the member's JSON, with the table's delta and relation where the member does not repeat them.
Readers take a JSON object and the name of its member, accept more than the one form of a number,
and raise MalformedError, naming the member: `EpsilonTable.from_json` writes what it has read and
compares. The texts of 7.4.3 are here only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, overload

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.encoding.text import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.privacy.guarantees import (
    ApproximateDp,
    GaussianDp,
    TotalVariation,
    ZeroConcentratedDp,
)
from ragaudit.privacy.numbers import count, exact, sequence

PLACES: Final = 6
# The cross-check is binary floating point; fewer places are the same on every machine.
CROSS_CHECK_PLACES: Final = 2

# At most four digits: a longer exponent would ask for a number of any size.
_POWER: Final = re.compile(r"2\^-(0|[1-9][0-9]{0,3})", re.ASCII)


def exact_text(value: Fraction) -> str:
    """Return a rational, whose denominator divides 10^12, without trailing zeros.

    Args:
        value: >= 0, of at most 12 places.
    """
    return floor_decimal(value, 12).rstrip("0").rstrip(".")


def member(value: object, name: str) -> Any:
    """Return a member of a JSON object.

    Args:
        value: of any kind; nothing is known of it yet.

    Raises:
        MalformedError: no object, or without that member.
    """
    if not isinstance(value, Mapping) or name not in value:
        raise MalformedError("no such member", where=name, expected="an epsilon table of 7.4")
    return value[name]


def text(value: object, name: str) -> str:
    """Return the member ``name`` of a JSON object, which is text."""
    content = member(value, name)
    if not isinstance(content, str):
        raise MalformedError("wrong type", where=name, expected="a decimal, as text")
    return content


def policy_decimal(value: object, name: str) -> str:
    """Return the member ``name``, a policy's decimal, as it stands there."""
    decimal_text = text(value, name)
    # Checked and given back as it stands: the same number in other digits is another policy.
    parse_decimal(decimal_text)
    return decimal_text


def relation_of(value: object) -> NeighboringRelation:
    """Return the member `relation`, one that a policy can name."""
    relation = NeighboringRelation.of(member(value, "relation"))
    if relation not in FIXED_SIZE:
        raise MalformedError(
            f"no policy is under {relation}", where="relation", expected=" or ".join(FIXED_SIZE)
        )
    return relation


def number(value: object, name: str, least: int = 0) -> int:
    """Return the member ``name``, a whole number of at least ``least``."""
    return count(member(value, name), name, least=least)


def truth(value: object, name: str) -> bool:
    """Return the member ``name``, true or false."""
    # Not by its truth: 1 and "no" are true in Python.
    flag = member(value, name)
    if not isinstance(flag, bool):
        raise MalformedError("wrong type", where=name, expected="true or false")
    return flag


def optional(value: object, name: str) -> Fraction | None:
    """Return the member ``name``, a number >= 0 as text, or null."""
    return None if member(value, name) is None else exact(text(value, name), name, least=0)


def guarantee_of(
    value: object, name: str, delta: str, relation: NeighboringRelation
) -> ApproximateDp | None:
    """Return the epsilon of the member ``name``, or null, at this delta and relation.

    Args:
        name: of the member that states epsilon.
        delta: a policy's decimal.
    """
    if member(value, name) is None:
        return None
    return ApproximateDp.of(text(value, name), delta, relation)


def epsilon_text(guarantee: ApproximateDp | None, places: int = PLACES) -> str | None:
    """Return an epsilon with so many places, rounded up; None for None."""
    return None if guarantee is None else ceil_decimal(guarantee.epsilon, places)


@overload
def up(value: Fraction) -> str: ...
@overload
def up(value: Fraction | None) -> str | None: ...
def up(value: Fraction | None) -> str | None:
    """Return a number with 6 places, rounded up; None for None."""
    return None if value is None else ceil_decimal(value, PLACES)


def gamma_text(gamma: Fraction) -> str:
    """Return the distance of a sampler as ``2^-k``, or else as a fraction.

    Args:
        gamma: total-variation distance of one noise sample, in [0, 1).
    """
    exponent = gamma.denominator.bit_length() - 1
    # A power of two is exact in six characters, its decimal in a hundred.
    if gamma.numerator == 1 and gamma.denominator == 1 << exponent:
        return f"2^-{exponent}"
    return str(gamma)


def gamma_of(gamma: str) -> Fraction:
    """Return the distance, in [0, 1), from the text of :func:`gamma_text`.

    Args:
        gamma: ``2^-k``, or a fraction.
    """
    power = _POWER.fullmatch(gamma)
    distance = Fraction(1, 1 << int(power[1])) if power else exact(gamma, "gamma")
    return exact(distance, "gamma", least=0, below=1)


NO_BOUND: Final = "no epsilon solves the delta equation: there is no finite bound"
LIMIT: Final = "continuous Gaussian of the same parameter, ideal sampler; for comparison only"
RENYI: Final = "zero-concentrated DP of the discrete Gaussian; a guarantee of its own"
CROSS_CHECK: Final = "dp-accounting, of the Gaussian limit; a cross-check"
NO_CROSS_CHECK: Final = "mu is zero or too large for it"
CLOSED_FORM: Final = "the paper's (5.2); a bound only for noise inside its class, and a loose one"
EMPTY_CLASS: Final = "eps_q of (3.1) is not below 1: its class is empty"
SMALL_DELTA: Final = "delta_policy does not exceed k delta_acc"
RISK: Final = (
    "upper limits for every attacker; reconstruction assumes no knowledge about the target beyond "
    "the prior, attribute allows any"
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the table was computed from.

    Attributes:
        sigma, delta_policy: the policy's decimals as they stand there; sigma in cosine units.
        sigma_units: sigma on the lattice of scores, 16129 units to a cosine of 1; exact.
        relation: who may differ from whom; every guarantee of the table is under it.
        group_size: g, rows per privacy unit.
        squared_sensitivity_units: of one query, in squared lattice units.
        queries_per_account: r.
        coalition: accounts that pool their answers.
        gamma: distance in total variation of one noise sample from its law, in [0, 1).
    """

    sigma: str
    sigma_units: Fraction
    relation: NeighboringRelation
    group_size: int
    squared_sensitivity_units: int
    queries_per_account: int
    coalition: int
    delta_policy: str
    gamma: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return the member `parameters`."""
        return {
            "sigma": self.sigma,
            "sigma_units": exact_text(self.sigma_units),
            "relation": self.relation.value,
            "group_size": self.group_size,
            "squared_sensitivity_units": self.squared_sensitivity_units,
            "queries_per_account": self.queries_per_account,
            "coalition": self.coalition,
            "delta_policy": self.delta_policy,
            "gamma": gamma_text(self.gamma),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the parameters of the member `parameters`."""
        return cls(
            sigma=policy_decimal(value, "sigma"),
            sigma_units=exact(text(value, "sigma_units"), "sigma_units", above=0),
            relation=relation_of(value),
            group_size=number(value, "group_size", least=1),
            squared_sensitivity_units=number(value, "squared_sensitivity_units"),
            queries_per_account=number(value, "queries_per_account", least=1),
            coalition=number(value, "coalition", least=1),
            delta_policy=policy_decimal(value, "delta_policy"),
            gamma=gamma_of(text(value, "gamma")),
        )


@dataclass(frozen=True, slots=True)
class Headline:
    """What so many queries reveal, with the sampler's own distance.

    Attributes:
        queries: m, of all accounts together.
        ideal: the release with a perfect sampler; mu rounded up to 6 places.
        guarantee: epsilon rounded up to 6 places; None where there is no finite bound.
    """

    queries: int
    ideal: GaussianDp
    guarantee: ApproximateDp | None

    @property
    def epsilon(self) -> str | None:
        """Return the epsilon as the table states it."""
        return epsilon_text(self.guarantee)

    def to_json(self) -> dict[str, Any]:
        """Return a member such as `headline`."""
        row: dict[str, Any] = {
            "queries": self.queries,
            "mu": up(self.ideal.mu),
            "epsilon": self.epsilon,
        }
        return row if self.guarantee else {**row, "reason": NO_BOUND}

    @classmethod
    def from_json(cls, value: object, delta: str, relation: NeighboringRelation) -> Self:
        """Return the headline of a member whose epsilon is at ``delta`` under ``relation``."""
        return cls(
            queries=number(value, "queries"),
            ideal=GaussianDp.of(text(value, "mu"), relation),
            guarantee=guarantee_of(value, "epsilon", delta, relation),
        )


@dataclass(frozen=True, slots=True)
class GaussianLimit:
    """Continuous noise from a perfect sampler, for comparison; mu and epsilon rounded up."""

    ideal: GaussianDp
    approximate: ApproximateDp

    def to_json(self) -> dict[str, Any]:
        """Return the member `gaussian_limit`."""
        epsilon = epsilon_text(self.approximate)
        return {"mu": up(self.ideal.mu), "epsilon": epsilon, "label": LIMIT}

    @classmethod
    def from_json(cls, value: object, delta: str, relation: NeighboringRelation) -> Self:
        """Return the row of the member `gaussian_limit`."""
        approximate = ApproximateDp.of(text(value, "epsilon"), delta, relation)
        return cls(GaussianDp.of(text(value, "mu"), relation), approximate)


@dataclass(frozen=True, slots=True)
class RenyiRow:
    """The headline's queries by Rényi accounting, a guarantee of its own.

    Attributes:
        concentrated: of the ideal release; rho rounded up to 6 places.
        guarantee: epsilon rounded up to 6 places; None if the sampler's share is not covered.
        order_floor: the best order, rounded down to 6 places; None at epsilon 0 or without one.
    """

    concentrated: ZeroConcentratedDp
    guarantee: ApproximateDp | None
    order_floor: Fraction | None

    def to_json(self) -> dict[str, Any]:
        """Return the member `renyi`."""
        order = self.order_floor
        return {
            "rho": up(self.concentrated.rho),
            "epsilon": epsilon_text(self.guarantee),
            "order_floor": None if order is None else floor_decimal(order, PLACES),
            "label": RENYI,
        }

    @classmethod
    def from_json(cls, value: object, delta: str, relation: NeighboringRelation) -> Self:
        """Return the row of the member `renyi`."""
        return cls(
            concentrated=ZeroConcentratedDp.of(text(value, "rho"), relation),
            guarantee=guarantee_of(value, "epsilon", delta, relation),
            order_floor=optional(value, "order_floor"),
        )


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """Another library's value for the Gaussian limit.

    Attributes:
        approximate: epsilon rounded up to 2 places; None where the library gives none.
        agrees: whether it is the Gaussian limit's, within 7.4.2; None with the value.
    """

    approximate: ApproximateDp | None
    agrees: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return the member `loss_distribution`."""
        epsilon = epsilon_text(self.approximate, CROSS_CHECK_PLACES)
        words = {"reason": NO_CROSS_CHECK} if epsilon is None else {"label": CROSS_CHECK}
        return {"epsilon": epsilon, "agrees": self.agrees, **words}

    @classmethod
    def from_json(cls, value: object, delta: str, relation: NeighboringRelation) -> Self:
        """Return the row of the member `loss_distribution`."""
        agrees = member(value, "agrees")
        return cls(
            approximate=guarantee_of(value, "epsilon", delta, relation),
            agrees=None if agrees is None else truth(value, "agrees"),
        )


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The source paper's (5.2); outside of its class of noise it is no bound.

    Attributes:
        leading, residual: its two terms, >= 0, each rounded up to 6 places; None with the total.
        total: their sum, rounded up once, at delta_policy; None where the form does not apply.
        least_sigma_units: least noise of the class, lattice units, rounded up to 6 places; None
            where the class is empty.
        in_class: whether the policy's noise is in it.
    """

    leading: Fraction | None
    residual: Fraction | None
    total: ApproximateDp | None
    least_sigma_units: Fraction | None
    in_class: bool

    @property
    def reason(self) -> str | None:
        """Return why there is no total; None where there is one."""
        if self.total is not None:
            return None
        return EMPTY_CLASS if self.least_sigma_units is None else SMALL_DELTA

    def to_json(self) -> dict[str, Any]:
        """Return the member `closed_form`."""
        row = {
            "leading": up(self.leading),
            "residual": up(self.residual),
            "total": epsilon_text(self.total),
            "least_sigma_units": up(self.least_sigma_units),
            "in_class": self.in_class,
            "label": CLOSED_FORM,
        }
        return row if self.reason is None else {**row, "reason": self.reason}

    @classmethod
    def from_json(cls, value: object, delta: str, relation: NeighboringRelation) -> Self:
        """Return the row of the member `closed_form`."""
        return cls(
            leading=optional(value, "leading"),
            residual=optional(value, "residual"),
            total=guarantee_of(value, "total", delta, relation),
            least_sigma_units=optional(value, "least_sigma_units"),
            in_class=truth(value, "in_class"),
        )


@dataclass(frozen=True, slots=True)
class PerAccount:
    """The policy's promise to one account, and what its r queries give.

    Attributes:
        headline: of r queries, at delta_acc.
        epsilon_acc, delta_acc: the policy's decimals as they stand there.
        satisfied: whether the noise gives the promise, decided before rounding.
    """

    headline: Headline
    epsilon_acc: str
    delta_acc: str
    satisfied: bool

    @property
    def promised(self) -> ApproximateDp:
        """Return what the policy promises to each account."""
        return ApproximateDp.of(self.epsilon_acc, self.delta_acc, self.headline.ideal.relation)

    def to_json(self) -> dict[str, Any]:
        """Return the member `per_account`."""
        return {
            **self.headline.to_json(),
            "epsilon_acc": self.epsilon_acc,
            "delta_acc": self.delta_acc,
            "satisfied": self.satisfied,
        }

    @classmethod
    def from_json(cls, value: object, relation: NeighboringRelation) -> Self:
        """Return the row of the member `per_account`."""
        delta = policy_decimal(value, "delta_acc")
        return cls(
            headline=Headline.from_json(value, delta, relation),
            epsilon_acc=policy_decimal(value, "epsilon_acc"),
            delta_acc=delta,
            satisfied=truth(value, "satisfied"),
        )


@dataclass(frozen=True, slots=True)
class PriorRisk:
    """Limits for an attacker whose prior is uniform over ``candidates`` >= 2 records.

    Attributes:
        attribute, reconstruction: advantages over the prior alone, in [0, 1], rounded up to 6
            places; with any side knowledge, and with none about the target.
    """

    candidates: int
    attribute: Fraction
    reconstruction: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return one of `uniform_priors`."""
        return {
            "candidates": self.candidates,
            "attribute": up(self.attribute),
            "reconstruction": up(self.reconstruction),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the row of one of `uniform_priors`."""
        return cls(
            candidates=number(value, "candidates", least=2),
            attribute=exact(text(value, "attribute"), "attribute", least=0, most=1),
            reconstruction=exact(text(value, "reconstruction"), "reconstruction", least=0, most=1),
        )


@dataclass(frozen=True, slots=True)
class Risk:
    """The headline's guarantee in terms of the best attacker there can be.

    Attributes:
        membership: true minus false positive rate, rounded up to 6 places.
        auc: area under the ROC curve, in [0.5, 1], rounded up to 6 places.
        uniform_priors: limits for priors of some sizes.
    """

    membership: TotalVariation
    auc: Fraction
    uniform_priors: tuple[PriorRisk, ...]

    @property
    def membership_advantage(self) -> str:
        """Return the membership advantage as the table states it."""
        return up(self.membership.value)

    def to_json(self) -> dict[str, Any]:
        """Return the member `risk`."""
        return {
            "membership_advantage": self.membership_advantage,
            "auc": up(self.auc),
            "uniform_priors": [prior.to_json() for prior in self.uniform_priors],
            "label": RISK,
        }

    @classmethod
    def from_json(cls, value: object, relation: NeighboringRelation) -> Self:
        """Return the member `risk`, whose advantage is under ``relation``."""
        return cls(
            membership=TotalVariation.of(text(value, "membership_advantage"), relation),
            auc=exact(text(value, "auc"), "auc", least=0, most=1),
            uniform_priors=tuple(
                PriorRisk.from_json(prior)
                for prior in sequence(member(value, "uniform_priors"), "uniform_priors")
            ),
        )


REALISED: Final = "from the counts of this window's log; not a guarantee"

_WAYS: Final = (
    "headline", "per_account", "all_records", "realised",
    "renyi", "loss_distribution", "gaussian_limit", "closed_form",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Way:
    """A member of the table that states an epsilon, to be shown beside the others.

    Attributes:
        name: of the member.
        epsilon: as the table states it; None where there is none.
        queries: that it counts; None where they are the headline's.
        label: what the table says of it; empty for the guarantees of every verdict.
        reason: why there is no epsilon; empty where there is one, or where the label says it.
    """

    name: str
    epsilon: str | None
    queries: int | None
    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class EpsilonTable:
    """What a policy's noise is worth against a coalition; epsilons are rounded up.

    Attributes:
        parameters: what everything here was computed from.
        headline: of the coalition's queries, at delta_policy: what a verdict guarantees.
        gaussian_limit, renyi, loss_distribution, closed_form: the same queries counted otherwise.
        per_account: one account alone, at delta_acc, beside the policy's promise.
        all_records: the headline for all records of the tenant that has most; needs no k_max.
        realised: the headline for the largest counts of the log; no guarantee.
        risk: the headline in terms of the best attacker.
        finite: whether the headline has a finite epsilon.
        slack: total variation of all of the headline's noise from its law, m·g·gamma.
        ways: every member that states an epsilon, in an order in which to explain them.
    """

    parameters: Parameters
    headline: Headline
    gaussian_limit: GaussianLimit
    renyi: RenyiRow
    loss_distribution: CrossCheck
    closed_form: ClosedForm
    per_account: PerAccount
    all_records: Headline
    realised: Headline
    risk: Risk

    @property
    def finite(self) -> bool:
        """Return whether the headline has a finite epsilon."""
        return self.headline.guarantee is not None

    @property
    def slack(self) -> Fraction:
        """Return the total variation of the headline's noise from its law, m·g·gamma."""
        terms = self.parameters
        return self.headline.queries * terms.group_size * terms.gamma

    @property
    def ways(self) -> tuple[Way, ...]:
        """Return every member that states an epsilon, in an order in which to explain them."""
        # From what is written: a report shows the digits that were signed, and no others.
        stated = self.to_json()
        return tuple(
            Way(
                name,
                epsilon=row.get("epsilon", row.get("total")),
                queries=row.get("queries"),
                label=row.get("label", ""),
                reason=row.get("reason", ""),
            )
            for name, row in ((name, stated[name]) for name in _WAYS)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the table of a verdict, a value for canonical JSON."""
        return {
            "parameters": self.parameters.to_json(),
            "finite": self.finite,
            "headline": self.headline.to_json(),
            "gaussian_limit": self.gaussian_limit.to_json(),
            "renyi": self.renyi.to_json(),
            "loss_distribution": self.loss_distribution.to_json(),
            "closed_form": self.closed_form.to_json(),
            "per_account": self.per_account.to_json(),
            "all_records": self.all_records.to_json(),
            "realised": {**self.realised.to_json(), "label": REALISED},
            "risk": self.risk.to_json(),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the table of a verdict; whether its numbers follow from each other is not checked.

        Args:
            value: JSON.

        Raises:
            MalformedError: not exactly what :meth:`to_json` writes for a table.
        """
        # First: delta and relation stand there once, for all other members.
        terms = Parameters.from_json(member(value, "parameters"))
        at = terms.delta_policy, terms.relation
        table = cls(
            parameters=terms,
            headline=Headline.from_json(member(value, "headline"), *at),
            gaussian_limit=GaussianLimit.from_json(member(value, "gaussian_limit"), *at),
            renyi=RenyiRow.from_json(member(value, "renyi"), *at),
            loss_distribution=CrossCheck.from_json(member(value, "loss_distribution"), *at),
            closed_form=ClosedForm.from_json(member(value, "closed_form"), *at),
            per_account=PerAccount.from_json(member(value, "per_account"), terms.relation),
            all_records=Headline.from_json(member(value, "all_records"), *at),
            realised=Headline.from_json(member(value, "realised"), *at),
            risk=Risk.from_json(member(value, "risk"), terms.relation),
        )
        # One form only: two spellings of the same numbers would be two verdicts.
        if canonical_json.dumps(table.to_json()) != canonical_json.dumps(value):
            raise MalformedError("not in its one form", where="epsilon table", expected="7.4")
        return table
