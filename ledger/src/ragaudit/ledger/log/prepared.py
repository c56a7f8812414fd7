"""Statements that run in every answer, handed to the driver as they are.

SQLAlchemy spends some ten times as long around such a statement as SQLite takes to run it. So it
is built with SQLAlchemy, compiled once for each dialect, and then run on the driver's cursor,
within the transaction of a connection. Errors are SQLAlchemy's, as everywhere else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ragaudit.encoding.errors import InternalError
from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.exc import DBAPIError

T = TypeVar("T")
Row = tuple[Any, ...]
_Processor = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A statement in one dialect.

    Attributes:
        names: parameters in the statement's order, None if the driver takes them by name.
        constants: values of parameters that the statement brings itself.
        results: what makes Python values of a row's columns; None where nothing has to be done.
    """

    text: str
    names: Sequence[str] | None
    constants: dict[str, Any]
    results: tuple[_Processor | None, ...] | None


class Prepared:
    """One statement. Its parameters are integers, texts, bytes or None."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[Dialect, _Compiled] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        """Run a query; returns its rows. DBAPIError as `Connection.execute` raises it."""
        fetched, compiled = self._run(connection, values, _fetch)
        found: list[Row] = [tuple(row) for row in fetched]
        if compiled.results is None:
            return found
        return [
            tuple(
                value if process is None else process(value)
                for process, value in zip(compiled.results, row, strict=True)
            )
            for row in found
        ]

    def row(self, connection: Connection, **values: Any) -> Row | None:
        """Run a query of at most one row; returns it. Raises as `rows`."""
        found = self.rows(connection, **values)
        if len(found) > 1:
            raise InternalError("more than one row", where="database")
        return found[0] if found else None

    def change(self, connection: Connection, **values: Any) -> int:
        """Run a statement that writes; returns how many rows it changed. Raises as `rows`."""
        changed, _ = self._run(connection, values, _count)
        return changed

    def _run(
        self, connection: Connection, values: dict[str, Any], take: Callable[[Any], T]
    ) -> tuple[T, _Compiled]:
        """What ``take`` takes from the cursor; SQLite looks for most rows only then."""
        dialect = connection.dialect
        compiled = self._compiled.get(dialect)
        if compiled is None:
            compiled = self._compiled[dialect] = _compile(self._statement, dialect)
        given: Any = {**compiled.constants, **values}
        if compiled.names is not None:
            given = [given[name] for name in compiled.names]
        driver = connection.connection.driver_connection
        assert driver is not None and dialect.loaded_dbapi is not None
        try:
            cursor = driver.cursor()
            cursor.execute(compiled.text, given)
            taken = take(cursor)
            cursor.close()
        except dialect.loaded_dbapi.Error as error:
            if dialect.is_disconnect(error, driver, None):
                connection.invalidate()
            raise DBAPIError.instance(
                None, None, error, dialect.loaded_dbapi.Error, hide_parameters=True,
                dialect=dialect,
            ) from None  # fmt: skip
        return taken, compiled


def _fetch(cursor: Any) -> Sequence[Sequence[Any]]:
    found: Sequence[Sequence[Any]] = cursor.fetchall()
    return found


def _count(cursor: Any) -> int:
    return int(cursor.rowcount)


def _compile(statement: Executable, dialect: Dialect) -> _Compiled:
    compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
    columns = getattr(statement, "selected_columns", ())
    results = tuple(each.type.dialect_impl(dialect) for each in columns)
    processors = tuple(each.result_processor(dialect, None) for each in results)
    return _Compiled(
        text=str(compiled),
        names=compiled.positiontup if compiled.positional else None,
        constants={name: value for name, value in compiled.params.items() if value is not None},
        results=processors if any(processors) else None,
    )
