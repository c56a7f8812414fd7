"""A window's log entries, records and promises as stored, and the receipts made of them.

Everything is built from what is stored, so that the same record gives the same answer and receipt
again (docs/spec/05-records.md §5.8).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.digests import SALT_BYTES, leaf_data
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.ledger.errors import CorruptLog, MalformedRecord
from ragaudit.ledger.log.prepared import Prepared
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.records import MAX_ROWS
from ragaudit.ledger.messages.requests import Answer, Openings, Request
from ragaudit.prover.backends import Document
from ragaudit.prover.index import CommittedIndex, part
from ragaudit.prover.store import tables
from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

# Built once: they run in every answer.
_INSERT_ENTRY = Prepared(insert(tables.entry))
_INSERT_RECORD = Prepared(insert(tables.record))


@dataclass(frozen=True)
class RecordOpenings:
    """Everything about a logged record that is not in its body: enough to prove and answer again.

    Attributes:
        selected: T, the positions of the selected rows, rising.
        selection_blinding: 32 bytes, opens C_sel.
        salt_r: 32 bytes, hides the answer's digest.
    """

    request: Request
    openings: Openings
    selected: tuple[int, ...] = field(repr=False)
    selection_blinding: bytes = field(repr=False)
    salt_r: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return the openings in canonical JSON, as the database holds them."""
        return dumps(
            {
                "request": self.request.to_json(),
                **self.openings.to_json(),
                "selected": list(self.selected),
                "selection_blinding": self.selection_blinding.hex(),
                "salt_r": self.salt_r.hex(),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> "RecordOpenings":
        """Return the openings in ``data``, the strict inverse of `encode`.

        Args:
            data: as the database holds it.

        Raises:
            MalformedRecord: anything else.
        """
        # Strict also towards our own database: what was tampered with is not answered with.
        names = f"request {Openings.MEMBERS} selected selection_blinding salt_r"
        f = Fields(loads(data), names, MalformedRecord, "stored record")
        return cls(
            request=Request.from_json(f.raw("request")),
            openings=Openings.read(f),
            selected=f.integers("selected", (0, LIMITS.top_k), 0, MAX_ROWS - 1),
            selection_blinding=f.hex("selection_blinding", DIGEST_BYTES),
            salt_r=f.hex("salt_r", SALT_BYTES),
        )


@dataclass(frozen=True)
class LoggedRecord:
    """A durable record.

    Attributes:
        position: its place in the log, from 0.
        salt: of its leaf, 32 bytes.
        openings: what only the prover and the account know of it.
        issued: the receipt's time, Unix milliseconds.
    """

    position: int
    salt: bytes = field(repr=False)
    body: bytes
    openings: RecordOpenings = field(repr=False)
    issued: int


@dataclass(frozen=True)
class SelectedRow:
    """A selected row of the committed index, and the document that is served for it."""

    position: int
    document: Document


def receipt_file(
    record: LoggedRecord,
    index: CommittedIndex,
    rows: Sequence[SelectedRow],
    answer: Answer,
    *,
    origin: str,
    key: PrivateKey,
) -> ReceiptFile:
    """Return the answer with its receipt in two halves, the public one signed.

    The public half names request, answer and private half by a digest, so that none of them can
    be exchanged afterwards.

    Args:
        rows: that are served, with what opens them in the index.
        origin: of the window's log.
        key: the provider's.
    """
    stored = record.openings
    # Rows that were not selected stay hidden: only what T names is opened.
    private = PrivateReceipt(
        openings=stored.openings,
        selected=stored.selected,
        selection_blinding=stored.selection_blinding,
        salt_r=stored.salt_r,
        rows=tuple(_served(index, row) for row in rows),
    )
    # With the stored time of issue: a repeated answer has the same signature, bit for bit.
    public = PublicReceipt.issue(
        key,
        origin=origin,
        index=record.position,
        salt=record.salt,
        body=record.body,
        issued=record.issued,
        answer_digest=answer_digest(stored.request, answer, private),
    )
    return ReceiptFile(stored.request, answer, public, private)


def _served(index: CommittedIndex, row: SelectedRow) -> ServedRow:
    at = row.position
    values = index.rows[at].tolist()
    return ServedRow(
        position=at,
        id=row.document.id,
        content=row.document.content,
        salt=part(index.salts, at),
        vector=tuple(values[: index.dimension]),
        squares=tuple(values[index.dimension :]),
        blinding=index.blindings[at].tobytes(),
        commitment=part(index.commitments, at),
        path=index.tree.path(at),
    )


def append_entry(
    connection: Connection, log: LogStore, window: str, kind: str, salt: bytes, body: bytes
) -> int:
    """Append an entry to a window's log, and store what its leaf is made of.

    Args:
        connection: of a transaction that holds the window's append lock.
        salt: 32 bytes.

    Returns:
        The entry's position, from 0.
    """
    # In one transaction: of a leaf without its body nothing could ever be handed over.
    position = log.append(connection, leaf_data(salt, kind, body))
    _INSERT_ENTRY.change(
        connection, window=window, position=position, kind=kind, salt=salt, body=body
    )
    return position


def entries(connection: Connection, window: str, start: int = 0) -> Iterator[Entry]:
    """Return the entries from position ``start`` on, in order, without sketches.

    Args:
        start: position of the first one, from 0.
    """
    table = tables.entry
    rows = connection.execute(
        _entry_columns(window).where(table.c.position >= start).order_by(table.c.position)
    )
    for row in rows:
        yield Entry(*row)


def entry_at(connection: Connection, window: str, position: int) -> Entry:
    """Return the entry at a position, without a sketch.

    Args:
        position: in the log, from 0.

    Raises:
        CorruptLog: there is none, which the log's own rows contradict.
    """
    where = tables.entry.c.position == position
    row = connection.execute(_entry_columns(window).where(where)).one_or_none()
    if row is None:
        raise CorruptLog("an entry is missing", where=f"{window}: entry {position}")
    return Entry(*row)


def _entry_columns(window: str) -> Any:
    columns = tables.entry.c
    return select(columns.position, columns.kind, columns.salt, columns.body).where(
        columns.window == window
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
    """Store what opens the record at ``position``, in the transaction that appends its entry.

    Args:
        issued: the receipt's time, Unix milliseconds.
    """
    _INSERT_RECORD.change(
        connection,
        window=window,
        position=position,
        account=account,
        counter=counter,
        openings=openings.encode(),
        issued=issued,
    )


def record_at(connection: Connection, window: str, position: int) -> LoggedRecord | None:
    """Return the record at a position of the log, None if there is none.

    Args:
        position: in the log, from 0.
    """
    return _record(connection, window, tables.record.c.position == position)


def record_of(
    connection: Connection, window: str, account: str, counter: int
) -> LoggedRecord | None:
    """Return an account's record with a counter, None if it was not logged.

    Args:
        counter: c, from 0.
    """
    columns = tables.record.c
    return _record(connection, window, (columns.account == account) & (columns.counter == counter))


def records(connection: Connection, window: str) -> Iterator[LoggedRecord]:
    """Return all records of a window one by one, in the log's order.

    Args:
        connection: reads the prover's database; open until the last one was taken.
    """
    for row in connection.execute(_record_columns(window).order_by(tables.record.c.position)):
        yield _logged(row)


def _record(connection: Connection, window: str, condition: Any) -> LoggedRecord | None:
    row = connection.execute(_record_columns(window).where(condition)).one_or_none()
    return None if row is None else _logged(row)


def _record_columns(window: str) -> Any:
    record, entry = tables.record, tables.entry
    same = (record.c.window == entry.c.window) & (record.c.position == entry.c.position)
    return (
        select(record.c.position, entry.c.salt, entry.c.body, record.c.openings, record.c.issued)
        .join_from(record, entry, same)
        .where(record.c.window == window)
    )


def _logged(row: Row[Any]) -> LoggedRecord:
    openings = RecordOpenings.decode(row.openings)
    return LoggedRecord(row.position, row.salt, row.body, openings, row.issued)


def find_promise(connection: Connection, window: str, account: str, counter: int) -> Promise | None:
    """Return the promise for an account's counter, None if none was made.

    Args:
        counter: c, from 0.
    """
    message = connection.scalar(
        select(tables.promise.c.message).where(_promised(window, account, counter))
    )
    return None if message is None else Promise.parse(message)


def put_promise(
    connection: Connection, window: str, account: str, counter: int, promise: Promise
) -> None:
    """Store the promise for an account's counter, in the place of an earlier one.

    Args:
        connection: of the transaction in which the promise took its time.
        counter: c, from 0.
        promise: signed; it leaves only after this is durable.
    """
    # One for each counter: two that were both remembered could both be sent.
    connection.execute(delete(tables.promise).where(_promised(window, account, counter)))
    connection.execute(
        insert(tables.promise).values(
            window=window, account=account, counter=counter, message=promise.encode()
        )
    )


def note_nonce(
    connection: Connection, window: str, account: str, counter: int, nonce: bytes
) -> None:
    """Store the 32-byte nonce that an account revealed for its promise.

    Args:
        connection: of a transaction that commits before the noise is drawn.
        counter: of the promise.
        nonce: verified to be of the account's chain.
    """
    place = _promised(window, account, counter)
    connection.execute(update(tables.promise).where(place).values(nonce=nonce))


def is_revealed(connection: Connection, window: str, account: str, counter: int) -> bool:
    """Return whether the nonce of a promise was revealed to this prover.

    Args:
        counter: of the promise.
    """
    place = _promised(window, account, counter)
    return connection.scalar(select(tables.promise.c.nonce).where(place)) is not None


def _promised(window: str, account: str, counter: int) -> ColumnElement[bool]:
    table = tables.promise
    place = (table.c.account == account) & (table.c.counter == counter)
    return (table.c.window == window) & place
