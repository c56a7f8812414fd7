"""Checkpoints of the stored log: signed once, cosigned later, served."""

from typing import Any

import pytest
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill, leaf, leaves
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import (
    CheckpointConflict,
    CorruptLog,
    MalformedTile,
    NoteRejected,
    UnknownResource,
)
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign, verify_cosigned
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, NoteSignature, SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tiles import RightEdge, TileHashSource, decode_entry_bundle, tile_path
from ragaudit.ledger.log.tlog_proof import verify_tlog_proof
from ragaudit.ledger.log.tree import EMPTY_ROOT, leaf_hash, verify_consistency
from sqlalchemy import text

# --- checkpoints


def test_checkpoints_follow_the_log(store: Any, checkpoints: Any) -> None:
    empty = checkpoints.sign(KEY)
    assert empty.head.size == 0
    fill(store, 300)
    first = checkpoints.sign(KEY)
    assert checkpoints.sign(KEY) == first == checkpoints.latest() == checkpoints.at(300)
    fill(store, 300)
    second = checkpoints.sign(KEY)
    verify_consistency(old=first.head, new=second.head, proof=store.consistency_proof(300, 600))
    assert checkpoints.at(0) == empty
    with pytest.raises(UnknownResource):
        checkpoints.at(299)


def test_a_log_signs_with_its_own_key_only(store: Any, checkpoints: Any) -> None:
    stranger = SigningKey(KEY.name, ED25519, PrivateKey.generate())
    with pytest.raises(NoteRejected):
        checkpoints.sign(stranger)
    assert checkpoints.latest() is None


def test_two_signers_cannot_both_store(
    store: Any, checkpoints: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 3)
    checkpoints.sign(KEY)
    fill(store, 3)
    rival = CheckpointStore(store, COSIGNERS)
    honest = store.audit

    def overtaken(*arguments: Any) -> Any:
        head = honest(*arguments)
        monkeypatch.setattr(store, "audit", honest)
        fill(store, 1)
        rival.sign(KEY)
        return head

    monkeypatch.setattr(store, "audit", overtaken)
    with pytest.raises(CheckpointConflict, match="meanwhile"):
        checkpoints.sign(KEY)
    assert checkpoints.latest().head.size == 7
    with pytest.raises(UnknownResource):
        checkpoints.at(6)


def test_a_log_behind_its_checkpoint_is_corrupt(engine: Any, store: Any, checkpoints: Any) -> None:
    fill(store, 10)
    checkpoints.sign(KEY)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM ledger_entry"))
        connection.execute(text("DELETE FROM ledger_tile"))
        connection.execute(
            text("UPDATE ledger_log_head SET size = 0, root_hash = :r"), {"r": EMPTY_ROOT}
        )
    again = CheckpointStore(LogStore.open(engine, KEY.verifier_key), COSIGNERS)
    with pytest.raises(CorruptLog, match="no tree of size 10"):
        again.sign(KEY)
    # And a shorter history written anew does not get a second checkpoint of the same log.
    with store.transaction() as connection:
        store.extend(connection, leaves(20, 50))
    with pytest.raises(CorruptLog, match="earlier root"):
        again.sign(KEY)


def test_a_stored_checkpoint_of_another_key_is_corrupt(
    engine: Any, store: Any, checkpoints: Any
) -> None:
    checkpoints.sign(KEY)
    with engine.begin() as connection:
        stranger = SigningKey(KEY.name, ED25519, PrivateKey.generate())
        wrong = sign_checkpoint(checkpoints.latest().checkpoint, stranger).encode()
        connection.execute(schema.checkpoint.update().values(note=wrong))
    with pytest.raises(CorruptLog, match="not ours"):
        checkpoints.latest()


def test_cosignatures_arrive_later(store: Any, checkpoints: Any) -> None:
    fill(store, 3)
    first = checkpoints.sign(KEY)
    assert checkpoints.tlog_proof(1) is None
    line = cosign(first.checkpoint.text, COSIGNER, 1000)
    stranger = SigningKey("stranger", COSIGNATURE_V1, PrivateKey.generate())
    lines = [line, cosign(first.checkpoint.text, stranger, 1000)]
    for _ in range(2):
        cosigned = checkpoints.add_cosignatures(3, lines)
        assert len(cosigned.note.signatures) == 2
    assert verify_cosigned(cosigned.encode(), KEY.verifier_key, COSIGNERS).quorum_time == 1000
    fill(store, 3)
    checkpoints.sign(KEY)
    assert checkpoints.latest().head.size == 6
    assert checkpoints.latest(cosignatures=1).head.size == 3
    assert checkpoints.covering(2).head.size == 3
    assert checkpoints.covering(3) is None
    proof = checkpoints.tlog_proof(1)
    verify_tlog_proof(proof, leaf=leaf_hash(leaf(1)), log_key=KEY.verifier_key, cosigners=COSIGNERS)


def test_bad_cosignatures_are_not_kept(store: Any, checkpoints: Any) -> None:
    fill(store, 3)
    signed = checkpoints.sign(KEY)
    line = cosign(signed.checkpoint.text, COSIGNER, 1000)
    forged = NoteSignature(line.name, line.key_id, line.blob[:-1] + bytes([line.blob[-1] ^ 1]))
    with pytest.raises(NoteRejected):
        checkpoints.add_cosignatures(3, [forged])
    with pytest.raises(UnknownResource):
        checkpoints.add_cosignatures(4, [line])
    assert checkpoints.latest() == signed


def test_an_outsider_rebuilds_the_log_from_its_resources(store: Any, checkpoints: Any) -> None:
    with pytest.raises(UnknownResource, match="no checkpoint"):
        checkpoints.resource("checkpoint")
    fill(store, 600)
    first = checkpoints.sign(KEY)
    with pytest.raises(UnknownResource, match="no checkpoint"):  # the cosigner sees it first
        checkpoints.resource("checkpoint")
    line = cosign(first.checkpoint.text, COSIGNER, 1000)
    signed = checkpoints.add_cosignatures(600, [line])
    fill(store, 50)
    checkpoints.sign(KEY)  # not cosigned yet: not served
    fill(store, 50)  # nor what is not signed
    assert checkpoints.resource("checkpoint") == signed.encode()
    source = TileHashSource(600, lambda tile: checkpoints.resource(tile_path(tile)))
    assert RightEdge.of(source).frontier.root() == signed.head.root_hash
    entries: list[Any] = []
    for path, width in (("000", 256), ("001", 256), ("002.p/88", 88)):
        entries += decode_entry_bundle(checkpoints.resource(f"tile/entries/{path}"), width)
    assert entries == leaves(600)
    assert len(checkpoints.resource("tile/0/002.p/5")) == 5 * 32
    for path in ("tile/0/002.p/89", "tile/0/002", "tile/0/003", "tile/2/000.p/1",
                 "tile/entries/002.p/89", "tile/entries/003"):  # fmt: skip
        with pytest.raises(UnknownResource):
            checkpoints.resource(path)
    with pytest.raises(MalformedTile):
        checkpoints.resource("tile/0/../../secret")
