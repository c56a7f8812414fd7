"""What an application is told between two windows: what it asked last, and when to ask again."""

from dataclasses import dataclass

from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening
from ragaudit.prover.errors import NoWindowOpen
from ragaudit.prover.store.states import REGISTERS, UNSIGNED, State
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.windows import Recent

__all__ = ["Terms", "answers", "last_terms", "none_open"]

AGAIN_SECONDS = 60
_TO_COME = (*UNSIGNED, *REGISTERS)
_WAS_OPEN = (State.OPEN, State.CLOSED, State.CHALLENGED, State.ARCHIVED)


@dataclass(frozen=True)
class Terms:
    """By what a request is read: a window's policy, and N of the index that it asks.

    Attributes:
        live: the window, None between two.
    """

    policy: Policy
    rows: int
    live: OpenWindow | None = None


def answers(policy: Policy, tenant: str, now: int) -> bool:
    """Return whether a window whose state is open answers a tenant now.

    Args:
        policy: of the window.
        now: Unix milliseconds; the state may be some moments behind it.
    """
    return tenant in policy.tenants and now < 1000 * policy.end


def last_terms(recent: list[Recent], tenant: str) -> Terms | None:
    """Return the terms of the newest window that was open and served a tenant; None without one.

    Args:
        recent: windows, the newest first.
    """
    for window in recent:
        if window.state in _WAS_OPEN and window.opening_body is not None:
            policy = Policy.parse(window.policy)
            if tenant in policy.tenants:
                return Terms(policy, Opening.parse(window.opening_body).tenant(tenant).rows)
    return None


def none_open(recent: list[Recent], tenant: str, now: int) -> NoWindowOpen:
    """Return the error of a tenant that no window serves now, with the time to ask again.

    That is the start of the next window, if there is one; a minute, if nobody has made one yet.

    Args:
        recent: windows, the newest first.
        now: Unix milliseconds.
    """
    policies = [Policy.parse(window.policy) for window in recent if window.state in _TO_COME]
    starts = [policy.start for policy in policies if tenant in policy.tenants]
    coming = [1000 * start - now for start in starts if 1000 * start > now]
    again = -(-min(coming) // 1000) if coming else AGAIN_SECONDS
    return NoWindowOpen(
        "no window is open for this tenant",
        where=tenant,
        expected=f"a query in {again} s",
        retry_after=again,
    )
