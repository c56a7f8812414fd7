"""Check 10: every record in its window and tenant, and what it counts (docs/spec 9)."""

from collections import Counter

from ragaudit.encoding.errors import RejectedError
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.logged_records import NOT_COUNTED, RecordSummary


def check_containment(context: Context, found: Findings) -> None:
    """10: policy, window, tenant, index size and K of every record, and its withheld rows."""
    policy, named = context.policy, (context.policy.digest, context.policy.window)
    answers, withholding = Counter[str](), Counter[str]()
    for record in context.records.summaries():
        if (record.policy_digest, record.window) != named:
            found.fault("names another policy or window", record.name)
        if record.top_k > policy.top_k_max:
            found.fault(f"K is {record.top_k}, at most {policy.top_k_max}", record.name)
        _check_withheld(record, found, noised=policy.noised)
        answers[record.tenant] += 1
        withholding[record.tenant] += record.withheld > 0
        with found.attempt(record.name):
            tenant = context.registration(record.pseudonym).tenant
            rows = _rows(context, tenant, record.version)
            if record.tenant != tenant:
                raise RejectedError(f"tenant {record.tenant}", expected=f"{tenant}, as registered")
            # Else noise and selection would be proven over another number of rows than there are.
            if record.rows != rows:
                raise RejectedError(f"N is {record.rows}", expected=str(rows))
    most = context.terms.bounds["most_withheld_share"]
    for tenant, count in withholding.items():
        if count > most * answers[tenant]:
            found.fault(
                f"{count} of {answers[tenant]} answers of tenant {tenant} withhold rows, and the "
                f"verifier's terms allow a share of {most}"
            )
    found.summary = f"{len(context.records)} records, each in its account's tenant"


def _check_withheld(record: RecordSummary, found: Findings, *, noised: bool) -> None:
    """Rows that an answer withholds are counted where there is no noise, and nowhere else."""
    if noised and record.withheld != NOT_COUNTED:
        found.fault("counts withheld rows, in a window with noise", record.name)
    elif not noised and not 0 <= record.withheld <= record.top_k:
        counted = "no" if record.withheld == NOT_COUNTED else str(record.withheld)
        found.fault(f"counts {counted} withheld rows of {record.top_k}", record.name)


def _rows(context: Context, tenant: str, version: int) -> int:
    """N of a version of the tenant's index; without one, a missing input of check 7, 3 or 9."""
    if tenant not in context.tenants:
        raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
    # Without later versions a record that names one is check 9's alone.
    return context.stated_index(tenant, version if context.policy.retrieval.versions else 1).rows
