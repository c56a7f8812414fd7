"""Evidence that a challenge asks for beside responses: stored once, handed over until it is there.

It is stored before it is delivered: what was proven or opened stays the same across restarts.
"""

from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.inserting import insert_new
from ragaudit.prover.verifier.client import VerifierClient
from sqlalchemy import Connection, select, update

__all__ = ["deliver_evidence", "keep_evidence", "missing_evidence"]


def missing_evidence(connection: Connection, window: str, call: str) -> bool:
    """Return whether nothing is stored for a call.

    Args:
        call: its path within the window.
    """
    columns = tables.evidence.c
    query = select(columns.call).where(columns.window == window, columns.call == call)
    return connection.execute(query).first() is None


def keep_evidence(connection: Connection, window: str, call: str, message: bytes) -> None:
    """Store what a call is to hand over; what is stored already stays.

    Args:
        call: its path within the window.
        message: encoded.
    """
    row = {"window": window, "call": call, "message": message, "delivered": False}
    insert_new(connection, tables.evidence, [row])


def deliver_evidence(store: Store, window: str, verifier: VerifierClient) -> None:
    """Hand over everything stored that the verifier does not have.

    Raises:
        VerifierUnreachable, VerifierRefused: some was not delivered; call again.
    """
    columns = tables.evidence.c
    left = (columns.window == window) & columns.delivered.is_(False)
    with store.read() as connection:
        calls = connection.scalars(select(columns.call).where(left).order_by(columns.call))
        waiting = calls.all()
    for call in waiting:
        this = (columns.window == window) & (columns.call == call)
        with store.read() as connection:
            message = connection.execute(select(columns.message).where(this)).scalar_one()
        verifier.put_evidence(window, call, message)
        with store.write() as connection:
            connection.execute(update(tables.evidence).where(this).values(delivered=True))
