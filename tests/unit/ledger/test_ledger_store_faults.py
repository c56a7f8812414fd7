"""The stored log on a full, locked or damaged database, and after a kill."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from databases import ON_SQLITE
from ledger_logs import KEY, fill, leaf, leaves
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.errors import CorruptLog, StoreUnavailable
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tree import MemoryTree
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import IntegrityError

# --- faults


@ON_SQLITE
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


def test_a_locked_database_is_unavailable(
    url: str, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragaudit.ledger.log.database.LOCK_SECONDS", 1)
    with store.transaction() as connection:
        store.append(connection, leaf(0))
        impatient = open_engine(url)
        with pytest.raises(StoreUnavailable, match=r"locked|LockNotAvailable"):
            fill(LogStore(impatient, store.rows.log_id, KEY.verifier_key), 1)
        impatient.dispose()
    assert store.audit().size == 1


@ON_SQLITE
def test_a_damaged_file_is_corrupt(url: str, reopened: Any, store: Any) -> None:
    fill(store, 300)
    store.engine.dispose()
    file = Path(url.removeprefix("sqlite:///"))
    whole = file.read_bytes()
    file.write_bytes(b"not a database" * 1000)
    with pytest.raises(CorruptLog, match="not a database"):
        LogStore.open(reopened(), KEY.verifier_key)
    file.write_bytes(whole[:4096] + b"\x99" * (len(whole) - 4096))
    with pytest.raises(CorruptLog, match="damaged"):
        LogStore.open(reopened(), KEY.verifier_key)


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
def test_a_killed_process_leaves_a_valid_log(
    url: str, reopened: Any, store: Any, checkpoints: Any
) -> None:
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
        again = LogStore.open(reopened(), KEY.verifier_key)
        head = again.audit()
        assert head.size > told
        assert head == MemoryTree(leaves(head.size)).head()
        latest = checkpoints.latest()
        assert (latest.head.size if latest else 0) >= signed
        checkpoints.sign(KEY)


# --- what the database holds is checked


def damage(engine: Engine, statement: str) -> None:
    """Run a statement in SQLite's words, which PostgreSQL has other ones for."""
    if engine.name == "postgresql":
        statement = re.sub(r"zeroblob\((\d+)\)", r"decode(repeat('00', \1), 'hex')", statement)
    with engine.begin() as connection:
        connection.execute(text(statement))


CORRUPTIONS = {
    "an entry": "UPDATE ledger_entry SET leaf_data = zeroblob(32) WHERE position = 299",
    "the last entry is gone": "DELETE FROM ledger_entry WHERE position = 299",
    "an entry too many": "INSERT INTO ledger_entry VALUES (1, 300, zeroblob(32))",
    "a full tile's parent": "UPDATE ledger_tile SET hashes = zeroblob(32) WHERE level = 1",
    "a missing parent": "DELETE FROM ledger_tile WHERE level = 1",
    "the root": "UPDATE ledger_log_head SET root_hash = zeroblob(32)",
    "the size": "UPDATE ledger_log_head SET size = 298",
}
OF_TILES = {
    "a tile": "UPDATE ledger_tile SET hashes = zeroblob(8192) WHERE level = 0 AND number = 1",
    "a missing tile": "DELETE FROM ledger_tile WHERE level = 0 AND number = 1",
    "a short tile": "UPDATE ledger_tile SET hashes = zeroblob(32) WHERE level = 0 AND number = 1",
}
DAMAGE = [(300, each) for each in CORRUPTIONS.values()] + [
    (512, each) for each in OF_TILES.values()
]


@pytest.mark.parametrize(("size", "statement"), DAMAGE, ids=[*CORRUPTIONS, *OF_TILES])
def test_a_damaged_log_does_not_open(engine: Any, store: Any, size: int, statement: Any) -> None:
    fill(store, size)
    damage(engine, statement)
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
    damage(engine, statement)
    with pytest.raises(CorruptLog):
        checkpoints.sign(KEY)
    assert checkpoints.latest() is None


def test_an_append_on_damaged_tiles_is_refused(engine: Any, store: Any) -> None:
    fill(store, 300)
    damage(engine, "UPDATE ledger_tile SET hashes = zeroblob(32) WHERE level = 1")
    stale = LogStore(engine, store.rows.log_id, KEY.verifier_key)
    with pytest.raises(CorruptLog, match="another root"):
        fill(stale, 1)
    damage(engine, "DELETE FROM ledger_tile")
    with pytest.raises(CorruptLog, match="no such tile"):
        fill(stale, 1)


def test_the_writer_notices_a_changed_head(engine: Any, store: Any) -> None:
    fill(store, 10)
    damage(engine, "UPDATE ledger_log_head SET root_hash = zeroblob(32)")
    with pytest.raises(CorruptLog, match="another root"):
        fill(store, 1)
