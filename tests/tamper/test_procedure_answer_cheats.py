"""Cheats in what was opened and proved, and about who acted together (checks 17 to 21)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding.digests import salted
from ragaudit.encoding.tagged import decode, enc
from ragaudit.lab.attacks.cheats.selection import Noiseless, OtherIndex
from ragaudit.lab.scenario.opening import Account, Asked, Event
from ragaudit.lab.scenario.policy import START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.commitments import KeyOpening, counter_key, key_leaf, slot_key
from ragaudit.ledger.messages.entries import Close, Record
from ragaudit.ledger.messages.items import response_name
from ragaudit.ledger.messages.requests import QUESTION_TAG, Openings, Request
from ragaudit.verifier.procedure import Status

use_cached_table()

RESPONSE = "ragaudit/v1/response"

# --- 17: seed -----------------------------------------------------------------------------


class OtherKey(Window):
    """The noise key was picked after the activation was known."""

    def noise_secret(self, record: Record) -> bytes:
        return b"k" * 32 if record.time == 1000 * (START + 18) else super().noise_secret(record)


class MisplacedKey(Window):
    """A committed key, of another counter."""

    def noise_secret(self, record: Record) -> bytes:
        other = record if record.slot else replace(record, counter=(record.counter + 1) % 4)
        return super().noise_secret(other)


class EqualKeys(Window):
    """One key is committed at every place of slot 0."""

    def open(self) -> None:
        super().open()
        slots = []
        for slot in range(self.slots):
            leaves = [
                key_leaf(1, slot, c, self.secret_of(slot, c))
                for c in range(self.queries_per_account)
            ]
            slots.append(MemoryTree(leaves))
        self.trees, self.top = slots, MemoryTree([tree.root() for tree in slots])
        self.seed_commitment.root = self.top.root()
        self.entries, self.tree = [], MemoryTree()
        self.opening = replace(self.opening, seed_root=self.top.root())
        self.append("opening", self.opening.encode())

    def secret_of(self, slot: int, counter: int) -> bytes:
        of_slot = slot_key(self.seed_secret, self.window, 1, slot)
        return counter_key(of_slot, counter if slot else 0)

    def noise_secret(self, record: Record) -> bytes:
        return self.secret_of(record.slot, record.counter)

    def open_key(self, asked: Asked) -> KeyOpening:
        slot, counter = asked.record.slot, asked.record.counter
        path = self.trees[slot].inclusion_proof(counter)
        return KeyOpening(asked.key, path, self.top.inclusion_proof(slot))


# --- 18: embedding ------------------------------------------------------------------------


class OpensAnotherVector(Window):
    """Selection, opening and proof are about another vector than the committed one."""

    def other(self) -> npt.NDArray[np.int16]:
        return self.embed("another text")

    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: npt.NDArray[np.int64], k: int
    ) -> tuple[int, ...]:
        chosen = np.array_equal(embedding, self.embed("first question of carol"))
        return super().select(tenant, self.other() if chosen else embedding, noise, k)

    def response(self, asked: Asked) -> bytes:
        if asked.index == 6:
            asked.embedding = self.other()
        return super().response(asked)


class Filtered(Window):
    """A filter of the provider's making, hidden in the salted digest."""

    def open_request(self, account: Account, request: Request) -> Openings:
        return replace(super().open_request(account, request), filter="only these rows")


class FalseSketch(Window):
    """Sketches of noise instead of the query: the coalition estimate sees nothing."""

    def make_sketch(self, account: Account, embedding: npt.NDArray[np.int16]) -> bytes:
        return self.random.randbytes(8)


class EmbedsAnotherText(Window):
    """The vector is of another text than was asked."""

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        return super().embed("!" + text if text.startswith("second question of a") else text)


def respond(window: Window, index: int, field: int, value: bytes) -> dict[str, bytes]:
    """The evidence with one field of one response replaced."""
    items = window.items()
    name = response_name(index)
    fields = list(decode(RESPONSE, items[name], 13))
    fields[field] = value
    items[name] = enc(RESPONSE, *fields)
    return items


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (4, b"s" * 32, "another text than the committed one"),
        (5, b"what nobody asked", "another text than the committed one"),
        (6, b"s" * 32, "another query vector"),
        (8, b"s" * 32, "another filter"),
        (9, b"x", "another filter"),
        (10, b"s" * 32, "another sketch"),
        (11, bytes(8), "another sketch"),
    ],
)
def test_openings_that_do_not_open(field: int, value: bytes, reason: str) -> None:
    window = Window()
    assert_caught(window, "embedding", reason, respond(window, 6, field, value))


def test_a_text_that_is_not_utf8() -> None:
    class Binary(Window):
        def encode_record(self, record: Record) -> bytes:
            return record.encode()

        def promised(self, account: Account, openings: Openings, top_k: int, time: int) -> Record:
            honest = super().promised(account, openings, top_k, time)
            digest = salted(openings.salt_q, enc(QUESTION_TAG, "text", b"\xff"))
            return replace(honest, query_digest=digest) if time == 1000 * (START + 12) else honest

    window = Binary()
    asked = enc(QUESTION_TAG, "text", b"\xff")
    assert_caught(window, "embedding", "not UTF-8", respond(window, 6, 5, asked))


def test_a_text_that_is_due_is_withheld() -> None:
    window = Window()
    items = window.items()
    fields = list(decode(RESPONSE, items[response_name(6)], 13))
    fields[4] = fields[5] = b""
    items[response_name(6)] = enc(RESPONSE, *fields)
    assert_caught(window, "embedding", "the text is missing", items)


def test_a_text_that_the_policy_keeps_closed() -> None:
    window = Window(disclosure="none")
    items = window.items()
    fields = list(decode(RESPONSE, items[response_name(6)], 13))
    fields[4], fields[5] = b"s" * 32, b"text"
    items[response_name(6)] = enc(RESPONSE, *fields)
    assert_caught(window, "embedding", "keeps closed", items)


# --- 19: selection ------------------------------------------------------------------------


class LessNoise(Window):
    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: npt.NDArray[np.int64], k: int
    ) -> tuple[int, ...]:
        return super().select(tenant, embedding, noise // 8, k)


class Promotes(Window):
    """One document is among the answers whatever was asked."""

    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: npt.NDArray[np.int64], k: int
    ) -> tuple[int, ...]:
        honest = super().select(tenant, embedding, noise, k)
        return tuple(sorted({*honest[:-1], 0}))


class OneMore(Window):
    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: npt.NDArray[np.int64], k: int
    ) -> tuple[int, ...]:
        return super().select(tenant, embedding, noise, k + 1)


class OtherActivation(Window):
    """The noise is that of another activation than the record's."""

    def noise(self, record: Record, key: bytes) -> npt.NDArray[np.int64]:
        return super().noise(replace(record, activation=3 - record.activation), key)


class NoiseWithoutNonce(Window):
    def noise(self, record: Record, key: bytes) -> npt.NDArray[np.int64]:
        return super().noise(replace(record, nonce=None), key)


class NoProof(Window):
    def prove(self, asked: Asked) -> bytes:
        return b""


class ProofOfAnotherRecord(Window):
    def prove(self, asked: Asked) -> bytes:
        self.first = getattr(self, "first", None) or super().prove(asked)
        return self.first


@pytest.mark.parametrize(
    "cheat",
    [
        Noiseless,
        LessNoise,
        Promotes,
        OneMore,
        OtherIndex,
        OtherActivation,
        NoiseWithoutNonce,
        NoProof,
        ProofOfAnotherRecord,
    ],
)
def test_selections(cheat: type[Window]) -> None:
    window = cheat()
    outcome = assert_caught(window, "selection", "does not hold")
    if cheat is OtherIndex:
        named = (outcome.check("selection").reason, *outcome.check("selection").evidence)
        assert {text.split(":")[0] for text in named} == {"record 5", "record 9"}


# --- 20, 21: coalition and epsilon --------------------------------------------------------


class Together(Window):
    """Three accounts of acme ask the same within a second; the policy plans for two."""

    def script(self) -> list[Event]:
        script = super().script()
        same = [
            ("query", name, "the question that they agreed upon", 1, 90)
            for name in ("alice", "bob", "carol")
        ]
        return [*script, *same]


class Understated(Together):
    def alter_close(self, body: Close) -> Close:
        return replace(body, coalition_claim=2)


def test_more_accounts_than_planned_for() -> None:
    window = Together()
    outcome = audit(window.items(), window)
    assert outcome.result == "EXCEEDED"
    assert outcome.failed == ()
    assert outcome.check("coalition").status is Status.EXCEEDED
    assert outcome.coalition == {"claimed": 3, "estimated": 3, "max": 2}
    assert outcome.epsilon is not None and outcome.epsilon.headline.queries == 12
    assert "for 3 accounts" in outcome.check("epsilon").reason


def test_a_coalition_claim_that_is_too_small() -> None:
    window = Understated()
    items = window.items()
    outcome = assert_caught(window, "coalition", "claims 2 accounts, the sketches give 3", items)
    assert outcome.coalition == {"claimed": 2, "estimated": 3, "max": 2}


def test_a_coalition_claim_that_is_too_large() -> None:
    class Overstated(Window):
        def alter_close(self, body: Close) -> Close:
            return replace(body, coalition_claim=2)

    window = Overstated()
    assert_caught(window, "coalition", "claims 2 accounts, the sketches give 1")


@pytest.mark.parametrize(
    ("salt", "made", "reason"),
    [
        (b"s" * 32, None, "another sketch than the committed one"),
        (b"s", None, "another sketch than the committed one"),
        (None, bytes(8), "another sketch than the committed one"),
    ],
)
def test_sketches_that_were_not_committed(
    salt: bytes | None, made: bytes | None, reason: str
) -> None:
    window = Window()
    items = window.items()
    kept = window.sketches[6]
    window.sketches[6] = (salt or kept[0], made or kept[1])
    items[names.RECORDS] = window.handover()
    assert_caught(window, "coalition", reason, items)


def test_sketches_of_another_length() -> None:
    class Short(Window):
        def make_sketch(self, account: Account, embedding: npt.NDArray[np.int16]) -> bytes:
            return super().make_sketch(account, embedding)[:4]

        def estimate(self) -> int:
            return 1

    # Both owners see it: the sketch is not the vector's, and not of the policy's length.
    window = Short()
    outcome = audit(window.items(), window)
    assert outcome.failed == ("embedding", "coalition")
    assert "a sketch of 32 bits" in outcome.check("coalition").reason


class BeyondReach(Together):
    """For the two accounts of the policy there is a finite epsilon, for three there is none."""

    sigma = "0.9"


def test_no_finite_epsilon_for_the_coalition_that_showed() -> None:
    window = BeyondReach(overrides={"epsilon_acc": "60"})
    items = window.items()
    outcome = audit(items, window)
    assert outcome.failed == ("epsilon",)
    assert "no finite epsilon for 3 accounts" in outcome.check("epsilon").reason
    assert outcome.result == "FAIL"
    assert audit(items, window, without=("epsilon",)).result == "EXCEEDED"


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (OtherKey, "seed", "not the committed value"),
        (MisplacedKey, "seed", "not the committed value"),
        (EqualKeys, "seed", "committed again"),
        (OpensAnotherVector, "embedding", "record 6: another query vector"),
        (Filtered, "embedding", "a filter, which the policy does not have"),
        (FalseSketch, "embedding", "not the sketch of the query vector"),
        (EmbedsAnotherText, "embedding", "the text's embedding is"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[Window], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
