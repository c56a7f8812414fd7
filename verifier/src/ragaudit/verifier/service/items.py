"""Items of a window: its evidence under the names of `ragaudit.verifier.evidence`, in chunks."""

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ragaudit.encoding.errors import InternalError
from ragaudit.verifier.service.database import Origin, Transaction, chunks, items
from sqlalchemy import ColumnElement, Connection, delete, insert, select

CHUNK_BYTES = 2**20

VERDICT = "verdict.json"  # not evidence: signed over it


@dataclass(frozen=True)
class Item:
    """What is known of a stored item; times in Unix milliseconds."""

    name: str
    size: int
    digest: bytes
    received: int


def put(transaction: Transaction, window: Origin, name: str, content: bytes | BinaryIO) -> Item:
    """Store an item that does not exist yet, received now.

    Args:
        content: bytes, or a file that is read from its start.
    """
    source = io.BytesIO(content) if isinstance(content, bytes) else content
    source.seek(0)
    digest, size, number = hashlib.sha256(), 0, 0
    while data := source.read(CHUNK_BYTES):
        row = {"window": window, "name": name, "number": number, "data": data}
        transaction.connection.execute(insert(chunks).values(row))
        digest.update(data)
        size, number = size + len(data), number + 1
    item = Item(name, size, digest.digest(), transaction.now)
    transaction.connection.execute(
        insert(items).values(
            window=window, name=name, size=size, digest=item.digest, received=item.received
        )
    )
    return item


def remove(transaction: Transaction, window: Origin, name: str) -> None:
    """Forget an item, if it exists."""
    for table in (chunks, items):
        condition = (table.c.window == window) & (table.c.name == name)
        transaction.connection.execute(delete(table).where(condition))


def find(connection: Connection, window: Origin, name: str) -> Item | None:
    """The item's description, or None if there is none."""
    found = list(_select(connection, window, items.c.name == name))
    return found[0] if found else None


def listed(connection: Connection, window: Origin, prefix: str = "") -> list[Item]:
    """The items whose names start with ``prefix``, in rising name order."""
    found = _select(connection, window, items.c.name.startswith(prefix, autoescape=True))
    return sorted(found, key=lambda item: item.name)


def stream(connection: Connection, window: Origin, name: str) -> Iterator[bytes]:
    """The chunks of an item, in order."""
    condition = (chunks.c.window == window) & (chunks.c.name == name)
    number = 0
    while True:
        query = select(chunks.c.data).where(condition & (chunks.c.number == number))
        data = connection.execute(query).scalar_one_or_none()
        if data is None:
            return
        yield bytes(data)
        number += 1


def content(connection: Connection, window: Origin, name: str) -> bytes | None:
    """The bytes of an item, or None if there is none.

    Raises:
        InternalError: what is stored is not what was received.
    """
    item = find(connection, window, name)
    if item is None:
        return None
    data = b"".join(stream(connection, window, name))
    if hashlib.sha256(data).digest() != item.digest:
        raise InternalError("a stored item has changed", where=f"{window}: {name}")
    return data


def _select(
    connection: Connection, window: Origin, condition: ColumnElement[bool]
) -> Iterator[Item]:
    columns = select(items.c.name, items.c.size, items.c.digest, items.c.received)
    query = columns.where(items.c.window == window, condition)
    for name, size, digest, received in connection.execute(query):
        yield Item(name, size, bytes(digest), received)
