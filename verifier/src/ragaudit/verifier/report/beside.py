"""What stands beside the claims of a verdict: other windows, withheld rows, documents."""

from collections.abc import Mapping
from typing import Any, Final

from ragaudit.ledger.messages.predicate import Predicate

WITHHELD: Final = (
    "In {answers} of {records} answers the provider withheld {rows} selected rows in all, for "
    "{accounts_concerned} accounts: it says that these were deleted or changed in the store. That "
    "is its word."
)

TOGETHER: Final = (
    "At the same time the provider answered in {count} other windows. With those that name a "
    "tenant of this one, everything that is answered about a document has {together}; if other "
    "tenants are the same under other names, which nobody outside can tell, {renamed}."
)


def scope(predicate: Predicate) -> Mapping[str, Any]:
    """Return what was audited, and which other windows there were at the same time.

    Args:
        predicate: of a verdict.
    """
    beside = {} if predicate.overlaps is None else {"overlaps": predicate.overlaps}
    return {**predicate.scope, **beside}


def counts(predicate: Predicate) -> Mapping[str, Any]:
    """Return what was counted, and where owners check, the documents of each tenant.

    Args:
        predicate: of a verdict.
    """
    if predicate.documents is None:
        return predicate.counts
    documents = [_of_tenant(one) for one in predicate.documents if isinstance(one, Mapping)]
    return {**predicate.counts, "documents": documents}


def _of_tenant(stated: Mapping[str, Any]) -> Mapping[str, Any]:
    versions = stated.get("versions")
    listed = versions if isinstance(versions, list) else []
    rows = [_rows_of(one) for one in listed if isinstance(one, Mapping)]
    return {"id": stated.get("tenant"), "listed": stated.get("listed"), "versions": rows}


def _rows_of(version: Mapping[str, Any]) -> str:
    marked = version.get("marked")
    gone = "" if marked is None else f", {marked} of them marked as deleted"
    return f"{version.get('rows')} rows in version {version.get('version')}{gone}"


def overlapping(predicate: Predicate) -> tuple[str, ...]:
    """Return a sentence about windows at the same time, none where there are none.

    Args:
        predicate: of a verdict.
    """
    match predicate.overlaps:
        case {"windows": list(found), "together": dict(one), "together_if_renamed": dict(other)}:
            text = TOGETHER.format(count=len(found), together=_cost(one), renamed=_cost(other))
            return (text,)
    return ()


def _cost(stated: Mapping[str, Any]) -> str:
    if stated.get("epsilon") is None:
        return f"no finite epsilon ({stated.get('reason')})"
    return f"epsilon {stated['epsilon']} at delta {stated.get('delta')}"


def withheld(predicate: Predicate) -> str:
    """Return how many rows the answers of a window withheld; empty with noise, and where unknown.

    Args:
        predicate: of its verdict.
    """
    stated = predicate.withheld or {}
    counts = {name: stated.get(name) for name in ("answers", "rows", "accounts_concerned")}
    counts["records"] = predicate.counts.get("records")
    # Whoever signed it chose what stands there.
    return WITHHELD.format_map(counts) if all(type(n) is int for n in counts.values()) else ""
