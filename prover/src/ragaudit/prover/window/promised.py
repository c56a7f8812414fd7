"""Promises to anchored accounts, as stored: one for each counter."""

from ragaudit.ledger.messages.promises import Promise
from ragaudit.prover.store import tables
from sqlalchemy import ColumnElement, Connection, delete, insert, select, update


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
