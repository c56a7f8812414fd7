"""Checks 26 to 28: budgets, charges and answers of the generation channel (spec 11).

The charge arguments of a tenant's sampled entries are each verified once (spec 4.11).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.budgets import ChargeEntry, ChargeStatement
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.challenge import Response
from ragaudit.ledger.messages.entries import Charge, Generated, Void
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.promises import voidable_from
from ragaudit.verifier.engines import ChargesRejected, ProvenCharges
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput, demand, known_or_missing
from ragaudit.verifier.procedure.framework import MAX_EVIDENCE, Findings
from ragaudit.verifier.procedure.logged import ChargeSummary, Logged, ReplySummary
from ragaudit.verifier.procedure.record_checks import DueActivation, TimeBounds, in_order
from ragaudit.verifier.procedure.sample_checks import (
    check_key,
    check_openings,
    check_question,
    filter_of,
    question_embedder,
)
from ragaudit.verifier.terms import channel_costs

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

    def entries(self, group: Sequence[int]) -> list[Logged[Charge]]:
        """Return the charge entries at places among the tenant's."""
        return [self.context.charges[int(self._numbers[place])] for place in group]

    def number_of(self, logged: Logged[Charge]) -> int | None:
        """Return the number of the group that a charge entry is in, None of one that is in none."""
        return self._group_of.get(self.context.charges.number_of(logged.entry))

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
            step = max(1, _AT_ONCE // (rows * self.context.generation.charges.group))
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
        return f"{logged[0].name} to {logged[-1].entry}"

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


def demand_charged(context: Context, logged: Logged[Charge]) -> None:
    """Check that a sampled entry charges exactly the live allowed rows above its threshold.

    Raises:
        MissingInput: as `ChargeGroups.demand`.
    """
    groups = ChargeGroups.of(context, logged.body.tenant)
    number = groups.number_of(logged)
    if number is not None:
        groups.demand(number)


def _groups(context: Context, numbers: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    sampled = [context.charges.number_of(logged.entry) for logged in context.challenged_charges]
    places = np.flatnonzero(np.isin(numbers, np.array(sampled, np.int64))).tolist()
    size = context.generation.charges.group
    return tuple(tuple(places[start : start + size]) for start in range(0, len(places), size))


def _entry(context: Context, logged: Logged[Charge], before: bytes) -> ChargeEntry:
    charge, policy, response = logged.body, context.policy, context.response(logged)
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
        body=logged.data,
        log_index=logged.entry,
        query=np.array(response.embedding, dtype=np.int16),
        threshold=charge.threshold,
        allowed=allowed,
        charged_before=before,
        charge=charge.charge,
    )


def check_budget(context: Context, found: Findings) -> None:
    """26: no row of any tenant pays more than M times; what that is worth."""
    terms, entries = context.generation, len(context.charges)
    counts = {tenant: len(context.charges.of_tenant(tenant)) for tenant in context.policy.tenants}
    asked_of = {tenant: count for tenant, count in counts.items() if count}
    for tenant, asked in asked_of.items():
        with found.attempt(f"tenant {tenant}"):
            if terms.charges_rows:
                context.demand_budget(tenant)
            elif asked > terms.uses:
                # Every row pays for every question.
                raise RejectedError(f"{asked} questions", expected=f"at most {terms.uses}")
    context.stated.generation = channel_costs(context.policy, entries)
    found.summary = (
        f"{entries} charge entries of {len(asked_of)} tenants, each row pays for at most "
        f"{terms.uses} of them"
    )


def check_charges(context: Context, found: Findings) -> None:
    """27: every charge entry in its place, and those of the sample charge the due rows."""
    _check_places(context, found)
    for logged in context.challenged_charges:
        with found.attempt(logged.name):
            _check_opened(context, found, logged, context.response(logged))
    for tenant in context.policy.tenants:
        _check_groups(context, found, tenant)
    proven = ", and proven to charge exactly the live rows above the threshold"
    found.summary = (
        f"{len(context.charges)} charge entries, each in its place; "
        f"{len(context.challenged_charges)} opened"
        f"{proven if context.generation.charges_rows else ''}"
    )


def _check_places(context: Context, found: Findings) -> None:
    policy, terms, bounds = context.policy, context.generation, TimeBounds(context)
    numbers = dict.fromkeys(policy.tenants, 0)
    for logged in context.charges:
        charge = logged.body
        with found.attempt(logged.name):
            if (charge.policy_digest, charge.window) != (policy.digest, policy.window):
                raise RejectedError("names another policy or window")
            tenant = context.registration(charge.pseudonym).tenant
            if charge.tenant != tenant:
                raise RejectedError(f"tenant {charge.tenant}", expected=f"{tenant}, as registered")
            index = context.stated_index(tenant, 1)
            if (charge.version, charge.rows) != (1, index.rows):
                raise RejectedError("another index than its tenant's")
            if charge.epoch != 1:
                raise RejectedError(f"epoch {charge.epoch}", expected="1")
        with found.attempt(logged.name):
            # The order of the log is the order of the charges: a gap is a charge that was dropped.
            due = numbers.get(charge.tenant, 0)
            numbers[charge.tenant] = due + 1
            if charge.number != due:
                raise RejectedError(f"number {charge.number} of its tenant", expected=str(due))
        with found.attempt(logged.name):
            due_threshold(charge, terms)
        with found.attempt(logged.name):
            anchored = context.registration(charge.pseudonym).anchored
            # Its sums would have been drawn with its nonce in view.
            if terms.adaptive is not None and anchored:
                raise RejectedError("of an anchored account", expected="plain under murag-ada")
        with found.attempt(logged.name):
            DueActivation(context, charge.pseudonym).check(logged.entry, charge)
        with found.attempt(logged.name):
            if not 1000 * policy.start <= charge.time < 1000 * policy.end:
                raise RejectedError(f"at {rfc3339(charge.time)}, outside the window")
            bounds.check_change(charge.time, logged.entry)
    _check_order(context, found, ChargeSummary)


def _check_order(
    context: Context, found: Findings, kind: type[ChargeSummary] | type[ReplySummary]
) -> None:
    for pseudonym in context.charges.accounts():
        for _ in in_order(context.entries_of(pseudonym), found, kind):
            pass


def due_threshold(charge: Charge, terms: GenerationTerms) -> None:
    """Check that tau_t of an entry is the policy's, or the one that its released sums give.

    Raises:
        RejectedError: it is another one.
    """
    due = terms.threshold
    if terms.adaptive is not None:
        due = terms.adaptive.threshold_of(charge.sums)
    elif charge.sums:
        raise RejectedError("sums", expected="none under this policy")
    # A threshold chosen with the question in hand could single out one row.
    if charge.threshold != due:
        whose = "of the policy" if terms.adaptive is None else "as the released sums say"
        raise RejectedError(f"threshold {charge.threshold}", expected=f"{due} {whose}")


def _check_opened(
    context: Context, found: Findings, logged: Logged[Charge], response: Response
) -> None:
    """What was asked in a sampled entry, and the key of its coins."""
    charge, policy = logged.body, context.policy
    check_openings(context, charge, response)
    with found.attempt(logged.name):
        check_question(context, question_embedder(context, found), charge, response)
    # Places that the tree does not have are those of check 8.
    if charge.counter >= policy.queries_per_account or charge.slot >= policy.slots:
        raise MissingInput("counters", f"{logged.name}: there is no key for it")
    check_key(context, charge, response)


def _check_groups(context: Context, found: Findings, tenant: str) -> None:
    """The charge arguments over the sampled entries of a tenant."""
    groups = ChargeGroups.of(context, tenant)
    for number, group in enumerate(groups.groups):
        context.progress(found.owner, number, len(groups.groups))
        with found.attempt():
            if context.generation.charges_rows:
                groups.demand(number)
                continue
            for logged in groups.entries(group):
                if context.response(logged).proof:
                    found.fault("an argument where no rows are charged", logged.name)


def check_answers(context: Context, found: Findings) -> None:
    """28: one answer or void for every charge entry, after it, at a confirmed time."""
    charges, replied = context.charges, bytearray(len(context.charges))
    bounds, voids = TimeBounds(context), Counter[str]()
    for answer in context.replies:
        reply = answer.body
        with found.attempt(answer.name):
            number = charges.number_of(reply.charge)
            if number is None:
                raise RejectedError(f"entry {reply.charge} is no charge entry")
            if replied[number]:
                raise RejectedError(f"entry {reply.charge} was answered before")
            replied[number] = True
            charge = charges.summary(number)
            voids[charge.tenant] += isinstance(reply, Void)
            # An answer that was there first was not paid for.
            if answer.entry < charge.entry:
                raise RejectedError(f"before its charge entry {charge.entry}")
            if (reply.window, reply.tenant) != (charge.window, charge.tenant):
                raise RejectedError("of another window or tenant than its charge")
            bounds.check_change(reply.time, answer.entry)
            if isinstance(reply, Generated):
                _check_nonce(context, charge, reply)
            else:
                _check_void(context, charge, reply)
    _check_order(context, found, ReplySummary)
    _check_turns(context, found)
    for charge in charges.summaries():
        if not replied[charge.number]:
            found.fault("neither answered nor void", charge.name)
    _check_void_share(context, found, voids)
    voided = context.voids
    for pseudonym in sorted(voided, key=lambda account: (-voided[account], account))[:MAX_EVIDENCE]:
        whole = charges.count(pseudonym)
        found.note(f"{voided[pseudonym]} of {whole} charges of account {pseudonym.hex()} are void")
    void = voids.total()
    found.summary = f"{sum(replied) - void} answers and {void} voids, one for each charge entry"


def _check_void_share(context: Context, found: Findings, voids: Counter[str]) -> None:
    """Whoever knows the coins of a plain account's charge chooses whether it is answered."""
    most = context.terms.bounds["most_void_share"]
    for tenant, count in voids.items():
        charged = len(context.charges.of_tenant(tenant))
        if count > most * charged:
            found.fault(
                f"{count} of {charged} charges of tenant {tenant} are void, and the verifier's "
                f"terms allow a share of {most}"
            )


def _check_void(context: Context, charge: ChargeSummary, void: Void) -> None:
    """An anchored account's charge is void only once its promise can be claimed no more.

    Sooner, an account that was told of a void would go on to its next query, whose nonce gives the
    coins of this one away, and could still have claimed an answer.
    """
    if not context.registration(charge.pseudonym).anchored:
        return
    due = voidable_from(charge.time, context.policy)
    if void.time < due:
        raise RejectedError(
            f"void at {rfc3339(void.time)}, while its promise could be claimed",
            expected=f"{rfc3339(due)} or later",
        )


def _check_turns(context: Context, found: Findings) -> None:
    """An anchored account's charge is answered or void before its next query is promised.

    The nonce of a later query gives all earlier ones away: a charge that still waits could then be
    answered, or not, by whoever has seen its coins. A promise is in no log, but has its query's
    time: so the order of the entries is enough with that of their times, which `in_order` checks.
    """
    replies = context.replies
    for pseudonym in context.askers:
        with found.attempt(f"account {pseudonym.hex()}"):
            if not context.registration(pseudonym).anchored:
                continue
            for logged, following in pairwise(context.queries_of(pseudonym)):
                ends = replies.to(logged.entry)
                if ends and ends[0].entry > following.entry:
                    raise RejectedError(
                        f"entry {following.entry} of the account stands before what ends its "
                        f"{logged.name}"
                    )


def _check_nonce(context: Context, charge: ChargeSummary, reply: Generated) -> None:
    anchored = context.registration(charge.pseudonym).anchored
    if (reply.nonce is not None) != anchored:
        raise RejectedError("a nonce is missing" if anchored else "a nonce of a plain account")
