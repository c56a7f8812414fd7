"""Windows as rows: what the service remembers of each, and the state that follows from it."""

from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import Conflict, NotFound
from ragaudit.ledger.messages.identifiers import log_origin
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.evidence import POLICY
from ragaudit.verifier.service import items
from ragaudit.verifier.service.database import Origin, Transaction, windows
from ragaudit.verifier.service.errors import Ambiguous
from sqlalchemy import ColumnElement, Connection, RowMapping, select, update


@dataclass(frozen=True)
class Window:
    """A row of the table ``window``; times in Unix milliseconds, None for what has not happened.

    Args:
        origin: of the window's log; it tells windows apart, as names are each provider's own.
        log_key: of the window's log, and of no other window of the provider.
        chain_salt: what the seed of the activation chain is derived with.
        listed: when the list of receipts was signed.
        sealed: when the evidence was complete and the audit began.
    """

    origin: Origin
    provider: str
    name: str
    origin_hash: bytes
    policy_digest: bytes
    log_key: bytes | None
    chain_salt: bytes = field(repr=False)
    registered: int
    countersigned: int | None
    refused: int | None
    records: int | None
    closed: int | None
    listed: int | None
    challenged: int | None
    deadline: int | None
    sealed: int | None
    decided: int | None

    @property
    def state(self) -> str:
        """The latest stage that the window has reached."""
        stages = (
            ("decided", self.decided),
            ("refused", self.refused),
            ("auditing", self.sealed),
            ("challenged", self.challenged),
            ("closed", self.closed),
            ("countersigned", self.countersigned),
        )
        return next((name for name, time in stages if time is not None), "registered")


def of(provider: str, name: str) -> Origin:
    """The key of a provider's window; MalformedRecord if there can be none of such names."""
    return Origin(log_origin(provider, name))


def resolve(connection: Connection, name: str) -> Origin:
    """The key of the only window of this name, whoever's it is.

    Raises:
        NotFound: no such window.
        Ambiguous: several providers have one.
    """
    query = select(windows.c.origin).where(windows.c.name == name).limit(2)
    found = connection.execute(query).scalars().all()
    if not found:
        raise NotFound("no such window", where=name)
    if len(found) > 1:
        raise Ambiguous(
            "several providers have a window of this name", where=name, expected="?provider=<name>"
        )
    return Origin(found[0])


def find(connection: Connection, origin: Origin) -> Window | None:
    """The window whose log has this origin."""
    return _one(connection, windows.c.origin == origin)


def find_by_origin_hash(connection: Connection, digest: bytes) -> Window | None:
    """The window whose log's origin has this SHA-256."""
    return _one(connection, windows.c.origin_hash == digest)


def find_by_log_key(connection: Connection, provider: str, key: bytes) -> Window | None:
    """The provider's window whose log signs with this public key."""
    return _one(connection, (windows.c.provider == provider) & (windows.c.log_key == key))


def get(connection: Connection, origin: Origin) -> Window:
    """The window whose log has this origin; NotFound if there is none."""
    window = find(connection, origin)
    if window is None:
        raise NotFound("no such window", where=origin)
    return window


def demand_countersigned(window: Window) -> Window:
    """The window; Conflict before its countersignature."""
    if window.countersigned is None:
        raise Conflict(f"the window is {window.state}", where=window.name, expected="countersigned")
    return window


def undecided(connection: Connection) -> list[Window]:
    """The countersigned windows without a verdict, by origin."""
    condition = windows.c.countersigned.is_not(None) & windows.c.decided.is_(None)
    rows = connection.execute(select(windows).where(condition))
    return sorted((_window(row._mapping) for row in rows), key=lambda each: each.origin)


def mark(transaction: Transaction, origin: Origin, **times: int) -> None:
    """Set columns of a window."""
    statement = update(windows).where(windows.c.origin == origin).values(**times)
    transaction.connection.execute(statement)


def policy(connection: Connection, window: Window) -> Policy:
    """The policy of a countersigned window, which has passed check 1."""
    return Policy.parse(_policy(connection, demand_countersigned(window).origin))


def unchecked_policy(connection: Connection, origin: Origin) -> dict[str, Any]:
    """The policy as it was registered: canonical JSON that nobody may have checked yet."""
    found: dict[str, Any] = canonical_json.loads(_policy(connection, origin))
    return found


def _policy(connection: Connection, origin: Origin) -> bytes:
    data = items.content(connection, origin, POLICY)
    if data is None:
        raise NotFound("no such window", where=origin)
    return data


def _one(connection: Connection, condition: ColumnElement[bool]) -> Window | None:
    row = connection.execute(select(windows).where(condition)).one_or_none()
    return None if row is None else _window(row._mapping)


def _window(row: RowMapping) -> Window:
    # Some drivers give memoryviews for binary columns.
    values: dict[str, Any] = {
        str(key): bytes(value) if isinstance(value, memoryview) else value
        for key, value in row.items()
    }
    return Window(**values)
