"""What is in a PostgreSQL database: tables with a vector column, and what their columns are.

Guessed as far as names and types tell; what cannot be guessed is left out with a reason, and
settings of one's own say it (docs/stores.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragaudit.cli.up.store import Collection
from ragaudit.encoding.errors import UnavailableError, UnsupportedError

try:
    import psycopg
    from psycopg import sql
except ModuleNotFoundError:
    raise UnsupportedError(
        "psycopg is not installed", where="--pgvector", expected="ragaudit-prover[postgres]"
    ) from None

CONTENT = ("content", "document", "text", "page_content", "chunk", "body")
_TEXTS = {"text", "varchar", "bpchar"}
_OPERATORS = {
    "vector_cosine_ops": "cosine",
    "vector_l2_ops": "l2",
    "vector_ip_ops": "inner-product",
}

_VECTORS = """
    SELECT table_schema, table_name, column_name FROM information_schema.columns
    WHERE udt_name = 'vector' ORDER BY 1, 2, ordinal_position
"""
_COLUMNS = """
    SELECT column_name, udt_name FROM information_schema.columns
    WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_PRIMARY = """
    SELECT a.attname FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
    WHERE i.indisprimary AND i.indrelid = %s::pg_catalog.regclass
"""
_RANKS = """
    SELECT o.opcname FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_opclass o ON o.oid = ANY (i.indclass)
    WHERE i.indrelid = %s::pg_catalog.regclass AND o.opcname LIKE 'vector%%'
"""


@dataclass(frozen=True)
class PgvectorTable:
    """A table that can be served, or the reason why not.

    Attributes:
        collection: under the name that applications use.
        columns: section of the prover's settings for it.
        reason: why it cannot be served; empty if it can.
    """

    collection: Collection
    columns: dict[str, Any]
    reason: str = ""


def pgvector_tables(dsn: str) -> list[PgvectorTable]:
    """Return the tables with a vector column.

    Args:
        dsn: connection string of libpq, which may hold a password: no error quotes it.

    Raises:
        UnavailableError: the database does not answer, or refuses.
    """
    try:
        with psycopg.connect(dsn, connect_timeout=10) as connection:
            found = connection.execute(_VECTORS).fetchall()
            return [_table(connection, *row) for row in found]
    except psycopg.Error as error:
        raise UnavailableError(
            f"the database does not answer ({type(error).__name__})",
            where="--pgvector",
            expected="a connection string of PostgreSQL with pgvector",
        ) from None


def _table(
    connection: "psycopg.Connection[Any]", schema: str, table: str, vector: str
) -> PgvectorTable:
    place = sql.Identifier(schema, table)
    name = table if schema == "public" else f"{schema}.{table}"
    types = dict(connection.execute(_COLUMNS, (schema, table)).fetchall())
    quoted = place.as_string(connection)
    keys = [row[0] for row in connection.execute(_PRIMARY, (quoted,)).fetchall()]
    ranks = [row[0] for row in connection.execute(_RANKS, (quoted,)).fetchall()]
    rows, dimension = _sizes(connection, place, vector)
    # Without an index PostgreSQL ranks by whatever a query says; most say cosine.
    metric = _OPERATORS.get(ranks[0], ranks[0]) if ranks else "cosine"
    collection = Collection(name, rows, dimension, metric)
    content = _content(types, keys)
    attributes = next((each for each, kind in types.items() if kind in {"jsonb", "json"}), None)
    if len(keys) != 1:
        return PgvectorTable(collection, {}, "no primary key of one column")
    if content is None:
        return PgvectorTable(collection, {}, f"no column of text called {', '.join(CONTENT)}")
    columns = {
        "schema": schema,
        "table": table,
        "id": keys[0],
        "content": content,
        "vector": vector,
        "metric": metric,
    }
    if attributes is not None:
        columns["attributes"] = attributes
    return PgvectorTable(collection, columns)


def _sizes(
    connection: "psycopg.Connection[Any]", place: sql.Identifier, vector: str
) -> tuple[int, int]:
    """Return the number of rows and of a vector's entries, 0 where there is no row."""
    query = sql.SQL("SELECT count(*), coalesce(max(vector_dims({})), 0) FROM {}")
    row = connection.execute(query.format(sql.Identifier(vector), place)).fetchone()
    assert row is not None  # an aggregate has a row
    return int(row[0]), int(row[1])


def _content(types: dict[str, str], keys: Sequence[str]) -> str | None:
    texts = [name for name, kind in types.items() if kind in _TEXTS and name not in keys]
    by_name = next((name for name in CONTENT if name in texts), None)
    return by_name or (texts[0] if len(texts) == 1 else None)
