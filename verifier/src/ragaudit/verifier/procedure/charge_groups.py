"""The charge arguments of the sampled entries of a tenant, each verified once (spec 4.11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.budgets import ChargeEntry, ChargeStatement
from ragaudit.encoding.errors import RejectedError
from ragaudit.verifier.procedure.answer_checks import filter_of
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput, demand, known_or_missing
from ragaudit.verifier.procedure.logged_charges import LoggedCharge
from ragaudit.verifier.proven import ChargesRejected, ProvenCharges

__all__ = ["ChargeGroups", "demand_charged"]

OWNER: Final = "charges"
_AT_ONCE: Final = 2**22
"""Rows, counted for each charge entry whose argument is prepared: a filter names each of them."""


@dataclass(eq=False)
class ChargeGroups:
    """The sampled charge entries of a tenant, in groups of one argument each.

    Attributes:
        groups: places of the entries among all of the tenant's charge entries, rising.
    """

    context: Context
    tenant: str
    groups: tuple[tuple[int, ...], ...]
    _numbers: npt.NDArray[np.int64]
    _known: dict[int, MissingInput | None] = field(default_factory=dict)
    _before: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, context: Context, tenant: str) -> "ChargeGroups":
        """Return the groups of a tenant, the same ones for every check that asks."""
        known: dict[str, ChargeGroups] = context.__dict__.setdefault("_charge_groups", {})
        if tenant not in known:
            numbers = context.charges.of_tenant(tenant)
            known[tenant] = cls(context, tenant, _groups(context, numbers), numbers)
        return known[tenant]

    def entries(self, group: Sequence[int]) -> list[LoggedCharge]:
        """Return the charge entries at places among the tenant's."""
        return [self.context.charges[int(self._numbers[place])] for place in group]

    def number_of(self, logged: LoggedCharge) -> int | None:
        """Return the number of the group that a charge entry is in, None of one that is in none."""
        return self._group_of.get(self.context.charges.number_of(logged.index))

    @cached_property
    def _group_of(self) -> dict[int | None, int]:
        """The group of an entry, both by number: where all are proven, all are looked up."""
        return {
            int(self._numbers[place]): number
            for number, group in enumerate(self.groups)
            for place in group
        }

    def demand(self, number: int) -> None:
        """Check the argument of a group, once.

        Args:
            number: of the group.

        Raises:
            MissingInput: `charges` without one that holds; else of who owns what is missing.
        """
        if number not in self._known:
            rows = self.context.accepted_index(self.tenant).rows
            step = max(1, _AT_ONCE // (rows * self.context.generation.group))
            start = number - number % step
            self._verify(range(start, min(start + step, len(self.groups))))
        demand(self._known[number])

    def _verify(self, numbers: Sequence[int]) -> None:
        """Note of these groups whether their arguments hold."""
        proven: dict[int, ProvenCharges] = {}
        for number in numbers:
            prepared = known_or_missing(OWNER, partial(self._prepared, number), self._name(number))
            if isinstance(prepared, MissingInput):
                self._known[number] = prepared
            else:
                proven[number] = prepared
        try:
            self.context.engine.verify_charges(list(proven.values()))
            reasons: Mapping[int, str] = {}
        except ChargesRejected as error:
            reasons = error.reasons
        for position, number in enumerate(proven):
            reason = reasons.get(position)
            self._known[number] = (
                None if reason is None else MissingInput(OWNER, f"{self._name(number)}: {reason}")
            )

    def _name(self, number: int) -> str:
        logged = self.entries(self.groups[number])
        return f"{logged[0].name} to {logged[-1].index}"

    def _prepared(self, number: int) -> ProvenCharges:
        group, context, before = self.groups[number], self.context, self._charged_before()
        index = context.accepted_index(self.tenant)
        logged = self.entries(group)
        proofs = [context.response(one).proof for one in logged]
        if any(proofs[:-1]):
            raise RejectedError("an argument before the last entry of its group")
        statement = ChargeStatement(
            context.generation.uses,
            index.commitments,
            tuple(
                _entry(context, one, before[place])
                for one, place in zip(logged, group, strict=True)
            ),
            context.policy.squared_norm,
        )
        return statement, proofs[-1]

    def _charged_before(self) -> dict[int, bytes]:
        """The sum of all points before each sampled entry, by its place."""
        # Without it a row may be charged any number of times, and the argument says nothing.
        self.context.demand_budget(self.tenant)
        if not self._before:
            places = [place for group in self.groups for place in group]
            points = self.context.charge_points(self.tenant)
            sums = self.context.engine.running_sums(points, places)
            self._before = dict(zip(places, sums, strict=True))
        return self._before


def demand_charged(context: Context, logged: LoggedCharge) -> None:
    """Check that a sampled entry charges exactly the live allowed rows above its threshold.

    Raises:
        MissingInput: as `ChargeGroups.demand`.
    """
    groups = ChargeGroups.of(context, logged.charge.tenant)
    number = groups.number_of(logged)
    if number is not None:
        groups.demand(number)


def _groups(context: Context, numbers: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    sampled = [context.charges.number_of(logged.index) for logged in context.challenged_charges]
    places = np.flatnonzero(np.isin(numbers, np.array(sampled, np.int64))).tolist()
    size = context.generation.group
    return tuple(tuple(places[start : start + size]) for start in range(0, len(places), size))


def _entry(context: Context, logged: LoggedCharge, before: bytes) -> ChargeEntry:
    charge, policy, response = logged.charge, context.policy, context.response(logged)
    allowed = filter_of(response, policy).allowed_in(context.column_arrays(charge.tenant, 1))
    # Both are there: demand_budget has read all points, and a point has a threshold.
    assert charge.threshold is not None
    assert charge.charge is not None
    return ChargeEntry.of(
        policy_digest=policy.digest,
        window=policy.window,
        tenant=charge.tenant,
        version=1,
        index_root=context.stated_index(charge.tenant, 1).index_root,
        seed_root=context.seed_root(charge.epoch),
        activation_randomness=context.randomness(charge.activation),
        body=logged.body,
        log_index=logged.index,
        query=np.array(response.embedding, dtype=np.int16),
        threshold=charge.threshold,
        allowed=allowed,
        charged_before=before,
        charge=charge.charge,
    )
