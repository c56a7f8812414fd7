"""What left in answers: the same again for a retry, and which documents an account was given.

Stored in the transaction that logs the record. The documents themselves are kept, too: a document
may change in its store after it was given out, and the stored answer must not.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import Conflict, MalformedRequest
from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.database import Prepared
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.records import MAX_ROWS
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.store import tables
from sqlalchemy import Connection, bindparam, delete, insert, select, update

MAX_KEY_CHARACTERS = 255

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
    def of(cls, request: Request, idempotency_key: str | None = None) -> "Asked":
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


_ANSWERED = tables.answered.c
_KEYED = tables.idempotency.c
# Built once: they run in every answer.
_IDENTICAL = (
    select(_ANSWERED.window, _ANSWERED.position, _ANSWERED.issued)
    .where(
        _ANSWERED.account == bindparam("account"),
        _ANSWERED.request == bindparam("request"),
        _ANSWERED.issued >= bindparam("since"),
    )
    .order_by(_ANSWERED.issued.desc())
)
_BY_REQUEST = Prepared(_IDENTICAL.where(_ANSWERED.window == bindparam("of_window")).limit(1))
_BY_REQUEST_ELSEWHERE = Prepared(_IDENTICAL.where(_ANSWERED.window != bindparam("of_window")))
_BY_KEY = Prepared(
    select(_KEYED.window, _KEYED.position, _ANSWERED.request)
    .join_from(
        tables.idempotency,
        tables.answered,
        (_KEYED.window == _ANSWERED.window) & (_KEYED.position == _ANSWERED.position),
    )
    .where(_KEYED.account == bindparam("account"), _KEYED.key == bindparam("key"))
)
_INSERT_ANSWERED = Prepared(insert(tables.answered))
_INSERT_KEY = Prepared(insert(tables.idempotency))
_INSERT_SERVED = Prepared(insert(tables.served))
_DELETE_SERVED = Prepared(
    delete(tables.served).where(
        tables.served.c.window == bindparam("window"),
        tables.served.c.account == bindparam("account"),
        tables.served.c.id == bindparam("id"),
    )
)


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


def note_key(connection: Connection, account: str, asked: Asked, place: Place) -> None:
    """Store that an idempotency key, if there is one, names a record that was answered."""
    if asked.key is not None:
        _INSERT_KEY.change(
            connection,
            account=account,
            key=asked.key,
            window=place.window,
            position=place.position,
        )


def note_answered(
    connection: Connection,
    place: Place,
    *,
    account: str,
    asked: Asked,
    issued: int,
    delivery: Delivery,
) -> None:
    """Store what leaves for a record, in the transaction that logs it.

    Args:
        issued: the receipt's time, Unix milliseconds.
    """
    _INSERT_ANSWERED.change(
        connection,
        window=place.window,
        position=place.position,
        account=account,
        request=asked.request,
        issued=issued,
        delivery=delivery.encode(),
        ties=None,
    )
    note_key(connection, account, asked, place)


def delivery_of(connection: Connection, place: Place) -> Delivery | None:
    """Return what left for a record, None if that is not stored."""
    query = select(_ANSWERED.delivery).where(
        _ANSWERED.window == place.window, _ANSWERED.position == place.position
    )
    data = connection.scalar(query)
    return None if data is None else Delivery.decode(data)


def keep_ties(connection: Connection, place: Place, proof: bytes) -> bytes:
    """Return the proof of a record's ties opening that leaves: the first one that was stored.

    Args:
        connection: of a transaction that writes.
        proof: that is stored if there is none yet.
    """
    here = (_ANSWERED.window == place.window) & (_ANSWERED.position == place.position)
    # Locked: two processes that both find none would give out two proofs.
    first: bytes | None = connection.scalar(select(_ANSWERED.ties).where(here).with_for_update())
    if first is not None:
        return first
    connection.execute(update(tables.answered).where(here).values(ties=proof))
    return proof


def ties_of(connection: Connection, place: Place) -> bytes | None:
    """Return the proof of a record's ties opening that left, None if none did."""
    here = (_ANSWERED.window == place.window) & (_ANSWERED.position == place.position)
    proof: bytes | None = connection.scalar(select(_ANSWERED.ties).where(here))
    return proof


def account_of(connection: Connection, place: Place) -> str | None:
    """Return the account whose record stands at a place, None if there is no record."""
    columns = tables.record.c
    query = select(columns.account).where(
        columns.window == place.window, columns.position == place.position
    )
    name: str | None = connection.scalar(query)
    return name


def note_served(
    connection: Connection, window: str, account: str, version: int, rows: Sequence[SelectedRow]
) -> None:
    """Store which documents an account is given, in the place of what it was given before.

    Args:
        connection: of the transaction that logs the record.
        version: of the index that they were selected from.
    """
    keys = [{"window": window, "account": account, "id": row.document.id} for row in rows]
    _DELETE_SERVED.change_each(connection, keys)
    _INSERT_SERVED.change_each(
        connection,
        [
            {**key, "position": row.position, "version": version}
            for key, row in zip(keys, rows, strict=True)
        ],
    )


def served_rows(
    connection: Connection, window: str, account: str, ids: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Return position and version of those of ``ids`` that an account was given, by id.

    Args:
        ids: at most some hundreds.
    """
    columns = tables.served.c
    query: Any = select(columns.id, columns.position, columns.version).where(
        columns.window == window, columns.account == account, columns.id.in_(ids)
    )
    return {row.id: (row.position, row.version) for row in connection.execute(query)}


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
