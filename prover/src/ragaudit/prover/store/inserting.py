"""Rows that somebody else may insert at the same moment."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["insert_new"]


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert those rows whose key no row has yet, and return how many they were.

    In one statement: on PostgreSQL two transactions may both look first, and both find nothing.

    Args:
        connection: of a transaction that writes.
        rows: by name of column, with distinct keys.
    """
    if not rows:
        return 0
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    key = next(iter(table.primary_key))
    # Told by the statement: drivers count the rows of several values differently.
    new = insert(table).values(rows).on_conflict_do_nothing().returning(key)
    return len(connection.execute(new).all())
