"""Windows and their items, as stored: one row each, and an item's bytes in chunks.

A window's row says when things happened; its state follows from that, and moves only so
(docs/spec/08-services.md §8.3):

registered -> countersigned -> closed -> challenged -> auditing -> decided
registered -> refused
countersigned | closed -> auditing

Items are the evidence under the names of `ragaudit.verifier.evidence`, and the verdict. A policy
may continue an earlier window of its provider, and stand beside others at the same time (9.10).
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Any, BinaryIO

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import (
    Conflict,
    InternalError,
    MalformedError,
    NotFound,
    TooEarly,
    UnsupportedError,
)
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.database import Rows
from ragaudit.ledger.messages.evidence import OverlappingWindow, Overlaps, overlap, shared_tenants
from ragaudit.ledger.messages.identifiers import log_origin
from ragaudit.ledger.messages.items import FINAL_CHECKPOINT, OVERLAPS, POLICY, TERMS, PreviousWindow
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.service import tables
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import Ambiguous, TooLate
from ragaudit.verifier.terms import Terms
from sqlalchemy import Connection, delete, func, insert, select, update


class State(StrEnum):
    """A window's state, as it is shown; it follows from the times of its row."""

    REGISTERED = "registered"
    COUNTERSIGNED = "countersigned"
    CLOSED = "closed"
    CHALLENGED = "challenged"
    AUDITING = "auditing"
    DECIDED = "decided"
    REFUSED = "refused"


# A window that was not closed and handed over in time, or whose handover cannot be read, is audited
# without a sample.
_NEXT: Mapping[State, frozenset[State]] = {
    State.REGISTERED: frozenset({State.COUNTERSIGNED, State.REFUSED}),
    State.COUNTERSIGNED: frozenset({State.CLOSED, State.AUDITING}),
    State.CLOSED: frozenset({State.CHALLENGED, State.AUDITING}),
    State.CHALLENGED: frozenset({State.AUDITING}),
    State.AUDITING: frozenset({State.DECIDED}),
    State.DECIDED: frozenset(),
    State.REFUSED: frozenset(),
}

FINAL = (State.DECIDED, State.REFUSED)


def check_transition(window: str, before: State, after: State) -> None:
    """Check that ``after`` may follow ``before``.

    Args:
        window: for the message only.

    Raises:
        Conflict: it may not.
    """
    if after not in _NEXT[before]:
        allowed = ", ".join(sorted(_NEXT[before])) or "nothing: the window is finished"
        raise Conflict(f"a {before} window cannot become {after}", where=window, expected=allowed)


def check_state(window: str, state: State, allowed: tuple[State, ...]) -> None:
    """Check that ``state`` is one of ``allowed``.

    Args:
        window: for the message only.

    Raises:
        Conflict: it is none of them.
    """
    if state not in allowed:
        raise Conflict(f"the window is {state}", where=window, expected=" or ".join(allowed))


CHUNK_BYTES = 2**20
VERDICT = "verdict.json"  # not evidence: signed over it
DELETION = "deletion.json"  # not evidence: what of it is gone


@dataclass(frozen=True)
class Window:
    """A window's row; times in Unix milliseconds, None for what has not happened.

    Attributes:
        origin: of the window's log; it tells windows apart, as names are each provider's own.
        log_key: of the window's log, and of no other window of the provider.
        chain_salt: what the seed of the activation chain is derived with.
        records: when the log was handed over.
        listed: when the list of receipts was signed.
        deadline: of the responses to the challenge.
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
    def state(self) -> State:
        """The latest state that the window has reached."""
        reached = (state for state, time in _TIMES.items() if getattr(self, time) is not None)
        return next(reached, State.REGISTERED)


@dataclass(frozen=True)
class Item:
    """What is known of a stored item.

    Attributes:
        size: in bytes.
        digest: SHA-256 of its bytes.
        received: Unix milliseconds.
    """

    name: str
    size: int
    digest: bytes
    received: int


# The column with the time at which a window came to a state; the latest state first.
_TIMES = {
    State.DECIDED: "decided",
    State.REFUSED: "refused",
    State.AUDITING: "sealed",
    State.CHALLENGED: "challenged",
    State.CLOSED: "closed",
    State.COUNTERSIGNED: "countersigned",
}
_WINDOWS = Rows(Window, tables.window)
_ITEMS = Rows(Item, tables.item)


def of(provider: str, name: str) -> Origin:
    """Return the key of a provider's window.

    Raises:
        MalformedRecord: there can be none of such names.
    """
    return Origin(log_origin(provider, name))


def resolve(connection: Connection, name: str) -> Origin:
    """Return the key of the only window of this name, whoever's it is.

    Args:
        name: of a window; it is its provider's own, so that others may use it too.

    Raises:
        NotFound: no such window.
        Ambiguous: several providers have one.
    """
    columns = tables.window.c
    query = select(columns.origin).where(columns.name == name).limit(2)
    found = connection.scalars(query).all()
    if not found:
        raise NotFound("no such window", where=name)
    if len(found) > 1:
        raise Ambiguous(
            "several providers have a window of this name", where=name, expected="?provider=<name>"
        )
    return Origin(found[0])


def find(connection: Connection, origin: Origin) -> Window | None:
    """Return the window whose log has this origin."""
    return _WINDOWS.find(connection, tables.window.c.origin == origin)


def find_by_origin_hash(connection: Connection, digest: bytes) -> Window | None:
    """Return the window whose log's origin has this SHA-256."""
    return _WINDOWS.find(connection, tables.window.c.origin_hash == digest)


def find_by_log_key(connection: Connection, provider: str, key: bytes) -> Window | None:
    """Return the provider's window whose log signs with this public key.

    Args:
        key: raw Ed25519 public key, 32 bytes.
    """
    columns = tables.window.c
    return _WINDOWS.find(connection, columns.provider == provider, columns.log_key == key)


def get(connection: Connection, origin: Origin) -> Window:
    """Return the window whose log has this origin.

    Raises:
        NotFound: there is none.
    """
    window = find(connection, origin)
    if window is None:
        raise NotFound("no such window", where=origin)
    return window


def demand_countersigned(window: Window) -> Window:
    """Return the window if it is countersigned.

    Raises:
        Conflict: it is not.
    """
    if window.countersigned is None:
        raise Conflict(
            f"the window is {window.state}", where=window.name, expected=State.COUNTERSIGNED
        )
    return window


def undecided(connection: Connection) -> list[Window]:
    """Return the countersigned windows without a verdict, by origin."""
    columns = tables.window.c
    query = _WINDOWS.select(columns.countersigned.is_not(None), columns.decided.is_(None))
    # Sorted here: a database orders texts by its own collation.
    return sorted(_WINDOWS.all(connection, query), key=lambda window: window.origin)


def decided_until(connection: Connection, time: int) -> list[Window]:
    """Return the windows whose verdict is at least as old as ``time``, by origin.

    Args:
        time: Unix milliseconds.
    """
    found = _WINDOWS.all(connection, _WINDOWS.select(tables.window.c.decided <= time))
    return sorted(found, key=lambda window: window.origin)


def unsettled(connection: Connection) -> list[Window]:
    """Return the windows that are neither countersigned nor refused."""
    columns = tables.window.c
    query = _WINDOWS.select(columns.countersigned.is_(None), columns.refused.is_(None))
    return _WINDOWS.all(connection, query)


def insert_window(transaction: Transaction, **values: Any) -> None:
    """Store a window that is registered now.

    Args:
        values: columns of `Window` from ``origin`` to ``chain_salt``.
    """
    statement = insert(tables.window).values(registered=transaction.now, **values)
    transaction.connection.execute(statement)


def advance(transaction: Transaction, origin: Origin, after: State, **times: int) -> None:
    """Move a window to its next state, as of now.

    Args:
        times: further columns, Unix milliseconds.

    Raises:
        Conflict: it does not follow the present one.
    """
    check_transition(origin, get(transaction.connection, origin).state, after)
    note(transaction, origin, **{_TIMES[after]: transaction.now}, **times)


def note(transaction: Transaction, origin: Origin, **times: int | None) -> None:
    """Store times of a window other than that of its next state.

    Args:
        times: columns of the row, Unix milliseconds.
    """
    statement = update(tables.window).where(tables.window.c.origin == origin).values(**times)
    transaction.connection.execute(statement)


def forget(transaction: Transaction, origin: Origin) -> None:
    """Remove a window that was never countersigned, with its items."""
    # No other table has rows of it: what else is submitted needs a countersignature.
    for table in (tables.chunk, tables.item):
        transaction.connection.execute(delete(table).where(table.c.window == origin))
    statement = delete(tables.window).where(tables.window.c.origin == origin)
    transaction.connection.execute(statement)


def policy(connection: Connection, window: Window) -> Policy:
    """Return the policy of a countersigned window, which has passed check 1.

    Raises:
        Conflict: the window is not countersigned.
    """
    return Policy.parse(policy_bytes(connection, demand_countersigned(window).origin))


def policy_of(database: Database, origin: Origin) -> Policy:
    """Return the policy of a countersigned window; raises as `get` and `policy`."""
    with database.read() as connection:
        return policy(connection, get(connection, origin))


def unchecked_policy(connection: Connection, origin: Origin) -> dict[str, Any]:
    """Return the policy as it was registered: canonical JSON that nobody may have checked yet."""
    found: dict[str, Any] = canonical_json.loads(policy_bytes(connection, origin))
    return found


def policy_bytes(connection: Connection, origin: Origin) -> bytes:
    """Return the canonical bytes of `unchecked_policy`.

    Raises:
        NotFound: no such window.
    """
    data = read_item(connection, origin, POLICY)
    if data is None:
        raise NotFound("no such window", where=origin)
    return data


def put_item(
    transaction: Transaction, window: Origin, name: str, content: bytes | BinaryIO
) -> Item:
    """Store an item that does not exist yet, received now, and return what is known of it.

    Args:
        content: bytes, or a file that is read from its start.
        name: as in docs/spec/10-verdict.md §10.1, or `VERDICT`.
    """
    source = io.BytesIO(content) if isinstance(content, bytes) else content
    source.seek(0)
    digest, size, number = hashlib.sha256(), 0, 0
    # In chunks: an item may have gigabytes, and a driver holds a row in memory as a whole.
    while data := source.read(CHUNK_BYTES):
        row = {"window": window, "name": name, "number": number, "data": data}
        transaction.connection.execute(insert(tables.chunk).values(row))
        digest.update(data)
        size, number = size + len(data), number + 1
    item = Item(name, size, digest.digest(), transaction.now)
    _ITEMS.insert(transaction.connection, item, window=window)
    return item


def remove_item(transaction: Transaction, window: Origin, name: str) -> None:
    """Remove an item that is no evidence."""
    for table in (tables.chunk, tables.item):
        own = (table.c.window == window) & (table.c.name == name)
        transaction.connection.execute(delete(table).where(own))


def find_item(connection: Connection, window: Origin, name: str) -> Item | None:
    """Return an item's description, or None if there is none.

    Args:
        name: as in docs/spec/10-verdict.md §10.1.
    """
    columns = tables.item.c
    return _ITEMS.find(connection, columns.window == window, columns.name == name)


def list_items(connection: Connection, window: Origin, prefix: str = "") -> list[Item]:
    """Return the items whose names start with ``prefix``, in rising name order."""
    columns = tables.item.c
    named = columns.name.startswith(prefix, autoescape=True)
    query = _ITEMS.select(columns.window == window, named)
    return sorted(_ITEMS.all(connection, query), key=lambda item: item.name)


def count_items(connection: Connection, window: Origin, prefix: str) -> int:
    """Return how many items have names that start with ``prefix``."""
    named = tables.item.c.name.startswith(prefix, autoescape=True)
    query = select(func.count()).where(tables.item.c.window == window, named)
    return int(connection.execute(query).scalar_one())


def stream_item(connection: Connection, window: Origin, name: str) -> Iterator[bytes]:
    """Yield the chunks of an item, in order; none if there is no such item.

    Their digest is not compared: `read_item` does that.
    """
    columns = tables.chunk.c
    condition = (columns.window == window) & (columns.name == name)
    for number in count():
        # One query for each: a driver may read all rows of a query at once.
        query = select(columns.data).where(condition & (columns.number == number))
        data: bytes | None = connection.scalar(query)
        if data is None:
            return
        yield data


def copy_item(connection: Connection, window: Origin, item: Item, file: BinaryIO) -> None:
    """Write the bytes of an item to a file.

    Raises:
        InternalError: what is stored is not what was received.
    """
    digest, left = hashlib.sha256(), item.size
    for data in stream_item(connection, window, item.name):
        digest.update(data)
        file.write(data)
        left -= len(data)
        if left <= 0:
            break  # most items have one chunk: no query says that there is no second one
    # A disk that rots, or a hand in the database, must not speak as evidence.
    if digest.digest() != item.digest:
        raise InternalError("a stored item has changed", where=f"{window}: {item.name}")


def read_item(connection: Connection, window: Origin, name: str) -> bytes | None:
    """Return the bytes of an item, or None if there is none.

    Raises:
        InternalError: what is stored is not what was received.
    """
    item = find_item(connection, window, name)
    if item is None:
        return None
    content = io.BytesIO()
    copy_item(connection, window, item, content)
    return content.getvalue()


def check_due(instant: int, now: int) -> None:
    """Check that ``instant`` has come.

    Args:
        instant: Unix seconds.
        now: Unix milliseconds.

    Raises:
        TooEarly: it has not; with the seconds to wait.
    """
    if now < 1000 * instant:
        raise TooEarly(
            "the instant has not come",
            # Rounded up: who waits this long is not early again.
            retry_after=-(-(1000 * instant - now) // 1000),
            expected=f"{rfc3339(1000 * instant)} or later",
        )


def check_before(transaction: Transaction, origin: Origin, until: int) -> None:
    """Check that the instant ``until`` has not come.

    Args:
        transaction: the one that stores what arrived; judged by an earlier time, it could commit
            after the instant.
        until: Unix seconds.

    Raises:
        TooLate: it has.
    """
    if transaction.now >= 1000 * until:
        raise TooLate("taken no more", where=origin, expected=f"before {until}")


def previous_window(
    connection: Connection, provider: str, unchecked: dict[str, Any]
) -> bytes | None:
    """Return what V holds of the window whose checkpoint a policy names; None if nothing.

    Args:
        provider: whose window it must be.
        unchecked: policy that nobody has checked.
    """
    note = unchecked.get("previous_checkpoint")
    try:
        origin = parse_checkpoint(str(note).encode("utf-8", "replace")).checkpoint.origin
    except MalformedError:
        return None
    before = find(connection, Origin(origin))
    # Of another provider, or never countersigned: V vouches for no such log.
    if before is None or before.provider != provider or before.countersigned is None:
        return None
    keys = policy(connection, before).keys
    final = read_item(connection, before.origin, FINAL_CHECKPOINT)
    ended = None if final is None else final.decode()
    return PreviousWindow(keys.log, keys.cosigner, ended).encode()


def overlaps(connection: Connection, window: Window) -> dict[str, bytes]:
    """Return the item of evidence about overlapping windows, as it is now; none without any.

    A window counts from its countersignature on, whatever becomes of it. After the end of this one
    none is added: what is countersigned begins later.

    Args:
        window: registered; none overlaps it as long as its policy cannot be read.
    """
    try:
        own = Policy.from_json(unchecked_policy(connection, window.origin))
    except (MalformedError, UnsupportedError):
        return {}  # check 1 says so
    read = {window.origin: own}
    found = _beside(connection, own, read)
    if not found:
        return {}
    listed = []
    for origin in found:
        its = read[origin]
        stored = read_item(connection, origin, TERMS)
        if stored is None:
            raise InternalError("a countersigned window without terms", where=origin)
        sharing = {*_beside(connection, its, read), window.origin}
        shared = sum(bool(shared_tenants(its, read[each])) for each in sharing)
        allowed = int(Terms.parse(stored).bounds["most_overlapping_windows"])
        listed.append(OverlappingWindow(its, allowed, shared))
    listed.sort(key=lambda each: each.policy.window)
    return {OVERLAPS: Overlaps(tuple(listed)).encode()}


def _beside(connection: Connection, own: Policy, read: dict[Origin, Policy]) -> list[Origin]:
    """Return the provider's countersigned windows that overlap one; their policies are added."""
    columns = tables.window.c
    # A verdict comes after its window's end: what was decided before the start had ended.
    open_ = columns.decided.is_(None) | (columns.decided >= 1000 * own.start)
    mine = columns.provider == own.provider
    query = select(columns.origin).where(mine, columns.countersigned.is_not(None), open_)
    found = [Origin(origin) for (origin,) in connection.execute(query)]
    for origin in found:
        if origin not in read:
            read[origin] = policy(connection, get(connection, origin))
    return [origin for origin in found if overlap(own, read[origin])]
