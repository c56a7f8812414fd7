"""Entries of the generation channel, and what was opened of them (docs/spec/11-generation.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from ragaudit.circuits.budgets import BudgetStatement
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.answerers import KeywordVoting
from ragaudit.ledger.messages.charges import Charge, Generated, Void
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.verifier.models import AnswerGenerator, OwnGenerator, TokenGenerator
from ragaudit.verifier.procedure.facts import MissingInput, demand, fact, known_or_missing
from ragaudit.verifier.procedure.log_facts import LogFacts


class AccountEntry(Protocol):
    """An entry of an account as the log has it: a query, or what ends a charge."""

    @property
    def kind(self) -> str: ...
    @property
    def entry(self) -> int: ...
    @property
    def time(self) -> int: ...
    @property
    def name(self) -> str: ...


class Numbered(AccountEntry, Protocol):
    """A query of an account: a record, or a charge entry."""

    @property
    def slot(self) -> int: ...
    @property
    def counter(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LoggedCharge:
    """A charge entry in the log.

    Attributes:
        index: its place.
    """

    index: int
    body: bytes = field(repr=False)
    charge: Charge

    @property
    def kind(self) -> str:
        """Of the entry."""
        return Charge.KIND

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"charge entry {self.index}"

    @property
    def entry(self) -> int:
        """Its place in the log, as records have it."""
        return self.index

    @property
    def slot(self) -> int:
        """i of its key."""
        return self.charge.slot

    @property
    def counter(self) -> int:
        """c of its key."""
        return self.charge.counter

    @property
    def activation(self) -> int:
        """a."""
        return self.charge.activation

    @property
    def time(self) -> int:
        """Unix milliseconds."""
        return self.charge.time


@dataclass(frozen=True, slots=True)
class LoggedReply:
    """An answer or a void in the log.

    Attributes:
        entry: its place.
    """

    entry: int
    reply: Generated | Void

    @property
    def kind(self) -> str:
        """Of the entry."""
        return self.reply.KIND

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"{self.kind} entry {self.entry}"

    @property
    def time(self) -> int:
        """Unix milliseconds."""
        return self.reply.time


class GenerationFacts(LogFacts):
    """Facts of windows with a generation channel; none of its entries in others."""

    @property
    def generation(self) -> GenerationTerms:
        """The policy's terms; UnsupportedError in a window without the channel."""
        terms = self.policy.generation
        if terms is None:
            raise UnsupportedError("no generation channel in this window", where="policy")
        return terms

    @property
    def own_generator(self) -> OwnGenerator | None:
        """The verifier's own model, of the kind that the answerer asks; None if there is none."""
        whole = isinstance(self.generation.answerer, KeywordVoting)
        return self.own_answers if whole else self.own_tokens

    @property
    def own_answers(self) -> AnswerGenerator | None:
        """The verifier's own model of whole answers; None where there is none."""
        return self.generator if isinstance(self.generator, AnswerGenerator) else None

    @cached_property
    def own_tokens(self) -> TokenGenerator | None:
        """The verifier's own model of tokens; None without one of the committed vocabulary."""
        if not isinstance(self.generator, TokenGenerator):
            return None
        try:
            self.generation.generator.check_vocabulary(self.generator.vocabulary)
        except MalformedError:
            return None
        return self.generator

    @fact("log")
    def charges(self) -> tuple[LoggedCharge, ...]:
        """All charge entries, in log order."""
        found = self.log.of_kind(Charge.KIND)
        return tuple(LoggedCharge(one.index, one.body, Charge.parse(one.body)) for one in found)

    def charges_of(self, tenant: str) -> tuple[LoggedCharge, ...]:
        """Return the charge entries that name a tenant, in log order."""
        return tuple(logged for logged in self.charges if logged.charge.tenant == tenant)

    @fact("log")
    def replies(self) -> tuple[LoggedReply, ...]:
        """Answer and void entries, in log order."""
        kinds: dict[str, type[Generated] | type[Void]] = {
            Generated.KIND: Generated,
            Void.KIND: Void,
        }
        return tuple(
            LoggedReply(entry.index, kinds[entry.kind].parse(entry.body))
            for entry in self.log.entries
            if entry.kind in kinds
        )

    @fact("answers")
    def answer_of(self) -> Mapping[int, Generated]:
        """The first answer to each charge entry that has one, by the charge's place."""
        found: dict[int, Generated] = {}
        for logged in self.replies:
            if isinstance(logged.reply, Generated):
                found.setdefault(logged.reply.charge, logged.reply)
        return found

    @fact("log")
    def _charges_by_account(self) -> Mapping[bytes, tuple[LoggedCharge, ...]]:
        groups: dict[bytes, list[LoggedCharge]] = {}
        for logged in self.charges:
            groups.setdefault(logged.charge.pseudonym, []).append(logged)
        return {pseudonym: tuple(found) for pseudonym, found in groups.items()}

    @property
    def askers(self) -> Sequence[bytes]:
        """Pseudonyms of all accounts with a record or a charge entry."""
        return tuple(dict.fromkeys([*self.by_account, *self._charges_by_account]))

    def queries_of(self, pseudonym: bytes) -> Sequence[Numbered]:
        """Return an account's records and charge entries, in log order: one counter counts both."""
        records: Sequence[Numbered] = self.by_account.get(pseudonym, ())
        charges = self._charges_by_account.get(pseudonym, ())
        if not charges:
            return records
        return sorted([*records, *charges], key=lambda one: one.entry)

    @fact("log")
    def _replies_by_account(self) -> Mapping[bytes, tuple[LoggedReply, ...]]:
        asked = {logged.index: logged.charge.pseudonym for logged in self.charges}
        groups: dict[bytes, list[LoggedReply]] = {}
        for logged in self.replies:
            place = logged.reply.charge
            # What stands before its charge, or names none, is check 28's, and no account's.
            if place in asked and place < logged.entry:
                groups.setdefault(asked[place], []).append(logged)
        return {pseudonym: tuple(found) for pseudonym, found in groups.items()}

    def entries_of(self, pseudonym: bytes) -> Sequence[AccountEntry]:
        """Return `queries_of` with the answers and voids of its charges, in log order."""
        queries = self.queries_of(pseudonym)
        if pseudonym not in self._charges_by_account:
            return queries
        replies = self._replies_by_account.get(pseudonym, ())
        return sorted([*queries, *replies], key=lambda one: one.entry)

    def query_count(self, pseudonym: bytes) -> int:
        """Return how many `queries_of` gives, without reading them."""
        charges = self._charges_by_account.get(pseudonym, ())
        return self.by_account.count(pseudonym) + len(charges)

    def charge_points(self, tenant: str) -> bytes:
        """Return B_0 || .. of a tenant, in log order.

        Raises:
            MissingInput: `charges` owns an entry that charges nothing.
        """
        points = []
        for logged in self.charges_of(tenant):
            if logged.charge.charge is None:
                raise MissingInput("charges", f"{logged.name} charges nothing")
            points.append(logged.charge.charge)
        return b"".join(points)

    def demand_budget(self, tenant: str) -> None:
        """Check the budget argument over all charge entries of a tenant, once.

        Raises:
            MissingInput: `budget` without one that holds; otherwise as `charge_points`.
        """
        known: dict[str, MissingInput | None] = self.__dict__.setdefault("_budgets", {})
        if tenant not in known:
            known[tenant] = known_or_missing("budget", lambda: self._verify_budget(tenant))
        demand(known[tenant])

    def _verify_budget(self, tenant: str) -> None:
        points, index = self.charge_points(tenant), self.accepted_index(tenant)
        policy = self.policy
        statement = BudgetStatement.of(
            policy_digest=policy.digest,
            window=policy.window,
            tenant=tenant,
            version=1,
            index_root=self.stated_index(tenant, 1).index_root,
            # Of the final log: an entry that is left out has another root.
            log_root=self.log.tree.root(),
            rows=index.rows,
            uses=self.generation.uses,
            charges=points,
            squared_norm=policy.squared_norm,
        )
        self.engine.verify_budget(statement, self.item(items.budget_name(tenant), "budget"))
