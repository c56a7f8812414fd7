"""The document lists of a window: built when it closes, and again for proofs (spec 5.16)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ragaudit.encoding.canonical_json import loads
from ragaudit.ledger.messages.documents import DocumentList, DocumentLives
from ragaudit.ledger.messages.records import Version
from ragaudit.prover.index.committed import row_digests
from ragaudit.prover.store import tables
from ragaudit.prover.window.records import entries_of
from sqlalchemy import Connection, select


@dataclass(frozen=True)
class _Rows:
    """What a list takes of a version of an index."""

    version: int
    id_keys: bytes = field(repr=False)
    row_digests: bytes = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)


def document_list(connection: Connection, window: str, tenant: str) -> DocumentList:
    """Return the list of a tenant's documents over the versions that the window's log has now.

    Args:
        connection: reads the prover's database; of the closing transaction, or after it.
        window: its name; its policy has ``owners``.
        tenant: of the policy.
    """
    # A version that is stored and not logged is none.
    logged = (Version.parse(entry.body) for entry in entries_of(connection, window, Version.KIND))
    last = max((body.version for body in logged if body.tenant == tenant), default=1)
    lives = DocumentLives(window, tenant)
    for version in _versions(connection, window, tenant, last):
        lives.add(version)
    return lives.listed()


def _versions(connection: Connection, window: str, tenant: str, last: int) -> Iterator[_Rows]:
    table = tables.index_version.c
    # Without rows and blindings, which are most of an index; and one version at a time.
    parts = table.id_keys, table.ids, table.salts, table.content_digests, table.columns
    for version in range(1, last + 1):
        place = (table.window == window, table.tenant == tenant, table.version == version)
        keys, ids, salts, contents, columns = connection.execute(select(*parts).where(*place)).one()
        digests = row_digests(loads(ids), salts, contents)
        yield _Rows(version, keys, digests, tuple(loads(columns)))
