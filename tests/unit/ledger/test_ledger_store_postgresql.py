"""What PostgreSQL alone can do to a stored log: its server goes, its sessions end, it is set up
otherwise. What both engines do alike is tested on both (`engine_name`)."""

import threading
from typing import Any

import pytest
from ledger_logs import KEY, fill, leaves
from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.errors import CorruptLog, StoreUnavailable
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.database import open_engine, read_transaction, take_database
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tree import MemoryTree
from sqlalchemy import Connection, select, text


@pytest.fixture
def url(postgresql: Any) -> Any:
    return postgresql.create("ledger")


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


def test_who_stands_still_while_it_signs_keeps_nobody_else_from_signing(
    store: Any, url: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragaudit.ledger.log.checkpoint_store.SILENT_SECONDS", 1)
    nobody, engine = CosignerPolicy((), 0), open_engine(url)
    other = CheckpointStore(LogStore.open(engine, KEY.verifier_key), nobody)
    fill(store, 3)

    def stand_still(connection: Connection) -> None:
        connection.execute(select(schema.log.c.id).with_for_update())
        # It waits for that row until the server ends the silent transaction.
        other.sign(KEY)

    with pytest.raises(StoreUnavailable):
        CheckpointStore(store, nobody).sign(KEY, permit=stand_still)
    signed = other.latest()
    assert signed is not None and signed.head == store.audit()
    engine.dispose()


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


def end_the_lock(postgresql: Any) -> None:
    postgresql.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
    )


def test_a_right_that_the_server_forgot_is_taken_again(
    engine: Any, url: Any, postgresql: Any
) -> None:
    lock = take_database(engine)
    lock.renew()
    end_the_lock(postgresql)
    lock.renew()
    other = open_engine(url)
    with pytest.raises(RefusedError, match="another process"):
        take_database(other)
    lock.release()
    other.dispose()


def test_a_right_that_another_process_took_meanwhile_is_lost(
    engine: Any, url: Any, postgresql: Any
) -> None:
    lock, other = take_database(engine), open_engine(url)
    end_the_lock(postgresql)
    theirs = take_database(other)
    for _ in range(2):
        with pytest.raises(RefusedError, match="another process"):
            lock.renew()
    theirs.release()
    lock.renew()
    lock.release()
    other.dispose()


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
