"""Offline proofs, the cosigner protocol, evidence of a split view."""

import json
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import MalformedNote, MalformedProof, NoteRejected, ProofRejected
from ragaudit.ledger.log import cosigner_protocol as protocol
from ragaudit.ledger.log.checkpoints import (
    Checkpoint,
    SplitView,
    find_split_view,
    sign_checkpoint,
    verify_checkpoint,
    verify_split_view,
)
from ragaudit.ledger.log.cosignatures import CosignerPolicy, cosign, verify_cosigned
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest, judge
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import MemoryTree, TreeHead, leaf_hash

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text("utf-8"))
DEMO = VECTORS["log"]
ORIGIN = "audit.example/ledger/demo"
LOG = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(bytes.fromhex(DEMO["log_seed"])))
COSIGNER = SigningKey(
    "witness.example/w1", COSIGNATURE_V1, PrivateKey.from_seed(bytes.fromhex(DEMO["cosigner_seed"]))
)
COSIGNERS = CosignerPolicy((COSIGNER.verifier_key,), 1)
TREE = MemoryTree(entry.encode() for entry in DEMO["entries"])


def checkpoint(tree: Any, size: Any = None, key: Any = LOG, origin: Any = ORIGIN) -> Any:
    return sign_checkpoint(Checkpoint(origin, tree.head(size)), key)


def cosigned(tree: Any, size: Any = None) -> Any:
    signed = checkpoint(tree, size)
    line = cosign(signed.checkpoint.text, COSIGNER, DEMO["cosigned_at"])
    return signed.note.with_signatures([line]).encode()


# --- tlog-proof


def test_the_deterministic_log_byte_for_byte() -> None:
    assert str(LOG.verifier_key) == DEMO["log_vkey"]
    assert str(COSIGNER.verifier_key) == DEMO["cosigner_vkey"]
    proof = TlogProof(2, TREE.inclusion_proof(2), cosigned(TREE))
    assert proof.encode() == DEMO["proof"].encode()
    assert TlogProof.parse(DEMO["proof"].encode()) == proof
    checked = verify_tlog_proof(
        proof, leaf=leaf_hash(b"record-2"), log_key=LOG.verifier_key, cosigners=COSIGNERS
    )
    assert checked.quorum_time == DEMO["cosigned_at"]
    for old, hashes in DEMO["consistency"].items():
        assert [b64_encode(each) for each in TREE.consistency_proof(int(old))] == hashes


def test_a_proof_of_another_leaf_index_key_or_quorum_is_rejected() -> None:
    proof = TlogProof.parse(DEMO["proof"].encode())
    known: dict[str, Any] = {"log_key": LOG.verifier_key, "cosigners": COSIGNERS}
    with pytest.raises(ProofRejected):
        verify_tlog_proof(proof, leaf=leaf_hash(b"record-3"), **known)
    moved = TlogProof(3, proof.path, proof.checkpoint)
    with pytest.raises(ProofRejected):
        verify_tlog_proof(moved, leaf=leaf_hash(b"record-2"), **known)
    outside = TlogProof(7, proof.path, proof.checkpoint)
    with pytest.raises(MalformedProof):
        verify_tlog_proof(outside, leaf=leaf_hash(b"record-2"), **known)
    alone = TlogProof(2, proof.path, checkpoint(TREE).encode())
    with pytest.raises(NoteRejected, match="cosigned by 0"):
        verify_tlog_proof(alone, leaf=leaf_hash(b"record-2"), **known)
    stranger = SigningKey(ORIGIN, ED25519, PrivateKey.generate()).verifier_key
    with pytest.raises(NoteRejected, match="no signature"):
        verify_tlog_proof(proof, leaf=leaf_hash(b"record-2"), log_key=stranger, cosigners=COSIGNERS)


@for_each(
    ("old", "new"),
    [
        ("@v1", "@v2"),
        ("index 2", "index 02"),
        ("index 2", "index"),
        ("index 2", "extra AAAA\nindex 2"),
        ("index 2\n", ""),
        ("NVPi", "NVP "),
        ("vueOU=\n", "vueOU=\nAAAA\n"),
        ("\n\n", "\n"),
        ("c2sp", "\u00e92sp"),
        ("NVPi/UuHnPX0yqSSFI3qD7RSgHNEsRTuoYGZ/4vueOU=\n", ("A" * 43 + "=\n") * 64),
    ],
)
def test_malformed_proofs_are_refused(old: Any, new: Any) -> None:
    assert old in DEMO["proof"]
    with pytest.raises(MalformedNote):
        TlogProof.parse(DEMO["proof"].replace(old, new).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"c2sp.org/tlog-proof@v1\nindex 2",  # no checkpoint
        b"c2sp.org/tlog-proof@v1\n\nnote",  # no index
        b"c2sp.org/tlog-proof@v1\n2\n\nnote",
        b"index 2\n\nnote",
    ],
)
def test_proofs_with_a_part_missing_are_refused(data: Any) -> None:
    with pytest.raises(MalformedNote):
        TlogProof.parse(data)


def test_a_huge_proof_is_refused() -> None:
    with pytest.raises(MalformedNote, match="too long"):
        TlogProof.parse(DEMO["proof"].encode() + bytes(10**6))


# --- the cosigner's side


def request(tree: Any, old: Any, size: Any = None, **kind: Any) -> AddCheckpointRequest:
    proof = tree.consistency_proof(old, size) if old else ()
    return AddCheckpointRequest(old, proof, checkpoint(tree, size, **kind).encode())


KEYS = {ORIGIN: LOG.verifier_key}


def decide(body: Any, latest: Any = None) -> Any:
    return judge(AddCheckpointRequest.parse(body), KEYS, {ORIGIN: latest} if latest else {})


def test_first_and_later_checkpoints_are_cosigned() -> None:
    first = decide(request(TREE, 0, 3).encode())
    assert (first.status, first.checkpoint.head) == (200, TREE.head(3))
    later = decide(request(TREE, 3).encode(), TREE.head(3))
    assert (later.status, later.checkpoint.head) == (200, TREE.head())
    again = decide(request(TREE, 7).encode(), TREE.head())
    assert again.status == 200
    # A cosigner that stored the empty tree expects no proof.
    assert decide(request(TREE, 0).encode(), TREE.head(0)).status == 200


def test_requests_are_the_bytes_of_the_specification() -> None:
    body = request(TREE, 4).encode()
    assert body == (
        b"old 4\n" + DEMO["consistency"]["4"][0].encode() + b"\n\n" + checkpoint(TREE).encode()
    )
    assert AddCheckpointRequest.parse(body) == request(TREE, 4)


def test_every_status_of_the_table() -> None:
    other = SigningKey("other.example/log", ED25519, LOG.private)
    stranger = SigningKey(ORIGIN, ED25519, PrivateKey.generate())
    foreign = request(TREE, 0, key=other, origin="other.example/log")
    assert decide(foreign.encode()).status == protocol.UNKNOWN_ORIGIN == 404
    assert decide(request(TREE, 0, key=stranger).encode()).status == protocol.UNTRUSTED_LOG == 403
    too_old = AddCheckpointRequest(8, (), checkpoint(TREE).encode())
    assert decide(too_old.encode()).status == protocol.BAD_REQUEST == 400
    assert decide(AddCheckpointRequest(0, (), b"junk\n").encode()).status == 400
    stale = decide(request(TREE, 3).encode(), TREE.head(4))
    assert (stale.status, stale.body) == (409, b"4\n")
    unseen = decide(request(TREE, 3).encode())
    assert (unseen.status, unseen.body) == (409, b"0\n")
    fork = MemoryTree(b"fork %d" % i for i in range(7))
    assert decide(request(fork, 3).encode(), TREE.head(3)).status == protocol.INCONSISTENT == 422
    assert decide(request(fork, 7).encode(), TREE.head()).status == 422
    short = AddCheckpointRequest(3, TREE.consistency_proof(3)[:-1], checkpoint(TREE).encode())
    assert decide(short.encode(), TREE.head(3)).status == 422
    eager = AddCheckpointRequest(0, TREE.consistency_proof(3), checkpoint(TREE).encode())
    assert decide(eager.encode()).status == 422
    for verdict in (decide(foreign.encode()), stale):
        assert verdict.checkpoint is None


@for_each(
    "body",
    [
        b"", b"old 3", b"old 3\n", b"old 03\n\nnote", b"old -1\n\nnote", b"Old 3\n\nnote",
        b"new 3\n\nnote", b"old  3\n\nnote", b"old 3\nAAAA\n\nnote",
        b"old 3\n" + b64_encode(bytes(33)).encode() + b"\n\nnote",
        b"old 3\n" + (b64_encode(bytes(32)).encode() + b"\n") * 64 + b"\nnote",
        b"old 3\n\xc3\xa9\n\nnote", b"old 3\n\n" + bytes(10**6),
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(body: Any) -> None:
    with pytest.raises(MalformedNote):
        AddCheckpointRequest.parse(body)


# --- the client's side


def test_answers_are_cosignature_lines() -> None:
    signed = checkpoint(TREE)
    lines = (cosign(signed.checkpoint.text, COSIGNER, 7),)
    body = protocol.encode_cosignatures(lines)
    assert protocol.parse_cosignatures(body) == lines
    data = signed.note.with_signatures(protocol.parse_cosignatures(body)).encode()
    assert verify_cosigned(data, LOG.verifier_key, COSIGNERS).quorum_time == 7


@for_each("body", [b"", b"\n", b"ok\n", b"\xff\n", "— name AAAA".encode(), bytes(10**6)])
def test_other_answers_are_refused(body: Any) -> None:
    with pytest.raises(MalformedNote):
        protocol.parse_cosignatures(body)


def test_a_conflict_tells_a_size() -> None:
    assert protocol.parse_conflict(b"65537\n") == 65537
    for body in (b"", b"\n", b"12", b"012\n", b"12\n\n", b"-1\n", b"conflict\n", b"1" * 40 + b"\n"):
        with pytest.raises(MalformedNote):
            protocol.parse_conflict(body)


# --- split view


@pytest.fixture
def fork() -> Any:
    tree = MemoryTree([b"record-0", b"another"])
    for i in range(2, 9):
        tree.append(b"record-%d" % i)
    return tree


def verified(tree: Any, size: Any = None) -> Any:
    return verify_checkpoint(checkpoint(tree, size).encode(), LOG.verifier_key)


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_two_inconsistent_checkpoints_are_evidence(fork: Any, size: Any) -> None:
    evidence = find_split_view(verified(TREE, size), verified(fork), fork)
    assert evidence is not None
    assert SplitView.parse(evidence.encode()) == evidence
    verify_split_view(evidence, LOG.verifier_key)


def test_one_size_and_two_roots_are_evidence(fork: Any) -> None:
    evidence = find_split_view(verified(TREE, 7), verified(fork, 7), fork)
    assert evidence is not None
    assert evidence.proof == ()
    verify_split_view(evidence, LOG.verifier_key)


def test_consistent_checkpoints_are_none(fork: Any) -> None:
    assert find_split_view(verified(TREE, 3), verified(TREE), TREE) is None
    assert find_split_view(verified(TREE, 1), verified(fork), fork) is None
    assert find_split_view(verified(TREE, 0), verified(fork), fork) is None
    with pytest.raises(MalformedProof, match="larger"):
        find_split_view(verified(fork), verified(TREE), TREE)


def test_an_honest_log_cannot_be_accused(fork: Any) -> None:
    older, newer = checkpoint(TREE, 3).encode(), checkpoint(TREE).encode()
    proof = TREE.consistency_proof(3)
    with pytest.raises(ProofRejected, match="agree"):
        verify_split_view(SplitView(older, newer, TREE.root(3), proof), LOG.verifier_key)
    with pytest.raises(ProofRejected):
        verify_split_view(SplitView(older, newer, fork.root(3), proof), LOG.verifier_key)
    with pytest.raises(ProofRejected):
        verify_split_view(SplitView(newer, newer, fork.root(7), ()), LOG.verifier_key)
    with pytest.raises(MalformedProof, match="larger"):
        verify_split_view(SplitView(newer, older, fork.root(3), ()), LOG.verifier_key)
    with pytest.raises(MalformedProof):
        verify_split_view(SplitView(older, newer, fork.root(3), proof[:-1]), LOG.verifier_key)
    empty = checkpoint(TREE, 0).encode()
    with pytest.raises(MalformedProof):
        verify_split_view(SplitView(empty, newer, bytes(32), ()), LOG.verifier_key)
    stranger = SigningKey(ORIGIN, ED25519, PrivateKey.generate())
    framed = checkpoint(fork, 3, key=stranger).encode()
    with pytest.raises(NoteRejected, match="no signature"):
        verify_split_view(SplitView(framed, newer, TREE.root(3), proof), LOG.verifier_key)


def test_malformed_evidence_is_refused(fork: Any) -> None:
    evidence = find_split_view(verified(TREE, 3), verified(fork), fork)
    assert evidence is not None
    data = evidence.encode()
    for wrong in (b"", data[:-1], data + b"\0", data.replace(b"split-view", b"split-vieW")):
        with pytest.raises(MalformedProof):
            SplitView.parse(wrong)
    long = SplitView(evidence.older, evidence.newer, bytes(32), (bytes(32),) * 65)
    odd = SplitView(evidence.older, evidence.newer, bytes(32), (bytes(31),))
    for crooked in (long, odd):
        with pytest.raises(MalformedProof, match="list of hashes"):
            SplitView.parse(crooked.encode())
    assert TreeHead(3, fork.root(3)).root_hash == evidence.prefix_root
    assert parse_note(evidence.older).text.startswith(ORIGIN)
