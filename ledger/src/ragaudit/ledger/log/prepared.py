"""Statements that run in every answer, passed to the driver directly.

SQLAlchemy spends some ten times as long around such a statement as SQLite takes to run it. So it is
built with SQLAlchemy, compiled once for each dialect, and then run on the driver's cursor, within
the transaction of a connection. Errors are SQLAlchemy's, as everywhere else.
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
        text: SQL.
        names: parameters in the statement's order, None if the driver takes them by name.
        constants: values of the parameters that the statement itself sets.
        results: a converter to Python for each column; None where no column needs one.
    """

    text: str
    names: Sequence[str] | None
    constants: dict[str, Any]
    results: tuple[_Processor | None, ...] | None

    def parameters(self, values: dict[str, Any]) -> Any:
        """Return what the driver takes for the values of the parameters, by name."""
        named = {**self.constants, **values}
        return named if self.names is None else [named[name] for name in self.names]


class Prepared:
    """One statement. Its parameters are integers, texts, bytes or None."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[Dialect, _Compiled] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        """Run a query and return its rows.

        Args:
            connection: in whose transaction it runs.
            values: of the statement's parameters, by name.

        Raises:
            DBAPIError: as `Connection.execute` raises it.
        """
        fetched, compiled = self._run(connection, values, _fetch)
        rows: list[Row] = [tuple(row) for row in fetched]
        if compiled.results is None:
            return rows
        return [
            tuple(
                value if process is None else process(value)
                for process, value in zip(compiled.results, row, strict=True)
            )
            for row in rows
        ]

    def row(self, connection: Connection, **values: Any) -> Row | None:
        """Run a query of at most one row and return it, or None.

        Args:
            connection, values: as of `rows`.

        Raises:
            InternalError: several rows; other errors as `rows`.
        """
        rows = self.rows(connection, **values)
        if len(rows) > 1:
            raise InternalError("more than one row", where="database")
        return rows[0] if rows else None

    def change(self, connection: Connection, **values: Any) -> int:
        """Run a statement that writes; return how many rows it changed. Raises as `rows`.

        Args:
            connection, values: as of `rows`.
        """
        changed, _ = self._run(connection, values, _count)
        return changed

    def change_each(self, connection: Connection, many: Sequence[dict[str, Any]]) -> None:
        """Run a statement that writes, once for each of many sets of values. Raises as `rows`.

        Args:
            connection: as of `rows`.
            many: values of the statement's parameters, by name.
        """
        if many:
            self._run(connection, many, _nothing)

    def _run(
        self,
        connection: Connection,
        values: dict[str, Any] | Sequence[dict[str, Any]],
        take: Callable[[Any], T],
    ) -> tuple[T, _Compiled]:
        """Run the statement and return what ``take`` reads from the cursor.

        SQLite runs most of a query only while its rows are fetched, so ``take`` is called in here.
        """
        dialect = connection.dialect
        compiled = self._compiled.get(dialect)
        if compiled is None:
            compiled = self._compiled[dialect] = _compile(self._statement, dialect)
        driver = connection.connection.driver_connection
        assert driver is not None and dialect.loaded_dbapi is not None
        try:
            cursor = driver.cursor()
            if isinstance(values, dict):
                cursor.execute(compiled.text, compiled.parameters(values))
            else:
                cursor.executemany(compiled.text, [compiled.parameters(each) for each in values])
            result = take(cursor)
            cursor.close()
        except dialect.loaded_dbapi.Error as error:
            if dialect.is_disconnect(error, driver, None):
                connection.invalidate()
            # No statement and no parameters in the error: they hold salts and bodies.
            raise DBAPIError.instance(
                None, None, error, dialect.loaded_dbapi.Error, hide_parameters=True,
                dialect=dialect,
            ) from None  # fmt: skip
        return result, compiled


def _fetch(cursor: Any) -> Sequence[Sequence[Any]]:
    rows: Sequence[Sequence[Any]] = cursor.fetchall()
    return rows


def _nothing(_cursor: Any) -> None:
    return None


def _count(cursor: Any) -> int:
    return int(cursor.rowcount)


def _compile(statement: Executable, dialect: Dialect) -> _Compiled:
    compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
    columns = getattr(statement, "selected_columns", ())
    results = tuple(column.type.dialect_impl(dialect) for column in columns)
    processors = tuple(column.result_processor(dialect, None) for column in results)
    return _Compiled(
        text=str(compiled),
        names=compiled.positiontup if compiled.positional else None,
        constants={name: value for name, value in compiled.params.items() if value is not None},
        results=processors if any(processors) else None,
    )
