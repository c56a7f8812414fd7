"""Questions that are charged to documents and answered, while a window is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import COIN_TAG, noise_key
from ragaudit.circuits.selection import scores
from ragaudit.lab.generation.manifest import manifest
from ragaudit.lab.generation.transformer import Transformer, next_logits
from ragaudit.lab.generation.vocabulary import SYLLABLES
from ragaudit.lab.generation.voters import PROMPT, VOCABULARY
from ragaudit.lab.scenario.accounts import Account
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.private import PrivateWindow
from ragaudit.ledger.messages.challenge import Votes, VotesOfAnswer
from ragaudit.ledger.messages.entries import Charge, Generated, Record, Void
from ragaudit.ledger.messages.manifests import GeneratorManifest
from ragaudit.ledger.messages.receipts import AnyAnswer, GeneratedAnswer
from ragaudit.ledger.messages.requests import Openings, Request
from ragaudit.privacy.mechanisms.dp_rag import DpRag, TokenAnswer, TokenVoters
from ragaudit.privacy.mechanisms.retrieval import Row, best_rows, top_slots
from ragaudit.privacy.mechanisms.samplers import Coins, KeyedCoins
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


class ChargingWindow(PrivateWindow):
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
            ("register", "alice", "acme", False, -25),
            ("register", "bob", "acme", False, -24),
            ("register", "carol", "beta", False, -23),
            ("checkpoint", -20),
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
        charge = Charge(
            policy_digest=record.policy_digest,
            window=record.window,
            tenant=record.tenant,
            version=record.version,
            rows=record.rows,
            filter_digest=record.filter_digest,
            pseudonym=record.pseudonym,
            epoch=record.epoch,
            slot=record.slot,
            counter=record.counter,
            activation=record.activation,
            time=record.time,
            query_digest=record.query_digest,
            embedding_digest=record.embedding_digest,
            sketch_digest=record.sketch_digest,
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
        return noise_key(
            key,
            window=question.window,
            tenant=question.tenant,
            version=question.version,
            pseudonym=question.pseudonym,
            epoch=question.epoch,
            slot=question.slot,
            counter=question.counter,
            activation_randomness=self.randomness(question.activation),
            nonce=nonce,
            tag=COIN_TAG,
        )

    def record_key(self, asked: Charged) -> bytes:
        """Return k of a charge entry, 32 bytes: a hook for cheats."""
        return self.seed_commitment.open(asked.charge.slot, asked.charge.counter).key
