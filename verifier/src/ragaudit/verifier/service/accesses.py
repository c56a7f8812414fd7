"""Who opened confidential evidence, when and why: recorded before the first byte of it leaves.

Each access is an item of the window, beside the evidence and not part of it: the evidence was
sealed before there was anything to open.
"""

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.ledger.messages.evidence_access import EvidenceAccess
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.database import Database, Origin
from sqlalchemy import Connection

_PREFIX = "accesses/"


def record(
    database: Database, keys: VerifierKeys, origin: Origin, what: str, said: AccessBody
) -> EvidenceAccess:
    """Store that evidence is opened now, durably, and return the record.

    Args:
        keys: `keys.verifier` signs it.
        what: as of `EvidenceAccess`.
        said: by whoever opens it.

    Raises:
        NotFound: no such window.
    """
    with database.write() as transaction:
        window = windows.get(transaction.connection, origin)
        earlier = listed(transaction.connection, origin)
        access = EvidenceAccess.issue(
            keys.statement,
            origin=window.origin,
            before=earlier[-1] if earlier else None,
            what=what,
            reader=said.reader,
            reason=said.reason,
            time=transaction.now,
        )
        content = canonical_json.dumps(access.to_json())
        windows.put_item(transaction, origin, _name(access.number), content)
    return access


def listed(connection: Connection, origin: Origin) -> list[EvidenceAccess]:
    """Return all accesses of a window, from the first.

    Raises:
        InternalError: one is missing.
    """
    return [read(connection, origin, number) for number in range(count(connection, origin))]


def count(connection: Connection, origin: Origin) -> int:
    """Return how often confidential evidence of a window was opened."""
    return windows.count_items(connection, origin, _PREFIX)


def read(connection: Connection, origin: Origin, number: int) -> EvidenceAccess:
    """Return an access.

    Args:
        number: below `count`.

    Raises:
        InternalError: it is missing.
    """
    data = windows.read_item(connection, origin, _name(number))
    if data is None:
        raise InternalError("an access is missing", where=f"{origin}: {number}")
    return EvidenceAccess.from_json(canonical_json.loads(data))


def _name(number: int) -> str:
    return f"{_PREFIX}{number}.json"
