"""The lists that a log ends with, of accounts and of documents (spec 5.14, 5.16).

They are built when the window closes, and again for proofs.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import TooEarly
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.messages.accounts import AccountIndex, AccountProof, ListedRecord
from ragaudit.ledger.messages.documents import DocumentList, DocumentLives
from ragaudit.ledger.messages.entries import Accounts, Record, Version
from ragaudit.ledger.messages.identifiers import pseudonym
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import OpenedEntry
from ragaudit.prover.errors import WrongState
from ragaudit.prover.index.committed import row_digests
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.records import entries_of
from ragaudit.prover.window.windows import Window
from sqlalchemy import Connection, select

_RETRY_SECONDS = 60
_ROWS = 1000


def account_index(connection: Connection, window: str) -> AccountIndex:
    """Return the index of all accounts and their records, as the window's log has them now.

    Args:
        connection: reads the prover's database; of the closing transaction, or after it.
        window: its name.
    """
    registered = select(tables.registration.c.pseudonym).where(
        tables.registration.c.window == window
    )
    return AccountIndex.build(
        window, connection.scalars(registered).all(), _records(connection, window)
    )


def _records(connection: Connection, window: str) -> Iterator[ListedRecord]:
    entry = tables.entry.c
    query = (
        select(entry.position, entry.salt, entry.body)
        .where(entry.window == window, entry.kind == Record.KIND)
        .order_by(entry.position)
    )
    # Some at a time: a driver may hold all rows of a query in memory.
    for position, salt, body in connection.execute(query.execution_options(yield_per=_ROWS)):
        # Of the body, which is what the log commits to, and not of a table beside it.
        yield ListedRecord(position, salt, Record.parse(body).pseudonym)


class AccountProofs:
    """Proofs of what the logs of closed windows say of accounts. Safe to use from several threads.

    The index of the window that was asked for last is kept: many accounts ask for one window.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: AccountIndex | None = None

    def prove(self, window: Window, account: Account, checkpoints: CheckpointStore) -> AccountProof:
        """Return the proof of how many records an account has, and which.

        Args:
            window: whose log is asked.
            account: one that was never registered gets a proof of that.
            checkpoints: of the window's log.

        Raises:
            WrongState: the policy asks for no account index.
            TooEarly: the log has not ended, or its end is not cosigned yet.
        """
        policy = Policy.parse(window.policy)
        if not policy.account_index:
            raise WrongState("the policy asks for no account index", where=window.name)
        with self._store.read() as connection:
            logged = entries_of(connection, window.name, Accounts.KIND)
        proof = checkpoints.tlog_proof(logged[0].index) if logged else None
        if proof is None:
            raise TooEarly(
                "the window's log has not ended", where=window.name, retry_after=_RETRY_SECONDS
            )
        entry = OpenedEntry(logged[0].salt, logged[0].body)
        who = pseudonym(window.pseudonym_key, window.name, account.name, account.user)
        return AccountProof.of(policy.origin, who, self._index(window.name), entry, proof)

    def _index(self, window: str) -> AccountIndex:
        # Under the lock: all accounts ask at once when a window has closed, and one builds it.
        with self._lock:
            if self._kept is None or self._kept.window != window:
                with self._store.read() as connection:
                    self._kept = account_index(connection, window)
            return self._kept


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
