"""The prover's database: opening it, transactions, and statements that several rooms share.

Its transactions span the prover's own and the ledger's tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log import schema as ledger_schema
from ragaudit.ledger.log.advisory import SILENT_SECONDS, Turns, key_of
from ragaudit.ledger.log.database import (
    DatabaseLock,
    close_engine,
    database_file,
    insert_of,
    make_private,
    open_engine,
    read_transaction,
    refused_statements,
    single_statements,
    take_database,
    write_transaction,
)
from ragaudit.prover.sequencer import Lookup, aside, together
from ragaudit.prover.store import tables
from ragaudit.serving.revisions import Schema, Upgrade
from sqlalchemy import Connection, Engine, Table, func, select, update

_STALE = tables.stale
SCHEMA = Schema(
    ledger_schema.metadata,
    tables.metadata,
    table="prover_revision",
    scripts=Path(__file__).parent / "migrations",
    command="ragaudit prover migrate",
)


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert those rows whose key no row has yet, and return how many they were.

    In one statement: on PostgreSQL two transactions may both look first, and both find nothing.

    Args:
        connection: of a transaction that writes.
        rows: by name of column, with distinct keys.
    """
    if not rows:
        return 0
    key = next(iter(table.primary_key))
    # Told by the statement: drivers count the rows of several values differently.
    new = insert_of(connection, table).values(rows).on_conflict_do_nothing().returning(key)
    return len(connection.execute(new).all())


def mark_stale(connection: Connection, tenant: str) -> None:
    """Note that the documents of a tenant changed.

    Args:
        connection: of a transaction that writes.
    """
    # In one statement: two writers may both be the first to mark a tenant.
    connection.execute(
        insert_of(connection, _STALE)
        .values(tenant=tenant, marks=1)
        .on_conflict_do_update(index_elements=[_STALE.c.tenant], set_={"marks": _STALE.c.marks + 1})
    )


def marks_of(connection: Connection, tenant: str) -> int:
    """Return how often the documents of a tenant changed; never falls."""
    marks: int | None = connection.scalar(select(_STALE.c.marks).where(_STALE.c.tenant == tenant))
    return marks or 0


def taken_marks(connection: Connection, window: str, tenant: str) -> int:
    """Return which changes the last version of a window's index has taken up: the first so many.

    Args:
        window: that has committed to the tenant's documents.
    """
    columns = tables.index_version.c
    of = (columns.window == window) & (columns.tenant == tenant)
    marks: int | None = connection.scalar(select(func.max(columns.marks)).where(of))
    return marks or 0


def note_taken(connection: Connection, window: str, tenant: str, version: int, marks: int) -> None:
    """Note that a version has everything that changed so far.

    Args:
        version: of the tenant's index in this window.
        marks: as `marks_of` returned them before the documents were read.
    """
    columns = tables.index_version.c
    of = (columns.window == window) & (columns.tenant == tenant) & (columns.version == version)
    connection.execute(update(tables.index_version).where(of).values(marks=marks))


class Store:
    """One database with the tables of prover and ledger, made by ``ragaudit prover init``."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer: DatabaseLock | None = None
        self._turns = Turns(engine)
        self._free_turns = Lookup(self._turns.take_free)
        self._lost = False

    @classmethod
    def create(cls, url: str) -> "Store":
        """Make the tables in a database that has none and return the store.

        Args:
            url: of SQLAlchemy, SQLite or PostgreSQL.

        Raises:
            StoreUnavailable: the database cannot be written.
            UnsupportedError: it has tables of another revision.
        """
        store = cls(open_engine(url))
        make_private(store.engine)  # whoever reads it can open every commitment
        with store._closed_on_failure(), store.write() as connection:
            SCHEMA.create(connection)
        return store

    @classmethod
    def migrate(cls, url: str) -> Upgrade:
        """Make the tables, or bring those of an earlier release to this one; say what was found.

        Args:
            url: of SQLAlchemy, of a database that nobody serves meanwhile.

        Raises:
            StoreUnavailable: the database cannot be written.
            RefusedError: a process serves it.
            UnsupportedError: its revision is not known, so of a newer release.
        """
        store = cls(open_engine(url))
        make_private(store.engine)
        with closing(store):
            store.take()
            with store.write() as connection:
                return SCHEMA.upgrade(connection)

    @classmethod
    def open(cls, url: str) -> "Store":
        """Return the store of an initialised database.

        Args:
            url: of SQLAlchemy, as for `create`.

        Raises:
            StoreUnavailable: it cannot be opened, or has no tables.
            UnsupportedError: its tables are of another revision.
        """
        store = cls(open_engine(url))
        with store._closed_on_failure():
            store.check()
        return store

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a transaction that may write: all of it, or on any exception nothing.

        Raises:
            StoreUnavailable: the database cannot be used, or another process took it over.
            InternalError: it refused a statement.
        """
        if self._lost:
            raise StoreUnavailable(
                "another process serves this database", where="store", expected="one at a time"
            )
        with (
            refused_statements(),
            write_transaction(self.engine, silent_seconds=SILENT_SECONDS) as connection,
        ):
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a transaction with one consistent reading. Raises as `write`."""
        with refused_statements(), read_transaction(self.engine) as connection:
            yield connection

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """Yield a connection for `Prepared` queries that need no common reading.

        Each of them reads what is committed when it begins. Raises as `write`.
        """
        with refused_statements(), single_statements(self.engine) as connection:
            yield connection

    def check(self) -> None:
        """Return if the database answers and its tables are of this revision.

        Raises:
            StoreUnavailable: it cannot be used, or has no tables.
            UnsupportedError: its tables are of another revision.
        """
        with self.read() as connection:
            SCHEMA.demand(connection)

    def check_writable(self) -> None:
        """Return if a transaction that changes a row can be made durable."""
        with self.write() as connection:
            # A real write that changes nothing: an open transaction alone shows no read-only disk.
            connection.execute(update(SCHEMA.revision).values(version_num=SCHEMA.head))

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

    def serve(self) -> None:
        """Serve the database until `close`: a file alone, a server's with others that do.

        Raises:
            RefusedError: another process serves the file, or has the server's database alone.
        """
        if self._writer is None:
            self._writer = take_database(self.engine, alone=False)

    @contextmanager
    def turn(self, *words: str) -> Iterator[None]:
        """Hold what other processes on the database wait for under the same words.

        Threads of one process are let in together, and processes on a file are alone.

        Raises:
            StoreUnavailable: the database does not answer, or the other one does not end.
        """
        if self.engine.name != "postgresql":
            yield
            return
        key = key_of(*words)
        session = self._free_turns.get(key) or aside(self._turns.take, key)
        try:
            yield
        finally:
            together(session.unlock, key)

    def hold(self) -> None:
        """Check that this process still has what it took; take it again after an outage.

        A server forgets it with the session, at its restart for instance.

        Raises:
            RefusedError: another process was faster; from here on nothing is written.
            StoreUnavailable: the server does not answer.
        """
        if self._writer is not None:
            try:
                self._writer.renew()
            except RefusedError:
                self._lost = True
                raise

    def permit(self, _connection: Connection) -> None:
        """Allow a checkpoint to be stored: who drives alone asks nobody, see `LeadersStore`."""

    def close(self) -> None:
        """Let go of the database."""
        self._turns.close()
        if self._writer is not None:
            self._writer.release()
            self._writer = None
        close_engine(self.engine)
