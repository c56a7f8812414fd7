"""Other windows of a provider: the one that a policy continues, those at the same time (9.10)."""

from typing import Any

from ragaudit.encoding.errors import InternalError, MalformedError, UnsupportedError
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.messages.items import FINAL_CHECKPOINT, OVERLAPS, TERMS, PreviousWindow
from ragaudit.ledger.messages.overlaps import (
    OverlappingWindow,
    Overlaps,
    overlap,
    shared_tenants,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.service import tables, windows
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.windows import Window
from ragaudit.verifier.terms import Terms
from sqlalchemy import Connection, select


def previous(connection: Connection, provider: str, policy: dict[str, Any]) -> bytes | None:
    """Return what V holds of the window whose checkpoint a policy names; None if nothing.

    Args:
        provider: whose window it must be.
        policy: that nobody has checked.
    """
    note = policy.get("previous_checkpoint")
    try:
        origin = parse_checkpoint(str(note).encode("utf-8", "replace")).checkpoint.origin
    except MalformedError:
        return None
    before = windows.find(connection, Origin(origin))
    # Of another provider, or never countersigned: V vouches for no such log.
    if before is None or before.provider != provider or before.countersigned is None:
        return None
    keys = windows.policy(connection, before).keys
    final = windows.read_item(connection, before.origin, FINAL_CHECKPOINT)
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
        policy = Policy.from_json(windows.unchecked_policy(connection, window.origin))
    except (MalformedError, UnsupportedError):
        return {}  # check 1 says so
    read = {window.origin: policy}
    found = _beside(connection, policy, read)
    if not found:
        return {}
    listed = []
    for origin in found:
        its = read[origin]
        stored = windows.read_item(connection, origin, TERMS)
        if stored is None:
            raise InternalError("a countersigned window without terms", where=origin)
        sharing = {*_beside(connection, its, read), window.origin}
        shared = sum(bool(shared_tenants(its, read[each])) for each in sharing)
        allowed = int(Terms.parse(stored).bounds["most_overlapping_windows"])
        listed.append(OverlappingWindow(its, allowed, shared))
    listed.sort(key=lambda each: each.policy.window)
    return {OVERLAPS: Overlaps(tuple(listed)).encode()}


def _beside(connection: Connection, policy: Policy, read: dict[Origin, Policy]) -> list[Origin]:
    """Return the provider's countersigned windows that overlap one; their policies are added."""
    columns = tables.window.c
    # A verdict comes after its window's end: what was decided before the start had ended.
    open_ = columns.decided.is_(None) | (columns.decided >= 1000 * policy.start)
    mine = columns.provider == policy.provider
    query = select(columns.origin).where(mine, columns.countersigned.is_not(None), open_)
    found = [Origin(origin) for (origin,) in connection.execute(query)]
    for origin in found:
        if origin not in read:
            read[origin] = windows.policy(connection, windows.get(connection, origin))
    return [origin for origin in found if overlap(policy, read[origin])]
