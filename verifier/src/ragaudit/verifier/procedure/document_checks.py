"""Check 31: whose documents the indexes hold, and since when one is gone (docs/spec 5.16).

The verifier does not know which document a key is of. It sees that there is one key for each, that
a position keeps its own, and that the lists in the log say what the indexes do.
"""

from typing import Any, Final

from ragaudit.ledger.messages.documents import DocumentList, DocumentLives, Documents
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.members import known

MOST_VERSIONS: Final = 16
"""That a verdict counts rows of, the last ones of each tenant; `documents` lists over all."""


def document_list(context: Context, tenant: str) -> DocumentList:
    """Return the document list that a tenant's indexes give.

    Args:
        tenant: of the policy.

    Raises:
        CommitmentRejected: two positions with one id key, or one with two.
        MissingInput: an index cannot be read; its check says why.
    """
    lives = DocumentLives(context.policy.window, tenant)
    for version in _versions(context, tenant):
        lives.add(context.index(tenant, version))
    return lives.listed()


def check_documents(context: Context, found: Findings) -> None:
    """31: id keys are one for each document, and the log lists them as the indexes have them."""
    policy = context.policy
    # Where the last entry is no close, nobody knows which ones must be the lists: check 5 says so.
    _ = context.close
    stated = [(f"entry {e.index}", Documents.parse(e.body)) for e in context.log.lists]
    if tuple(body.tenant for _, body in stated) != policy.tenants:
        expected = ", ".join(policy.tenants)
        found.fault(f"the log does not end with one document list each, in order, of {expected}")
    for tenant in policy.tenants:
        with found.attempt(f"tenant {tenant}"):
            made = document_list(context, tenant).entry
            context.stated.listed[tenant] = made.documents
            for where, body in stated:
                if body.tenant == tenant:
                    _compare(body, made, where, found)
    count = sum(context.stated.listed.values())
    found.summary = f"{count} documents listed, each with the versions in which it was live"


def _compare(stated: Documents, made: Documents, where: str, found: Findings) -> None:
    if stated.window != made.window:
        found.fault("names another window", where)
    if stated.version != made.version:
        found.fault(f"names version {stated.version}, the last is {made.version}", where)
    # One left out could be denied; one too many would be made up.
    if stated.documents != made.documents:
        found.fault(f"lists {stated.documents} documents, the index has {made.documents}", where)
    elif stated.list_root != made.list_root:
        found.fault("other documents or lives, or another order, than the indexes give", where)


def listed_documents(context: Context) -> list[dict[str, Any]] | None:
    """Return the member ``documents`` of a verdict: how many rows and documents there are (10.14).

    Returns:
        None for a policy without ``owners``, for one that cannot be read, and before the window.
        Numbers are null where an index is not at hand, or its documents were not listed.
    """
    policy = known(lambda: context.policy)
    if policy is None or policy.owners is None or context.now is not None:
        return None
    return [_of_tenant(context, tenant) for tenant in policy.tenants]


def _of_tenant(context: Context, tenant: str) -> dict[str, Any]:
    versions = known(lambda: _versions(context, tenant)) or (1,)
    listed = context.stated.listed.get(tenant)
    counted = [_of_version(context, tenant, version) for version in versions[-MOST_VERSIONS:]]
    return {"tenant": tenant, "listed": listed, "versions": counted}


def _of_version(context: Context, tenant: str, version: int) -> dict[str, Any]:
    marks = context.policy.marks_null_rows
    return {
        "version": version,
        "rows": known(lambda: context.index(tenant, version).rows),
        "marked": known(lambda: context.column_arrays(tenant, version).null_rows)
        if marks
        else None,
    }


def _versions(context: Context, tenant: str) -> tuple[int, ...]:
    return tuple(version for of, version in context.index_places if of == tenant)
