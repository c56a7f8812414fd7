"""What was audited, for the reader of a verdict (docs/spec/10-verdict.md §10.3)."""

from collections.abc import Mapping
from typing import Any

from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput


def scope(context: Context) -> Mapping[str, Any]:
    """Return the member ``scope``: digest, period, tenants, limits, sampling and keys of a policy.

    Empty where the policy cannot be read; a tenant's ``rows`` is null where the opening has none.
    """
    try:
        policy = context.policy
    except MissingInput:
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
    except MissingInput:
        return None
    return opened[tenant].rows if tenant in opened else None
