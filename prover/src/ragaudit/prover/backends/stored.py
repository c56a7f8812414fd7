"""Documents in the prover's own database, in order of ingestion."""

from collections.abc import Iterator, Sequence

from ragaudit.ledger.log.database import Several
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.backends.interface import MIN_DOCUMENTS, Document
from ragaudit.prover.errors import IndexInUse, MalformedDocument
from ragaudit.prover.sequencer import Lookup
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import check_tenant_name
from ragaudit.prover.store.database import Store, insert_new, mark_stale
from ragaudit.prover.store.states import HOLDS_DOCUMENTS
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select

# SQLite binds at most 32,766 parameters in a statement.
_INSERT_ROWS = 5000
_FETCH_ROWS = 128
_DOCUMENT = tables.document.c
_FETCH = Several(
    select(_DOCUMENT.id, _DOCUMENT.content, _DOCUMENT.attributes).where(
        _DOCUMENT.tenant == bindparam("tenant")
    ),
    _DOCUMENT.id,
)

_Wanted = tuple[str, tuple[str, ...]]  # a tenant, and ids of its documents


class StoredDocuments:
    """A `Backend` over the table of documents in the prover's database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = Lookup(self._find)

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
                select(columns.position, columns.id, columns.content, columns.attributes)
                .where(columns.tenant == tenant, columns.position >= start)
                .order_by(columns.position)
                .limit(rows)
            )
            with self._store.read() as connection:
                found = connection.execute(query).all()
            if not found:
                return
            yield [Document(*row[1:]) for row in found]
            # By position, not OFFSET: each page costs the same however large the tenant is.
            start = found[-1].position + 1

    def dimension(self) -> None:
        """Return None: texts are embedded when an index is committed."""

    def metric(self, tenant: str) -> None:
        """Return None: there is no other ranking that a window's would have to repeat."""

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of ``ids`` in the order of ``ids``; None for one that is gone.

        Args:
            ids: distinct, at most those of one answer.
        """
        found = self._documents.get((tenant, tuple(ids)))
        assert found is not None  # `_find` returns a list for each
        return found

    def _find(self, wanted: Sequence[_Wanted]) -> dict[_Wanted, list[Document | None]]:
        """Return what is there of several answers' documents: of a tenant in one search."""
        found: dict[tuple[str, str], Document] = {}
        with self._store.look() as connection:
            for tenant in {tenant for tenant, _ in wanted}:
                names = list({name for of, ids in wanted if of == tenant for name in ids})
                for at in range(0, len(names), _FETCH_ROWS):
                    part = names[at : at + _FETCH_ROWS]
                    for row in _FETCH.rows(connection, part, tenant=tenant):
                        found[tenant, row[0]] = Document(*row)
        return {(of, ids): [found.get((of, name)) for name in ids] for of, ids in wanted}

    def check(self) -> None:
        """Check that the database answers."""
        self._store.check()

    def close(self) -> None:
        """Nothing is held open: the database is the service's."""

    def add(self, tenant: str, documents: Sequence[Document], *, replace: bool = False) -> int:
        """Store documents of a tenant, in this order, and return how many it then has.

        All or nothing. The first call for a tenant creates it.

        Args:
            replace: forget the tenant's earlier documents.

        Raises:
            MalformedDocument: two documents have one id, one has no words, or the tenant would
                have fewer than 2.
            MalformedRequest: not a possible name of a tenant.
            IndexInUse: a window that is not closed has committed to the tenant's documents.
        """
        check_tenant_name(tenant)
        names = tables.tenant.c.name
        # One transaction with the check: no window can commit between it and the change.
        with self._store.write() as connection:
            _check_free(connection, tenant)
            insert_new(connection, tables.tenant, [{"name": tenant}])
            # Who else adds to the tenant waits: positions follow each other.
            connection.execute(select(names).where(names == tenant).with_for_update())
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
                {
                    "tenant": tenant,
                    "position": at,
                    "id": document.id,
                    "content": document.content,
                    "attributes": document.attributes,
                }
                for at, document in enumerate(documents, start)
            ]
            for at in range(0, len(rows), _INSERT_ROWS):
                connection.execute(insert(tables.document), rows[at : at + _INSERT_ROWS])
            # In the same transaction: no change is forgotten by the next version.
            mark_stale(connection, tenant)
        return total


def _of(tenant: str) -> ColumnElement[bool]:
    return tables.document.c.tenant == tenant


def _count(connection: Connection, tenant: str) -> int:
    return connection.scalar(select(func.count()).where(_of(tenant))) or 0


def _check_free(connection: Connection, tenant: str) -> None:
    """Check that no window which is not closed names the tenant in its policy.

    Its answers must come from the documents that it has committed to. Where the policy allows
    versions, what changed is withdrawn until the next one.
    """
    windows = tables.window.c
    query = select(windows.name, windows.policy).where(windows.state.in_(HOLDS_DOCUMENTS))
    for user in connection.execute(query):
        policy = Policy.parse(bytes(user.policy))
        if tenant in policy.tenants and not policy.retrieval.versions:
            raise IndexInUse(
                f"window {user.name} has committed to the documents",
                where=f"tenant {tenant}",
                expected="ingest before a window is created, or after it is closed; "
                "ragaudit prover window abandon ends one that is not countersigned",
            )


def _check_ids(connection: Connection, tenant: str, documents: Sequence[Document]) -> None:
    ids = set(connection.scalars(select(tables.document.c.id).where(_of(tenant))))
    for document in documents:
        # A blank text has no embedding; better found now than when a window commits.
        if not document.content.strip():
            raise MalformedDocument("empty content", where=f"document {document.id}")
        if document.id in ids:
            raise MalformedDocument(
                "duplicate document id",
                where=f"tenant {tenant}: {document.id}",
                expected="unique ids",
            )
        ids.add(document.id)
