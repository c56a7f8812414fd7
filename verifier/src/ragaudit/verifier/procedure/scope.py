"""What was audited, for the reader of a verdict (docs/spec/10-verdict.md §10.3)."""

from collections.abc import Mapping
from typing import Any

from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Lacking


def scope(context: Context) -> Mapping[str, Any]:
    """The member ``scope``: the policy's digest, period, tenants, limits, sampling terms and keys.

    Empty where the policy cannot be read; a tenant's ``rows`` is null where the opening has none.
    """
    try:
        policy = context.policy
    except Lacking:
        return {}
    document = policy.to_json()
    return {
        "policy_digest": policy.digest.hex(),
        "start": policy.start,
        "end": policy.end,
        "sampling_instant": policy.sampling_instant,
        "tenants": [{"id": each, "rows": _rows(context, each)} for each in policy.tenants],
        "top_k_max": policy.top_k_max,
        "queries_per_account": policy.queries_per_account,
        "slots": policy.slots,
        "audit": document["audit"],
        "keys": document["keys"],
    }


def _rows(context: Context, tenant: str) -> int | None:
    try:
        opened = context.opened
    except Lacking:
        return None
    return opened[tenant].rows if tenant in opened else None
