"""Entries of the generation channel, and what was opened of them (docs/spec/11-generation.md)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Protocol

from ragaudit.circuits.budgets import BudgetStatement
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.answerers import KeywordVoting
from ragaudit.ledger.messages.charges import Charge, Generated
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.verifier.models import AnswerGenerator, OwnGenerator, TokenGenerator
from ragaudit.verifier.procedure.facts import MissingInput, demand, fact, known_or_missing
from ragaudit.verifier.procedure.log_facts import LogFacts
from ragaudit.verifier.procedure.logged_charges import LoggedCharges, LoggedReplies


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
    def charges(self) -> LoggedCharges:
        """All charge entries, in log order."""
        return self.log.columns.charges

    @fact("log")
    def replies(self) -> LoggedReplies:
        """Answer and void entries, in log order."""
        return self.log.columns.replies

    @fact("log")
    def voids(self) -> Counter[bytes]:
        """How many of its charge entries are void, by pseudonym, of accounts that have any."""
        numbers = map(self.charges.number_of, self.replies.voided())
        return Counter(
            self.charges.summary(number).pseudonym for number in numbers if number is not None
        )

    def answer_of(self, charge: int) -> Generated | None:
        """Return the first answer to the charge entry at a place of the log, if it has one."""
        return self.replies.answer_to(charge)

    @property
    def askers(self) -> Iterator[bytes]:
        """Pseudonyms of all accounts with a record or a charge entry."""
        records, charges = self.by_account, self.charges
        return chain(records, (each for each in charges.accounts() if each not in records))

    def queries_of(self, pseudonym: bytes) -> Sequence[Numbered]:
        """Return an account's records and charge entries, in log order: one counter counts both."""
        records: Sequence[Numbered] = self.by_account.get(pseudonym, ())
        charges = self.charges.of_account(pseudonym)
        if not charges:
            return records
        return sorted([*records, *charges], key=lambda one: one.entry)

    def entries_of(self, pseudonym: bytes) -> Sequence[AccountEntry]:
        """Return `queries_of` with the answers and voids of its charges, in log order."""
        queries = self.queries_of(pseudonym)
        # What stands before its charge, or names none, is check 28's, and no account's.
        replies = [
            reply
            for query in queries
            if query.kind == Charge.KIND
            for reply in self.replies.to(query.entry)
            if query.entry < reply.entry
        ]
        return sorted([*queries, *replies], key=lambda one: one.entry) if replies else queries

    def query_count(self, pseudonym: bytes) -> int:
        """Return how many `queries_of` gives, without reading them."""
        return self.by_account.count(pseudonym) + self.charges.count(pseudonym)

    def charge_points(self, tenant: str) -> bytes:
        """Return B_0 || .. of a tenant, in log order.

        Raises:
            MissingInput: `charges` owns an entry that charges nothing.
        """
        points = bytearray()
        for number in self.charges.of_tenant(tenant).tolist():
            logged = self.charges[number]
            if logged.charge.charge is None:
                raise MissingInput("charges", f"{logged.name} charges nothing")
            points += logged.charge.charge
        return bytes(points)

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
