"""A window's log entries, records and promises as stored, and the receipts made of them.

Everything is built from what is stored, so that the same record gives the same answer and receipt
again (docs/spec/05-records.md §5.8).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from ragaudit import core
from ragaudit.circuits.selection import scores
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import CorruptLog
from ragaudit.ledger.log.database import Prepared
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.kernel import EMBEDDED, Digest, Items, Message
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.private_receipts import (
    MAX_SELECTED,
    TiesOpening,
    UnservedRow,
    WithdrawnRow,
)
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    digest_of,
)
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import (
    Answer,
    Document,
    Openings,
    Position,
    Request,
    Salted,
)
from ragaudit.ledger.messages.ties import TiesStatement
from ragaudit.prover.index.committed import CommittedIndex, part
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.answered import Delivery, Place, SelectedRow, keep_ties, ties_of
from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update


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


def revealed_nonce(connection: Connection, window: str, account: str, counter: int) -> bytes | None:
    """Return the nonce that was revealed to this prover for a promise, None if there is none.

    Args:
        counter: of the promise.
    """
    place = _promised(window, account, counter)
    nonce = connection.scalar(select(tables.promise.c.nonce).where(place))
    return None if nonce is None else bytes(nonce)


def is_revealed(connection: Connection, window: str, account: str, counter: int) -> bool:
    """Return whether the nonce of a promise was revealed to this prover.

    Args:
        counter: of the promise.
    """
    return revealed_nonce(connection, window, account, counter) is not None


def _promised(window: str, account: str, counter: int) -> ColumnElement[bool]:
    table = tables.promise
    place = (table.c.account == account) & (table.c.counter == counter)
    return (table.c.window == window) & place


# Built once: they run in every answer.
_INSERT_ENTRY = Prepared(insert(tables.entry))
_INSERT_RECORD = Prepared(insert(tables.record))

_ROWS = 1000  # read at a time: a driver may hold all rows of a query in memory


class RecordOpenings(Message, where="stored record"):
    """Everything about a logged record that is not in its body: enough to prove and answer again.

    Attributes:
        selected: T, the positions of the selected rows, rising; ties may make more than K of them.
        selection_blinding: 32 bytes, opens C_sel.
        salt_r: 32 bytes, hides the answer's digest.
    """

    request: Request
    openings: Annotated[Openings, EMBEDDED]
    selected: Annotated[tuple[Position, ...], Items(0, MAX_SELECTED)] = field(repr=False)
    selection_blinding: Digest = field(repr=False)
    salt_r: Digest = field(repr=False)


class LoggedSketch(NamedTuple):
    """What a record's handover shows beside its entry.

    Attributes:
        position: its place in the log, from 0.
        body: of its entry.
        salt_s: 32 bytes.
        sketch: of the query.
    """

    position: int
    body: bytes
    salt_s: bytes
    sketch: bytes


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

    @cached_property
    def record(self) -> Record:
        """The record of the body."""
        return Record.parse(self.body)


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


def entries(
    connection: Connection, window: str, start: int = 0, end: int | None = None
) -> Iterator[Entry]:
    """Return the entries from position ``start`` on, in order, without sketches.

    Args:
        start: position of the first one, from 0.
        end: position before which to end; None for all.
    """
    position = tables.entry.c.position
    query = _between(_entry_columns(window), position, start, end).order_by(position)
    for row in connection.execute(query.execution_options(yield_per=_ROWS)):
        yield Entry(*row)


def _between(query: Any, position: Any, start: int, end: int | None) -> Any:
    query = query.where(position >= start)
    return query if end is None else query.where(position < end)


def stored_leaves(connection: Connection, window: str, start: int, end: int) -> Iterator[bytes]:
    """Yield the leaf data of entries start..end-1, made again from their salts and bodies.

    Args:
        start, end: positions from 0, the end excluded.
    """
    table = tables.entry
    between = (table.c.position >= start) & (table.c.position < end)
    query = select(table.c.salt, table.c.kind, table.c.body).where(
        table.c.window == window, between
    )
    for salt, kind, body in connection.execute(query.order_by(table.c.position)):
        yield leaf_data(salt, kind, body)


def entries_of(connection: Connection, window: str, kind: str) -> list[Entry]:
    """Return the entries of one kind, in order, without sketches.

    Args:
        kind: one that a log has few of.
    """
    table = tables.entry
    query = _entry_columns(window).where(table.c.kind == kind).order_by(table.c.position)
    return [Entry(*row) for row in connection.execute(query)]


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
    openings: bytes,
    issued: int,
) -> None:
    """Store what opens the record at ``position``, in the transaction that appends its entry.

    Args:
        openings: encoded `RecordOpenings`.
        issued: the receipt's time, Unix milliseconds.
    """
    _INSERT_RECORD.change(
        connection,
        window=window,
        position=position,
        account=account,
        counter=counter,
        openings=openings,
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


def records(
    connection: Connection, window: str, start: int = 0, end: int | None = None
) -> Iterator[LoggedRecord]:
    """Return the records of a window one by one, in the log's order.

    Args:
        connection: reads the prover's database; open until the last one was taken.
        start: position in the log of the first one, from 0.
        end: position before which to end; None for all.
    """
    position = tables.record.c.position
    query = _between(_record_columns(window), position, start, end).order_by(position)
    for row in connection.execute(query.execution_options(yield_per=_ROWS)):
        yield _logged(row)


def count_records(connection: Connection, window: str) -> int:
    """Return the number of a window's records."""
    query = select(func.count()).where(tables.record.c.window == window)
    return int(connection.execute(query).scalar_one())


def sketches(
    connection: Connection, window: str, start: int = 0, end: int | None = None
) -> Iterator[LoggedSketch]:
    """Return the sketches of a window's records one by one, as `records` returns all of them.

    Args:
        connection, start, end: as of `records`.
    """
    position = tables.record.c.position
    query = _between(_record_columns(window), position, start, end).order_by(position)
    for row in connection.execute(query.execution_options(yield_per=_ROWS)):
        # The other openings are not parsed: that takes five times as long.
        value = loads(row.openings)
        salt, sketch = (Salted.FORMS[name].read(value.get(name)) for name in ("salt_s", "sketch"))
        yield LoggedSketch(row.position, row.body, salt, sketch)


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
    openings = RecordOpenings.parse(row.openings)
    return LoggedRecord(row.position, row.salt, row.body, openings, row.issued)


def receipt_file(
    record: LoggedRecord,
    index: CommittedIndex,
    delivery: Delivery,
    answer: Answer,
    *,
    policy: Policy,
    key: PrivateKey,
    ties: bytes | None = None,
) -> ReceiptFile:
    """Return the answer with its receipt in two halves, the public one signed.

    The public part names request, answer and private part by a digest, so that none of them can
    be exchanged afterwards.

    Args:
        index: the version that the record names.
        delivery: the rows that are served, and those that are withdrawn.
        policy: of the window.
        key: the provider's.
        ties: the proof of the ties opening, see `ties_that_leave`; None where there is none.
    """
    stored = record.openings
    # Rows that were not selected stay hidden: only what T names is opened.
    private = PrivateReceipt(
        openings=stored.openings,
        selected=stored.selected,
        selection_blinding=stored.selection_blinding,
        salt_r=stored.salt_r,
        rows=tuple(_served(index, row, keyed=policy.noised) for row in delivery.rows),
        withdrawn=_withdrawn(index, record, delivery, scored=ties is not None),
        ties=None if ties is None else TiesOpening(_unserved(index, record, delivery), ties),
        # With noise, whoever held it could test which ids the index has.
        document_secret=None if policy.noised else index.document_secret or None,
    )
    halves = (stored.request.encode(), answer.encode(), private.encode())
    # With the stored time of issue: a repeated answer has the same signature, bit for bit.
    public = PublicReceipt(
        origin=policy.origin,
        index=record.position,
        salt=record.salt,
        body=record.body,
        issued=record.issued,
        answer_digest=digest_of(halves, private.salt_r),
    ).signed(key)
    return ReceiptFile.of_encoded(stored.request, answer, public, private, halves)


def answer_of(
    policy: Policy, index: CommittedIndex, record: LoggedRecord, rows: Sequence[SelectedRow]
) -> Answer:
    """Return the answer: documents in its order, with scores where there is no noise.

    Args:
        policy: of the window.
        index: the version that the record names.
        rows: that are served, in the order of the answer.
    """
    positions = [row.position for row in rows]
    exact = {} if policy.noised else scores_of(index, record, positions)
    return Answer(
        tuple(
            Document(
                position=row.position,
                id=row.document.id,
                content=row.document.content,
                columns=index.columns_of(row.position),
                attributes=row.document.attributes,
                score=exact.get(row.position),
            )
            for row in rows
        )
    )


def prove_ties(index: CommittedIndex, record: LoggedRecord, delivery: Delivery) -> bytes:
    """Return a proof that the answer holds the first rows of T (spec 4.6.10).

    It is needed where T has more rows than were asked for. Two proofs of one answer differ: the
    one that left is stored.

    Args:
        index: the version that the record names.
        delivery: the rows that are served, and those that are withdrawn.
    """
    logged, stored = record.record, record.openings
    served = [row.position for row in delivery.rows]
    unserved = set(stored.selected).difference(served)
    statement = TiesStatement.of(
        logged,
        body=record.body,
        index_root=index.root,
        query=stored.openings.embedding,
        selected=stored.selected,
        served=scores_of(index, record, served),
        withdrawn=scores_of(index, record, delivery.withdrawn),
        commitments={position: part(index.commitments, position) for position in unserved},
        squared_norm=index.norm_bound**2,
    )
    return core.prove_ties(statement, index.rows, index.blindings)


def ties_that_leave(
    store: Store,
    policy: Policy,
    index: CommittedIndex,
    record: LoggedRecord,
    delivery: Delivery,
) -> bytes | None:
    """Return the proof of a record's ties opening, None where none is needed.

    It is stored before it leaves, so that a retry gets the same receipt, byte for byte.

    Args:
        policy: of the window, open or not.
        index: the version that the record names.
        delivery: what leaves.
    """
    if policy.noised or len(record.openings.selected) <= record.record.top_k:
        return None
    place = Place(policy.window, record.position)
    with store.read() as connection:
        stored = ties_of(connection, place)
    if stored is not None:
        return stored
    # Two at once may both prove; the one that is stored first leaves.
    made = prove_ties(index, record, delivery)
    with store.write() as connection:
        return keep_ties(connection, place, made)


def scores_of(
    index: CommittedIndex, record: LoggedRecord, positions: Sequence[int]
) -> dict[int, int]:
    """Return the exact scores of some rows, by position.

    Args:
        index: the version that the record names.
        positions: of rows.
    """
    embedding = np.array(record.openings.openings.embedding, dtype=np.int16)
    rows = index.vectors[np.array(positions, dtype=np.int64)]
    return dict(zip(positions, scores(rows, embedding).tolist(), strict=True))


def _withdrawn(
    index: CommittedIndex, record: LoggedRecord, delivery: Delivery, *, scored: bool
) -> tuple[WithdrawnRow, ...]:
    exact = scores_of(index, record, delivery.withdrawn) if scored else {}
    return tuple(
        WithdrawnRow(position, index.ids[position], exact.get(position))
        for position in delivery.withdrawn
    )


def _unserved(
    index: CommittedIndex, record: LoggedRecord, delivery: Delivery
) -> tuple[UnservedRow, ...]:
    served = {row.position for row in delivery.rows}
    return tuple(
        UnservedRow(
            position=at,
            commitment=part(index.commitments, at),
            columns=index.columns_of(at),
            row_digest=part(index.row_digests, at),
            path=index.tree.path(at),
            id_key=index.id_key_of(at),
        )
        for at in record.openings.selected
        if at not in served
    )


def _served(index: CommittedIndex, row: SelectedRow, *, keyed: bool) -> ServedRow:
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
        columns=index.columns_of(at),
        attributes=row.document.attributes,
        id_key=index.id_key_of(at) if keyed else None,
    )
