"""What a database holds beside what its models say, and rows that are carried between engines."""

import gzip
import sqlite3
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from ragaudit.ledger.log.database import open_engine, write_transaction
from ragaudit.serving.revisions import Schema
from sqlalchemy import Connection, MetaData, UniqueConstraint, inspect


def differences(connection: Connection, schema: Schema) -> list[Any]:
    """What a migration would still have to change; the order of columns does not count."""
    whole = MetaData()
    for metadata in schema.metadata:
        for table in metadata.tables.values():
            table.to_metadata(whole)
    options = {
        "version_table": schema.revision.name,
        "compare_type": True,
        "compare_server_default": True,
    }
    found = list(compare_metadata(MigrationContext.configure(connection, opts=options), whole))
    return found + _keys(connection, whole)


def _keys(connection: Connection, whole: MetaData) -> list[Any]:
    """Primary and unique keys that differ: Alembic does not compare those without a name."""
    inspector = inspect(connection)
    found: list[Any] = []
    for table in whole.tables.values():
        primary = inspector.get_pk_constraint(table.name)["constrained_columns"]
        if set(primary) != {column.name for column in table.primary_key}:
            found.append((table.name, "primary key", primary))
        unique = {
            frozenset(each["column_names"]) for each in inspector.get_unique_constraints(table.name)
        }
        declared = {
            frozenset(column.name for column in each.columns)
            for each in table.constraints
            if isinstance(each, UniqueConstraint)
        }
        if unique != declared:
            found.append((table.name, "unique", unique ^ declared))
    return found


def load_dump(dump: Path, file: Path) -> None:
    """Make the SQLite database of a dump of SQL, compressed by gzip."""
    with sqlite3.connect(file) as connection:
        connection.executescript(gzip.decompress(dump.read_bytes()).decode())
    connection.close()


def copy_rows(source: str, connection: Connection) -> int:
    """Copy all rows of an SQLite database into tables of the same names; how many they were."""
    theirs, mine = MetaData(), MetaData()
    engine = open_engine(source)
    mine.reflect(connection)
    count = 0
    with write_transaction(engine) as old:
        theirs.reflect(old)
        for table in mine.sorted_tables:
            rows = [dict(row) for row in old.execute(theirs.tables[table.name].select()).mappings()]
            if rows:
                connection.execute(table.insert(), rows)
            count += len(rows)
    engine.dispose()
    return count
