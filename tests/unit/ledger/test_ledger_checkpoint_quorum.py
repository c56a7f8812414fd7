"""Checkpoints with further cosigners: kept beside the demanded one, and told when they suffice."""

from typing import Any

import pytest
from further_cosigners import key, policy_text
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill, leaf
from ragaudit.ledger.errors import NoteRejected
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import cosign, verify_cosigned
from ragaudit.ledger.log.notes import NoteSignature
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.log.tlog_proof import verify_tlog_proof
from ragaudit.ledger.log.tree import leaf_hash

ASKED = TrustPolicy.parse(policy_text().encode())


@pytest.fixture
def checkpoints(store: Any) -> CheckpointStore:
    return CheckpointStore(store, COSIGNERS, ASKED)


def grow(store: Any, checkpoints: Any, count: int, **times: int) -> int:
    """Sign the log with so many more leaves; cosigned by ``regulator`` and parties at times."""
    fill(store, count)
    signed = checkpoints.sign(KEY)
    keys = {name: COSIGNER if name == "regulator" else key(name) for name in times}
    for name, time in times.items():
        checkpoints.add_cosignatures(signed.head.size, [cosign(signed.note.text, keys[name], time)])
    return int(signed.head.size)


def test_the_quorum_is_told_when_it_is_reached(store: Any, checkpoints: Any) -> None:
    size = grow(store, checkpoints, 3, regulator=100, one=101)
    finding = checkpoints.finding(checkpoints.at(size))
    assert (finding.reached, list(finding.cosignatures)) == (False, ["one"])
    assert checkpoints.latest(quorum=True) is None
    line = cosign(checkpoints.at(size).note.text, key("three"), 107)
    checkpoints.add_cosignatures(size, [line])
    assert checkpoints.finding(checkpoints.at(size)).time == 107
    assert checkpoints.latest(quorum=True).head.size == size


def test_nothing_is_shown_without_the_demanded_cosigner(store: Any, checkpoints: Any) -> None:
    size = grow(store, checkpoints, 3, one=100, two=100, three=100)
    assert checkpoints.latest(1) is None and checkpoints.latest(quorum=True) is None
    assert checkpoints.tlog_proof(1) is None
    line = cosign(checkpoints.at(size).note.text, COSIGNER, 105)
    checkpoints.add_cosignatures(size, [line])
    assert checkpoints.latest(quorum=True).head.size == size


def test_proofs_carry_all_cosignatures_and_prefer_the_quorum(store: Any, checkpoints: Any) -> None:
    grow(store, checkpoints, 3, regulator=100, one=101)
    size = grow(store, checkpoints, 2, regulator=110, one=111, two=112)
    grow(store, checkpoints, 2, regulator=120)
    proof = checkpoints.tlog_proof(1)
    known: dict[str, Any] = {"leaf": leaf_hash(leaf(1)), "log_key": KEY.verifier_key}
    found = verify_tlog_proof(proof, cosigners=COSIGNERS, **known)
    assert found.signed.head.size == size
    assert ASKED.judge(proof.checkpoint, KEY.verifier_key).reached
    # Where it is not reached, what the window demands is enough.
    later = checkpoints.tlog_proof(5)
    assert not ASKED.judge(later.checkpoint, KEY.verifier_key).reached


def test_a_proof_waits_for_the_quorum_up_to_a_time(store: Any, checkpoints: Any) -> None:
    size = grow(store, checkpoints, 3, regulator=100, one=101)
    assert checkpoints.tlog_proof(1, settled=100) is None
    assert checkpoints.tlog_proof(1, settled=101) is not None
    line = cosign(checkpoints.at(size).note.text, key("two"), 102)
    checkpoints.add_cosignatures(size, [line])
    assert checkpoints.tlog_proof(1, settled=100) is not None


def test_without_further_cosigners_nothing_waits(store: Any) -> None:
    plain = CheckpointStore(store, COSIGNERS)
    size = grow(store, plain, 3, regulator=100)
    assert plain.finding(plain.at(size)) is None
    assert plain.tlog_proof(1, settled=0) is not None


def test_a_false_line_of_a_further_cosigner_is_not_kept(store: Any, checkpoints: Any) -> None:
    size = grow(store, checkpoints, 3, regulator=100)
    before = checkpoints.at(size)
    good = cosign(before.note.text, key("one"), 101)
    false = NoteSignature(good.name, good.key_id, good.blob[:-1] + b"\0")
    with pytest.raises(NoteRejected, match="does not verify"):
        checkpoints.add_cosignatures(size, [cosign(before.note.text, key("two"), 101), false])
    assert checkpoints.at(size) == before
    stranger = cosign(before.note.text, key("stranger"), 101)
    assert checkpoints.add_cosignatures(size, [stranger]) == before


def test_the_demanded_lines_alone(store: Any, checkpoints: Any) -> None:
    size = grow(store, checkpoints, 3, one=99, regulator=100, two=101)
    plain = checkpoints.demanded(checkpoints.at(size))
    assert [line.name for line in plain.note.signatures] == [KEY.name, COSIGNER.name]
    verify_cosigned(plain.encode(), KEY.verifier_key, COSIGNERS)


def test_a_policy_that_names_the_demanded_cosigner_counts_it(store: Any) -> None:
    text = f"witness regulator {COSIGNER.verifier_key}\nquorum regulator\n"
    both = CheckpointStore(store, COSIGNERS, TrustPolicy.parse(text.encode()))
    size = grow(store, both, 3, regulator=100)
    assert both.latest(quorum=True) == both.at(size)
