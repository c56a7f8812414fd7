"""The registry of providers whose keys the auditor has pinned."""

from dataclasses import dataclass

from ragaudit.encoding.errors import Conflict, NotFound
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.identifiers import check_provider
from ragaudit.verifier.service.database import Database, providers
from sqlalchemy import Connection, delete, insert, select


@dataclass(frozen=True)
class Pinned:
    """A provider, its key, and when it was pinned (Unix milliseconds)."""

    name: str
    key: PublicKey
    added: int


def add(database: Database, name: str, key: PublicKey) -> None:
    """Pin ``key`` for ``name``; pinning the same key again changes nothing.

    Raises:
        MalformedRecord: not a provider's name.
        Conflict: another key is pinned for the name, or the key for another name.
    """
    check_provider(name)
    with database.write() as transaction:
        connection = transaction.connection
        for pinned in listed(connection):
            if (pinned.name, pinned.key) == (name, key):
                return
            if pinned.name == name:
                raise Conflict("another key is pinned", where=name, expected="remove it first")
            if pinned.key == key:
                raise Conflict("the key is pinned for another provider", where=pinned.name)
        connection.execute(insert(providers).values(name=name, key=key.raw, added=transaction.now))


def remove(database: Database, name: str) -> None:
    """Forget the provider; its windows stay.

    Raises:
        NotFound: no such provider.
    """
    with database.write() as transaction:
        gone = transaction.connection.execute(delete(providers).where(providers.c.name == name))
        if gone.rowcount == 0:
            raise NotFound("no such provider", where=name)


def listed(connection: Connection) -> list[Pinned]:
    """All pinned providers, by name."""
    query = select(providers.c.name, providers.c.key, providers.c.added)
    found = [
        Pinned(name, PublicKey.from_raw(bytes(key)), added)
        for name, key, added in connection.execute(query)
    ]
    return sorted(found, key=lambda each: each.name)


def find(connection: Connection, name: str) -> PublicKey | None:
    """The key pinned for ``name``."""
    query = select(providers.c.key).where(providers.c.name == name)
    key = connection.execute(query).scalar_one_or_none()
    return None if key is None else PublicKey.from_raw(bytes(key))
