"""What the checks look at: the evidence, parsed once, every part owned by one check.

Submitted messages that count, of which a window may have many, are read when they are asked for;
so are the entries of the generation channel (docs/spec/11-generation.md).
"""

import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import BinaryIO, Final, Generic, TypeAlias, TypeVar

from ragaudit.circuits.budgets import BudgetStatement
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError, UnsupportedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.checkpoints import SignedCheckpoint
from ragaudit.ledger.log.cosignatures import verify_cosigned
from ragaudit.ledger.log.tlog_policy import QuorumFinding
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.chains import verify_activation_preimage, verify_nonce
from ragaudit.ledger.messages.challenge import Activation, Challenge, ReceiptsList, Response
from ragaudit.ledger.messages.disputes import RegistrationStatement
from ragaudit.ledger.messages.entries import Charge, Generated, QueryEntry, Record
from ragaudit.ledger.messages.evidence import (
    Activations,
    Checkpoints,
    Claims,
    Disputes,
    EvidenceList,
    KeptDispute,
    Receipts,
    Refusals,
    Statements,
)
from ragaudit.ledger.messages.generation_terms import GenerationTerms, KeywordVoting
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Claim, Promise, Refusal
from ragaudit.ledger.messages.receipts import PublicPart
from ragaudit.ledger.messages.schedules import EpochSchedule, VersionSchedule
from ragaudit.verifier.models import AnswerGenerator, OwnGenerator, TokenGenerator
from ragaudit.verifier.procedure.facts import MissingInput, demand, fact, known_or_missing
from ragaudit.verifier.procedure.log_facts import LogFacts
from ragaudit.verifier.procedure.logged import (
    ChargeSummary,
    Logged,
    LoggedCharges,
    LoggedRecord,
    LoggedReplies,
    RecordSummary,
    ReplySummary,
)

M = TypeVar("M")

_IDENTITY_BYTES: Final = 32


class Submitted(Generic[M]):
    """Some of the messages of an item, in its order, each read from it when it is asked for.

    Of a message there stay two offsets.
    """

    def __init__(self, kind: type[EvidenceList[M]], file: BinaryIO) -> None:
        """Hold no message yet.

        Args:
            kind: the list's class.
            file: of the item; stays open as long as this object, closed with it.
        """
        self._kind, self._file = kind, file
        weakref.finalize(self, file.close)
        # No list is longer than 2^31 bytes.
        self._starts, self._ends = array("I"), array("I")

    def add(self, message: M, start: int, end: int) -> None:
        """Add the next message, which counts.

        Args:
            start, end: as `EvidenceList.located` gives them.
        """
        self._starts.append(start)
        self._ends.append(end)

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[M]:
        for start, end in zip(self._starts, self._ends, strict=True):
            yield self._kind.read_at(self._file, start, end)


class SubmittedReceipts(Submitted[PublicPart]):
    """Public parts of receipts; what decides who submitted what needs no reading."""

    def __init__(self, kind: type[EvidenceList[PublicPart]], file: BinaryIO) -> None:
        super().__init__(kind, file)
        self._indices, self._identities = array("Q"), bytearray()

    def add(self, message: PublicPart, start: int, end: int) -> None:
        """Add the next receipt, see `Submitted.add`."""
        super().add(message, start, end)
        self._indices.append(message.index)
        self._identities += message.identity

    @property
    def indices(self) -> Iterator[int]:
        """Index in the log of each receipt's record, or charge; nothing is read."""
        return iter(self._indices)

    @property
    def identities(self) -> Iterator[tuple[int, bytes]]:
        """(index in the log, identity of 32 bytes) of each receipt; nothing is read."""
        for number, index in enumerate(self._indices):
            at = _IDENTITY_BYTES * number
            yield index, bytes(self._identities[at : at + _IDENTITY_BYTES])


Query: TypeAlias = RecordSummary | ChargeSummary
AccountEntry: TypeAlias = Query | ReplySummary
"""An entry of an account as the log has it: a query, or what ends a charge."""


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

    def entry_of(self, query: Query) -> LoggedRecord | Logged[Charge]:
        """Return the record, or charge entry, of which this is kept."""
        if isinstance(query, RecordSummary):
            return self.records[query.position]
        return self.charges[query.number]

    def answer_of(self, charge: int) -> Generated | None:
        """Return the first answer to the charge entry at a place of the log, if it has one."""
        return self.replies.answer_to(charge)

    @property
    def askers(self) -> Iterator[bytes]:
        """Pseudonyms of all accounts with a record or a charge entry."""
        records, charges = self.by_account, self.charges
        return chain(records, (each for each in charges.accounts() if each not in records))

    def queries_of(self, pseudonym: bytes) -> Sequence[Query]:
        """Return an account's records and charge entries, in log order: one counter counts both."""
        records: Sequence[Query] = self.by_account.get(pseudonym, ())
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
            if logged.body.charge is None:
                raise MissingInput("charges", f"{logged.name} charges nothing")
            points += logged.body.charge
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


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """A checkpoint of the cosigner's store; ``time`` in Unix seconds."""

    signed: SignedCheckpoint
    time: int

    @property
    def size(self) -> int:
        """Number of its entries."""
        return self.signed.head.size


@dataclass(frozen=True, slots=True)
class ReceivedClaim:
    """A promise that the provider signed for this log; ``received`` in Unix milliseconds."""

    promise: Promise
    promised: QueryEntry
    nonce: bytes = field(repr=False)
    received: int

    @property
    def query(self) -> tuple[bytes, int]:
        """(pseudonym, counter) of the promised record or charge."""
        return self.promised.pseudonym, self.promised.counter

    def in_time(self, policy: Policy) -> bool:
        """Return whether the promise still lived when the verifier took the claim (9.3)."""
        life = policy.promise_life_seconds + policy.clock_skew_seconds
        return self.received <= self.promised.time + 1000 * life


class Context(GenerationFacts):
    """All facts: here those about what the verifier saw, said, asked and was handed."""

    @fact("split-view")
    def checkpoints(self) -> tuple[KnownCheckpoint, ...]:
        """The cosigner's store, both signatures of each checked, sizes rising."""
        known = []
        for note in self.listed(items.CHECKPOINTS, "split-view", Checkpoints):
            cosigned = verify_cosigned(note, self.policy.keys.log, self.cosigners)
            known.append(KnownCheckpoint(cosigned.signed, cosigned.quorum_time))
        sizes = [checkpoint.size for checkpoint in known]
        # The cosigner signs growing logs only; an item that says otherwise was not its store.
        if sizes != sorted(set(sizes)):
            raise RejectedError("sizes do not rise", where=items.CHECKPOINTS)
        return tuple(known)

    @fact("cosigners")
    def further(self) -> tuple[QuorumFinding, ...]:
        """The checkpoints with the quorum of the policy's further cosigners, sizes rising."""
        terms, known = self.policy.cosigners, {one.size: one for one in self.checkpoints}
        assert terms is not None  # asked for by a check that is listed under such a policy only
        found: list[QuorumFinding] = []
        for note in self.listed(items.COSIGNED, "cosigners", Checkpoints):
            finding = terms.trust.judge(note, self.policy.keys.log)
            finding.demand()
            size = finding.signed.head.size
            # A quorum over what the verifier never saw says nothing of this log.
            if size not in known or known[size].signed.head != finding.signed.head:
                raise RejectedError("not one that the verifier cosigned", where=f"size {size}")
            if found and found[-1].signed.head.size >= size:
                raise RejectedError("sizes do not rise", where=items.COSIGNED)
            found.append(finding)
        return tuple(found)

    @fact("sampling")
    def activations(self) -> Mapping[int, Activation]:
        """The released activations, signed and on the countersigned chain."""
        anchor = self.countersignature.activation_anchor
        window = self.policy.window
        found: dict[int, Activation] = {}
        for message in self.parsed(items.ACTIVATIONS, "sampling", Activations.parse).messages:
            message.verify(self.policy.keys.verifier)
            where = f"activation {message.a}"
            if message.window != window or not 1 <= message.a < self.policy.activations:
                raise RejectedError("of another window or instant", where=where)
            if message.a in found:
                raise RejectedError("released twice", where=where)
            if message.round is not None and self.policy.beacon is None:
                raise RejectedError(
                    "a round of a beacon that the policy does not name", where=where
                )
            # Values off the countersigned chain could have been chosen when the queries were known.
            verify_activation_preimage(window, anchor, message.a, message.preimage)
            found[message.a] = message
        return found

    @fact("beacon")
    def rounds(self) -> Mapping[int, bytes]:
        """Randomness of the beacon's round of each released activation; empty without a beacon."""
        found = {}
        for a, message in self.activations.items():
            try:
                found[a] = message.check_round(self.policy, a, engine=self.engine.is_round)
            except RejectedError as error:
                what, where = f"activation {a}: {error.what}", error.where
                raise RejectedError(what, where=where, expected=error.expected) from error
        return found

    @fact("beacon")
    def sampling_round(self) -> bytes:
        """Randomness of the beacon's round of the sampling instant; empty without a beacon."""
        return self.challenge.check_round(self.policy, engine=self.engine.is_round)

    @fact("sampling")
    def covered_sizes(self) -> tuple[int, ...]:
        """Covered size of a = 1, 2, .., A - 1."""
        found = self.activations
        # A value that was never released is one that only V knows: its records cannot be judged.
        missing = [a for a in range(1, self.policy.activations) if a not in found]
        if missing:
            raise RejectedError("not released", where=f"activation {missing[0]}")
        return tuple(found[a].covered_size for a in range(1, self.policy.activations))

    @fact("schedule")
    def schedule(self) -> VersionSchedule:
        """Versions of all indexes with what activated them."""
        opening, entries = self.opening, self.version_entries
        return VersionSchedule.of(self.policy, opening, entries, self.covered_sizes)

    @fact("schedule")
    def epochs(self) -> EpochSchedule:
        """Seed epochs with what activated them."""
        opening, entries = self.opening, self.epoch_entries
        return EpochSchedule.of(self.policy, opening, entries, self.covered_sizes)

    def randomness(self, a: int) -> bytes:
        """Return rnd_a, 32 bytes (docs/spec/05-records.md §5.6).

        Args:
            a: as the record names it, at least 1.

        Raises:
            MissingInput: `schedule` if there is no such activation, `sampling` if it was not
                released, `beacon` if a round is not the one that it must be.
        """
        # Beyond the last instant nothing is released: n_A draws the sample.
        if a >= self.policy.activations:
            raise MissingInput("schedule", f"there is no activation {a}")
        if a not in self.activations:
            raise MissingInput("sampling", f"activation {a} was not released")
        _ = self.rounds  # checked
        return self.activations[a].randomness()

    @fact("receipts")
    def receipts(self) -> SubmittedReceipts:
        """The submitted receipts that carry a valid signature of the provider."""
        return self._receipts(items.RECEIPTS)

    @fact("receipts")
    def disputed_receipts(self) -> SubmittedReceipts:
        """Public parts of judged files that carry a valid signature of the provider."""
        return self._receipts(items.JUDGED)

    def _receipts(self, name: str) -> SubmittedReceipts:
        counts = self._counting()
        found = SubmittedReceipts(Receipts, self.open_item(name, "receipts"))
        for receipt, start, end in self.located(name, "receipts", Receipts):
            if counts(receipt):
                found.add(receipt, start, end)
        return found

    @fact("refusals")
    def refusals(self) -> Submitted[Refusal]:
        """The submitted refusals that carry a valid signature of the provider."""
        counts = self._counting()
        found = Submitted(Refusals, self.open_item(items.REFUSALS, "refusals"))
        for refusal, start, end in self.located(items.REFUSALS, "refusals", Refusals):
            if counts(refusal):
                found.add(refusal, start, end)
        return found

    def _counting(self) -> Callable[[PublicPart | Refusal | Promise], bool]:
        """Return what says whether the provider signed a message for this window's log."""
        policy = self.policy  # first: without one, no list says anything, not even an empty one

        def counts(message: PublicPart | Refusal | Promise) -> bool:
            try:
                message.verify(policy.keys.provider)
            except RagauditError:
                # Anyone may submit anything, so only what the provider's signature binds counts.
                return False
            return message.origin == policy.origin

        return counts

    @property
    def claims(self) -> Iterator[ReceivedClaim]:
        """The claims whose promise the provider signed, with their times of intake.

        The clock is check 16's: a claim without a time there is a missing input of `sampling`.
        """
        # Without noise there are no promises: check 12 does not apply, and would own no fault.
        submitted = () if self.unnoised else self._claims
        for claim in submitted:
            promise = claim.promise
            received = self.clock.claims[promise.identity]
            yield ReceivedClaim(promise, promise.promised, claim.nonce, received)

    @fact("promises")
    def _claims(self) -> Submitted[Claim]:
        counts = self._counting()
        found = Submitted(Claims, self.open_item(items.CLAIMS, "promises"))
        for claim, start, end in self.located(items.CLAIMS, "promises", Claims):
            if not counts(claim.promise):
                continue
            # Without a time nobody can say whether the promise still lived: the verifier's fault.
            if claim.promise.identity not in self.clock.claims:
                raise MissingInput("sampling", "the clock has no time of intake for a claim")
            found.add(claim, start, end)
        return found

    @property
    def claimed_records(self) -> dict[tuple[bytes, int], Record]:
        """The promised record of every claim that binds the provider, by (pseudonym, counter).

        The records that keep them are logged when the window ends, at the times of their promises.
        Promised charges are in the log before anybody can claim them, and are not among these.
        """
        return {
            claim.query: claim.promised
            for claim in self.claims
            if isinstance(claim.promised, Record)
            and claim.in_time(self.policy)
            and self.reveals_nonce(claim)
        }

    def reveals_nonce(self, claim: ReceivedClaim) -> bool:
        """Return whether the claim shows the nonce of the account's chain.

        One of a plain account, or with a counter beyond the limit, cannot.

        Args:
            claim: of this window; its promise was signed by the provider.

        Raises:
            MissingInput: `registrations` for an account that is registered twice.
        """
        pseudonym, counter = claim.query
        registered, _ = self.registrations.first(pseudonym)
        if registered is None or counter >= self.policy.queries_per_account:
            return False
        rank = self.registration(pseudonym).rank
        anchor = self.registrations[rank].body.anchor
        # Whoever revealed a "nonce" of a plain account made it up.
        if anchor is None:
            return False
        try:
            verify_nonce(self.policy.window, pseudonym, anchor, counter, claim.nonce)
        except RejectedError:
            return False
        return True

    @fact("disputes")
    def disputes(self) -> tuple[KeptDispute, ...]:
        """What accounts disputed, as the verifier kept it."""
        return self.parsed(items.DISPUTES, "disputes", Disputes.parse).messages

    @fact("nonces")
    def anchored(self) -> frozenset[bytes]:
        """Pseudonyms of the accounts that showed the chain of their registration (9.5).

        A registration's anchor is the provider's word until a statement about it, signed with the
        registration's dispute key, reached the verifier. Receipts and claims are no evidence of
        that: whoever made the chain has them all.
        """
        statements = self.listed(items.STATEMENTS, "nonces", Statements)
        return frozenset(one.pseudonym for one in statements if self._is_own(one))

    def _is_own(self, statement: RegistrationStatement) -> bool:
        """Whether a registration with this anchor has the key that signed, for this log."""
        if statement.origin != self.policy.origin:
            return False
        registered, more = self.registrations.first(statement.pseudonym)
        if registered is None or more:  # that there is one only is check 7's
            return False
        registration = self.registrations[registered.rank].body
        # A statement about another chain says nothing of the one that the records use.
        if registration.anchor is None or registration.anchor != statement.anchor:
            return False
        if registration.dispute_key is None:
            return False
        try:
            statement.verify(PublicKey.from_raw(registration.dispute_key))
        except RagauditError:
            return False
        return True

    @fact("sampling")
    def receipts_list(self) -> ReceiptsList:
        """The verifier's commitment to the receipts, signature checked."""
        found = ReceiptsList.parse(self.item(items.RECEIPTS_LIST, "sampling"))
        found.verify(self.policy.keys.verifier)
        return found

    @fact("sampling")
    def challenge(self) -> Challenge:
        """The challenge, signature checked."""
        found = Challenge.parse(self.item(items.CHALLENGE, "sampling"))
        found.verify(self.policy.keys.verifier)
        if found.round is not None and self.policy.beacon is None:
            raise RejectedError("a round of a beacon that the policy does not name")
        return found

    @fact("sampling")
    def clock(self) -> Clock:
        """Times that only the verifier's clock says."""
        return Clock.parse(self.item(items.CLOCK, "sampling"))

    @fact("sampling")
    def challenged(self) -> tuple[LoggedRecord, ...]:
        """The challenged records that are in the log, in log order."""
        records = self.records  # what the log lacks is not the sample's defect
        sampled = self.challenge.sampled
        return records.at(sampled)

    @property
    def sampled(self) -> tuple[LoggedRecord, ...]:
        """The challenged records whose responses are checked: all, or those in ``only``."""
        challenged = self.challenged
        if self.only is None:
            return challenged
        return tuple(record for record in challenged if record.entry in self.only)

    @fact("sampling")
    def challenged_charges(self) -> tuple[Logged[Charge], ...]:
        """The challenged charge entries, in log order."""
        charges, sampled = self.charges, self.challenge.sampled
        return charges.at(sampled)

    def response(self, record: LoggedRecord | Logged[Charge]) -> Response:
        """Return the response for a sampled record or charge entry, with its index.

        Raises:
            MissingInput: `sampling` without one that can be read.
        """
        data = self.item(items.response_name(record.entry), "sampling")
        try:
            policy = self.policy
            found = Response.parse(data, policy.dimension, noised=policy.noised)
        except MalformedError as error:
            raise MissingInput("sampling", f"{record.name}: {error}") from error
        # A response says whose it is, so that none can stand in for another record.
        if found.index != record.entry:
            raise MissingInput("sampling", f"{record.name}: answered as {found.index}")
        return found
