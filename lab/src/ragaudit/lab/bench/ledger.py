"""The log on a database: appends, durable and checkpointed, and proofs from a cold start.

What appends are compared with is the database itself: the same bytes in the same batches, inserted
and committed by its driver, without tree, tiles, head or signature.
"""

import itertools
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.bench.harness import Measurement, Notify, measure, measure_once
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.database import Prepared, open_engine, read_transaction, write_transaction
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.store import LEAF_BYTES, LogStore
from ragaudit.ledger.log.tree import leaf_hash, verify_inclusion
from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    insert,
    inspect,
)

_ORIGIN = "bench.example/ledger"
_BULK = 1 << 14  # entries of a transaction while the log is filled

_bare_tables = MetaData()
_BARE = Table(
    "ragaudit_bench",
    _bare_tables,
    Column("log_id", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("leaf_data", LargeBinary(LEAF_BYTES), nullable=False),
)
_INSERT_BARE = Prepared(insert(_BARE))


@dataclass(frozen=True)
class LogSizes:
    """Sizes of a log.

    Attributes:
        entries: n, when it is proven from.
        batch: entries of a transaction.
    """

    entries: int
    batch: int


def ledger(
    sizes: LogSizes, database: str | None, runs: int, allowance: float, notify: Notify
) -> list[Measurement]:
    """Measure appends beside the bare database, then cold inclusion proofs.

    Args:
        sizes: of the log.
        database: URL of an empty database, where nothing is left; None for SQLite in a new file.
        runs, allowance: batches, and proofs, as of `measure`.
        notify: is told what is being done.

    Raises:
        MalformedError: not a database URL, or there are tables in it.
    """
    with _empty(database) as engine:
        key = SigningKey(_ORIGIN, ED25519, PrivateKey.generate())
        store = LogStore.create(engine, key.verifier_key)
        checkpoints = CheckpointStore(store, CosignerPolicy((), 0))
        notify("appending", 0, 0)
        bare = measure(
            "insert and commit, bare", _bare(engine, sizes.batch), runs,
            records=sizes.batch, allowance=allowance,
        )  # fmt: skip

        def append() -> None:
            leaves = _leaves(sizes.batch)
            with store.transaction() as connection:
                store.extend(connection, leaves)

        def append_and_sign() -> None:
            append()
            checkpoints.sign(key)

        appended = measure(
            "append, durable", append, runs, records=sizes.batch, allowance=allowance
        )
        signed = measure(
            "append, durable, checkpointed", append_and_sign, runs,
            records=sizes.batch, allowance=allowance,
        )  # fmt: skip
        filled = _fill(store, sizes.entries, notify)
        notify("proving", 0, 0)
        proofs = _prove(engine, store, runs, allowance)
    rates = [
        each.beside(bare, details={"a second": 1 / each.per_record}) for each in (appended, signed)
    ]
    return [bare, *rates, *filled, *proofs]


def _bare(engine: Engine, batch: int) -> Callable[[], None]:
    positions = itertools.count(step=batch)

    def insert_batch() -> None:
        first = next(positions)
        rows = [
            {"log_id": 1, "position": first + number, "leaf_data": leaf}
            for number, leaf in enumerate(_leaves(batch))
        ]
        with write_transaction(engine) as connection:
            _INSERT_BARE.change_each(connection, rows)

    return insert_batch


def _fill(store: LogStore, entries: int, notify: Notify) -> list[Measurement]:
    """Append until the log has so many entries; nothing if it has them."""
    start = store.head().size

    def fill() -> None:
        while (size := store.head().size) < entries:
            with store.transaction() as connection:
                store.extend(connection, _leaves(min(_BULK, entries - size)))
            notify("filling the log", size, entries)

    missing = entries - start
    if missing <= 0:
        return []
    return [measure_once("append the rest, in large batches", fill, records=missing)]


def _prove(engine: Engine, store: LogStore, runs: int, allowance: float) -> list[Measurement]:
    """Cold inclusion proofs of random entries, beside one row read as coldly."""
    head = store.head()
    found: list[tuple[int, tuple[bytes, ...]]] = []

    def opened() -> Engine:
        return open_engine(engine.url.render_as_string(hide_password=False))

    def read() -> None:
        fresh = opened()
        with read_transaction(fresh) as connection:
            store.rows.head(connection)
        fresh.dispose()

    def prove(log: LogStore) -> None:
        index = secrets.randbelow(head.size)
        found.append((index, log.inclusion_proof(index, head.size)))

    def connect_and_prove() -> None:
        fresh = opened()
        prove(LogStore(fresh, store.rows.log_id, store.log_key))
        fresh.dispose()

    row = measure("connect, read a row", read, runs, allowance=allowance)
    proof = measure("connect, inclusion proof", connect_and_prove, runs, allowance=allowance)
    # As cold but for the connection: a log keeps no tile from one proof to the next.
    connected = measure("inclusion proof", lambda: prove(store), runs, allowance=allowance)
    for index, path in found:
        [leaf] = store.entries(index, index + 1)
        verify_inclusion(index=index, leaf=leaf_hash(leaf), head=head, proof=path)
    entries = {"entries": head.size}
    return [row, *(each.beside(row, details=entries) for each in (proof, connected))]


def _leaves(count: int) -> list[bytes]:
    data = secrets.token_bytes(LEAF_BYTES * count)
    return [data[at : at + LEAF_BYTES] for at in range(0, len(data), LEAF_BYTES)]


@contextmanager
def _empty(database: str | None) -> Iterator[Engine]:
    """Yield the engine of an empty database, and empty it again."""
    with tempfile.TemporaryDirectory(prefix="ragaudit-bench-") as folder:
        engine = open_engine(database or f"sqlite:///{Path(folder) / 'ledger.db'}")
        try:
            # Ours are dropped at the end: those of a provider in operation would be, too.
            if inspect(engine).get_table_names():
                raise MalformedError("there are tables", where="--database", expected="none")
            try:
                with write_transaction(engine) as connection:
                    _bare_tables.create_all(connection)
                yield engine
            finally:
                with write_transaction(engine) as connection:
                    schema.metadata.drop_all(connection)
                    _bare_tables.drop_all(connection)
        finally:
            engine.dispose()
