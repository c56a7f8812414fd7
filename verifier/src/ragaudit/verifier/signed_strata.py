"""What can be said of signed strata without the records: every number follows from the sizes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ragaudit.encoding.decimals import parse_decimal
from ragaudit.ledger.messages.policy import AuditTerms, Policy
from ragaudit.privacy.sample import stratum_size, tenant_stratum_id
from ragaudit.verifier.procedure.run import stratum_sizes


def expected_sampling(policy: Policy, strata: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The member ``sampling`` of a verdict whose strata have these names and populations."""
    audit = policy.audit
    expected = [_stratum(audit, each) for each in strata]
    return {"mode": audit.mode, "beta": audit.beta, "strata": expected}


def disorder(policy: Policy, strata: Sequence[Mapping[str, Any]], records: int | None) -> str:
    """Why these are not the strata of a log with so many records; empty if they may be.

    Args:
        records: None where the tenants' strata need not hold all of them.
    """
    names = [each.get("id") for each in strata]
    tenants = [tenant_stratum_id(each) for each in policy.tenants]
    if names[: len(tenants)] != tenants:
        return "the strata do not begin with the policy's tenants"
    kind = "account:" if policy.audit.submitters_by == "account" else "receipts:"
    submitted = names[len(tenants) :]
    if not all(str(name).startswith(kind) for name in submitted) or len({*names}) < len(names):
        return "the strata after the tenants' are not those of submitted records"
    held = sum(_count(each, "population") for each in strata[: len(tenants)])
    if records is not None and held != records:
        return f"the tenants' strata hold {held} records, the log has {records}"
    return ""


def _stratum(audit: AuditTerms, signed: Mapping[str, Any]) -> dict[str, Any]:
    name, population = signed.get("id"), _count(signed, "population")
    rule = audit.tenants if str(name).startswith("tenant:") else audit.submitters
    beta = parse_decimal(audit.beta)
    sample = population if audit.mode == "A" else stratum_size(population, beta, rule)
    return {"id": name, "eta": rule.eta, **stratum_sizes(population, sample, beta)}


def _count(signed: Mapping[str, Any], name: str) -> int:
    """A signed number of records; 0 for what is none, which then differs."""
    found = signed.get(name)
    return found if type(found) is int and 0 <= found < 2**40 else 0
