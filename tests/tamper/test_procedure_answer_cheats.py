"""Cheats in what was opened and proved (checks 17 to 19): each fails its owner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from procedure_cases import assert_caught, use_cached_table
from ragaudit.encoding.digests import salted
from ragaudit.encoding.tagged import decode, enc
from ragaudit.lab.attacks.cheats.embedding import LongQuery
from ragaudit.lab.attacks.cheats.selection import Noiseless, OtherIndex
from ragaudit.lab.scenario.accounts import Account, Asked
from ragaudit.lab.scenario.policy import START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.commitments import KeyOpening, counter_key, key_leaf, slot_key
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.items import response_name
from ragaudit.ledger.messages.requests import QUESTION_TAG, Openings

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


@pytest.mark.parametrize("cheat", [OtherKey, MisplacedKey])
def test_keys_that_were_not_committed(cheat: type[Window]) -> None:
    window = cheat()
    assert_caught(window.items(), window, "seed", "not the committed value")


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


def test_equal_keys_were_committed() -> None:
    window = EqualKeys()
    assert_caught(window.items(), window, "seed", "committed again")


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

    def open_query(self, account: Account, text: str) -> tuple[Openings, npt.NDArray[np.int16]]:
        openings, embedding = super().open_query(account, text)
        return replace(openings, filter="only these rows"), embedding


class FalseSketch(Window):
    """Sketches of noise instead of the query: the coalition estimate sees nothing."""

    def make_sketch(self, account: Account, embedding: npt.NDArray[np.int16]) -> bytes:
        return self.random.randbytes(8)


class EmbedsAnotherText(Window):
    """The vector is of another text than was asked."""

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        return super().embed("!" + text if text.startswith("second question of a") else text)


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (OpensAnotherVector, "record 6: another query vector"),
        (LongQuery, "squared norm"),
        (Filtered, "a filter, which the policy does not have"),
        (FalseSketch, "not the sketch of the query vector"),
        (EmbedsAnotherText, "the text's embedding is"),
    ],
)
def test_queries(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "embedding", reason)


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
    assert_caught(respond(window, 6, field, value), window, "embedding", reason)


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
    assert_caught(respond(window, 6, 5, asked), window, "embedding", "not UTF-8")


def test_a_text_that_is_due_is_withheld() -> None:
    window = Window()
    items = window.items()
    fields = list(decode(RESPONSE, items[response_name(6)], 13))
    fields[4] = fields[5] = b""
    items[response_name(6)] = enc(RESPONSE, *fields)
    assert_caught(items, window, "embedding", "the text is missing")


def test_a_text_that_the_policy_keeps_closed() -> None:
    window = Window(disclosure="none")
    items = window.items()
    fields = list(decode(RESPONSE, items[response_name(6)], 13))
    fields[4], fields[5] = b"s" * 32, b"text"
    items[response_name(6)] = enc(RESPONSE, *fields)
    assert_caught(items, window, "embedding", "keeps closed")


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
    outcome = assert_caught(window.items(), window, "selection", "does not hold")
    if cheat is OtherIndex:
        named = (outcome.check("selection").reason, *outcome.check("selection").evidence)
        assert {text.split(":")[0] for text in named} == {"record 5", "record 9"}
