"""The prover's database: opening it, and transactions with its own and the ledger's tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log import schema as ledger_schema
from ragaudit.ledger.log.database import (
    DatabaseLock,
    database_file,
    demand_version,
    make_private,
    open_engine,
    read_transaction,
    refused_statements,
    take_database,
    write_transaction,
)
from ragaudit.prover.store import tables
from sqlalchemy import Connection, Engine, insert, inspect, select, update


class Store:
    """One database with the tables of prover and ledger, made by ``ragaudit prover init``."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer: DatabaseLock | None = None

    @classmethod
    def create(cls, url: str) -> "Store":
        """Make the tables where they are missing and return the store.

        Args:
            url: of SQLAlchemy, SQLite or PostgreSQL.

        Raises:
            StoreUnavailable: the database cannot be written.
            UnsupportedError: its tables are of another version.
        """
        store = cls(open_engine(url))
        make_private(store.engine)  # whoever reads it can open every commitment
        with store.write() as connection:
            ledger_schema.metadata.create_all(connection)
            tables.metadata.create_all(connection)
            if connection.scalar(select(tables.schema.c.version)) is None:
                connection.execute(insert(tables.schema).values(version=tables.SCHEMA_VERSION))
        store.check()
        return store

    @classmethod
    def open(cls, url: str) -> "Store":
        """Return the store of an initialised database.

        Args:
            url: of SQLAlchemy, as for `create`.

        Raises:
            StoreUnavailable: it cannot be opened, or has no tables.
            UnsupportedError: its tables are of another version.
        """
        store = cls(open_engine(url))
        store.check()
        return store

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a transaction that may write: all of it, or on any exception nothing.

        Raises:
            StoreUnavailable: the database cannot be used.
            InternalError: it refused a statement.
        """
        with refused_statements(), write_transaction(self.engine) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a transaction with one consistent reading. Raises as `write`."""
        with refused_statements(), read_transaction(self.engine) as connection:
            yield connection

    def check(self) -> None:
        """Return if the database answers and its tables are of this version.

        Raises:
            StoreUnavailable: it cannot be used, or has no tables.
            UnsupportedError: its tables are of another version.
        """
        with self.read() as connection:
            if not inspect(connection).has_table(tables.schema.name):
                raise StoreUnavailable(
                    "the database has no tables", where="store", expected="ragaudit prover init"
                )
            version = connection.scalar(select(tables.schema.c.version))
        demand_version(version or 0, tables.SCHEMA_VERSION)

    def check_writable(self) -> None:
        """Return if a transaction that changes a row can be made durable."""
        with self.write() as connection:
            # A real write that changes nothing: an open transaction alone shows no read-only disk.
            connection.execute(update(tables.schema).values(version=tables.SCHEMA_VERSION))

    @property
    def file(self) -> Path | None:
        """The database's file, None if it is a server's."""
        return database_file(self.engine)

    def take(self) -> None:
        """Make this process the only one that serves the database, until `close`.

        Raises:
            RefusedError: another one serves it.
        """
        # Two processes would hand out one counter, and so one noise, twice.
        if self._writer is None:
            self._writer = take_database(self.engine)

    def close(self) -> None:
        """Let go of the database."""
        if self._writer is not None:
            self._writer.release()
            self._writer = None
        self.engine.dispose()
