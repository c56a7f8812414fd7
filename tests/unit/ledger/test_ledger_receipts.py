"""Receipts, promises, refusals: vectors, round trips, bindings."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data, salted, structure
from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.signing import verify
from ragaudit.ledger.errors import MalformedNote, MalformedRecord, ProofRejected, ReceiptRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import promises
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import (
    MAX_SUBMITTED_BYTES,
    Claim,
    Promise,
    Refusal,
    least_share,
)
from ragaudit.ledger.messages.receipts import PrivateReceipt, PublicReceipt, ReceiptFile
from ragaudit.ledger.messages.requests import Answer, embedding_digest
from vector_scripts import VECTORS, script

MADE = script("make_receipts")
STORED = json.loads((VECTORS / "receipts.json").read_text("utf-8"))
ORIGIN, START, QUERIES = MADE.ORIGIN, MADE.START, MADE.QUERIES
LOG, PROVIDER, COSIGNERS = MADE.LOG, MADE.PROVIDER, MADE.COSIGNERS
RECORD, REQUEST, OPENINGS, ANSWER = MADE.RECORD, MADE.REQUEST, MADE.OPENINGS, MADE.ANSWER
PUBLIC, COMPLETE, PRIVATE, FILE = MADE.PUBLIC, MADE.COMPLETE, MADE.PRIVATE, MADE.FILE
PROMISE, REFUSAL, CONTENTS, proof_of = MADE.PROMISE, MADE.REFUSAL, MADE.CONTENTS, MADE.proof_of


def test_the_vectors_are_read_back() -> None:
    file = ReceiptFile.parse(STORED["receipt_file"].encode())
    assert file == FILE
    file.verify_answer_digest()
    policy = Policy.parse(STORED["policy"].encode())
    file.public.verify(policy.keys.provider)
    cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
    (checked,) = file.public.checkpoints(policy.keys.log, cosigners)
    assert checked is not None
    assert checked.signed.head.root_hash.hex() == STORED["log_root"]
    promise = Promise.parse(STORED["promise"].encode())
    promise.verify(policy.keys.provider)
    promise.verify_kept(file.public.query)
    Refusal.parse(STORED["refusal"].encode()).verify(policy.keys.provider)


# --- the public part


def test_the_signature_is_over_the_fields_of_the_specification() -> None:
    assert PUBLIC.query == RECORD
    assert PUBLIC.leaves[0][2] == leaf_data(PUBLIC.salt, "record", RECORD.encode())
    fields = (ORIGIN, 2, PUBLIC.salt, PUBLIC.body, PUBLIC.issued, PUBLIC.answer_digest)
    verify(PROVIDER.public, PUBLIC.signature, "receipt", *fields)
    PUBLIC.verify(PROVIDER.public)
    COMPLETE.verify(PROVIDER.public)  # the proof is not signed


def test_inclusion_under_a_cosigned_checkpoint() -> None:
    (checked,) = COMPLETE.checkpoints(LOG.verifier_key, COSIGNERS)
    assert checked is not None
    assert checked.quorum_time == START + 40
    assert PUBLIC.checkpoints(LOG.verifier_key, COSIGNERS) == (None,)
    with pytest.raises(ReceiptRejected, match="another index"):
        PUBLIC.with_proofs(proof_of(1)).checkpoints(LOG.verifier_key, COSIGNERS)
    with pytest.raises(ReceiptRejected, match="another log"):
        replace(COMPLETE, origin="other").checkpoints(LOG.verifier_key, COSIGNERS)
    with pytest.raises(ProofRejected):
        replace(COMPLETE, salt=bytes(32)).checkpoints(LOG.verifier_key, COSIGNERS)
    with pytest.raises(MalformedNote):
        replace(COMPLETE, proof="c2sp.org/tlog-proof@v1\n").checkpoints(LOG.verifier_key, COSIGNERS)


def test_a_dropped_record_is_told_by_receipt_and_log() -> None:
    """The receipt names index 2; the log has another leaf there: both are signed."""
    tree = MemoryTree(bytes([i]) * 32 for i in range(4))
    accused = PUBLIC.with_proofs(proof_of(2, tree))
    accused.verify(PROVIDER.public)
    with pytest.raises(ProofRejected):
        accused.checkpoints(LOG.verifier_key, COSIGNERS)


# --- bindings


def test_the_answer_digest_is_the_formula() -> None:
    halves = (REQUEST.encode(), ANSWER.encode(), PRIVATE.encode())
    assert PUBLIC.answer_digest == structure("answer", PRIVATE.salt_r, *halves)
    assert b'"salt_r"' in PRIVATE.encode()
    FILE.verify_answer_digest()


@for_each(
    "change",
    [
        {"request": replace(REQUEST, query="another")},
        {"request": replace(REQUEST, counter=None)},
        {"answer": Answer(ANSWER.documents[:1])},
        {"answer": Answer((ANSWER.documents[0], replace(ANSWER.documents[1], content="x")))},
        {"private": replace(PRIVATE, selected=(2, 4))},
        {"private": replace(PRIVATE, rows=PRIVATE.rows[:1])},
        {"private": replace(PRIVATE, salt_r=bytes(32))},
        {"private": replace(PRIVATE, openings=replace(OPENINGS, salt_q=bytes(32)))},
    ],
)
def test_another_answer_has_another_digest(change: Any) -> None:
    with pytest.raises(ReceiptRejected, match="another answer"):
        replace(FILE, **change).verify_answer_digest()


def test_openings_open_the_record() -> None:
    OPENINGS.verify(RECORD, REQUEST)
    for name in ("salt_q", "salt_e", "salt_f", "salt_s", "sketch", "embedding"):
        value = (1, 2, 3, 4) if name == "embedding" else bytes(32)
        with pytest.raises(ReceiptRejected, match="does not open"):
            replace(OPENINGS, **{name: value}).verify(RECORD, REQUEST)
    for change in ({"query": "another"}, {"filter": "year > 2020"}):
        with pytest.raises(ReceiptRejected, match="than asked"):
            replace(OPENINGS, **change).verify(RECORD, REQUEST)
    both = replace(OPENINGS, query="another"), replace(REQUEST, query="another")
    with pytest.raises(ReceiptRejected, match="does not open"):
        both[0].verify(RECORD, both[1])


def test_the_embedding_is_hashed_as_little_endian_16_bit_integers() -> None:
    assert embedding_digest(bytes(32), (1, -1, 127)) == salted(
        bytes(32), b"\x01\x00\xff\xff\x7f\x00"
    )


# --- promises and refusals


def test_promises_are_kept_or_contradicted() -> None:
    PROMISE.verify(PROVIDER.public)
    PROMISE.verify_kept(RECORD)
    PROMISE.verify_kept(replace(RECORD, selection_commitment=bytes(32)))
    for change in ({"rows": 5}, {"time": RECORD.time + 1}, {"embedding_digest": bytes(32)}):
        with pytest.raises(ReceiptRejected, match="contradicts"):
            PROMISE.verify_kept(replace(RECORD, **change))


@for_each(
    "change",
    [
        {"origin": "other"},
        {"body": replace(RECORD, top_k=1).promised().encode()},
        {"signature": bytes(64)},
        {"request": replace(REQUEST, counter=1)},
        {"request": replace(REQUEST, top_k=1)},
        {"request": replace(REQUEST, query="another")},
        {"salted": replace(OPENINGS.salted, salt_q=bytes(32))},
    ],
)
def test_a_promise_binds_its_parts(change: Any) -> None:
    with pytest.raises(ReceiptRejected):
        replace(PROMISE, **change).verify(PROVIDER.public)


def test_refusals_are_signed_and_fit_the_budget() -> None:
    REFUSAL.verify(PROVIDER.public)
    REFUSAL.verify_budget(QUERIES)
    early = replace(REFUSAL, counter=QUERIES - 1)
    with pytest.raises(ReceiptRejected, match="does not verify"):
        early.verify(PROVIDER.public)
    with pytest.raises(ReceiptRejected, match="refused after 7"):
        early.verify_budget(QUERIES)
    replace(early, reason="closed").verify_budget(QUERIES)


def test_a_claim_has_a_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Claim(PROMISE, b"n" * 32)
    size = len(claim.encode())
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", size)
    assert claim.encode_within(1) == claim.encode()
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", size - 1)
    with pytest.raises(RefusedError, match="a claim of"):
        claim.encode_within(1)


def test_where_many_may_claim_a_claim_is_shorter() -> None:
    """Two of the greatest length fit into what each account has, however many there are."""
    bounds = {slots: least_share(slots) // 2 for slots in (1, 25_599, 51_199, 102_399)}
    assert bounds == {1: 2**15, 25_599: 2**15, 51_199: 2**14, 102_399: 2**13}
    size = len(Claim(PROMISE, b"n" * 32).encode())
    most = MAX_SUBMITTED_BYTES // (2 * size) - 1
    Claim(PROMISE, b"n" * 32).encode_within(most)
    with pytest.raises(RefusedError, match=f"a claim of {size} bytes"):
        Claim(PROMISE, b"n" * 32).encode_within(most + 1)


# --- one encoding

DOCUMENTS = {
    "public": (PublicReceipt, COMPLETE),
    "outstanding": (PublicReceipt, PUBLIC),
    "private": (PrivateReceipt, PRIVATE),
    "file": (ReceiptFile, FILE),
    "promise": (Promise, PROMISE),
    "refusal": (Refusal, REFUSAL),
}


def spoiled(value: Any, path: Any, new: Any) -> Any:
    result = copy.deepcopy(value.to_json())
    place = result
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = new
    return result


@for_each(
    ("name", "path", "new"),
    [
        ("public", ["body"], ""),
        ("public", ["body"], RECORD.promised().encode().hex()),
        ("private", ["selected"], [5, 2]),
        ("private", ["selected"], [2, 2]),
        ("file", ["answer", "documents"], FILE.answer.to_json()["documents"][::-1]),
        ("promise", ["body"], RECORD.encode().hex()),
    ],
)
def test_malformed_members_are_refused(name: Any, path: Any, new: Any) -> None:
    kind, value = DOCUMENTS[name]
    with pytest.raises(MalformedRecord):
        kind.from_json(spoiled(value, path, new))  # type: ignore[attr-defined]


def test_a_private_half_does_not_show_itself() -> None:
    shown = repr(FILE) + repr(PROMISE)
    for secret in (OPENINGS.salt_q, PRIVATE.salt_r, PRIVATE.rows[0].blinding):
        assert repr(secret) not in shown
        assert secret.hex() not in shown
    assert REQUEST.query not in shown
    assert CONTENTS[2] not in shown
    assert canonical_json.loads(FILE.encode())["private"]["rows"][0]["content"] == CONTENTS[2]
