"""The prover's database: opening it, and transactions with its own and the ledger's tables."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log import schema as ledger_schema
from ragaudit.ledger.log.database import (
    DatabaseLock,
    database_file,
    open_engine,
    read_transaction,
    take_database,
    write_transaction,
)
from ragaudit.prover.store import tables
from sqlalchemy import Connection, Engine, insert, inspect, select, update
from sqlalchemy.exc import SQLAlchemyError


class Store:
    """One database with the tables of prover and ledger, made by ``ragaudit prover init``."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer: DatabaseLock | None = None

    @classmethod
    def create(cls, url: str) -> "Store":
        """Make the tables where they are missing and return the store."""
        store = cls(open_engine(url))
        if store.file is not None:
            _make_private(store.file)
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

        Raises:
            StoreUnavailable: it cannot be opened, or has no tables.
            UnsupportedError: its tables are of another version.
        """
        store = cls(open_engine(url))
        store.check()
        return store

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction that may write: all of it, or on any exception nothing."""
        with _reported(), write_transaction(self.engine) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent reading."""
        with _reported(), read_transaction(self.engine) as connection:
            yield connection

    def check(self) -> None:
        """Return if the database answers and its tables are of this version."""
        with self.read() as connection:
            if not inspect(connection).has_table(tables.schema.name):
                raise StoreUnavailable(
                    "the database has no tables", where="store", expected="ragaudit prover init"
                )
            version = connection.scalar(select(tables.schema.c.version))
        if version != tables.SCHEMA_VERSION:
            raise UnsupportedError(
                f"database of version {version}",
                where="store",
                expected=f"version {tables.SCHEMA_VERSION}",
            )

    def check_writable(self) -> None:
        """Return if a transaction that changes a row can be made durable."""
        with self.write() as connection:
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
        if self._writer is None:
            self._writer = take_database(self.engine)

    def close(self) -> None:
        """Let go of the database."""
        if self._writer is not None:
            self._writer.release()
            self._writer = None
        self.engine.dispose()


def _make_private(file: Path) -> None:
    """Create the file before the database does: whoever reads it can open every commitment."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write: {error.strerror}", where=str(file), expected="a writable folder"
        ) from None


@contextmanager
def _reported() -> Iterator[None]:
    """Errors of the database driver never reach a caller with their statement."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreUnavailable(
            f"the database failed: {type(error).__name__}", where="store"
        ) from error
