"""Cheats around the sample, and in what was opened and proved (checks 16 to 21)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.circuits.selection import scores, select
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import salted
from ragaudit.encoding.signing import sign
from ragaudit.encoding.tagged import decode, enc
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import merkle_commitments
from ragaudit.ledger.messages.records import Close, Record
from ragaudit.ledger.messages.requests import Openings
from ragaudit.verifier import evidence as names
from ragaudit.verifier.evidence import response_name
from ragaudit.verifier.procedure import Status
from window import CHALLENGED, END, INSTANTS, START, Account, Asked, Window

use_cached_table()

RESPONSE = "ragaudit/v1/response"

# --- 16: sampling -------------------------------------------------------------------------


class FinalTooLate(Window):
    """The final checkpoint is cosigned when the sample is already known."""

    def close(self) -> None:
        body = Close(self.window, len(self.asked), self.estimate(), 1000 * END)
        self.append("close", body.encode())
        self.checkpoint(INSTANTS[-1] - START)


def test_a_final_checkpoint_after_the_sampling_instant() -> None:
    window = FinalTooLate()
    assert_caught(window.items(), window, "sampling", "cosigned at")


def signed_list(window: Window, value: dict[str, Any]) -> dict[str, Any]:
    fields = (value["window"], bytes.fromhex(value["digest"]), value["count"], value["time"])
    signature = sign(window.verifier_key, "receipts-list", *fields)
    return {**value, "signature": signature.hex()}


class AltersList(Window):
    change: dict[str, Any]

    def receipts_list(self, receipts: Any) -> dict[str, Any]:
        return signed_list(self, {**super().receipts_list(receipts), **self.change})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": 1000 * INSTANTS[-1]}, "made after the sampling instant"),
        ({"count": 3}, "not the receipts at hand"),
        ({"digest": "ab" * 32}, "not the receipts at hand"),
        ({"window": "w2"}, "of another window"),
    ],
)
def test_the_receipts_list(change: dict[str, Any], reason: str) -> None:
    window = AltersList()
    window.change = change
    assert_caught(window.items(), window, "sampling", reason)


def test_a_receipt_was_slipped_in_after_the_list() -> None:
    window = Window()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS])
    late = window.receipt_file(window.asked[5]).public.to_json()
    items[names.RECEIPTS] = canonical_json.dumps([*listed, late])
    assert_caught(items, window, "sampling", "not the receipts at hand")


class OtherPreimage(Window):
    """n_a is not on the chain that was countersigned: the noise was drawn again."""

    def activation(self, a: int, covered: int) -> dict[str, Any]:
        value = super().activation(a, covered)
        if a == 2:
            fields = (self.window, a, b"n" * 32, covered, value["time"])
            value["preimage"] = "6e" * 32
            value["signature"] = sign(self.verifier_key, "activation", *fields).hex()
        return value


class Hidden(Window):
    """An activation that was never released."""

    def activation(self, a: int, covered: int) -> dict[str, Any]:
        return super().activation(1 if a == 2 else a, covered)


class OverstatesCoverage(Window):
    def activation(self, a: int, covered: int) -> dict[str, Any]:
        return super().activation(a, covered + (a == 2))


class ReleasesEarly(Window):
    def activation(self, a: int, covered: int) -> dict[str, Any]:
        value = super().activation(a, covered)
        value["time"] = 1000 * INSTANTS[a - 1] - 1
        fields = (self.window, a, bytes.fromhex(value["preimage"]), covered, value["time"])
        return {**value, "signature": sign(self.verifier_key, "activation", *fields).hex()}


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (OtherPreimage, "not the chain's preimage"),
        (Hidden, "released twice"),
        (OverstatesCoverage, "activation 2 covers"),
        (ReleasesEarly, "before its instant"),
    ],
)
def test_activations(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "sampling", reason)


@pytest.mark.parametrize("kept", [0, 1])
def test_activations_that_were_never_released(kept: int) -> None:
    window = Window()
    items = window.items()
    released = canonical_json.loads(items[names.ACTIVATIONS])
    items[names.ACTIVATIONS] = canonical_json.dumps(released[:kept])
    assert_caught(items, window, "sampling", "not released")


def rechallenged(played: Window, items: dict[str, bytes], /, **changes: Any) -> dict[str, bytes]:
    value = canonical_json.loads(items[names.CHALLENGE])
    signed = played.sign_challenge({**value, **changes})
    return {**items, names.CHALLENGE: canonical_json.dumps(signed)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"preimage": "ab" * 32}, "not the chain's preimage"),
        ({"final_size": 13}, "another final log"),
        ({"final_root": "ab" * 32}, "another final log"),
        ({"disputed": [4]}, "unknown member"),
        ({"window": "w2"}, "another window"),
        ({"deadline": 1000 * CHALLENGED}, "answered at"),
        ({"receipts_list": {}}, "challenge.receipts_list.count: missing member"),
    ],
)
def test_the_challenge(changes: dict[str, Any], reason: str) -> None:
    window = Window()
    items = rechallenged(window, window.items(), **changes)
    assert_caught(items, window, "sampling", reason)


def test_the_challenge_names_another_receipts_list() -> None:
    window = Window()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS_LIST])
    other = signed_list(window, {**listed, "count": 3})
    items = rechallenged(window, items, receipts_list=other)
    assert_caught(items, window, "sampling", "another receipts list")


class PickedSample(Window):
    """The sample is not the one that the seed gives: somebody chose what is looked at."""

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        drawn = super().draw_sample(receipts)
        everything = {r.index for r in self.logged() if r.tenant == "acme"}
        left_out = sorted(everything - set(drawn[0]["sample"]))
        drawn[0]["sample"] = left_out[:2]
        return drawn


class SkippedStratum(Window):
    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        return super().draw_sample(receipts)[:-1]


@pytest.mark.parametrize("cheat", [PickedSample, SkippedStratum])
def test_a_sample_that_somebody_chose(cheat: type[Window]) -> None:
    window = cheat(mode="B")
    assert_caught(window.items(), window, "sampling", "not the one that the seed gives")


def test_a_sampled_record_is_not_answered() -> None:
    window = Window()
    items = window.items()
    del items[response_name(window.asked[2].index)]
    assert_caught(items, window, "sampling", "responses/6.bin is missing")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: f[:-1], "wrong tag or field count"),
        (lambda f: (*f[:7], f[7][:-2], *f[8:]), "embedding"),
        (lambda f: (*f[:2], f[2] + b"x", *f[3:]), "path"),
        (lambda f: (*f[:2], bytes(64 * 32), *f[3:]), "path"),
        (lambda f: ((99).to_bytes(8, "little"), *f[1:]), "answered as 99"),
        (lambda f: (*f[:5], bytes(8193), *f[6:]), "text too long"),
        (lambda f: (*f[:12], bytes(2**20 + 1)), "proof too long"),
        (lambda f: (f[0], b"", *f[2:]), "digest field has a wrong length"),
    ],
)
def test_a_response_that_is_none(
    spoil: Callable[[tuple[bytes, ...]], tuple[bytes, ...]], reason: str
) -> None:
    window = Window()
    items = window.items()
    name = response_name(window.asked[2].index)
    items[name] = enc(RESPONSE, *spoil(decode(RESPONSE, items[name], 13)))
    assert_caught(items, window, "sampling", reason)


def test_a_response_whose_time_nobody_knows() -> None:
    window = Window()
    items = window.items()
    clock = canonical_json.loads(items[names.CLOCK])
    del clock["responses"]["6"]
    items[names.CLOCK] = canonical_json.dumps(clock)
    assert_caught(items, window, "sampling", "record 6: no time of its answer")
    items[names.CLOCK] = b"{}"
    assert_caught(items, window, "sampling", "clock.claims: missing member")


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
                merkle_commitments.key_leaf(1, slot, c, self.secret_of(slot, c))
                for c in range(self.queries_per_account)
            ]
            slots.append(MemoryTree(leaves))
        self.trees, self.top = slots, MemoryTree([tree.root() for tree in slots])
        self.seed_commitment.root = self.top.root()
        self.entries, self.tree = [], MemoryTree()
        self.opening = replace(self.opening, seed_root=self.top.root())
        self.append("opening", self.opening.encode())

    def secret_of(self, slot: int, counter: int) -> bytes:
        of_slot = merkle_commitments.slot_key(self.seed_secret, self.window, 1, slot)
        return merkle_commitments.counter_key(of_slot, counter if slot else 0)

    def noise_secret(self, record: Record) -> bytes:
        return self.secret_of(record.slot, record.counter)

    def open_key(self, asked: Asked) -> merkle_commitments.KeyOpening:
        slot, counter = asked.record.slot, asked.record.counter
        path = self.trees[slot].inclusion_proof(counter)
        return merkle_commitments.KeyOpening(asked.key, path, self.top.inclusion_proof(slot))


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


class LongVector(Window):
    """|e| above B: the noise is small beside such scores."""

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        vector = super().embed(text)
        return (2 * vector).astype(np.int16) if text.startswith("second question of b") else vector

    def prove(self, asked: Asked) -> bytes:
        return b"" if asked.index == 9 else super().prove(asked)


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
        (LongVector, "squared norm"),
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
            digest = salted(openings.salt_q, b"\xff")
            return replace(honest, query_digest=digest) if time == 1000 * (START + 12) else honest

    window = Binary()
    assert_caught(respond(window, 6, 5, b"\xff"), window, "embedding", "not UTF-8")


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


class WithoutNoise(Window):
    """The best documents without noise, behind a commitment that looks like any other."""

    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: npt.NDArray[np.int64], k: int
    ) -> tuple[int, ...]:
        return select(scores(self.indices[tenant].vectors, embedding), k)


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


class OtherIndex(Window):
    """bob of acme is answered from beta's index; the record does not say so."""

    def served_tenant(self, account: Account) -> str:
        return "beta" if account.name == "bob" else account.tenant


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
        WithoutNoise,
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


# --- 20, 21: coalition and epsilon --------------------------------------------------------


class Together(Window):
    """Three accounts of acme ask the same within a second; the policy plans for two."""

    def script(self) -> list[tuple[Any, ...]]:
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
    outcome = assert_caught(items, window, "coalition", "claims 2 accounts, the sketches give 3")
    assert outcome.coalition == {"claimed": 2, "estimated": 3, "max": 2}


def test_a_coalition_claim_that_is_too_large() -> None:
    class Overstated(Window):
        def alter_close(self, body: Close) -> Close:
            return replace(body, coalition_claim=2)

    window = Overstated()
    assert_caught(window.items(), window, "coalition", "claims 2 accounts, the sketches give 1")


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
    assert_caught(items, window, "coalition", reason)


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
