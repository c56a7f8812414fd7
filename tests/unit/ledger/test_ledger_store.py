"""The stored log: appending in the caller's transaction, reading, opening, prepared statements."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from databases import ON_SQLITE
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_logs import KEY, fill, leaf, leaves
from ragaudit.encoding.errors import InternalError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import (
    LogFrozen,
    MalformedProof,
    MalformedRecord,
    StoreUnavailable,
    UnknownResource,
)
from ragaudit.ledger.log.database import (
    Prepared,
    close_engine,
    open_engine,
    read_transaction,
    write_transaction,
)
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tiles import Frontier, RightEdge, Tile, TileHashSource, tiles_of
from ragaudit.ledger.log.tree import EMPTY_ROOT, MemoryTree, leaf_hash
from sqlalchemy import (
    Boolean,
    Column,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    event,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

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


def test_a_database_without_tables_is_unavailable(empty_database: str) -> None:
    engine = open_engine(empty_database)
    with pytest.raises(StoreUnavailable, match=r"no such table|UndefinedTable"):
        LogStore.open(engine, KEY.verifier_key)
    engine.dispose()


def test_a_connection_in_use_is_closed_when_it_is_given_back(empty_database: str) -> None:
    """A shutdown does not wait for every reader; the server must not keep a session for it."""
    engine = open_engine(empty_database)
    closed: list[object] = []
    event.listen(engine, "close", lambda connection, _record: closed.append(connection))
    connection = engine.connect()
    driver = connection.connection.driver_connection
    close_engine(engine)
    assert closed == []
    connection.close()
    assert closed == [driver]


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


def test_a_frozen_log_takes_nothing(store: Any, reopened: Any) -> None:
    fill(store, 3)
    with store.transaction() as connection:
        assert store.freeze(connection).size == 3
    with pytest.raises(LogFrozen), store.transaction() as connection:
        store.append(connection, leaf(3))
    again = LogStore.create(reopened(), KEY.verifier_key)
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


def test_two_processes_share_a_log(reopened: Any, store: Any) -> None:
    other = LogStore.open(reopened(), KEY.verifier_key)
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


@ON_SQLITE
def test_commits_are_synchronised(engine: Any, store: Any) -> None:
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2  # FULL


TABLE = Table(
    "things", MetaData(), Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text), Column("data", LargeBinary), Column("good", Boolean),
)  # fmt: skip
INSERT = Prepared(insert(TABLE))
SELECT = select(TABLE.c.good, TABLE.c.data, TABLE.c.name, TABLE.c.id)
FROM = Prepared(SELECT.where(TABLE.c.id >= bindparam("least")).order_by(TABLE.c.id))
COUNT_UP = Prepared(
    update(TABLE).where(TABLE.c.id == bindparam("of")).values(id=TABLE.c.id + bindparam("more"))
)


@pytest.fixture
def things(engine_name: str, make_database: Callable[..., str]) -> Iterator[Engine]:
    made = open_engine(make_database(engine_name))
    with write_transaction(made) as connection:
        TABLE.metadata.create_all(connection)
        INSERT.change(connection, id=1, name="one", data=b"\x00\xff", good=True)
        INSERT.change(connection, id=2, name=None, data=None, good=False)
    yield made
    made.dispose()


def test_rows_are_those_of_sqlalchemy(things: Engine) -> None:
    with read_transaction(things) as connection:
        expected = [tuple(row) for row in connection.execute(SELECT.order_by(TABLE.c.id))]
        assert FROM.rows(connection, least=0) == expected
        assert expected == [(True, b"\x00\xff", "one", 1), (False, None, None, 2)]
        assert type(FROM.rows(connection, least=0)[0][0]) is bool
        assert FROM.row(connection, least=2) == expected[1]
        assert FROM.row(connection, least=3) is None
        with pytest.raises(InternalError, match="more than one row"):
            FROM.row(connection, least=0)


def test_changes_are_counted_and_belong_to_the_transaction(things: Engine) -> None:
    with pytest.raises(KeyboardInterrupt), write_transaction(things) as connection:
        assert COUNT_UP.change(connection, of=2, more=5) == 1
        assert COUNT_UP.change(connection, of=2, more=5) == 0
        raise KeyboardInterrupt
    with read_transaction(things) as connection:
        assert [row[3] for row in FROM.rows(connection, least=0)] == [1, 2]


def test_a_statement_is_run_for_each_of_many_values(things: Engine) -> None:
    with write_transaction(things) as connection:
        COUNT_UP.change_each(connection, [{"of": 1, "more": 10}, {"of": 2, "more": 20}])
        COUNT_UP.change_each(connection, [])
    with read_transaction(things) as connection:
        assert [row[3] for row in FROM.rows(connection, least=0)] == [11, 22]
    with pytest.raises(IntegrityError), write_transaction(things) as connection:
        same = {"id": 3, "name": None, "data": None, "good": True}
        INSERT.change_each(connection, [same, same])
    with read_transaction(things) as connection:
        assert len(FROM.rows(connection, least=0)) == 2


def test_errors_are_those_of_sqlalchemy_without_parameters(things: Engine) -> None:
    with pytest.raises(IntegrityError) as caught, write_transaction(things) as connection:
        INSERT.change(connection, id=1, name="a secret", data=b"", good=True)
    assert "secret" not in str(caught.value)
    with write_transaction(things) as connection:
        TABLE.drop(connection)
    with pytest.raises(StoreUnavailable), read_transaction(things) as connection:
        FROM.rows(connection, least=0)


@ON_SQLITE
def test_errors_of_later_rows_are_those_of_sqlalchemy_too(things: Engine) -> None:
    """SQLite looks for rows only when they are fetched, and may fail at any of them."""
    first_row_fits = Prepared(
        text("SELECT abs(value) FROM (SELECT 1 AS value UNION ALL SELECT -9223372036854775807 - 1)")
    )
    with pytest.raises(StoreUnavailable, match="overflow"), read_transaction(things) as connection:
        first_row_fits.rows(connection)
