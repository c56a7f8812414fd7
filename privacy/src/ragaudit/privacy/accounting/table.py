"""The epsilon table of a verdict as one typed value (docs/spec/07-coalition.md §7.4).

:func:`ragaudit.privacy.accounting.report.epsilon_report` computes it. Neither is among the names of
the accounting package, because guarantees import that package and the table imports guarantees.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.accounting.table_fields import member
from ragaudit.privacy.accounting.table_members import (
    ClosedForm,
    CrossCheck,
    GaussianLimit,
    Headline,
    Parameters,
    PerAccount,
    RenyiRow,
    Risk,
)

__all__ = ["EpsilonTable", "Way"]

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
