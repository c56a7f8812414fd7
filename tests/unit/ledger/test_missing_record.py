"""A receipt against its log: what contradicts it, and everything that does not (spec 6.11)."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import key_members, policy_document, seeded
from ragaudit.ledger.errors import NoteRejected, ProofRejected, ReceiptRejected
from ragaudit.ledger.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    sign_checkpoint,
    verify_checkpoint,
)
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.entries import Close
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.missing import LogShown, MissingRecord
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.shown import OpenedEntry
from vector_scripts import VECTORS

VECTOR: dict[str, Any] = json.loads((VECTORS / "missing.json").read_bytes())
ORIGIN = "rag.example.com/ragaudit/2026-w47"
SECRET = PrivateKey.from_seed(bytes.fromhex(VECTOR["log_seed"]))
LOG = SigningKey(ORIGIN, ED25519, SECRET)
PROVIDER = PrivateKey.from_seed(bytes.fromhex(VECTOR["provider_seed"]))
OTHER_LOG = SigningKey(ORIGIN, ED25519, seeded("other log"))
ELSEWHERE = SigningKey("rag.example.com/ragaudit/other", ED25519, SECRET)


def policy(**changes: Any) -> Policy:
    cosigner = SigningKey("regulator.example/cosigner", COSIGNATURE_V1, seeded("cosigner"))
    keys = key_members(
        log=LOG, provider=PROVIDER, cosigner=cosigner, verifier=seeded("v"), verdict=seeded("w")
    )
    members = {"provider": "rag.example.com", "window": VECTOR["window"], **changes}
    return Policy.from_json(policy_document(keys, members))


POLICY = policy()
ANOTHER_LEAF = MissingRecord.parse(VECTOR["another_leaf"].encode())
ENDED = MissingRecord.parse(VECTOR["ended"].encode())
SIGNED = verify_checkpoint(ENDED.shown.checkpoint, LOG.verifier_key)


def tree(size: int = 7) -> MemoryTree:
    made = MemoryTree()
    for leaf in VECTOR["leaves"][:size]:
        made.append_hash(bytes.fromhex(leaf))
    return made


def signed(of: MemoryTree, key: SigningKey = LOG) -> SignedCheckpoint:
    return sign_checkpoint(Checkpoint(key.name, of.head()), key)


def closing(index: int = 6, kind: str = Close.KIND) -> Entry:
    assert ENDED.shown.close is not None
    return Entry(index, kind, ENDED.shown.close.salt, ENDED.shown.close.body)


@pytest.mark.parametrize("name", ["another_leaf", "ended"])
def test_a_proof_of_the_specification_is_read_and_holds(name: str) -> None:
    proof = MissingRecord.parse(VECTOR[name].encode())
    assert proof.verify(POLICY).head == SIGNED.head
    assert proof.encode() == VECTOR[name].encode()


def test_what_the_log_shows_gives_the_same_proofs() -> None:
    with_proof = replace(ANOTHER_LEAF.receipt, proof="nobody signed this")
    assert MissingRecord.find(with_proof, SIGNED, tree()) == ANOTHER_LEAF
    assert MissingRecord.find(ENDED.receipt, SIGNED, tree(), closing()) == ENDED


def test_a_record_in_its_place_is_not_missing() -> None:
    made = tree(4)
    made.append(ANOTHER_LEAF.receipt.leaves[0][2])
    assert MissingRecord.find(ANOTHER_LEAF.receipt, signed(made), made) is None


@pytest.mark.parametrize("last", [None, closing(index=5), closing(kind="registration")])
def test_a_log_that_may_go_on_proves_nothing(last: Entry | None) -> None:
    assert MissingRecord.find(ENDED.receipt, SIGNED, tree(), last) is None


def test_at_every_size_and_index_what_is_found_holds() -> None:
    for size in range(1, 8):
        made = tree(size)
        for index in range(size):
            receipt = resigned(index)
            proof = MissingRecord.find(receipt, signed(made), made)
            assert proof is not None
            proof.verify(POLICY)


def resigned(index: int) -> Any:
    return PublicReceipt(
        origin=ORIGIN, index=index, salt=ANOTHER_LEAF.receipt.salt,
        body=ANOTHER_LEAF.receipt.body, issued=1, answer_digest=bytes(32),
    ).signed(PROVIDER)  # fmt: skip


def showing(proof: MissingRecord, **changes: Any) -> MissingRecord:
    return replace(proof, shown=replace(proof.shown, **changes))


def there() -> MissingRecord:
    """A proof that the record is in its place, which accuses nobody."""
    made = tree(4)
    made.append(ANOTHER_LEAF.receipt.leaves[0][2])
    path = made.inclusion_proof(4)
    leaf = made.subtree_hash(0, 4)
    return MissingRecord(ANOTHER_LEAF.receipt, LogShown(signed(made).encode(), path, leaf=leaf))


def ended_with(kind: str, body: bytes) -> MissingRecord:
    """A proof with a last entry that is signed as it is."""
    assert ENDED.shown.close is not None
    shown = OpenedEntry(ENDED.shown.close.salt, body)
    made = tree(6)
    made.append(Entry(6, kind, shown.salt, body).leaf)
    found = LogShown(signed(made).encode(), made.inclusion_proof(6), close=shown)
    return MissingRecord(ENDED.receipt, found)


def close_of(window: str) -> bytes:
    return Close(window, 5, 1, 1_800_000_120_000).encode()


LIES: dict[str, tuple[Callable[[], MissingRecord], type[RagauditError], str]] = {
    "the same leaf": (there, ProofRejected, "where its receipt says"),
    "a receipt that somebody else signed": (
        lambda: replace(ANOTHER_LEAF, receipt=replace(ANOTHER_LEAF.receipt, signature=bytes(64))),
        ReceiptRejected,
        "signature",
    ),
    "a receipt moved to another index": (
        lambda: replace(ANOTHER_LEAF, receipt=replace(ANOTHER_LEAF.receipt, index=3)),
        ReceiptRejected,
        "signature",
    ),
    "a receipt of another log": (
        lambda: replace(ANOTHER_LEAF, receipt=replace(ANOTHER_LEAF.receipt, origin=ELSEWHERE.name)),
        ReceiptRejected,
        "of another log",
    ),
    "a checkpoint that the log did not sign": (
        lambda: showing(ANOTHER_LEAF, checkpoint=signed(tree(), OTHER_LOG).encode()),
        NoteRejected,
        "signature",
    ),
    "a checkpoint of another log": (
        lambda: showing(ANOTHER_LEAF, checkpoint=signed(tree(), ELSEWHERE).encode()),
        NoteRejected,
        "another log",
    ),
    "a leaf that is not there": (
        lambda: showing(ANOTHER_LEAF, leaf=bytes(32)),
        ProofRejected,
        "another root",
    ),
    "a tampered path": (
        lambda: showing(ANOTHER_LEAF, path=(bytes(32), *ANOTHER_LEAF.shown.path[1:])),
        ProofRejected,
        "another root",
    ),
    "a shortened path": (
        lambda: showing(ANOTHER_LEAF, path=ANOTHER_LEAF.shown.path[1:]),
        MalformedError,
        "hashes",
    ),
    "the leaf of another index": (
        lambda: showing(
            ANOTHER_LEAF,
            leaf=bytes.fromhex(VECTOR["leaves"][3]),
            path=tree().inclusion_proof(3),
        ),
        ProofRejected,
        "another root",
    ),
    "a leaf beyond the log": (
        lambda: showing(ANOTHER_LEAF, checkpoint=signed(tree(4)).encode()),
        ProofRejected,
        "the log has 4 entries",
    ),
    "a log that ended behind the record": (
        lambda: replace(ENDED, receipt=resigned(6)),
        ProofRejected,
        "the log has 7 entries",
    ),
    "a log that has not ended": (
        lambda: ended_with("record", close_of(VECTOR["window"])),
        ProofRejected,
        "another root",
    ),
    "a last entry that is no close": (
        lambda: ended_with("close", b"any"),
        MalformedError,
        "close",
    ),
    "the close of another window": (
        lambda: ended_with("close", close_of("w2")),
        ProofRejected,
        "closes another window",
    ),
    "an empty log": (
        lambda: showing(ENDED, checkpoint=signed(MemoryTree()).encode()),
        MalformedError,
        "no such leaf",
    ),
}


@for_each("lie", LIES)
def test_a_false_accusation_is_rejected(lie: str) -> None:
    made, kind, words = LIES[lie]
    # Written and read first: what is refused must be refused of a file.
    proof = MissingRecord.parse(made().encode())
    with pytest.raises(kind, match=words):
        proof.verify(POLICY)


def test_the_keys_are_those_of_the_policy() -> None:
    with pytest.raises(ReceiptRejected, match="signature"):
        ANOTHER_LEAF.verify(policy(**{"keys/provider": seeded("x").public.raw.hex()}))
    with pytest.raises(NoteRejected):
        ANOTHER_LEAF.verify(policy(**{"keys/log": str(OTHER_LOG.verifier_key)}))


@for_each(
    "change",
    [
        {"leaf": None},
        {"close": json.loads(VECTOR["ended"])["close"]},
        {"receipt": {**json.loads(VECTOR["another_leaf"])["receipt"], "proof": "any"}},
    ],
)
def test_another_form_is_malformed(change: dict[str, Any]) -> None:
    value = {**json.loads(VECTOR["another_leaf"]), **change}
    with pytest.raises(MalformedError):
        MissingRecord.parse(canonical_json.dumps(value))
