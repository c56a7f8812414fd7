"""Signed test results that an audited window's verdict refers to (docs/spec 10.11).

What is kept is the reference alone: the result stays with whoever made the test.
"""

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import Conflict
from ragaudit.ledger.messages.bodies import ReferenceBody
from ragaudit.ledger.messages.result_references import MAX_REFERENCES, References, ResultReference
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.database import Database, Origin
from ragaudit.verifier.service.errors import CapReached, TooLate
from sqlalchemy import Connection

_PREFIX = "test-results/"  # no evidence yet: sealing writes the list of them


def attach(database: Database, origin: Origin, name: str, body: ReferenceBody) -> ResultReference:
    """Verify a result, and keep a reference to it for the verdict.

    Args:
        name: of the result, as the auditor chose it.

    Raises:
        MalformedError: not a signed test-result.
        EnvelopeRejected, OtherResult: not signed with that key, or not about this window.
        Conflict: the window is not countersigned, or another result
            has the name. None is ever replaced: who attaches shall not choose by what was found.
        TooLate: the evidence is sealed.
        CapReached: more than MAX_REFERENCES.
    """
    with database.write() as transaction:
        connection = transaction.connection
        window = windows.demand_countersigned(windows.get(connection, origin))
        if window.sealed is not None:
            raise TooLate("the audit has begun", where=origin)
        policy = windows.policy(connection, window)
        envelope = canonical_json.dumps(body.result)
        reference = ResultReference.of(name, envelope, body.key, policy.canonical)
        held = {each.name: each for each in of(connection, origin)}
        if name in held:
            if held[name] != reference:
                raise Conflict("another result has this name", where=name, expected="a new name")
            return reference
        if len(held) >= MAX_REFERENCES:
            raise CapReached("too many test results", where=origin, expected=str(MAX_REFERENCES))
        windows.put_item(transaction, origin, _PREFIX + name, reference.encode())
    return reference


def of(connection: Connection, origin: Origin) -> tuple[ResultReference, ...]:
    """Return what was attached to a window, by rising name."""
    names = [item.name for item in windows.list_items(connection, origin, _PREFIX)]
    held = [windows.read_item(connection, origin, name) for name in names]
    return tuple(ResultReference.parse(each) for each in held if each is not None)


def sealed(connection: Connection, origin: Origin) -> bytes | None:
    """Return the item `public/test-results.json` of a window; None if nothing was attached."""
    found = of(connection, origin)
    return References(found).encode() if found else None
