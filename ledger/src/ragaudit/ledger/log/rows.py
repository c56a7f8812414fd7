"""Rows as instances of a frozen dataclass: the one way from columns to names, in both services."""

from collections.abc import Sequence
from dataclasses import fields
from enum import Enum
from typing import Any, Generic, TypeVar, get_type_hints

from sqlalchemy import ColumnElement, Connection, Select, Table, insert, select

T = TypeVar("T")


class Rows(Generic[T]):
    """The rows of a table as instances of ``kind``, each field of which is a column's name.

    Fields of an enumeration are read as its members. Binary columns are bytes, whatever the driver
    gives: SQLAlchemy's `LargeBinary` sees to that.

    Attributes:
        columns: of the fields, in their order.
    """

    def __init__(self, kind: type[T], table: Table) -> None:
        hints = get_type_hints(kind)
        self._kind = kind
        self._table = table
        self._names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        self._enums = {
            name: hints[name] for name in self._names if _is_enumeration(hints[name])
        }  # looked up once: rows are built in every answer
        self.columns = [table.c[name] for name in self._names]

    def select(self, *conditions: ColumnElement[bool]) -> Select[Any]:
        """Return the query of the rows for which all conditions hold."""
        return select(*self.columns).where(*conditions)

    def of(self, values: Sequence[Any]) -> T:
        """Return the instance of a row's values, in the order of `columns`.

        Args:
            values: as the driver gives them.
        """
        if not self._enums:
            return self._kind(*values)
        named = dict(zip(self._names, values, strict=True))
        return self._kind(**named | {name: kind(named[name]) for name, kind in self._enums.items()})

    def find(self, connection: Connection, *conditions: ColumnElement[bool]) -> T | None:
        """Return the only row for which all conditions hold, or None.

        Args:
            connection: in whose transaction it is read.
            conditions: that hold for one row at most.

        Raises:
            MultipleResultsFound: several do.
        """
        row = connection.execute(self.select(*conditions)).one_or_none()
        return None if row is None else self.of(row)

    def all(self, connection: Connection, query: Select[Any]) -> list[T]:
        """Return the rows of a query that `select` began, in its order.

        Args:
            connection: in whose transaction it is read.
            query: of `select`, perhaps with an order and a limit.
        """
        return [self.of(row) for row in connection.execute(query)]

    def insert(self, connection: Connection, row: T, **further: Any) -> None:
        """Insert a row.

        Args:
            further: values of columns that are no fields, such as whose row it is.
        """
        values = {name: getattr(row, name) for name in self._names}
        connection.execute(insert(self._table).values(**values, **further))


def _is_enumeration(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)
