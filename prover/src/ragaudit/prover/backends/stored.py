"""The in-process index: documents in the prover's own database."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from ragaudit.ledger.log.prepared import Prepared
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.backends.base import Document
from ragaudit.prover.errors import BackendUnavailable, IndexInUse, MalformedDocument
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import check_tenant_name
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import HOLDS_DOCUMENTS
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select

MIN_DOCUMENTS = 2
# SQLite binds at most 32,766 parameters in a statement.
_INSERT_ROWS = 5000
_FETCH_ROWS = 100


class StoredDocuments:
    """A `base.Backend` over the table of documents."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def tenants(self) -> list[str]:
        query = select(tables.document.c.tenant).distinct().order_by(tables.document.c.tenant)
        with self._store.read() as connection:
            return list(connection.scalars(query))

    def count(self, tenant: str) -> int:
        with self._store.read() as connection:
            return _count(connection, tenant)

    def pages(self, tenant: str, rows: int) -> Iterator[list[Document]]:
        columns = tables.document.c
        start = 0
        while True:
            query = (
                select(columns.id, columns.content)
                .where(columns.tenant == tenant, columns.position >= start)
                .order_by(columns.position)
                .limit(rows)
            )
            with self._store.read() as connection:
                page = [Document(row.id, row.content) for row in connection.execute(query)]
            if not page:
                return
            yield page
            start += len(page)

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        found: dict[str, str] = {}
        with self._store.read() as connection:
            for at in range(0, len(ids), _FETCH_ROWS):
                part = {_id(n): each for n, each in enumerate(ids[at : at + _FETCH_ROWS])}
                found |= dict(_fetch(len(part)).rows(connection, tenant=tenant, **part))
        if missing := set(ids) - set(found):
            raise BackendUnavailable(f"{len(missing)} committed documents are gone", where=tenant)
        return [Document(each, found[each]) for each in ids]

    def check(self) -> None:
        self._store.check()

    def add(self, tenant: str, documents: Sequence[Document], *, replace: bool = False) -> int:
        """Store documents of a tenant, in this order, and return how many it then has.

        All or nothing. The first call for a tenant creates it.

        Args:
            replace: forget the tenant's earlier documents.

        Raises:
            MalformedDocument: two documents have one id, or the tenant would have fewer than 2.
            IndexInUse: a window that is not closed has committed to the tenant's documents.
        """
        check_tenant_name(tenant)
        with self._store.write() as connection:
            _check_free(connection, tenant)
            _ensure_tenant(connection, tenant)
            if replace:
                connection.execute(delete(tables.document).where(_of(tenant)))
            start = _count(connection, tenant)
            _check_ids(connection, tenant, documents)
            total = start + len(documents)
            if total < MIN_DOCUMENTS:
                raise MalformedDocument(
                    f"{total} documents", where=f"tenant {tenant}", expected="2 or more"
                )
            rows = [
                {"tenant": tenant, "position": start + i, "id": each.id, "content": each.content}
                for i, each in enumerate(documents)
            ]
            for at in range(0, len(rows), _INSERT_ROWS):
                connection.execute(insert(tables.document), rows[at : at + _INSERT_ROWS])
        return total


@cache
def _fetch(count: int) -> Prepared:
    """The query for ``count`` documents of a tenant; built once, for it runs in every answer."""
    columns = tables.document.c
    wanted: list[Any] = [bindparam(_id(number)) for number in range(count)]
    return Prepared(
        select(columns.id, columns.content).where(
            columns.tenant == bindparam("tenant"), columns.id.in_(wanted)
        )
    )


def _id(number: int) -> str:
    return f"id{number}"


def _of(tenant: str) -> ColumnElement[bool]:
    return tables.document.c.tenant == tenant


def _count(connection: Connection, tenant: str) -> int:
    return connection.scalar(select(func.count()).where(_of(tenant))) or 0


def _check_free(connection: Connection, tenant: str) -> None:
    """No window holds the documents: none that is not closed names the tenant in its policy."""
    windows = tables.window.c
    query = select(windows.name, windows.policy).where(windows.state.in_(HOLDS_DOCUMENTS))
    for user in connection.execute(query):
        if tenant in Policy.parse(bytes(user.policy)).tenants:
            raise IndexInUse(
                f"window {user.name} has committed to the documents",
                where=f"tenant {tenant}",
                expected="ingest before a window is created, or after it is closed; "
                "ragaudit prover window abandon ends one that is not countersigned",
            )


def _ensure_tenant(connection: Connection, tenant: str) -> None:
    names = tables.tenant.c.name
    if connection.scalar(select(names).where(names == tenant)) is None:
        connection.execute(insert(tables.tenant).values(name=tenant))


def _check_ids(connection: Connection, tenant: str, documents: Sequence[Document]) -> None:
    have = set(connection.scalars(select(tables.document.c.id).where(_of(tenant))))
    for each in documents:
        if each.id in have:
            raise MalformedDocument(
                "duplicate document id", where=f"tenant {tenant}: {each.id}", expected="unique ids"
            )
        have.add(each.id)
