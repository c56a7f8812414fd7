"""Committed indexes in the prover's database: what they hold opens every row's commitment."""

from typing import Any

import numpy as np
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.parameters import B
from ragaudit.ledger.errors import CorruptLog
from ragaudit.ledger.messages.row_openings import SQUARES
from ragaudit.prover.index.committed import VERSION, CommittedIndex, by_row
from ragaudit.prover.store import tables
from sqlalchemy import Connection, Row, insert, select


def save_index(connection: Connection, window: str, index: CommittedIndex, marks: int = 0) -> None:
    """Store a committed index: what it holds opens every row's commitment.

    Args:
        connection: of a transaction of the prover's database.
        window: that committed to it; it has not this version of this tenant yet.
        marks: of its tenant before the documents were read, see `staleness`.
    """
    connection.execute(
        insert(tables.index_version).values(
            window=window,
            tenant=index.tenant,
            version=index.version,
            dimension=index.dimension,
            ids=dumps(list(index.ids)),
            content_digests=index.content_digests,
            columns=dumps(list(index.columns)),
            norm_bound=index.norm_bound,
            rows=index.rows.tobytes(),
            blindings=index.blindings.tobytes(),
            salts=index.salts,
            commitments=index.commitments,
            root=index.root,
            proof=index.proof,
            marks=marks,
            document_secret=index.document_secret or None,
            id_keys=index.id_keys or None,
        )
    )


def load_indexes(connection: Connection, window: str) -> dict[str, CommittedIndex]:
    """Return the indexes of a window's opening, by tenant in rising order.

    Args:
        window: those of its tenants that are committed to so far.
    """
    table = tables.index_version
    query = select(table).where(table.c.window == window, table.c.version == VERSION)
    rows = connection.execute(query.order_by(table.c.tenant))
    return {row.tenant: _stored(row) for row in rows}


def load_index(connection: Connection, window: str, tenant: str, version: int) -> CommittedIndex:
    """Return one version of a tenant's index.

    Args:
        window, tenant, version: of a logged record, so that it is stored.

    Raises:
        CorruptLog: it is not.
    """
    index = find_index(connection, window, tenant, version)
    if index is None:
        raise CorruptLog("an index is missing", where=f"{window}: {tenant}, version {version}")
    return index


def find_index(
    connection: Connection, window: str, tenant: str, version: int
) -> CommittedIndex | None:
    """Return one version of a tenant's index, None if it is not stored."""
    table = tables.index_version
    row = connection.execute(
        select(table).where(
            table.c.window == window, table.c.tenant == tenant, table.c.version == version
        )
    ).one_or_none()
    return None if row is None else _stored(row)


def last_index(connection: Connection, tenant: str) -> CommittedIndex | None:
    """Return the index of a tenant that was committed to last, None if there is none.

    Args:
        tenant: of any window, also one that was refused or abandoned.
    """
    table, windows = tables.index_version, tables.window
    rows = connection.execute(
        select(table)
        .join(windows, windows.c.name == table.c.window)
        .where(table.c.tenant == tenant)
        # By creation, not by time of commitment: clocks may be set, numbers are never reused.
        .order_by(windows.c.number.desc(), table.c.version.desc())
        .limit(1)
    )
    row = rows.one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Row[Any]) -> CommittedIndex:
    kind = np.int8 if row.norm_bound == B else np.int16
    return CommittedIndex(
        tenant=row.tenant,
        ids=tuple(loads(row.ids)),
        content_digests=row.content_digests,
        rows=np.frombuffer(row.rows, dtype=kind).reshape(-1, row.dimension + SQUARES),
        blindings=by_row(row.blindings),
        salts=row.salts,
        commitments=row.commitments,
        root=row.root,
        proof=row.proof,
        version=row.version,
        columns=tuple(loads(row.columns)),
        document_secret=row.document_secret or b"",
        id_keys=row.id_keys or b"",
    )
