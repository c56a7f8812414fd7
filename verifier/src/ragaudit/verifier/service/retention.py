"""How long confidential evidence is kept, and the statement that it was deleted.

In one transaction the items and rows go, and the signed statement comes: there is no state in which
evidence is gone and nobody says so. The verdict and the public part stay.
"""

import hashlib
import logging
from dataclasses import dataclass

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import InternalError, NotFound
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.database import cut_journal, overwrite_deleted
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.custody import Deletion
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import submissions, tables, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.submissions import Kind
from sqlalchemy import Connection
from sqlalchemy import delete as delete_from

DAY_MS = 86_400_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Retention:
    """The rule of the settings.

    Attributes:
        days: after the verdict; None to keep confidential evidence for good.
    """

    database: Database
    keys: VerifierKeys
    days: int | None

    def apply(self) -> None:
        """Delete what is due, a window at a time."""
        if self.days is None:
            return
        due = self.database.now() - self.days * DAY_MS
        with self.database.read() as connection:
            origins = [one.origin for one in windows.decided_until(connection, due)]
            origins = [one for one in origins if deletion(connection, one) is None]
        for origin in origins:
            with self.database.write() as transaction:
                overwrite_deleted(transaction.connection)
                found = delete(transaction, self.keys, origin)
            cut_journal(self.database.engine)
            _log.info("confidential evidence of %s deleted: %d items", origin, len(found.items))


def delete(transaction: Transaction, keys: VerifierKeys, origin: Origin) -> Deletion:
    """Delete the confidential evidence of a decided window, and store the statement.

    Args:
        keys: `keys.verifier` signs it.
    """
    connection = transaction.connection
    verdict = windows.read_item(connection, origin, windows.VERDICT)
    if verdict is None:
        raise InternalError("nothing is deleted before a verdict", where=origin)
    held = windows.list_items(connection, origin, names.CONFIDENTIAL)
    statement = Deletion(
        origin=origin,
        verdict=hashlib.sha256(verdict).digest(),
        items={item.name: item.digest.hex() for item in held},
        checkpoint=_final(connection, origin),
        time=transaction.now,
    ).signed(keys.statement)
    for item in held:
        windows.remove_item(transaction, origin, item.name)
    _remove_rows(connection, origin)
    windows.put_item(
        transaction, origin, windows.DELETION, canonical_json.dumps(statement.to_json())
    )
    return statement


def _remove_rows(connection: Connection, origin: Origin) -> None:
    """Remove what the items were made from: claims, and disputes with their files."""
    claims, disputes = tables.submission, tables.dispute
    of_kind = claims.c.kind == str(Kind.CLAIM)
    connection.execute(delete_from(claims).where(claims.c.window == origin, of_kind))
    submissions.forget_space(connection, origin, Kind.CLAIM)
    connection.execute(delete_from(disputes).where(disputes.c.window == origin))


def deletion(connection: Connection, origin: Origin) -> bytes | None:
    """Return the statement that confidential evidence of a window was deleted, if it was."""
    return windows.read_item(connection, origin, windows.DELETION)


def check_kept(database: Database, origin: Origin) -> None:
    """Check that the confidential evidence of a window was not deleted.

    Raises:
        NotFound: it was.
    """
    with database.read() as connection:
        item = windows.find_item(connection, origin, windows.DELETION)
    if item is not None:
        raise NotFound(f"deleted at {rfc3339(item.received)}", where=origin)


def shown(database: Database, origin: Origin) -> bytes:
    """Return the statement of a window.

    Raises:
        NotFound: no such window, or nothing of it was deleted.
    """
    with database.read() as connection:
        windows.get(connection, origin)
        found = deletion(connection, origin)
    if found is None:
        raise NotFound("nothing was deleted", where=origin)
    return found


def _final(connection: Connection, origin: Origin) -> TreeHead | None:
    note = windows.read_item(connection, origin, names.FINAL_CHECKPOINT)
    return None if note is None else parse_checkpoint(note).head
