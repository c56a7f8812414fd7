"""What operators look at."""

from typing import Any

from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.service import Service
from ragaudit.prover.store import tables
from ragaudit.prover.window.windows import Window
from sqlalchemy import func, select


def window_status(service: Service, window: Window) -> dict[str, Any]:
    """Return where a window stands. Times are Unix seconds."""
    policy = Policy.parse(window.policy)
    busy = service.driver.progress.get(window.name)
    registration, record = tables.registration, tables.record
    with service.store.read() as connection:
        accounts = connection.scalar(
            select(func.count()).where(registration.c.window == window.name)
        )
        records = connection.scalar(select(func.count()).where(record.c.window == window.name))
    return {
        "window": window.name,
        "state": window.state,
        "start": policy.start,
        "end": policy.end,
        "sampling_instant": policy.sampling_instant,
        "sigma": policy.sigma,
        "tenants": list(policy.tenants),
        "accounts": accounts,
        "records": records,
        "unusable": window.unusable,
        "stopped": window.stopped,
        "handed_over": window.handed_over,
        "instants": list(policy.activation_instants),
        "last_error": service.driver.failures.get(window.name),
        "busy": None if busy is None else {"with": busy[0], "percent": int(100 * busy[1])},
    }
