"""pgvector over SQL: read in one snapshot, by read-only transactions with time limits.

Identifiers come from the settings and are quoted, values are parameters: nothing that an
application sends becomes SQL. Ids travel as text whatever their type is.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import psycopg
from psycopg import sql
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.prover.backend_settings import PgvectorSettings, TableSettings
from ragaudit.prover.backends.interface import Document, Vector, attributes_text, one_dimension
from ragaudit.prover.errors import BackendUnavailable, MalformedDocument
from ragaudit.prover.keys import read_secret_file
from ragaudit.prover.sequencer import aside
from sqlalchemy import Engine, create_engine, exc

_log = logging.getLogger(__name__)

# pgvector's binary form: length, a reserved 0, then big-endian binary32 (vector_send).
_HEADER: Final = 4
_ENTRY: Final = np.dtype(">f4")

_EXTENSION = """
    SELECT n.nspname FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    JOIN pg_catalog.pg_depend d ON d.objid = t.oid AND d.deptype = 'e'
    JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    WHERE e.extname = 'vector' AND t.typname = 'vector'
"""
_COLUMN_TYPE = """
    SELECT pg_catalog.format_type(a.atttypid, NULL) FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = %s::pg_catalog.regclass AND a.attname = %s AND NOT a.attisdropped
"""
_RELATION_KIND = "SELECT relkind::text FROM pg_catalog.pg_class WHERE oid = %s::pg_catalog.regclass"
_WITH_TRANSACTIONS = ("r", "p", "m")  # tables, partitioned ones, materialised views


class PgvectorStore:
    """A `Backend` over tables with pgvector. Safe to use from several threads."""

    def __init__(self, settings: PgvectorSettings) -> None:
        """Prepare the connections; none is made yet.

        Args:
            settings: with the rows of each tenant.

        Raises:
            MalformedSettings: the file of the connection string cannot be used.
        """
        self._tables = dict(settings.tables)
        self._compared = settings.verify_vectors
        self._options = _connection_options(settings)
        # The pool of the ORM that the prover has anyway; nothing else of it is used here.
        self._engine: Engine = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            pool_size=settings.pool_size,
            max_overflow=0,
            pool_timeout=settings.statement_timeout_seconds,
            pool_pre_ping=True,
            hide_parameters=True,
        )

    def close(self) -> None:
        """Release the connections."""
        self._engine.dispose()

    def check(self) -> None:
        """Check that the database answers and that every tenant's rows can be read."""
        for tenant in self.tenants():
            table = self._table(tenant)
            with self._reading(tenant) as connection:
                # A row, not their number: counting reads the whole table, and anybody may ask.
                query = _rows(table, self._vector_type(connection, tenant)) + sql.SQL(" LIMIT 1")
                connection.execute(query, _owner(table))

    def tenants(self) -> list[str]:
        """Return the tenants of the settings, rising."""
        return sorted(self._tables)

    def count(self, tenant: str) -> int:
        """Return N."""
        table = self._table(tenant)
        query = sql.SQL("SELECT count(*) FROM {} {}").format(_name(table), _where(table))
        with self._reading(tenant) as connection:
            row = connection.execute(query, _owner(table)).fetchone()
        return int(row[0]) if row else 0

    def dimension(self) -> int:
        """Return d of the stored vectors, one for all tenants.

        Raises:
            MalformedDocument: a tenant has no vectors, or two have vectors of different lengths.
        """
        return one_dimension({tenant: self._dimension(tenant) for tenant in self.tenants()})

    def metric(self, tenant: str) -> str | None:
        """Return the metric by the settings; None: PostgreSQL ranks by whatever a query says."""
        return self._table(tenant).metric

    def pages(self, tenant: str, rows: int) -> Iterator[list[Document]]:
        """Return all documents with their vectors, rising by id, in one snapshot.

        Args:
            rows: the largest number of documents in a page.

        Raises:
            MalformedDocument: a document that cannot be committed to; ``where`` has its id.
        """
        table = self._table(tenant)
        with self._reading(tenant) as connection:
            query = _rows(table, vector=self._vector_type(connection, tenant))
            # Bytes of UTF-8, whatever the column's type and the database's collation are.
            query += sql.SQL(" ORDER BY {}::text COLLATE {}").format(
                sql.Identifier(table.id), sql.Identifier("C")
            )
            dimension: int | None = None
            # One sort: pages by key would sort anew where no index has this order.
            with connection.cursor("ragaudit", binary=True) as cursor:
                cursor.itersize = rows
                cursor.execute(query, _owner(table))
                while page := cursor.fetchmany(rows):
                    documents = [_document(row) for row in page]
                    dimension = _same_length(documents, dimension)
                    yield documents

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of ``ids`` in their order, None for one gone.

        With their vectors, unless ``verify_vectors`` says that nobody compares them.

        Args:
            ids: distinct, of documents that a window committed to.
        """
        return aside(self._fetch, tenant, ids) if ids else []

    def _fetch(self, tenant: str, ids: Sequence[str]) -> list[Document | None]:
        table = self._table(tenant)
        with self._reading(tenant) as connection:
            vector = self._vector_type(connection, tenant) if self._compared else None
            # Compared in the column's own type, or its index would be of no use.
            query = _rows(table, vector) + sql.SQL(" AND {} = ANY(%(ids)s::text[]::{}[])").format(
                sql.Identifier(table.id), sql.SQL(self._id_type(connection, tenant))
            )
            asked = {**_owner(table), "ids": list(ids)}
            found = connection.execute(query, asked, binary=True).fetchall()
        by_id: dict[str, Document | None] = {}
        for row in found:
            # Two rows of one id: nobody can say which of them was committed to.
            by_id[row[0]] = None if row[0] in by_id else _now(row, self._compared)
        return [by_id.get(name) for name in ids]

    def mark(self, tenant: str) -> str:
        """Return a text that is another one once a row of the tenant was changed.

        Of the rows' number and of the transaction that wrote each, so that no text and no vector
        is read. A view has no such transactions: there the rows themselves are digested.
        """
        table = self._table(tenant)
        with self._reading(tenant) as connection:
            name = _name(table).as_string(connection)
            row = connection.execute(_RELATION_KIND, [name]).fetchone()
            if row is not None and row[0] in _WITH_TRANSACTIONS:
                each: sql.Composable = sql.SQL("concat({}::text, ' ', xmin)").format(
                    sql.Identifier(table.id)
                )
                rows: sql.Composable = sql.SQL("{} {}").format(_name(table), _where(table))
            else:
                each = sql.SQL("whole::text")
                read = _rows(table, self._vector_type(connection, tenant))
                rows = sql.SQL("({}) AS whole").format(read)
            # A sum, for the order of rows says nothing; 2^-64 for two states to have one.
            query = sql.SQL("SELECT count(*), sum(hashtextextended({}, 0)) FROM {}").format(
                each, rows
            )
            found = connection.execute(query, _owner(table)).fetchone()
        return "" if found is None else f"{found[0]} {found[1]}"

    def _table(self, tenant: str) -> TableSettings:
        if tenant not in self._tables:
            raise BackendUnavailable("no table in the settings", where=f"tenant {tenant}")
        return self._tables[tenant]

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(**self._options)

    @contextmanager
    def _reading(self, tenant: str) -> Iterator[psycopg.Connection[Any]]:
        """Give a connection in a read-only transaction with one snapshot.

        What the database says goes to the log: its errors name hosts, users and values.
        """
        try:
            pooled = self._engine.raw_connection()
            try:
                connection = pooled.driver_connection
                assert isinstance(connection, psycopg.Connection)  # what `_connect` made
                with connection.transaction():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                    yield connection
            finally:
                pooled.close()
        except (psycopg.Error, exc.SQLAlchemyError) as error:
            what = _words(error)
            # Not the exception's text: it may quote a row.
            _log.warning("pgvector, tenant %s: %s (%s)", tenant, what, type(error).__name__)
            raise BackendUnavailable(
                f"the vector store does not answer: {what}", where=f"tenant {tenant}"
            ) from None

    def _dimension(self, tenant: str) -> int | None:
        table = self._table(tenant)
        with self._reading(tenant) as connection:
            query = sql.SQL("SELECT {} FROM {} {} LIMIT 1").format(
                _vector_of(table, self._vector_type(connection, tenant)),
                _name(table),
                _where(table),
            )
            row = connection.execute(query, _owner(table), binary=True).fetchone()
        return None if row is None or row[0] is None else _entries(row[0])

    def _vector_type(self, connection: psycopg.Connection[Any], tenant: str) -> sql.Composable:
        row = connection.execute(_EXTENSION).fetchone()
        if row is None:
            raise BackendUnavailable(
                "the database has no pgvector",
                where=f"tenant {tenant}",
                expected="CREATE EXTENSION vector",
            )
        return sql.Identifier(row[0], "vector")

    def _id_type(self, connection: psycopg.Connection[Any], tenant: str) -> str:
        """Return the type of the id column in SQL, as the catalogue quotes it."""
        table = self._table(tenant)
        row = connection.execute(
            _COLUMN_TYPE, [_name(table).as_string(connection), table.id]
        ).fetchone()
        if row is None:
            raise BackendUnavailable("the table has no such id column", where=f"tenant {tenant}")
        return str(row[0])


def _connection_options(settings: PgvectorSettings) -> dict[str, Any]:
    """Return the options of `psycopg.connect`; limits are the settings', whatever the DSN says."""
    text = read_secret_file(settings.dsn_file)
    try:
        given = psycopg.conninfo.conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        # Without the cause, which quotes the string.
        raise MalformedSettings(
            "not a connection string",
            where=f"backend.pgvector.dsn_file: {settings.dsn_file}",
            expected="postgresql://user:password@host/database or host=... dbname=...",
        ) from None
    milliseconds = int(settings.statement_timeout_seconds * 1000)
    limits = f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}"
    return {
        **given,
        "connect_timeout": settings.connect_timeout_seconds,
        "options": f"{given.get('options', '')} {limits}".strip(),
        "application_name": "ragaudit",
        "client_encoding": "UTF8",
    }


def _name(table: TableSettings) -> sql.Identifier:
    return sql.Identifier(table.schema_name, table.table)


def _where(table: TableSettings) -> sql.Composable:
    if table.tenant_column is None:
        return sql.SQL("WHERE true")
    return sql.SQL("WHERE {}::text = %(tenant)s").format(sql.Identifier(table.tenant_column))


def _owner(table: TableSettings) -> dict[str, Any]:
    return {} if table.tenant_value is None else {"tenant": table.tenant_value}


def _vector_of(table: TableSettings, vector: sql.Composable) -> sql.Composable:
    # halfvec and arrays of numbers become vectors by a cast; a vector stays what it is.
    return sql.SQL("{}::{}").format(sql.Identifier(table.vector), vector)


def _rows(table: TableSettings, vector: sql.Composable | None) -> sql.Composed:
    """Return the query for id, content, attributes and perhaps vectors of a tenant's rows."""
    attributes: sql.Composable = sql.SQL("NULL::text")
    if table.attributes is not None:
        attributes = sql.SQL("{}::text").format(sql.Identifier(table.attributes))
    beside: sql.Composable = sql.SQL("NULL::text")
    if table.attribute_columns:
        pairs = [
            sql.SQL("{}, {}").format(sql.Literal(name), sql.Identifier(name))
            for name in table.attribute_columns
        ]
        beside = sql.SQL("jsonb_build_object({})::text").format(sql.SQL(", ").join(pairs))
    return sql.SQL("SELECT {}::text, {}::text, {}, {}, {} FROM {} {}").format(
        sql.Identifier(table.id),
        sql.Identifier(table.content),
        attributes,
        beside,
        sql.SQL("NULL") if vector is None else _vector_of(table, vector),
        _name(table),
        _where(table),
    )


def _document(row: Sequence[Any]) -> Document:
    name, content, attributes, beside, vector = row
    if not isinstance(name, str):
        raise MalformedDocument("a row has no id", expected="an id that is not NULL")
    where = f"document {name}"
    metadata = {**_object(attributes, where), **_object(beside, where)}
    return Document(
        name,
        content or "",
        attributes_text(metadata, where),
        None if vector is None else _vector(vector, where),
    )


def _now(row: Sequence[Any], vectors: bool) -> Document | None:
    """Return a document as it is now; None if it became one that nobody can have committed to."""
    try:
        document = _document(row)
    except MalformedDocument:
        return None
    return None if vectors and document.vector is None else document


def _object(text: str | None, where: str) -> dict[str, object]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise MalformedDocument("attributes are not a JSON object", where=where)
    return value


def _entries(data: bytes) -> int:
    return (len(data) - _HEADER) // _ENTRY.itemsize


def _vector(data: bytes, where: str) -> Vector:
    if len(data) < _HEADER or int.from_bytes(data[:2], "big") != _entries(data):
        raise MalformedDocument("vector in another form", where=where, expected="pgvector's")
    vector: Vector = np.frombuffer(data, dtype=_ENTRY, offset=_HEADER).astype(np.float32)
    # pgvector stores neither, but what is cast may come from elsewhere.
    if not np.all(np.isfinite(vector)):
        raise MalformedDocument("vector with NaN or infinity", where=where)
    return vector


def _same_length(documents: Sequence[Document], dimension: int | None) -> int | None:
    """Return d of all vectors so far; a row without one, or of another length, is named."""
    for document in documents:
        where = f"document {document.id}"
        if document.vector is None:
            raise MalformedDocument("no vector (NULL)", where=where, expected="a vector")
        dimension = dimension or len(document.vector)
        if len(document.vector) != dimension:
            raise MalformedDocument(
                "vector of another length", where=where, expected=f"{dimension} entries"
            )
    return dimension


def _words(error: Exception) -> str:
    """Return in words what went wrong, without what the server or the client wrote about it."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig else error
    match cause:
        case psycopg.errors.QueryCanceled() | psycopg.errors.LockNotAvailable():
            return "a statement took too long"
        case psycopg.errors.InsufficientPrivilege():
            return "its user may not read the table"
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedColumn():
            return "no such table or column"
        case psycopg.errors.CannotCoerce():
            return "the vector column is not one of vectors"
        case exc.TimeoutError():
            return "all connections are in use"
        case psycopg.OperationalError():
            return "the database cannot be reached"
    return f"an error of the database ({getattr(cause, 'sqlstate', None) or 'no code'})"
