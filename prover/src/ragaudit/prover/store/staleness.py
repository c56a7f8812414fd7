"""Which tenants' documents changed since they were committed to."""

from ragaudit.prover.store import tables
from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

_TABLE = tables.stale


def mark_stale(connection: Connection, tenant: str) -> None:
    """Note that the documents of a tenant changed.

    Args:
        connection: of a transaction that writes.
    """
    # In one statement: two writers may both be the first to mark a tenant.
    upsert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(
        upsert(_TABLE)
        .values(tenant=tenant, marks=1)
        .on_conflict_do_update(index_elements=[_TABLE.c.tenant], set_={"marks": _TABLE.c.marks + 1})
    )


def marks_of(connection: Connection, tenant: str) -> int:
    """Return how often the documents of a tenant changed; never falls."""
    marks: int | None = connection.scalar(select(_TABLE.c.marks).where(_TABLE.c.tenant == tenant))
    return marks or 0


def taken_marks(connection: Connection, window: str, tenant: str) -> int:
    """Return which changes the last version of a window's index has taken up: the first so many.

    Args:
        window: that has committed to the tenant's documents.
    """
    columns = tables.index_version.c
    of = (columns.window == window) & (columns.tenant == tenant)
    marks: int | None = connection.scalar(select(func.max(columns.marks)).where(of))
    return marks or 0


def note_taken(connection: Connection, window: str, tenant: str, version: int, marks: int) -> None:
    """Note that a version has everything that changed so far.

    Args:
        version: of the tenant's index in this window.
        marks: as `marks_of` returned them before the documents were read.
    """
    columns = tables.index_version.c
    of = (columns.window == window) & (columns.tenant == tenant) & (columns.version == version)
    connection.execute(update(tables.index_version).where(of).values(marks=marks))
