"""Promises of anchored accounts, as stored: one for each account's counter at most."""

from ragaudit.ledger.messages.promises import Promise
from ragaudit.prover.store import tables
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update


def find_promise(connection: Connection, window: str, account: str, counter: int) -> Promise | None:
    """Return the promise for an account's counter, if one was made."""
    message = connection.scalar(
        select(tables.promise.c.message).where(_row(window, account, counter))
    )
    return None if message is None else Promise.parse(message)


def put_promise(
    connection: Connection, window: str, account: str, counter: int, promise: Promise
) -> None:
    """Store the promise for an account's counter, in the place of an earlier one."""
    connection.execute(delete(tables.promise).where(_row(window, account, counter)))
    connection.execute(
        insert(tables.promise).values(
            window=window, account=account, counter=counter, message=promise.encode()
        )
    )


def note_nonce(
    connection: Connection, window: str, account: str, counter: int, nonce: bytes
) -> None:
    """Store the 32-byte nonce that an account revealed for its promise."""
    mine = _row(window, account, counter)
    connection.execute(update(tables.promise).where(mine).values(nonce=nonce))


def is_revealed(connection: Connection, window: str, account: str, counter: int) -> bool:
    """Return whether the nonce of a promise was revealed to this prover."""
    mine = _row(window, account, counter)
    return connection.scalar(select(tables.promise.c.nonce).where(mine)) is not None


def used_counters(connection: Connection, window: str, pseudonym: bytes) -> int:
    """Return how many counters of a pseudonym are logged or promised: what the fence compares."""
    registration, promise = tables.registration, tables.promise
    row = connection.execute(
        select(registration.c.account, registration.c.counter).where(
            registration.c.window == window, registration.c.pseudonym == pseudonym
        )
    ).one_or_none()
    if row is None:
        return 0
    last: int | None = connection.scalar(
        select(func.max(promise.c.counter)).where(
            promise.c.window == window, promise.c.account == row.account
        )
    )
    logged: int = row.counter
    return logged if last is None else max(logged, last + 1)


def _row(window: str, account: str, counter: int) -> ColumnElement[bool]:
    table = tables.promise
    place = (table.c.account == account) & (table.c.counter == counter)
    return (table.c.window == window) & place
