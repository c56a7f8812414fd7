"""The stored log on PostgreSQL: only the URL differs."""

import threading
from typing import Any

import pytest
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill, leaves
from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.errors import CorruptLog, LogFrozen, StoreUnavailable
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.database import open_engine, read_transaction, take_database
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tlog_proof import verify_tlog_proof
from ragaudit.ledger.log.tree import MemoryTree, leaf_hash
from sqlalchemy import text


@pytest.fixture
def url(postgresql: Any) -> Any:
    return postgresql.create("ledger")


def test_append_prove_sign_and_cosign(store: Any) -> None:
    for count in (1, 254, 1, 1, 300):
        fill(store, count)
    tree = MemoryTree(leaves(557))
    assert store.audit() == tree.head()
    assert store.inclusion_proof(256, 557) == tree.inclusion_proof(256)
    assert store.consistency_proof(255, 557) == tree.consistency_proof(255)
    checkpoints = CheckpointStore(store, COSIGNERS)
    signed = checkpoints.sign(KEY)
    assert checkpoints.sign(KEY) == signed
    checkpoints.add_cosignatures(557, [cosign(signed.checkpoint.text, COSIGNER, 5)])
    verify_tlog_proof(
        checkpoints.tlog_proof(300),  # type: ignore[arg-type]
        leaf=leaf_hash(leaves(1, 300)[0]),
        log_key=KEY.verifier_key,
        cosigners=COSIGNERS,
    )
    assert LogStore.open(store.engine, KEY.verifier_key).head() == tree.head()


def test_a_rollback_gives_the_index_again(store: Any) -> None:
    fill(store, 3)
    with pytest.raises(RuntimeError), store.transaction() as connection:
        assert store.append(connection, bytes(32)) == 3
        raise RuntimeError
    assert fill(store, 1) == 3
    assert store.audit() == MemoryTree(leaves(4)).head()


def test_writers_of_two_processes_take_turns(store: Any, url: Any) -> None:
    other = LogStore.open(open_engine(url), KEY.verifier_key)
    taken = []

    def work(log: Any) -> None:
        for _ in range(15):
            with log.transaction() as connection:
                taken.append(log.append(connection, bytes(32)))

    threads = [threading.Thread(target=work, args=(log,)) for log in (store, other, store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.engine.dispose()
    assert sorted(taken) == list(range(60))
    assert store.audit().size == 60


def test_freezing_and_damage(engine: Any, store: Any) -> None:
    fill(store, 10)
    with store.transaction() as connection:
        store.freeze(connection)
    with pytest.raises(LogFrozen):
        fill(store, 1)
    with engine.begin() as connection:
        connection.execute(text("UPDATE ledger_entry SET leaf_data = ''::bytea WHERE position = 9"))
    with pytest.raises(CorruptLog):
        LogStore.open(engine, KEY.verifier_key)


def test_commits_are_synchronised_whatever_the_default(store: Any) -> None:
    with store.transaction() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
    with read_transaction(store.engine) as connection:
        isolation = connection.execute(text("SHOW transaction_isolation")).scalar_one()
    assert isolation == "repeatable read"


def test_a_server_that_is_away_and_comes_back(postgresql: Any, store: Any) -> None:
    fill(store, 3)
    postgresql.stop()
    try:
        with pytest.raises(StoreUnavailable) as caught:
            fill(store, 1)
        assert "INSERT" not in str(caught.value)
    finally:
        postgresql.start()
    assert fill(store, 1) == 3
    assert store.audit() == MemoryTree(leaves(4)).head()
    with pytest.raises(StoreUnavailable):
        LogStore.create(open_engine("postgresql+psycopg://x@127.0.0.1:1/nowhere"), KEY.verifier_key)


def test_one_process_serves_a_database(engine: Any, url: Any) -> None:
    """A second one is refused from the start, until the first lets go."""
    lock = take_database(engine)
    other = open_engine(url)
    with pytest.raises(RefusedError, match="another process serves this database"):
        take_database(other)
    lock.release()
    take_database(other).release()
    other.dispose()


def test_the_right_to_serve_ends_with_its_session(engine: Any, url: Any, postgresql: Any) -> None:
    lock = take_database(engine)
    postgresql.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
    )
    other = open_engine(url)
    take_database(other).release()
    other.dispose()
    lock.release()


def test_a_damaged_table_is_told(engine: Any, store: Any, postgresql: Any) -> None:
    fill(store, 300)
    path = postgresql.execute("SELECT pg_relation_filepath('ledger_entry')", "ledger")
    postgresql.execute("CHECKPOINT")
    postgresql.stop()
    try:
        with (postgresql.data / path).open("r+b") as file:
            file.seek(4096)
            file.write(b"damage")
    finally:
        postgresql.start()
    with pytest.raises(CorruptLog, match="the database is damaged") as caught:
        store.audit()
    assert "SELECT" not in str(caught.value)


def test_a_read_only_database_is_unavailable(engine: Any, store: Any, postgresql: Any) -> None:
    fill(store, 1)
    postgresql.execute("ALTER DATABASE ledger SET default_transaction_read_only TO on")
    engine.dispose()
    with pytest.raises(StoreUnavailable):
        fill(store, 1)
    with read_transaction(engine) as connection:
        assert store.head(connection).size == 1
