"""Where the documents of the tenants are: an interface, and the prover's own database behind it.

The prover embeds, scores and selects itself, so that all N rows get noise: a backend only lists
the documents in a fixed order once, when the window commits, and later fetches some by id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from ragaudit.ledger.log.prepared import Prepared
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import BackendUnavailable, IndexInUse, MalformedDocument
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import check_tenant_name
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import HOLDS_DOCUMENTS
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select

MAX_ID_BYTES = 512
MAX_CONTENT_BYTES = 65_536
MIN_DOCUMENTS = 2
# SQLite binds at most 32,766 parameters in a statement.
_INSERT_ROWS = 5000
_FETCH_ROWS = 100


@dataclass(frozen=True)
class Document:
    """A row of an index.

    Attributes:
        id: 1 to 512 bytes of UTF-8, unique in its tenant.
        content: text that is not blank, at most 65,536 bytes of UTF-8.
        columns: public columns; version 1 has none.

    Raises:
        MalformedDocument: anything else.
    """

    id: str
    content: str = field(repr=False)
    columns: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(_utf8(self.id, "id")) <= MAX_ID_BYTES:
            raise MalformedDocument("id has a wrong length", expected=f"1 to {MAX_ID_BYTES} bytes")
        # A blank text has no embedding; better found now than when a window commits.
        if not self.content.strip():
            raise MalformedDocument("empty content", where=f"document {self.id}")
        if len(_utf8(self.content, f"document {self.id}")) > MAX_CONTENT_BYTES:
            raise MalformedDocument(
                "content too long",
                where=f"document {self.id}",
                expected=f"at most {MAX_CONTENT_BYTES} bytes",
            )
        # An index commitment of version 1 has no public columns (spec 5.4).
        if self.columns:
            raise MalformedDocument(
                "public columns are not supported", where=f"document {self.id}", expected="{}"
            )


class Backend(Protocol):
    """A store of documents by tenant.

    Every method raises BackendUnavailable when the store cannot be reached.
    """

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have documents, rising."""

    def count(self, tenant: str) -> int:
        """Return N; 0 for a tenant without documents."""

    def pages(self, tenant: str, rows: int) -> Iterator[Sequence[Document]]:
        """Return all documents, page by page, in an order that does not depend on their content.

        Args:
            rows: the largest number of documents in a page.
        """

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        """Return the documents of ``ids`` in the order of ``ids``.

        Args:
            ids: distinct, of documents that a window committed to.

        Raises:
            BackendUnavailable: one of them is gone.
        """

    def check(self) -> None:
        """Check that the store answers."""


def check_servable(backend: Backend, top_k_max: int) -> list[str]:
    """Return the tenants of a backend, rising, if a window can serve all of them.

    Args:
        backend: lists the tenants and counts their documents.
        top_k_max: K_max of the window's policy; every N must exceed it (check 1).

    Raises:
        MalformedDocument: there are none, or one has too few documents for K_max: an answer would
            show its whole index, whatever the noise.
    """
    tenants = list(backend.tenants())
    if not tenants:
        raise MalformedDocument("no tenant has documents", expected="ragaudit prover ingest")
    for tenant in tenants:
        count = backend.count(tenant)
        if count < max(top_k_max + 1, MIN_DOCUMENTS):
            raise MalformedDocument(
                f"{count} documents",
                where=f"tenant {tenant}",
                expected=f"more than top_k_max = {top_k_max}",
            )
    return tenants


class StoredDocuments:
    """A `Backend` over the table of documents in the prover's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def tenants(self) -> list[str]:
        """Return the tenants that have documents, rising."""
        query = select(tables.document.c.tenant).distinct().order_by(tables.document.c.tenant)
        with self._store.read() as connection:
            return list(connection.scalars(query))

    def count(self, tenant: str) -> int:
        """Return N; 0 for a tenant without documents."""
        with self._store.read() as connection:
            return _count(connection, tenant)

    def pages(self, tenant: str, rows: int) -> Iterator[list[Document]]:
        """Return all documents in order of ingestion, ``rows`` of them or fewer at a time."""
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
            # By position, not OFFSET: each page costs the same however large the tenant is.
            start += len(page)

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document]:
        """Return the documents of ``ids`` in the order of ``ids``.

        Args:
            ids: distinct, at most those of one answer.

        Raises:
            BackendUnavailable: one of them is gone.
        """
        contents: dict[str, str] = {}
        with self._store.read() as connection:
            for at in range(0, len(ids), _FETCH_ROWS):
                part = {_id(n): name for n, name in enumerate(ids[at : at + _FETCH_ROWS])}
                contents |= dict(_fetch(len(part)).rows(connection, tenant=tenant, **part))
        if missing := set(ids) - set(contents):
            raise BackendUnavailable(f"{len(missing)} committed documents are gone", where=tenant)
        return [Document(name, contents[name]) for name in ids]

    def check(self) -> None:
        """Check that the database answers."""
        self._store.check()

    def add(self, tenant: str, documents: Sequence[Document], *, replace: bool = False) -> int:
        """Store documents of a tenant, in this order, and return how many it then has.

        All or nothing. The first call for a tenant creates it.

        Args:
            replace: forget the tenant's earlier documents.

        Raises:
            MalformedDocument: two documents have one id, or the tenant would have fewer than 2.
            MalformedRequest: not a possible name of a tenant.
            IndexInUse: a window that is not closed has committed to the tenant's documents.
        """
        check_tenant_name(tenant)
        # One transaction with the check: no window can commit between it and the change.
        with self._store.write() as connection:
            _check_free(connection, tenant)
            _ensure_tenant(connection, tenant)
            if replace:
                connection.execute(delete(tables.document).where(_of(tenant)))
            # Documents are never deleted one by one, so their number is the next position.
            start = _count(connection, tenant)
            _check_ids(connection, tenant, documents)
            total = start + len(documents)
            if total < MIN_DOCUMENTS:
                raise MalformedDocument(
                    f"{total} documents", where=f"tenant {tenant}", expected="2 or more"
                )
            rows = [
                {"tenant": tenant, "position": at, "id": document.id, "content": document.content}
                for at, document in enumerate(documents, start)
            ]
            for at in range(0, len(rows), _INSERT_ROWS):
                connection.execute(insert(tables.document), rows[at : at + _INSERT_ROWS])
        return total


@cache
def _fetch(count: int) -> Prepared:
    """Return the query for ``count`` documents; built once, as it runs in every answer."""
    columns = tables.document.c
    names: list[Any] = [bindparam(_id(number)) for number in range(count)]
    return Prepared(
        select(columns.id, columns.content).where(
            columns.tenant == bindparam("tenant"), columns.id.in_(names)
        )
    )


def _id(number: int) -> str:
    return f"id{number}"


def _of(tenant: str) -> ColumnElement[bool]:
    return tables.document.c.tenant == tenant


def _count(connection: Connection, tenant: str) -> int:
    return connection.scalar(select(func.count()).where(_of(tenant))) or 0


def _check_free(connection: Connection, tenant: str) -> None:
    """Check that no window which is not closed names the tenant in its policy.

    Its answers must come from the documents that it has committed to.
    """
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
    ids = set(connection.scalars(select(tables.document.c.id).where(_of(tenant))))
    for document in documents:
        if document.id in ids:
            raise MalformedDocument(
                "duplicate document id",
                where=f"tenant {tenant}: {document.id}",
                expected="unique ids",
            )
        ids.add(document.id)


def _utf8(text: str, where: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedDocument("text has lone surrogates", where=where) from None
