"""A database as it was: what an operator does who restores a back-up, on each engine."""

import sqlite3
from contextlib import closing
from typing import Any

from ragaudit.ledger.log.database import open_engine, write_transaction
from sqlalchemy import MetaData, text


class BackUp:
    """The rows of a database at one moment.

    Args:
        url: of SQLAlchemy; a service may use the database meanwhile.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._file = url.removeprefix("sqlite:///") if url.startswith("sqlite:") else None
        self._copy = sqlite3.connect(":memory:")
        self._rows: dict[str, list[dict[str, Any]]] = {}
        if self._file is None:
            self._read()
            return
        with closing(sqlite3.connect(self._file)) as live:
            live.backup(self._copy)

    def restore(self) -> None:
        """Make the database what it was."""
        if self._file is None:
            self._write()
            return
        with closing(sqlite3.connect(self._file)) as live:
            self._copy.backup(live)

    def close(self) -> None:
        """Forget the rows."""
        self._copy.close()

    def _read(self) -> None:
        engine, tables = open_engine(self._url), MetaData()
        with write_transaction(engine) as connection:
            tables.reflect(connection)
            for table in tables.sorted_tables:
                rows = connection.execute(table.select()).mappings()
                self._rows[table.name] = [dict(row) for row in rows]
        engine.dispose()

    def _write(self) -> None:
        engine, tables = open_engine(self._url), MetaData()
        with write_transaction(engine) as connection:
            tables.reflect(connection)
            names = ", ".join(f'"{name}"' for name in tables.tables)
            connection.execute(text(f"TRUNCATE {names}"))
            for table in tables.sorted_tables:
                if self._rows[table.name]:
                    connection.execute(table.insert(), self._rows[table.name])
        engine.dispose()
