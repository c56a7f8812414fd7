"""A window's log entries, promises, records and what left for them, as stored.

The same record gives the same answer and receipt again (docs/spec/05-records.md §5.8). What left is
stored in the transaction that logs the record, with the documents: one may change in its store
after it was given out, and the stored answer must not.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import Conflict, MalformedRequest
from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.errors import CorruptLog, MalformedRecord
from ragaudit.ledger.log.database import Prepared
from ragaudit.ledger.messages.entries import MAX_ROWS, Record, parse_body
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.kernel import EMBEDDED, Digest, Items, Message
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import (
    MAX_SELECTED,
    GenerationRequest,
)
from ragaudit.ledger.messages.requests import (
    Openings,
    Position,
    Request,
    Salted,
)
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

if TYPE_CHECKING:
    from ragaudit.prover.window.log_transaction import LogTransaction

MAX_KEY_CHARACTERS = 255
_ROWS = 1000  # read at a time: a driver may hold all rows of a query in memory

_ROW = "position id content attributes"


@dataclass(frozen=True)
class SelectedRow:
    """A selected row of the committed index, and the document that is served for it."""

    position: int
    document: Document = field(repr=False)


@dataclass(frozen=True)
class Delivery:
    """What of a selection is given out, and what is held back.

    Attributes:
        rows: served, in the order of the answer.
        withdrawn: positions that would be served, rising, whose document is gone or changed.
    """

    rows: tuple[SelectedRow, ...]
    withdrawn: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the delivery as a JSON object."""
        return {
            "rows": [
                {
                    "position": row.position,
                    "id": row.document.id,
                    "content": row.document.content,
                    "attributes": row.document.attributes,
                }
                for row in self.rows
            ],
            "withdrawn": list(self.withdrawn),
        }

    def encode(self) -> bytes:
        """Return the delivery in canonical JSON, as the database holds it."""
        return dumps(self.to_json())

    @classmethod
    def decode(cls, data: bytes) -> "Delivery":
        """Return the delivery in ``data``, the strict inverse of `encode`.

        Args:
            data: as the database holds it.

        Raises:
            MalformedRecord, MalformedDocument: anything else.
        """
        f = Fields(loads(data), "rows withdrawn", MalformedRecord, "stored answer")
        rows = (
            Fields(item, _ROW, MalformedRecord, where)
            for where, item in f.objects("rows", 0, LIMITS.top_k)
        )
        return cls(
            rows=tuple(
                SelectedRow(
                    row.integer("position", 0, MAX_ROWS - 1),
                    Document(row.raw("id"), row.raw("content"), row.raw("attributes")),
                )
                for row in rows
            ),
            withdrawn=f.integers("withdrawn", (0, LIMITS.top_k), 0, MAX_ROWS - 1),
        )


@dataclass(frozen=True)
class Asked:
    """What makes two requests of an account the same one.

    Attributes:
        request: SHA-256 of its canonical bytes.
        key: SHA-256 of the idempotency key that came with it, None without one.
    """

    request: bytes
    key: bytes | None = None

    @classmethod
    def of(
        cls, request: Request | GenerationRequest, idempotency_key: str | None = None
    ) -> "Asked":
        """Return the digests of a request and of its key.

        Args:
            idempotency_key: of the caller's choice, 1..255 characters.

        Raises:
            MalformedRequest: a key of another length, or not Unicode.
        """
        digest = hashlib.sha256(request.encode()).digest()
        if idempotency_key is None:
            return cls(digest)
        return cls(digest, hashlib.sha256(_checked(idempotency_key)).digest())


@dataclass(frozen=True)
class Place:
    """Where a record stands: its window and its position in that window's log."""

    window: str
    position: int


_ENTRY = tables.entry.c
_KEYED = tables.idempotency.c
# Built once: they run in every answer.
_IDENTICAL = (
    select(_ENTRY.window, _ENTRY.position, _ENTRY.issued)
    .where(
        _ENTRY.account == bindparam("account"),
        _ENTRY.request == bindparam("request"),
        _ENTRY.issued >= bindparam("since"),
    )
    .order_by(_ENTRY.issued.desc())
)
_BY_REQUEST = Prepared(_IDENTICAL.where(_ENTRY.window == bindparam("of_window")).limit(1))
_BY_REQUEST_ELSEWHERE = Prepared(_IDENTICAL.where(_ENTRY.window != bindparam("of_window")))
_BY_KEY = Prepared(
    select(_KEYED.window, _KEYED.position, _ENTRY.request)
    .join_from(
        tables.idempotency,
        tables.entry,
        (_KEYED.window == _ENTRY.window) & (_KEYED.position == _ENTRY.position),
    )
    .where(_KEYED.account == bindparam("account"), _KEYED.key == bindparam("key"))
)
_LEAVES = Prepared(
    select(_ENTRY.salt, _ENTRY.kind, _ENTRY.body)
    .where(
        _ENTRY.window == bindparam("of"),
        _ENTRY.position.between(bindparam("first"), bindparam("last")),
    )
    .order_by(_ENTRY.position)
)
INSERT_KEY = Prepared(insert(tables.idempotency))
"""Stores that an idempotency key names a record that was answered."""


def find_keyed(connection: Connection, account: str, asked: Asked) -> Place | None:
    """Return the record that an idempotency key of an account names, None if there is none.

    Raises:
        Conflict: the key came with another request.
    """
    if asked.key is None:
        return None
    row = _BY_KEY.row(connection, account=account, key=asked.key)
    if row is None:
        return None
    if row[2] != asked.request:
        # Neither request's text: the key may have been sent by somebody who guesses.
        raise Conflict(
            "the idempotency key was used for another request",
            where="idempotency key",
            expected="a key for each request",
        )
    return Place(row[0], row[1])


def find_identical(
    connection: Connection, window: str, account: str, asked: Asked, since: int
) -> Place | None:
    """Return the record of an account's latest identical request in a window, None without one.

    Args:
        since: Unix milliseconds from which it must have been answered.
    """
    rows = _BY_REQUEST.rows(
        connection, of_window=window, account=account, request=asked.request, since=since
    )
    return Place(*rows[0][:2]) if rows else None


Repeated = tuple[str, str, bytes, int]
"""A window, an account, the digest of its request, and since when, see `find_identical`."""


def find_identical_each(store: Store, asked: Sequence[Repeated]) -> dict[Repeated, Place]:
    """Return the records that `find_identical` returns of several requests, in one search."""
    # Of few widths, the last one repeated: each is a statement of its own to the database.
    width = 1 << (len(asked) - 1).bit_length()
    named: dict[str, Any] = {"since": min(since for *_, since in asked)}
    for number in range(width):
        _, account, request, _ = asked[min(number, len(asked) - 1)]
        named |= {f"account{number}": account, f"request{number}": request}
    with store.look() as connection:
        rows = _identical(width).rows(connection, **named)
    # The latest is the last of its window.
    found = {(window, *of): (position, issued) for window, *of, position, issued in rows}
    places = {each: found.get(each[:3]) for each in asked}
    return {
        each: Place(each[0], place[0])
        for each, place in places.items()
        if place is not None and place[1] >= each[3]
    }


@cache
def _identical(width: int) -> Prepared:
    """Return the query for the identical requests of so many accounts, in every window."""
    pairs = [
        (_ENTRY.account == bindparam(f"account{number}"))
        & (_ENTRY.request == bindparam(f"request{number}"))
        for number in range(width)
    ]
    columns = (_ENTRY.window, _ENTRY.account, _ENTRY.request, _ENTRY.position, _ENTRY.issued)
    # Not by the window: each pair is to be found by its own index.
    return Prepared(
        select(*columns)
        .where(or_(*pairs), _ENTRY.issued >= bindparam("since"))
        .order_by(_ENTRY.issued)
    )


def find_identical_elsewhere(
    connection: Connection, window: str, account: str, asked: Asked, since: int
) -> list[tuple[Place, int]]:
    """Return an account's identical requests in other windows: their records and times of issue.

    Args:
        window: whose records are left out; empty for none.
        since: Unix milliseconds from which they must have been answered; the latest is first.
    """
    rows = _BY_REQUEST_ELSEWHERE.rows(
        connection, of_window=window, account=account, request=asked.request, since=since
    )
    return [(Place(place, position), issued) for place, position, issued in rows]


def key_row(account: str, key: bytes, place: Place) -> dict[str, Any]:
    """Return the row of an idempotency key that names a record, see `INSERT_KEY`.

    Args:
        key: SHA-256 of what the account sent.
    """
    return {"account": account, "key": key, "window": place.window, "position": place.position}


def note_key(connection: Connection, account: str, asked: Asked, place: Place) -> None:
    """Store that an idempotency key, if there is one, names a record that was answered."""
    if asked.key is not None:
        INSERT_KEY.change(connection, **key_row(account, asked.key, place))


def note_delivery(
    connection: Connection, place: Place, account: str, asked: Asked, delivery: Delivery
) -> None:
    """Store what leaves for a record of which nothing is stored yet."""
    here = (_ENTRY.window == place.window) & (_ENTRY.position == place.position)
    given = {"request": asked.request, "delivery": delivery.encode()}
    connection.execute(update(tables.entry).where(here).values(given))
    note_key(connection, account, asked, place)


def delivery_of(connection: Connection, place: Place) -> Delivery | None:
    """Return what left for a record, None if that is not stored."""
    query = select(_ENTRY.delivery).where(
        _ENTRY.window == place.window, _ENTRY.position == place.position
    )
    data = connection.scalar(query)
    return None if data is None else Delivery.decode(data)


def keep_ties(connection: Connection, place: Place, proof: bytes) -> bytes:
    """Return the proof of a record's ties opening that leaves: the first one that was stored.

    Args:
        connection: of a transaction that writes.
        proof: that is stored if there is none yet.
    """
    here = (_ENTRY.window == place.window) & (_ENTRY.position == place.position)
    # Locked: two processes that both find none would give out two proofs.
    first: bytes | None = connection.scalar(select(_ENTRY.ties).where(here).with_for_update())
    if first is not None:
        return first
    connection.execute(update(tables.entry).where(here).values(ties=proof))
    return proof


def ties_of(connection: Connection, place: Place) -> bytes | None:
    """Return the proof of a record's ties opening that left, None if none did."""
    here = (_ENTRY.window == place.window) & (_ENTRY.position == place.position)
    proof: bytes | None = connection.scalar(select(_ENTRY.ties).where(here))
    return proof


def account_of(connection: Connection, place: Place) -> str | None:
    """Return the account whose record stands at a place, None if there is no record."""
    query = select(_ENTRY.account).where(
        _ENTRY.window == place.window, _ENTRY.position == place.position
    )
    name: str | None = connection.scalar(query)
    return name


def served_rows(
    connection: Connection, window: str, account: str, ids: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Return position and version of those of ``ids`` that an account was given last, by id.

    Args:
        ids: at most some hundreds.
    """
    query = (
        select(_ENTRY.body, _ENTRY.delivery)
        .where(_ENTRY.window == window, _ENTRY.account == account, _ENTRY.delivery.is_not(None))
        .order_by(_ENTRY.position.desc())
    )
    # Most rows are left out by their bytes: to parse what an account was ever given takes long.
    left, found = {name: b'"id":' + dumps(name) for name in ids}, dict[str, tuple[int, int]]()
    for body, delivery in connection.execute(query.execution_options(yield_per=_ROWS)):
        if not left:
            break
        if not any(each in delivery for each in left.values()):
            continue
        version = Record.parse(body).version
        for row in Delivery.decode(delivery).rows:
            if left.pop(row.document.id, None) is not None:
                found[row.document.id] = (row.position, version)
    return found


def _checked(key: str) -> bytes:
    try:
        data = key.encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedRequest("not Unicode", where="idempotency key") from None
    if not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise MalformedRequest(
            "of another length",
            where="idempotency key",
            expected=f"1..{MAX_KEY_CHARACTERS} characters",
        )
    return data


_PROMISED = tables.promise.c
_AT = (
    (_PROMISED.window == bindparam("of_window"))
    & (_PROMISED.account == bindparam("of_account"))
    & (_PROMISED.counter == bindparam("of_counter"))
)
_PROMISE = Prepared(select(_PROMISED.message, _PROMISED.nonce).where(_AT))
_DELETE_PROMISE = Prepared(delete(tables.promise).where(_AT))
_NOTE_NONCE = Prepared(update(tables.promise).where(_AT).values(nonce=bindparam("revealed")))
_INSERT_PROMISE = Prepared(insert(tables.promise))


def find_promise(connection: Connection, window: str, account: str, counter: int) -> Promise | None:
    """Return the promise for an account's counter, None if none was made.

    Args:
        counter: c, from 0.
    """
    row = _PROMISE.row(connection, **_at(window, account, counter))
    return None if row is None else Promise.parse(row[0])


def put_promise(
    transaction: "LogTransaction",
    window: str,
    account: str,
    counter: int,
    promise: Promise,
    *,
    superseded: bool = False,
) -> None:
    """Store the promise for an account's counter.

    Args:
        transaction: in which the promise took its time.
        counter: c, from 0.
        promise: signed; it leaves only after this is durable.
        superseded: whether there is an earlier one, whose place it takes.
    """
    place = {"window": window, "account": account, "counter": counter}
    if superseded:
        # At once, before anything new is written. One for each counter: two that were both
        # remembered could both be sent.
        _DELETE_PROMISE.change(transaction.connection, **_at(window, account, counter))
    transaction.later(_INSERT_PROMISE, **place, message=promise.encode(), nonce=None)


def note_nonce(
    transaction: "LogTransaction", window: str, account: str, counter: int, nonce: bytes
) -> None:
    """Store the 32-byte nonce that an account revealed for its promise.

    Args:
        transaction: that commits before the noise is drawn.
        counter: of the promise.
        nonce: verified to be of the account's chain.
    """
    transaction.later(_NOTE_NONCE, **_at(window, account, counter), revealed=nonce)


def revealed_nonce(connection: Connection, window: str, account: str, counter: int) -> bytes | None:
    """Return the nonce that was revealed to this prover for a promise, None if there is none.

    Args:
        counter: of the promise.
    """
    row = _PROMISE.row(connection, **_at(window, account, counter))
    return None if row is None else row[1]


def is_revealed(connection: Connection, window: str, account: str, counter: int) -> bool:
    """Return whether the nonce of a promise was revealed to this prover.

    Args:
        counter: of the promise.
    """
    return revealed_nonce(connection, window, account, counter) is not None


def _at(window: str, account: str, counter: int) -> dict[str, Any]:
    return {"of_window": window, "of_account": account, "of_counter": counter}


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


def entries(
    connection: Connection, window: str, start: int = 0, end: int | None = None
) -> Iterator[Entry]:
    """Return the entries from position ``start`` on, in order, without sketches.

    Args:
        start: position of the first one, from 0.
        end: position before which to end; None for all.
    """
    query = _between(_entry_columns(window), start, end).order_by(_ENTRY.position)
    for row in connection.execute(query.execution_options(yield_per=_ROWS)):
        yield Entry(*row)


def _between(query: Any, start: int, end: int | None) -> Any:
    query = query.where(_ENTRY.position >= start)
    return query if end is None else query.where(_ENTRY.position < end)


def stored_leaves(connection: Connection, window: str, start: int, end: int) -> Iterator[bytes]:
    """Yield the leaf data of entries start..end-1, made again from their salts and bodies.

    Args:
        start, end: positions from 0, the end excluded.
    """
    for first in range(start, end, _ROWS):
        last = min(first + _ROWS, end) - 1
        for salt, kind, body in _LEAVES.rows(connection, of=window, first=first, last=last):
            yield leaf_data(salt, kind, body)


def latest_time(connection: Connection, window: str, start: int) -> int:
    """Return the latest time that accounts have, or an entry of no account from a position on.

    Args:
        start: the position, from 0.

    Returns:
        Unix milliseconds, 0 if there is none.
    """
    registration, entry = tables.registration.c, tables.entry.c
    of_accounts = select(func.max(registration.last_time)).where(registration.window == window)
    found = [connection.scalar(of_accounts) or 0]
    others = select(entry.kind, entry.body).where(
        entry.window == window, entry.position >= start, entry.account.is_(None)
    )
    for kind, body in connection.execute(others):
        # A damaged body is named where its leaf is made again.
        with suppress(MalformedRecord):
            found.append(getattr(parse_body(kind, body), "time", 0))
    return max(found)


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


def record_at(connection: Connection, window: str, position: int) -> LoggedRecord | None:
    """Return the record at a position of the log, None if there is none.

    Args:
        position: in the log, from 0.
    """
    return _record(connection, window, _ENTRY.position == position)


def record_of(
    connection: Connection, window: str, account: str, counter: int
) -> LoggedRecord | None:
    """Return an account's record with a counter, None if it was not logged.

    Args:
        counter: c, from 0.
    """
    return _record(connection, window, (_ENTRY.account == account) & (_ENTRY.counter == counter))


def records(
    connection: Connection, window: str, start: int = 0, end: int | None = None
) -> Iterator[LoggedRecord]:
    """Return the records of a window one by one, in the log's order.

    Args:
        connection: reads the prover's database; open until the last one was taken.
        start: position in the log of the first one, from 0.
        end: position before which to end; None for all.
    """
    query = _between(_record_columns(window), start, end).order_by(_ENTRY.position)
    for row in connection.execute(query.execution_options(yield_per=_ROWS)):
        yield _logged(row)


def count_records(connection: Connection, window: str) -> int:
    """Return the number of a window's records."""
    query = select(func.count()).where(_ENTRY.window == window, _ENTRY.account.is_not(None))
    return int(connection.execute(query).scalar_one())


def sketches(
    connection: Connection, window: str, start: int = 0, end: int | None = None
) -> Iterator[LoggedSketch]:
    """Return the sketches of a window's records one by one, as `records` returns all of them.

    Args:
        connection, start, end: as of `records`.
    """
    query = _between(_record_columns(window), start, end).order_by(_ENTRY.position)
    for row in connection.execute(query.execution_options(yield_per=_ROWS)):
        # The other openings are not parsed: that takes five times as long.
        value = loads(row.openings)
        salt, sketch = (Salted.FORMS[name].read(value.get(name)) for name in ("salt_s", "sketch"))
        yield LoggedSketch(row.position, row.body, salt, sketch)


def _record(connection: Connection, window: str, condition: Any) -> LoggedRecord | None:
    row = connection.execute(_record_columns(window).where(condition)).one_or_none()
    return None if row is None else _logged(row)


def _record_columns(window: str) -> Any:
    return select(_ENTRY.position, _ENTRY.salt, _ENTRY.body, _ENTRY.openings, _ENTRY.issued).where(
        _ENTRY.window == window, _ENTRY.kind == Record.KIND
    )


def _logged(row: Row[Any]) -> LoggedRecord:
    openings = RecordOpenings.parse(row.openings)
    return LoggedRecord(row.position, row.salt, row.body, openings, row.issued)
