"""Rows of what anyone may submit: receipts, refusals, claims, disputes, as canonical JSON.

A submission has a position (a leaf index, or a counter) and an identity (a signature, or a
digest); what has both in common is the same submission.
"""

from dataclasses import dataclass

from ragaudit.verifier.service.database import Transaction
from ragaudit.verifier.service.database import submissions as table
from ragaudit.verifier.service.errors import CapError
from sqlalchemy import ColumnElement, Connection, func, insert, select

RECEIPT, REFUSAL, CLAIM, DISPUTE = "receipt", "refusal", "claim", "dispute"
UNCOSIGNED = "uncosigned"  # receipts with a proof under a checkpoint that was not cosigned


@dataclass(frozen=True)
class Submission:
    """A checked submission; ``document`` is canonical JSON."""

    kind: str
    position: int
    identity: bytes
    document: bytes


def put(transaction: Transaction, window: str, submission: Submission) -> bool:
    """Store a submission unless it is known; returns whether it was new."""
    if stored(transaction.connection, window, submission) is not None:
        return False
    row = {
        "window": window,
        "kind": submission.kind,
        "position": submission.position,
        "identity": submission.identity,
        "received": transaction.now,
        "document": submission.document,
    }
    transaction.connection.execute(insert(table).values(row))
    return True


def stored(connection: Connection, window: str, submission: Submission) -> bytes | None:
    """The stored document of the same submission."""
    query = select(table.c.document).where(_same(window, submission))
    document = connection.execute(query).scalar_one_or_none()
    return None if document is None else bytes(document)


def identities(connection: Connection, window: str, kind: str) -> list[tuple[int, bytes]]:
    """(position, identity) of every submission of a kind, rising."""
    query = select(table.c.position, table.c.identity).where(_of(window, kind))
    found = connection.execute(query)
    return sorted((position, bytes(identity)) for position, identity in found)


def documents(connection: Connection, window: str, kind: str) -> list[bytes]:
    """The documents of a kind by rising position and identity."""
    query = select(table.c.position, table.c.identity, table.c.document).where(_of(window, kind))
    found = [
        (row.position, bytes(row.identity), bytes(row.document))
        for row in connection.execute(query)
    ]
    return [document for _, _, document in sorted(found)]


def count(connection: Connection, window: str, kind: str) -> int:
    """How many submissions of a kind a window holds."""
    query = select(func.count()).select_from(table).where(_of(window, kind))
    return int(connection.execute(query).scalar_one())


def check_cap(connection: Connection, window: str, kind: str, cap: int) -> None:
    """CapError if the documents of a kind exceed ``cap`` bytes in all."""
    query = select(func.sum(func.length(table.c.document))).where(_of(window, kind))
    if int(connection.execute(query).scalar_one() or 0) > cap:
        raise CapError(f"too many {kind}s", where=window, expected=f"at most {cap} bytes in all")


def _of(window: str, kind: str) -> ColumnElement[bool]:
    return (table.c.window == window) & (table.c.kind == kind)


def _same(window: str, submission: Submission) -> ColumnElement[bool]:
    named = (table.c.position == submission.position) & (table.c.identity == submission.identity)
    return _of(window, submission.kind) & named
