"""A window with a generation channel: questions are charged to documents, answered and proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry, ChargeStatement
from ragaudit.circuits.noise import COIN_TAG
from ragaudit.circuits.selection import scores
from ragaudit.lab.generation.serving import manifest
from ragaudit.lab.generation.transformer import Transformer, next_logits
from ragaudit.lab.generation.vocabulary import SYLLABLES
from ragaudit.lab.generation.voters import KEYWORDS, PROMPT, VOCABULARY, LocalVoters
from ragaudit.lab.scenario.integrity import PrivateWindow
from ragaudit.lab.scenario.opening import Account, Asked, Event, TenantIndex, registered
from ragaudit.lab.scenario.window import shown_strata
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.challenge import (
    PaidRow,
    Replay,
    UsedRow,
    Votes,
    VotesOfAnswer,
)
from ragaudit.ledger.messages.commitments import KeyOpening
from ragaudit.ledger.messages.entries import Charge, Generated, Record, Void
from ragaudit.ledger.messages.generation_terms import AdaptiveTerms, KeywordVoting
from ragaudit.ledger.messages.manifests import GeneratorManifest, GeneratorProbe
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import (
    AnyAnswer,
    GeneratedAnswer,
    GeneratedFile,
    GeneratedKeywords,
    GeneratedPrivate,
    GeneratedReceipt,
    GenerationRequest,
    LoggedEntry,
)
from ragaudit.ledger.messages.requests import Openings, Request
from ragaudit.privacy import sample as sampling
from ragaudit.privacy.accounting.generation import channel_loss
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, KeywordAnswer, ResponseVoters
from ragaudit.privacy.mechanisms.dp_rag import DpRag, TokenAnswer, TokenVoters
from ragaudit.privacy.mechanisms.retrieval import Row, best_rows, top_slots
from ragaudit.privacy.mechanisms.samplers import Coins, KeyedCoins
from ragaudit.privacy.mechanisms.streams import bin_counts, running_sums
from ragaudit.privacy.sample import draw_charges
from ragaudit.verifier.models import OwnGenerator

THRESHOLD: Final = 1500
"""tau: with vectors of 32 random entries about every third row is relevant."""


@cache
def model() -> Transformer:
    """Return the copying model, loaded once."""
    return Transformer.load()


class CopyGenerator:
    """The copying model as somebody's own: of the provider, or of the verifier."""

    vocabulary = VOCABULARY

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        """Return the next token of each voter, as `TokenVoters` says."""
        so_far = VOCABULARY.text(answer)
        prompts = [PROMPT.of(texts, question) + so_far for texts in documents]
        return [int(logits.argmax()) for logits in next_logits(model(), prompts)]


@dataclass
class Charged:
    """A question whose charge entry is logged.

    Attributes:
        positions: D_t, rising; blinding: rho_t, a scalar of 32 bytes.
        index: place of the charge entry in the log.
        votes, answer, salt_a, reply: of its answer, once there is one.
    """

    account: Account
    request: Request
    openings: Openings
    embedding: npt.NDArray[np.int16]
    charge: Charge
    body: bytes
    positions: tuple[int, ...]
    blinding: bytes
    index: int = -1
    votes: VotesOfAnswer = ()
    used: tuple[int, ...] = ()
    answer: AnyAnswer | None = None
    salt_a: bytes = b""
    reply: Generated | None = None


class _Noted:
    """Voters whose votes are kept, as a replay shows them."""

    def __init__(self, inner: TokenVoters) -> None:
        self._inner = inner
        self.votes: list[Votes] = []

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        found = self._inner.next_tokens(question, documents, answer)
        assert found[0] is not None
        self.votes.append(Votes(found[0], tuple(found[1:])))
        return found


class GeneratingWindow(PrivateWindow):
    """The window; `charge` asks a question, `reply` answers the one of that number.

    Two questions of acme are alike, so that the second finds rows that are used up.
    """

    uses = 2
    replayed = True
    proving = "all"
    group = 2
    answer_delay = 2
    threshold = THRESHOLD
    epsilons = ("10", "5")
    """Of a question, and of a private token."""

    def script(self) -> list[Event]:
        return [
            *registered(),
            ("charge", "alice", "treatment of bazeli ?", 1),
            ("query", "alice", "first question of alice", 3, 2),
            ("charge", "bob", "treatment of bazeli ?", 3),
            ("reply", 0, 4),
            ("reply", 1, 5),
            ("checkpoint", 7),
            ("charge", "carol", "symptom of mokuti ?", 12),
            ("charge", "alice", "treatment of bazeli ?", 13),
            ("void", 2, 15),
            ("reply", 3, 16),
            ("query", "carol", "first question of carol", 2, 18),
            ("checkpoint", 20),
        ]

    def __post_init__(self) -> None:
        self.charged: list[Charged] = []
        super().__post_init__()

    @property
    def generator(self) -> OwnGenerator:
        """Return the verifier's own model."""
        return CopyGenerator()

    @property
    def voters(self) -> TokenVoters:
        """Return the provider's model: a hook for cheats."""
        return CopyGenerator()

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return super().document(
            keys, {"versions": False, "generation": self.terms_json(), **changes}
        )

    def terms_json(self) -> dict[str, Any]:
        """Return the policy's member ``generation``."""
        return {
            "mechanism": "murag",
            "answerer": {
                "kind": "dp-rag",
                "epsilon_token": self.epsilons[1],
                "voters": 4,
                "slots_per_voter": 1,
                "threshold": None,
                "tokens": 4,
            },
            "epsilon": self.epsilons[0],
            "uses": self.uses,
            "threshold": self.threshold,
            "charges": {"prove": self.proving, "group": self.group},
            "replay": {"differing_votes": 0} if self.replayed else None,
            "generator": self.generator_manifest().to_json(),
            "answer_delay_seconds": self.answer_delay,
            "reuse": False,
        }

    def generator_manifest(self) -> GeneratorManifest:
        """Return what is committed of the model: a hook for cheats."""
        return manifest(model())

    def texts(self, tenant: str) -> list[str]:
        """Records of one disease: whichever are retrieved, they have something to say of it."""
        places = [(i, (7 * i + len(tenant)) % len(SYLLABLES)) for i in range(self.rows)]
        return [
            f"patient {SYLLABLES[place]}{SYLLABLES[i]}lo ; "
            f"treatment of bazeli : {'mirazo' if i % 3 else 'tofuna'} ; "
            f"symptom of bazeli : {'kolupe' if i % 2 else 'gigori'} ."
            for i, place in places
        ]

    # --- charging ----------------------------------------------------------------------------

    def charge(self, name: str, text: str, time: int, wanted: str = "") -> Charged:
        """Log the charge entry of a question, and count it.

        Args:
            name: of a registered account.
            text: the question.
            time: of the entry, seconds after `start`.
            wanted: the filter's canonical text; empty for none.
        """
        account = self.accounts[name]
        request = Request.of(self.policy, text, 1, filter=wanted)
        openings = self.open_request(account, request)
        record = self.stated(account, request, openings, 1000 * (self.start + time))
        embedding = np.array(openings.embedding, dtype=np.int16)
        allowed = self.allowed(record, wanted)
        threshold, sums = self.read_bins(record, embedding, allowed)
        positions = self.due_rows(account.tenant, embedding, allowed)
        blinding = self.scalar()
        shared = {name: getattr(record, name) for name in _names(Charge) & _names(Record)}
        charge = Charge(
            **shared,
            number=len(self.history(account.tenant)),
            threshold=threshold,
            charge=self.commit_charge(positions, blinding),
            sums=sums,
        )
        charge = self.alter_charge(account, charge)
        found = Charged(
            *(account, request, openings, embedding, charge, charge.encode(), positions, blinding)
        )
        account.queries += 1
        self.log_charge(found)
        return found

    def log_charge(self, found: Charged) -> None:
        """Log a charge entry: a hook for cheats."""
        found.index = self.append(Charge.KIND, found.body)
        self.charged.append(found)

    def history(self, tenant: str) -> list[Charged]:
        """Return what was charged to a tenant's rows so far, in the order of the log."""
        return [one for one in self.charged if one.charge.tenant == tenant]

    def read_bins(
        self, record: Record, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, tuple[int, ...]]:
        """Return tau_t of a question and the sums that are released with it."""
        return self.threshold, ()

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        """Return D_t, rising: a hook for cheats."""
        exact = scores(self.indices[tenant].vectors, embedding)
        live = self.live(tenant)
        rows = range(len(exact)) if allowed is None else allowed
        return tuple(i for i in rows if i in live and self.is_relevant(int(exact[i])))

    def is_relevant(self, score: int) -> bool:
        """Return whether a row with this score is above the threshold: a hook for cheats."""
        return score > self.threshold

    def live(self, tenant: str) -> frozenset[int]:
        """Return the rows of a tenant that have a use left: a hook for cheats."""
        paid = [i for one in self.history(tenant) for i in one.positions]
        return frozenset(i for i in range(self.rows) if paid.count(i) < self.uses)

    def commit_charge(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return B_t: a hook for cheats."""
        return core.commit_selection(positions, blinding)

    def alter_charge(self, account: Account, charge: Charge) -> Charge:
        """Return the entry to log: a hook for cheats."""
        return charge

    # --- answering ---------------------------------------------------------------------------

    def reply(self, number: int, time: int) -> None:
        """Answer a charged question, and log it.

        Args:
            number: of the charge entry in this window, from 0.
            time: of the entry, seconds after `start`.
        """
        asked = self.charged[number]
        slots, drawn = self.slot_texts(asked), len(asked.charge.sums)
        asked.votes, asked.answer = self.write_answer(
            asked, slots, KeyedCoins(self.coin_key(asked), drawn)
        )
        asked.salt_a = self.draw()
        asked.reply = Generated(
            window=self.window,
            tenant=asked.charge.tenant,
            charge=asked.index,
            time=1000 * (self.start + time),
            nonce=self.nonce(asked),
            generated_digest=asked.answer.digest(asked.salt_a),
        )
        self.append(Generated.KIND, asked.reply.encode())

    def void(self, number: int, time: int) -> None:
        """Log that a charged question gets no answer; arguments as of `reply`."""
        asked = self.charged[number]
        at = 1000 * (self.start + time)
        self.append(Void.KIND, Void(self.window, asked.charge.tenant, asked.index, at).encode())

    def write_answer(
        self, asked: Charged, slots: Sequence[str], coins: Coins
    ) -> tuple[VotesOfAnswer, AnyAnswer]:
        """Return the votes for an answer, and the answer, from slots."""
        noted = _Noted(self.voters)
        found = self.generate(asked, slots, noted, coins)
        text = VOCABULARY.text(found.tokens)
        return tuple(noted.votes), GeneratedAnswer(text, found.tokens, found.private)

    @property
    def most_used(self) -> int:
        """Return how many rows are used for an answer at most."""
        assert self.policy.generation is not None
        return self.policy.generation.answerer.slots

    @cached_property
    def mechanism(self) -> DpRag:
        """Return the answerer of the policy."""
        terms = self.policy.generation
        assert terms is not None
        each = terms.token_voting
        return DpRag(
            *(terms.answer_epsilon, each.epsilon_token, each.voters, each.slots_per_voter),
            vocabulary=len(VOCABULARY.tokens),
            end=VOCABULARY.end,
            tokens=each.tokens,
        )

    def generate(
        self, asked: Charged, slots: Sequence[str], voters: TokenVoters, coins: Coins
    ) -> TokenAnswer:
        """Return the answer from slots: a hook for cheats."""
        return self.mechanism.answer(asked.request.query, slots, voters, coins)

    def slot_texts(self, asked: Charged) -> list[str]:
        """Return the texts that are used, and note which rows they are: a hook for cheats."""
        rows = self.ranked(asked, asked.positions)
        asked.used = tuple(sorted(row.id for row in rows))
        return top_slots(rows, self.most_used)

    def ranked(self, asked: Charged, positions: Sequence[int]) -> list[Row]:
        """Return the best of these rows of the tenant's index, with their texts."""
        index = self.indices[asked.charge.tenant]
        exact = scores(index.vectors, asked.embedding)
        rows = [Row(i, Fraction(int(exact[i])), index.texts[i]) for i in positions]
        return best_rows(rows, self.most_used)

    def coin_key(self, asked: Charged) -> bytes:
        """Return the key of an answer's coins, 32 bytes: a hook for cheats."""
        return self.question_key(asked.charge, self.record_key(asked), self.nonce(asked) or b"")

    def nonce(self, asked: Charged) -> bytes | None:
        """Return what an anchored account reveals for its answer, 32 bytes: a hook for cheats."""
        chain = asked.account.chain
        return None if chain is None else chain.nonce(asked.charge.counter)

    def question_key(self, question: Record | Charge, key: bytes, nonce: bytes = b"") -> bytes:
        """Return the key of a question's coins, 32 bytes, of k."""
        return self.stream_key(question, key, nonce, COIN_TAG)

    def record_key(self, asked: Charged) -> bytes:
        """Return k of a charge entry, 32 bytes: a hook for cheats."""
        return self.seed_commitment.open(asked.charge.slot, asked.charge.counter).key

    # --- evidence ----------------------------------------------------------------------------

    def opened(self) -> dict[int, Asked | Charged]:
        return {**super().opened(), **{one.index: one for one in self.charged}}

    def logged_charges(self) -> list[sampling.LoggedRecord]:
        """Return the charge entries of the log, for the sample."""
        entries = [(i, e[2]) for i, e in enumerate(self.entries) if e[0] == Charge.KIND]
        bodies = [(i, Charge.parse(body)) for i, body in entries]
        return [sampling.LoggedRecord(i, each.tenant, each.pseudonym) for i, each in bodies]

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        drawn = draw_charges(
            self.logged_charges(),
            tenants=self.policy.tenants,
            rule=self.policy.audit,
            whole=self.proving == "all",
            seed=self.sampling_seed,
        )
        return super().draw_sample(receipts) + shown_strata(drawn)

    def items(self) -> dict[str, bytes]:
        found = super().items()
        tenants = {one.charge.tenant for one in self.charged}
        budgets = {names.budget_name(tenant): self.prove_budget(tenant) for tenant in tenants}
        replays = {
            names.replay_name(one.index): self.replay(one).encode()
            for one in self.charged
            if self.replayed and (one.answer is not None or one.charge.sums)
        }
        return found | budgets | replays

    def response(self, asked: Asked | Charged) -> bytes:
        if isinstance(asked, Asked):
            return super().response(asked)
        proof = self.prove_group(asked.charge.tenant, asked)
        return self.shown_response(asked, self.open_charge_key(asked), proof)

    def open_charge_key(self, asked: Charged) -> KeyOpening:
        """Return the opening of a charge entry's key: a hook for cheats."""
        return self.seed_commitment.open(asked.charge.slot, asked.charge.counter)

    def sampled_of(self, tenant: str) -> list[int]:
        """Return the places of the sampled entries among the tenant's charge entries."""
        strata = self.draw_sample(())
        sampled = {i for stratum in strata for i in stratum["sample"]}
        return [n for n, one in enumerate(self.history(tenant)) if one.index in sampled]

    def prove_group(self, tenant: str, asked: Charged) -> bytes:
        """Return the argument of a group in the response to its last entry, else nothing."""
        entries, places = self.history(tenant), self.sampled_of(tenant)
        own = next(n for n, one in enumerate(entries) if one is asked)
        rank = places.index(own)
        last = rank == len(places) - 1 or rank % self.group == self.group - 1
        if not last:
            return b""
        group = places[rank - rank % self.group : rank + 1]
        return self.prove_charges(tenant, group)

    def prove_charges(self, tenant: str, group: Sequence[int]) -> bytes:
        """Return the charge argument of entries of a tenant: a hook for cheats."""
        entries, index = self.history(tenant), self.indices[tenant]
        points = b"".join(one.charge.charge or b"" for one in entries)
        sums = core.running_sums(points, list(group))
        statement = ChargeStatement(
            self.uses,
            index.commitment.commitments,
            tuple(self.stated_charge(entries[n], b) for n, b in zip(group, sums, strict=True)),
        )
        return core.prove_charges(
            statement,
            index.rows,
            index.blindings,
            [one.positions for one in entries],
            _blindings(entries),
            list(group),
        )

    def stated_charge(self, asked: Charged, before: bytes) -> ChargeEntry:
        """Return what the argument says of an entry."""
        charge = asked.charge
        index = self.indices[charge.tenant].commitment
        filtered = replace(self.stated_record(asked), tenant=charge.tenant)
        return ChargeEntry.of(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=charge.tenant,
            version=1,
            index_root=index.root,
            seed_root=self.seed_root,
            activation_randomness=self.randomness(charge.activation),
            body=asked.body,
            log_index=asked.index,
            query=asked.embedding,
            threshold=charge.threshold or 0,
            allowed=self.allowed(filtered, asked.openings.filter),
            charged_before=before,
            charge=charge.charge or b"",
        )

    def stated_record(self, asked: Charged) -> Any:
        """Return a record of the same question, which says to which rows a filter applies."""
        return self.stated(asked.account, asked.request, asked.openings, asked.charge.time)

    def budget_statement(self, tenant: str) -> BudgetStatement:
        """Return what is claimed of all charge entries of a tenant: a hook for cheats."""
        index = self.indices[tenant].commitment
        return BudgetStatement.of(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=tenant,
            version=1,
            index_root=index.root,
            log_root=self.tree.root(),
            rows=index.rows,
            uses=self.uses,
            charges=b"".join(one.charge.charge or b"" for one in self.history(tenant)),
        )

    def prove_budget(self, tenant: str) -> bytes:
        """Return the budget argument of a tenant: a hook for cheats."""
        entries = self.history(tenant)
        statement = self.budget_statement(tenant)
        return core.prove_budget(statement, [one.positions for one in entries], _blindings(entries))

    def replay(self, asked: Charged) -> Replay:
        """Return what opens an answer: a hook for cheats."""
        index = self.indices[asked.charge.tenant]
        paid = tuple(self.paid_row(index, i) for i in asked.positions)
        if asked.answer is None:
            return Replay.of_void(asked.blinding, paid)
        return Replay(
            asked.blinding,
            paid,
            tuple(
                UsedRow(i, index.ids[i], index.texts[i], index.attributes[i], index.salts[i])
                for i in asked.used
            ),
            asked.votes,
            asked.answer,
            asked.salt_a,
        )

    def paid_row(self, index: TenantIndex, i: int) -> PaidRow:
        """Return the opening of a row."""
        vector = tuple(int(x) for x in index.rows[i])
        return PaidRow(i, vector, index.blindings[i].tobytes())


class UnchargedWindow(GeneratingWindow):
    """The same under NAIVE: every row pays for every question, and none is charged."""

    uses = 3
    replayed = False

    def terms_json(self) -> dict[str, Any]:
        return {**super().terms_json(), "mechanism": "naive", "threshold": None}

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        return tuple(range(self.rows) if allowed is None else allowed)

    def alter_charge(self, account: Account, charge: Charge) -> Charge:
        return replace(charge, threshold=None, charge=None)

    def prove_group(self, tenant: str, asked: Charged) -> bytes:
        return b""

    def items(self) -> dict[str, bytes]:
        found = super().items()
        return {name: data for name, data in found.items() if not name.startswith(names.BUDGETS)}

    def prove_budget(self, tenant: str) -> bytes:
        return b""


def _names(kind: type[Charge | Record]) -> set[str]:
    return {each.name for each in fields(kind)}


def _blindings(entries: Sequence[Charged]) -> npt.NDArray[np.uint8]:
    data = b"".join(one.blinding for one in entries)
    return np.frombuffer(data, dtype=np.uint8).reshape(len(entries), 32)


# --- thresholds that questions find: MURAG-ADA ---------------------------------------------------

TERMS: Final = AdaptiveTerms((3500, 2500, 1500, 500), Fraction(1), 3)


@dataclass
class AdaptiveWindow(GeneratingWindow):
    """The window; its third question of acme finds rows that are used up, and reads every bin."""

    seed: int = 5  # of whose coins the first two questions stop earlier
    epsilons = ("10", "9/2")
    adaptive = TERMS

    def terms_json(self) -> dict[str, Any]:
        return {
            **super().terms_json(),
            "mechanism": "murag-ada",
            "threshold": {
                "edges": list(self.adaptive.edges),
                "epsilon": str(self.adaptive.epsilon),
                "enough": self.adaptive.enough,
            },
        }

    def read_bins(
        self, record: Record, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, tuple[int, ...]]:
        exact = scores(self.indices[record.tenant].vectors, embedding)
        rows = set(range(len(exact)) if allowed is None else allowed) & self.live(record.tenant)
        counts = bin_counts(exact[sorted(rows)], self.adaptive.edges)
        key = self.seed_commitment.open(record.slot, record.counter).key
        sums = self.count(counts, KeyedCoins(self.question_key(record, key)))
        # `is_relevant` asks for it.
        self.threshold = self.stated_threshold(sums)
        return self.threshold, sums

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        """Return the released sums: a hook for cheats."""
        noisy = running_sums(counts, self.adaptive.epsilon, self.adaptive.enough, coins)
        return tuple(int(total) for total in noisy)

    def stated_threshold(self, sums: Sequence[int]) -> int:
        """Return tau_t: a hook for cheats."""
        return self.adaptive.threshold_of(sums)


# --- an account with an anchor -------------------------------------------------------------------


class AnchoredQuestions(GeneratingWindow):
    """Alice reveals a nonce for each answer, and claims her first one at the verifier."""

    def script(self) -> list[Event]:
        return [
            *registered(anchored=True),
            ("charge", "alice", "treatment of bazeli ?", 1),
            ("claim_answer", 0),
            *self.first_end(),
            ("query", "bob", "first question of bob", 3, 5),
            ("charge", "bob", "treatment of bazeli ?", 6),
            ("checkpoint", 7),
            ("reply", 1, 9),
            ("charge", "carol", "symptom of mokuti ?", 12),
            ("charge", "alice", "treatment of bazeli ?", 13),
            *self.last_events(),
            ("void", 2, 17),
            ("reply", 3, 18),
            ("query", "carol", "first question of carol", 2, 19),
            ("checkpoint", 20),
        ]

    def first_end(self) -> list[Event]:
        """Return what ends the first charge before the next one: a hook for cheats."""
        return [("reply", 0, 4)]

    def last_events(self) -> list[Event]:
        """Return what else is logged after Alice's second charge: a hook for cheats."""
        return []

    def claim_answer(self, number: int) -> None:
        """Claim the promise of a charge at the verifier, with the nonce that was revealed for it.

        Args:
            number: of the charge entry in this window, from 0; its account has an anchor.
        """
        asked = self.charged[number]
        assert asked.account.chain is not None
        self.claim(self.promise_charge(asked), asked.account.chain.nonce(asked.charge.counter))

    def promise_charge(self, asked: Charged) -> Promise:
        """Return the promise of a logged charge (docs/spec/11-generation.md §11.11)."""
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=self.promised_charge(asked).encode(),
            request=GenerationRequest(
                asked.request.query, asked.request.filter, asked.charge.counter
            ),
            openings=asked.openings,
        )

    def promised_charge(self, asked: Charged) -> Charge:
        """Return the entry that was promised: a hook for cheats."""
        return asked.charge


# --- receipts of generated answers ---------------------------------------------------------------


class SubmittedAnswers(GeneratingWindow):
    """Every generated answer has its receipt at the verifier, beside those of records."""

    def receipts(self) -> list[dict[str, Any]]:
        words = [self.generated_receipt(one) for one in self.charged if one.reply is not None]
        return [*super().receipts(), *(each.to_json() for each in words)]

    def generated_file(self, asked: Charged) -> GeneratedFile:
        """Return the file of an answer, without proofs: a hook for cheats."""
        assert asked.reply is not None
        charge, answer = self.logged_entry(asked.index), self.logged_entry(self.answer_of(asked))
        return self.sign_file(asked, charge, answer, asked.reply.time + 1)

    def generated_receipt(self, asked: Charged) -> GeneratedReceipt:
        """Return the public part of an answer, with both proofs: a hook for cheats.

        Args:
            asked: a charged question that was answered.
        """
        public = self.generated_file(asked).public
        places = public.charge.index, public.answer.index
        return public.with_proofs(*map(self.proof_for, places))

    def sign_receipt(
        self, asked: Charged, charge: LoggedEntry, answer: LoggedEntry, issued: int
    ) -> GeneratedReceipt:
        """Return the public part over two entries, without proofs.

        Args:
            asked: whose question, answer and openings it binds.
            issued: Unix milliseconds.
        """
        return self.sign_file(asked, charge, answer, issued).public

    def sign_file(
        self, asked: Charged, charge: LoggedEntry, answer: LoggedEntry, issued: int
    ) -> GeneratedFile:
        """Return the whole file, without proofs; arguments as of `sign_receipt`."""
        assert asked.answer is not None
        assert asked.reply is not None
        counter = None if asked.reply.nonce is None else asked.charge.counter
        return GeneratedFile.issue(
            self.provider_key,
            origin=self.origin,
            charge=charge,
            answered=answer,
            issued=issued,
            request=GenerationRequest(asked.request.query, asked.request.filter, counter),
            answer=asked.answer,
            private=GeneratedPrivate(asked.openings, asked.salt_a),
        )

    def answer_of(self, asked: Charged) -> int:
        """Return the place of the answer to a charge."""
        assert asked.reply is not None
        body = asked.reply.encode()
        found: Sequence[int] = [
            place
            for place, (kind, _, data) in enumerate(self.entries)
            if kind == Generated.KIND and data == body
        ]
        return found[0]

    def logged_entry(self, place: int) -> LoggedEntry:
        """Return an entry of the log without a proof."""
        _, salt, body = self.entries[place]
        return LoggedEntry(place, salt, body)


# --- keyword sets: DP-KSA under MURAG ------------------------------------------------------------

TOKENS = 12
"""The most of an answer of the copying model."""


class AnsweringModel(LocalVoters):
    """The copying model as somebody's own, asked for whole answers."""

    def __init__(self) -> None:
        super().__init__(model(), tokens=TOKENS)

    def whole(self, question: str, documents: Sequence[str]) -> Sequence[str | None]:
        """Return the answer of each voter, as `AnswerGenerator` says."""
        return self.responses(question, documents)


class _NotedResponses:
    """Voters whose answers are kept, as a replay shows them."""

    def __init__(self, inner: ResponseVoters) -> None:
        self._inner = inner
        self.votes: tuple[str, ...] = ()

    def responses(self, question: str, documents: Sequence[str]) -> Sequence[str]:
        self.votes = tuple(self._inner.responses(question, documents))
        return self.votes

    def final(self, question: str, keywords: Sequence[str]) -> str:
        return self._inner.final(question, keywords)


class KeywordWindow(GeneratingWindow):
    """The window: every document about a disease names one treatment, so that sets pass."""

    voters_asked = 8
    epsilon_choice = Fraction(8)
    test_sigma = Fraction(1, 4)
    delta_test = delta_conversion = Fraction(1, 10**6)
    sizes: tuple[int, ...] = (1, 2, 3)
    final = "model"

    @property
    def generator(self) -> AnsweringModel:
        return AnsweringModel()

    @property
    def answering(self) -> ResponseVoters:
        """Return the provider's model: a hook for cheats."""
        return AnsweringModel()

    def epsilon(self) -> Fraction:
        """Return what the policy states for all uses: a hook for cheats."""
        return channel_loss(self.epsilon_choice, self.test_sigma, self.uses, self.delta_conversion)

    def terms_json(self) -> dict[str, Any]:
        answerer = {
            "kind": "dp-ksa",
            "epsilon_choice": str(self.epsilon_choice),
            "sigma": str(self.test_sigma),
            "delta_test": str(self.delta_test),
            "delta_conversion": str(self.delta_conversion),
            "voters": self.voters_asked,
            "sizes": list(self.sizes),
            "stop_words": [],
            "tokens": TOKENS,
            "final": self.final,
        }
        return {**super().terms_json(), "answerer": answerer, "epsilon": str(self.epsilon())}

    def generator_manifest(self) -> GeneratorManifest:
        tokens, own = super().generator_manifest(), AnsweringModel()
        probes = tuple(
            GeneratorProbe(each.question, own.final(each.question, ())) for each in tokens.probes
        )
        return replace(tokens, vocabulary=None, keywords=KEYWORDS, probes=probes)

    def texts(self, tenant: str) -> list[str]:
        return [
            f"patient {SYLLABLES[(7 * i + len(tenant)) % len(SYLLABLES)]}{SYLLABLES[i]}lo ; "
            "treatment of bazeli : mirazo ; symptom of bazeli : kolupe ."
            for i in range(self.rows)
        ]

    def keyword_mechanism(self) -> DpKsa:
        """Return the answerer of the policy: a hook for cheats."""
        terms = self.policy.generation
        assert terms is not None and isinstance(terms.answerer, KeywordVoting)
        each = terms.answerer
        return DpKsa(
            epsilon_choice=each.epsilon_choice,
            sigma=each.sigma,
            delta_test=each.delta_test,
            slots=each.voters,
            sizes=each.sizes,
            stop_words=frozenset(each.stop_words),
        )

    def write_answer(
        self, asked: Charged, slots: Sequence[str], coins: Coins
    ) -> tuple[VotesOfAnswer, AnyAnswer]:
        noted = _NotedResponses(self.answering)
        found = self.release(asked, slots, noted, coins)
        votes = self.stated_votes(noted.votes)
        text = self.final_text(found)
        return votes, GeneratedKeywords(text, found.keywords)

    def release(
        self, asked: Charged, slots: Sequence[str], voters: ResponseVoters, coins: Coins
    ) -> KeywordAnswer:
        """Return what is released: a hook for cheats."""
        return self.keyword_mechanism().answer(asked.request.query, slots, voters, coins)

    def stated_votes(self, votes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the votes that a replay shows: a hook for cheats."""
        return votes

    def final_text(self, found: KeywordAnswer) -> str:
        """Return the text of an answer: a hook for cheats."""
        return " ".join(found.keywords or ()) if self.final == "keywords" else found.text
