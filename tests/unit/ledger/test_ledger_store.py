"""The stored log: appending in the caller's transaction, reading, checkpoints, corruption."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import InternalError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import (
    CheckpointConflict,
    CorruptLog,
    LogFrozen,
    MalformedProof,
    MalformedRecord,
    MalformedTile,
    NoteRejected,
    StoreUnavailable,
    UnknownResource,
)
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import sign_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy, cosign, verify_cosigned
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, NoteSignature, SigningKey
from ragaudit.ledger.log.right_edge import Frontier, RightEdge
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tiles import Tile, TileHashSource, decode_entry_bundle, tile_path, tiles_of
from ragaudit.ledger.log.tlog_proof import verify_tlog_proof
from ragaudit.ledger.log.tree import EMPTY_ROOT, MemoryTree, leaf_hash, verify_consistency
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError

KEY = SigningKey("provider.example/ragaudit/w1", ED25519, PrivateKey.from_seed(b"\x01" * 32))
COSIGNER = SigningKey("cosigner.example/1", COSIGNATURE_V1, PrivateKey.from_seed(b"\x02" * 32))
COSIGNERS = CosignerPolicy((COSIGNER.verifier_key,), 1)


def leaf(number: Any) -> Any:
    return hashlib.sha256(b"leaf %d" % number).digest()


def leaves(count: Any, start: int = 0) -> Any:
    return [leaf(i) for i in range(start, start + count)]


def fill(store: Any, count: Any) -> Any:
    with store.transaction() as connection:
        return store.extend(connection, leaves(count, store.head(connection).size))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def engine(url: Any) -> Iterator[Any]:
    engine = open_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def store(engine: Any) -> Any:
    return LogStore.create(engine, KEY.verifier_key)


@pytest.fixture
def checkpoints(store: Any) -> CheckpointStore:
    return CheckpointStore(store, COSIGNERS)


# --- right edge


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=6))
def test_the_right_edge_grows_the_same_tiles_as_the_whole_tree(steps: Any) -> None:
    tree, edge = MemoryTree(), RightEdge(Frontier())
    tiles: dict[Any, Any] = {}
    for step in steps:
        new = leaves(step, tree.size)
        tiles |= edge.extend(map(leaf_hash, new))
        for each in new:
            tree.append(each)
        assert edge.frontier.root() == tree.root()
        source = TileHashSource(
            tree.size,
            lambda tile, tiles=tiles: tiles[tile.level, tile.index][: 32 * tile.width],  # type: ignore[misc]
        )
        assert {(t.level, t.index): t.width * 32 for t in tiles_of(tree.size)} == {
            place: len(hashes) for place, hashes in tiles.items()
        }
        edge = RightEdge.of(source)  # as after a restart


# --- appending


def test_a_new_log_is_empty(store: Any) -> None:
    assert store.head().size == 0
    assert store.head().root_hash == EMPTY_ROOT
    assert not store.is_frozen()
    assert store.entries(0, 0) == ()


def test_indices_count_from_zero_and_roots_are_those_of_the_tree(store: Any) -> None:
    tree = MemoryTree()
    for i in range(600):
        if i % 3 == 0:
            with store.transaction() as connection:
                assert store.append(connection, leaf(i)) == i
        elif i % 3 == 1:
            with store.transaction() as connection:  # two leaves of one transaction
                assert store.append(connection, leaf(i)) == i
                assert store.append(connection, leaf(i + 1)) == i + 1
        tree.append(leaf(i))
        if i % 3 != 1:
            assert store.head() == tree.head()
    assert store.entries(250, 260) == tuple(leaves(10, 250))
    assert store.audit() == tree.head()


def test_proofs_of_any_sizes(store: Any) -> None:
    fill(store, 700)
    tree = MemoryTree(leaves(700))
    for size in (1, 2, 255, 256, 257, 511, 512, 513, 700):
        assert store.root(size) == tree.root(size)
        for index in {0, size // 3, size - 1}:
            assert store.inclusion_proof(index, size) == tree.inclusion_proof(index, size)
        for old in {1, size // 2 or 1, size}:
            assert store.consistency_proof(old, size) == tree.consistency_proof(old, size)
    assert store.root(0) == EMPTY_ROOT
    assert store.consistency_proof(0, 700) == ()


def test_nothing_may_be_appended(store: Any) -> None:
    fill(store, 3)
    with store.transaction() as connection:
        assert store.extend(connection, []) == 3
    assert store.audit() == MemoryTree(leaves(3)).head()


def test_a_database_without_tables_is_unavailable(engine: Any) -> None:
    with pytest.raises(StoreUnavailable, match="no such table"):
        LogStore.open(engine, KEY.verifier_key)


def test_what_does_not_exist_is_not_proven(store: Any) -> None:
    fill(store, 5)
    for call in (
        lambda: store.root(6),
        lambda: store.root(-1),
        lambda: store.inclusion_proof(0, 6),
        lambda: store.consistency_proof(2, 6),
        lambda: store.entries(3, 6),
        lambda: store.entries(-1, 2),
        lambda: store.tile(Tile(0, 0, 6)),
        lambda: store.tile(Tile(0, 1, 1)),
    ):
        with pytest.raises(UnknownResource):
            call()  # type: ignore[no-untyped-call]
    with pytest.raises(MalformedProof):
        store.inclusion_proof(5, 5)
    with pytest.raises(MalformedProof):
        store.consistency_proof(5, 4)


def test_the_callers_rows_and_the_leaf_are_one_transaction(engine: Any, store: Any) -> None:
    with store.transaction() as connection:
        connection.execute(text("CREATE TABLE mine (position INTEGER)"))
    insert = text("INSERT INTO mine VALUES (:p)")
    with store.transaction() as connection:
        connection.execute(insert, {"p": store.append(connection, leaf(0))})
    with pytest.raises(RuntimeError, match="in between"), store.transaction() as connection:
        connection.execute(insert, {"p": store.append(connection, leaf(1))})
        raise RuntimeError("in between")
    assert store.head() == MemoryTree(leaves(1)).head()
    # The index is given again, and the tree in memory did not keep the lost leaf.
    with store.transaction() as connection:
        connection.execute(insert, {"p": store.append(connection, leaf(7))})
    assert store.head() == MemoryTree([leaf(0), leaf(7)]).head()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT position FROM mine")).scalars().all() == [0, 1]
    assert store.audit().size == 2


def test_an_append_demands_a_writing_transaction(engine: Any, store: Any) -> None:
    with engine.connect() as connection, pytest.raises(InternalError, match="writing"):
        store.append(connection, leaf(0))
    with engine.connect() as connection, pytest.raises(InternalError, match="writing"):
        store.freeze(connection)


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(33)])
def test_leaf_data_has_32_bytes(store: Any, data: Any) -> None:
    with pytest.raises(MalformedRecord), store.transaction() as connection:
        store.append(connection, data)
    assert store.head().size == 0


def test_a_frozen_log_takes_nothing(store: Any, url: Any) -> None:
    fill(store, 3)
    with store.transaction() as connection:
        assert store.freeze(connection).size == 3
    with pytest.raises(LogFrozen), store.transaction() as connection:
        store.append(connection, leaf(3))
    again = LogStore.create(open_engine(url), KEY.verifier_key)
    assert again.is_frozen()
    assert again.head().size == 3


def test_several_threads_append_without_gaps(store: Any) -> None:
    taken = []

    def work(name: Any) -> None:
        for i in range(12):
            with store.transaction() as connection:
                taken.append(
                    store.append(connection, hashlib.sha256(f"{name} {i}".encode()).digest())
                )

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(48))
    assert store.audit().size == 48


def test_two_processes_share_a_log(url: Any, store: Any) -> None:
    other = LogStore.open(open_engine(url), KEY.verifier_key)
    for i in range(0, 300, 2):
        with store.transaction() as connection:
            assert store.append(connection, leaf(i)) == i
        with other.transaction() as connection:
            assert other.append(connection, leaf(i + 1)) == i + 1
    assert store.audit() == MemoryTree(leaves(300)).head()


def test_logs_of_several_windows_in_one_database(engine: Any, store: Any) -> None:
    second = SigningKey("provider.example/ragaudit/w2", ED25519, PrivateKey.generate())
    other = LogStore.create(engine, second.verifier_key)
    fill(store, 3)
    fill(other, 300)
    assert store.head() == MemoryTree(leaves(3)).head()
    assert other.audit() == MemoryTree(leaves(300)).head()


def test_a_log_is_opened_with_its_own_key(engine: Any, store: Any) -> None:
    for name in (KEY.name, "another"):
        stranger = SigningKey(name, ED25519, PrivateKey.generate())
        with pytest.raises(UnknownResource):
            LogStore.open(engine, stranger.verifier_key)
    assert LogStore.create(engine, KEY.verifier_key).head() == store.head()


@pytest.mark.parametrize("bad", ["sqlite://", "sqlite:///:memory:", "mysql://x/y"])
def test_other_databases_are_refused(bad: Any) -> None:
    with pytest.raises(UnsupportedError, match="database"):
        open_engine(bad)


def test_commits_are_synchronised(engine: Any, store: Any) -> None:
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2  # FULL


# --- faults


def test_a_full_disk_loses_nothing_and_gives_no_index(engine: Any, store: Any) -> None:
    fill(store, 40)

    @event.listens_for(engine, "begin")
    def no_room(connection: Any) -> None:
        # The pragma belongs to the connection: a file that may not grow is a disk without room.
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    with pytest.raises(StoreUnavailable, match="full"):
        for _ in range(300):
            fill(store, 1)
    size = store.head().size
    event.remove(engine, "begin", no_room)
    engine.dispose()
    assert store.audit() == MemoryTree(leaves(size)).head()
    fill(store, 5)
    assert store.audit() == MemoryTree(leaves(size + 5)).head()


def test_a_locked_database_is_unavailable(url: Any, store: Any) -> None:
    with store.transaction() as connection:
        store.append(connection, leaf(0))
        impatient = open_engine(url)

        @event.listens_for(impatient, "connect")
        def hurry(raw: Any, _: Any) -> None:
            raw.execute("PRAGMA busy_timeout=1")

        with pytest.raises(StoreUnavailable, match="locked"):
            fill(LogStore(impatient, store.rows.log_id, KEY.verifier_key), 1)
    assert store.audit().size == 1


def test_a_damaged_file_is_corrupt(tmp_path: Path, url: Any, store: Any) -> None:
    fill(store, 300)
    store.engine.dispose()
    file = tmp_path / "ledger.db"
    whole = file.read_bytes()
    file.write_bytes(b"not a database" * 1000)
    with pytest.raises(CorruptLog, match="not a database"):
        LogStore.open(open_engine(url), KEY.verifier_key)
    file.write_bytes(whole[:4096] + b"\x99" * (len(whole) - 4096))
    with pytest.raises(CorruptLog, match="damaged"):
        LogStore.open(open_engine(url), KEY.verifier_key)


def test_a_database_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="unable to open"):
        LogStore.create(open_engine(f"sqlite:///{tmp_path}/missing/ledger.db"), KEY.verifier_key)


def test_the_callers_own_errors_stay_what_they_are(store: Any) -> None:
    with pytest.raises(IntegrityError), store.transaction() as connection:
        store.append(connection, leaf(0))
        connection.execute(schema.entry.insert(), [{"log_id": 1, "position": 0, "leaf_data": b""}])
    assert store.audit().size == 0


@pytest.mark.parametrize("url", ["sqlite:///file::memory:?uri=true"])
def test_a_database_without_a_journal_is_refused(url: Any) -> None:
    with pytest.raises(UnsupportedError, match="journal mode"):
        LogStore.create(open_engine(url), KEY.verifier_key)


def test_errors_do_not_show_the_statements_parameters(store: Any) -> None:
    with pytest.raises(StoreUnavailable) as caught, store.transaction() as connection:
        connection.execute(text("INSERT INTO nowhere VALUES (:s)"), {"s": "secret salt"})
    assert "secret" not in f"{caught.value!r}{caught.value}{caught.value.__cause__}"


CHILD = """
import sys, hashlib
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.notes import SigningKey
from ragaudit.ledger.log.store import LogStore
key = SigningKey("provider.example/ragaudit/w1", 1, PrivateKey.from_seed(b"\\x01" * 32))
store = LogStore.create(open_engine(sys.argv[1]), key.verifier_key)
checkpoints = CheckpointStore(store, CosignerPolicy((), 0))
while True:
    with store.transaction() as connection:
        size = store.head(connection).size
        index = store.append(connection, hashlib.sha256(b"leaf %d" % size).digest())
    print(index, flush=True)
    if index % 5 == 0:
        print("signed", checkpoints.sign(key).head.size, flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_leaves_a_valid_log(url: Any, store: Any, checkpoints: Any) -> None:
    """Kill -9 while it appends and signs: what it told us is there, nothing is half there."""
    for kill_after in (1, 4, 9, 14):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        told, signed = -1, 0
        for number, line in enumerate(child.stdout):
            if line.startswith("signed"):
                signed = int(line.split()[1])
            else:
                told = int(line)
            if number == kill_after:
                os.kill(child.pid, signal.SIGKILL)
                break
        child.stdout.close()
        child.wait()
        again = LogStore.open(open_engine(url), KEY.verifier_key)
        head = again.audit()
        assert head.size > told
        assert head == MemoryTree(leaves(head.size)).head()
        latest = checkpoints.latest()
        assert (latest.head.size if latest else 0) >= signed
        checkpoints.sign(KEY)


# --- what the database holds is checked


CORRUPTIONS = {
    "an entry": "UPDATE ledger_entry SET leaf_data = zeroblob(32) WHERE position = 299",
    "the last entry is gone": "DELETE FROM ledger_entry WHERE position = 299",
    "an entry too many": "INSERT INTO ledger_entry VALUES (1, 300, zeroblob(32))",
    "a partial tile": "UPDATE ledger_tile SET hashes = zeroblob(1408) WHERE width = 44",
    "a full tile's parent": "UPDATE ledger_tile SET hashes = zeroblob(32) WHERE level = 1",
    "a missing parent": "DELETE FROM ledger_tile WHERE level = 1",
    "a missing tile": "DELETE FROM ledger_tile WHERE level = 0 AND number = 1",
    "a short tile": "UPDATE ledger_tile SET hashes = zeroblob(32) WHERE level = 0 AND number = 1",
    "the root": "UPDATE ledger_log_head SET root_hash = zeroblob(32)",
    "the size": "UPDATE ledger_log_head SET size = 298",
}


@pytest.mark.parametrize("statement", CORRUPTIONS.values(), ids=CORRUPTIONS.keys())
def test_a_damaged_log_does_not_open(engine: Any, store: Any, statement: Any) -> None:
    fill(store, 300)
    with engine.begin() as connection:
        connection.execute(text(statement))
    with pytest.raises(CorruptLog):
        LogStore.open(engine, KEY.verifier_key)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entry SET leaf_data = zeroblob(32) WHERE position = 7",
        "DELETE FROM ledger_entry WHERE position = 7",
        "UPDATE ledger_tile SET hashes = zeroblob(8192) WHERE level = 0 AND number = 0",
        "UPDATE ledger_log_head SET root_hash = zeroblob(32)",
    ],
)
def test_a_checkpoint_is_not_signed_over_damage(
    engine: Any, store: Any, checkpoints: Any, statement: Any
) -> None:
    fill(store, 600)
    with engine.begin() as connection:
        connection.execute(text(statement))
    with pytest.raises(CorruptLog):
        checkpoints.sign(KEY)
    assert checkpoints.latest() is None


def test_an_append_on_damaged_tiles_is_refused(engine: Any, store: Any) -> None:
    fill(store, 10)
    with engine.begin() as connection:
        connection.execute(text("UPDATE ledger_tile SET hashes = zeroblob(320)"))
    stale = LogStore(engine, store.rows.log_id, KEY.verifier_key)
    with pytest.raises(CorruptLog, match="another root"):
        fill(stale, 1)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM ledger_tile"))
    with pytest.raises(CorruptLog, match="no such tile"):
        fill(stale, 1)


def test_the_writer_notices_a_changed_head(engine: Any, store: Any) -> None:
    fill(store, 10)
    with engine.begin() as connection:
        connection.execute(text("UPDATE ledger_log_head SET root_hash = zeroblob(32)"))
    with pytest.raises(CorruptLog, match="another root"):
        fill(store, 1)


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

    def overtaken(since: Any = None) -> Any:
        head = honest(since)
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
