"""The prover's database: opening it, and transactions with its own and the ledger's tables."""

from collections.abc import Iterator
from contextlib import contextmanager

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger import schema as ledger_schema
from ragaudit.ledger.database import open_engine, read_transaction, write_transaction
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover import tables
from sqlalchemy import Connection, Engine, insert, inspect, select, update
from sqlalchemy.exc import SQLAlchemyError


class Store:
    """One database with the tables of prover and ledger, made by ``ragaudit prover init``."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def create(cls, url: str) -> "Store":
        """Make the tables where they are missing and return the store."""
        store = cls(open_engine(url))
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

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def _reported() -> Iterator[None]:
    """Errors of the database driver never reach a caller with their statement."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreUnavailable(
            f"the database failed: {type(error).__name__}", where="store"
        ) from error
