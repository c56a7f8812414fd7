"""The log's entries with salt and body, and records with their openings, as stored."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ragaudit.ledger.log.prepared import Prepared
from ragaudit.prover.store import tables
from ragaudit.prover.window.openings import RecordOpenings
from ragaudit.prover.window.receipts import LoggedRecord
from sqlalchemy import Connection, Row, insert, select

# Built once: they run in every answer.
_INSERT_ENTRY = Prepared(insert(tables.entry))
_INSERT_RECORD = Prepared(insert(tables.record))


@dataclass(frozen=True)
class Entry:
    """A log entry before hashing."""

    position: int
    kind: str
    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)


def insert_entry(
    connection: Connection, window: str, position: int, kind: str, salt: bytes, body: bytes
) -> None:
    """Store what the leaf at ``position`` was made of."""
    _INSERT_ENTRY.change(
        connection, window=window, position=position, kind=kind, salt=salt, body=body
    )


def insert_record(
    connection: Connection,
    window: str,
    position: int,
    *,
    account: str,
    counter: int,
    openings: RecordOpenings,
    issued: int,
) -> None:
    """Store what opens the record at ``position``."""
    _INSERT_RECORD.change(
        connection,
        window=window,
        position=position,
        account=account,
        counter=counter,
        openings=openings.encode(),
        issued=issued,
    )


def entries(connection: Connection, window: str, start: int = 0) -> Iterator[Entry]:
    """Yield the entries from ``start`` on, in order."""
    table = tables.entry
    rows = connection.execute(
        select(table.c.position, table.c.kind, table.c.salt, table.c.body)
        .where(table.c.window == window, table.c.position >= start)
        .order_by(table.c.position)
    )
    for row in rows:
        yield Entry(row.position, row.kind, row.salt, row.body)


def entry_at(connection: Connection, window: str, position: int) -> Entry:
    """Return the entry at a position, which must exist."""
    table = tables.entry
    row = connection.execute(
        select(table.c.position, table.c.kind, table.c.salt, table.c.body).where(
            table.c.window == window, table.c.position == position
        )
    ).one()
    return Entry(row.position, row.kind, row.salt, row.body)


def record_at(connection: Connection, window: str, position: int) -> LoggedRecord | None:
    """Return the record at a position of the log."""
    return _record(connection, window, tables.record.c.position == position)


def record_of(
    connection: Connection, window: str, account: str, counter: int
) -> LoggedRecord | None:
    """Return an account's record with a counter."""
    columns = tables.record.c
    return _record(connection, window, (columns.account == account) & (columns.counter == counter))


def records(connection: Connection, window: str) -> Iterator[LoggedRecord]:
    """Yield all records of a window in the log's order."""
    for row in connection.execute(_select(window).order_by(tables.record.c.position)):
        yield _logged(row)


def _record(connection: Connection, window: str, condition: Any) -> LoggedRecord | None:
    row = connection.execute(_select(window).where(condition)).one_or_none()
    return None if row is None else _logged(row)


def _select(window: str) -> Any:
    record, entry = tables.record, tables.entry
    same = (record.c.window == entry.c.window) & (record.c.position == entry.c.position)
    return (
        select(record.c.position, record.c.openings, record.c.issued, entry.c.salt, entry.c.body)
        .join_from(record, entry, same)
        .where(record.c.window == window)
    )


def _logged(row: Row[Any]) -> LoggedRecord:
    return LoggedRecord(
        position=row.position,
        salt=row.salt,
        body=row.body,
        openings=RecordOpenings.decode(row.openings),
        issued=row.issued,
    )
