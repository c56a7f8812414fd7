"""What one provider may have stored before the verifier agreed to anything.

A window that is not countersigned a day after its start never will be: it is forgotten, with all
that was uploaded for it. A refused one stays, as its verdict's evidence: its bytes count for good,
or they would add up day by day.
"""

from typing import Any

from ragaudit.verifier.service import items as stored
from ragaudit.verifier.service import windows as rows
from ragaudit.verifier.service.database import Origin, Transaction, items, windows
from ragaudit.verifier.service.errors import CapReached
from ragaudit.verifier.settings import Limits
from sqlalchemy import ColumnElement, Connection, delete, func, select

DAY_MS = 86_400_000


def demand_window(transaction: Transaction, provider: str, limits: Limits) -> None:
    """CapReached if the provider has as many windows as it may, or as many bytes."""
    bytes_left(transaction.connection, provider, limits)
    connection, own = transaction.connection, windows.c.provider == provider
    waiting = _count(connection, own & _undecided())
    if waiting >= limits.waiting_windows:
        raise CapReached(
            f"{waiting} windows are not countersigned", expected=f"below {limits.waiting_windows}"
        )
    new = _count(connection, own & (windows.c.registered > transaction.now - DAY_MS))
    if new >= limits.windows_per_day:
        raise CapReached(
            f"{new} windows registered in 24 hours", expected=f"below {limits.windows_per_day}"
        )


def demand_bytes(transaction: Transaction, provider: str, size: int, limits: Limits) -> None:
    """CapReached if ``size`` bytes more are too many."""
    if size > bytes_left(transaction.connection, provider, limits):
        raise _full(limits)


def bytes_left(connection: Connection, provider: str, limits: Limits) -> int:
    """How many bytes the provider may still upload; CapReached if there are none left."""
    own = (windows.c.provider == provider) & windows.c.countersigned.is_(None)
    held = select(func.coalesce(func.sum(items.c.size), 0)).where(
        items.c.window.in_(select(windows.c.origin).where(own))
    )
    left = limits.waiting_bytes - int(connection.execute(held).scalar_one())
    if left <= 0:
        raise _full(limits)
    return left


def forget_expired(transaction: Transaction) -> list[Origin]:
    """Remove windows that can no longer be countersigned; returns their origins."""
    query = select(windows.c.origin, windows.c.registered).where(_undecided())
    found = transaction.connection.execute(query).all()
    expired = [
        origin
        for origin, registered in found
        if transaction.now
        > DAY_MS + _start(rows.unchecked_policy(transaction.connection, origin), registered)
    ]
    for origin in expired:
        for item in stored.listed(transaction.connection, origin):
            stored.remove(transaction, origin, item.name)
        transaction.connection.execute(delete(windows).where(windows.c.origin == origin))
    return expired


def _start(policy: dict[str, Any], registered: int) -> int:
    """When the window starts, in Unix milliseconds; nobody has checked the policy yet."""
    start = policy.get("start")
    return max(registered, 1000 * start) if type(start) is int else registered


def _undecided() -> ColumnElement[bool]:
    return windows.c.countersigned.is_(None) & windows.c.refused.is_(None)


def _count(connection: Connection, condition: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(windows).where(condition)
    return int(connection.execute(query).scalar_one())


def _full(limits: Limits) -> CapReached:
    return CapReached(
        "windows that are not countersigned hold too much",
        expected=f"at most {limits.waiting_bytes} bytes",
    )
