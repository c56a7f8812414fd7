"""What submissions take of their space, summed as they come and go.

Every submission asks whether there is room for one more: adding up the documents that are there
would read all of them each time, and a window whose receipts come one by one would take quadratic
time.
"""

from ragaudit.verifier.service import tables
from ragaudit.verifier.service.database import Origin
from sqlalchemy import Connection, delete, func, insert, select, update

_table = tables.submission_space


def taken(connection: Connection, window: Origin, kind: str, account: bytes | None = None) -> int:
    """Return the bytes of the documents of a kind.

    Args:
        account: whose they are; None for all together.
    """
    query = select(func.sum(_table.c.bytes)).where(
        _table.c.window == window, _table.c.kind == str(kind)
    )
    if account is not None:
        query = query.where(_table.c.account == account)
    return int(connection.scalar(query) or 0)


def add(connection: Connection, window: Origin, kind: str, account: bytes, size: int) -> None:
    """Count a document that came, or one that went.

    Args:
        connection: of a writing transaction, of which there is one at a time.
        size: of the document, bytes; below 0 for one that went.
    """
    own = (_table.c.window == window) & (_table.c.kind == str(kind)) & (_table.c.account == account)
    more = update(_table).where(own).values(bytes=_table.c.bytes + size)
    if not connection.execute(more).rowcount:
        row = {"window": window, "kind": str(kind), "account": account, "bytes": size}
        connection.execute(insert(_table).values(row))


def forget(connection: Connection, window: Origin, kind: str) -> None:
    """Count none any more: all documents of a kind went."""
    gone = (_table.c.window == window) & (_table.c.kind == str(kind))
    connection.execute(delete(_table).where(gone))
