"""What the owner of a tenant's documents is shown: proofs from committed indexes (spec 5.16, 8.6).

Everything but texts comes from what was committed. Nothing is answered of another tenant: the key
names the tenant, and no request does.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from ragaudit.encoding.errors import NotFound, TooEarly
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.messages.columns import NULL_ROW
from ragaudit.ledger.messages.commitments import content_digest
from ragaudit.ledger.messages.documents import (
    DocumentList,
    DocumentProof,
    ListedDocument,
    ProvenIndex,
    ProvenIndexRow,
    RowProof,
    RowProofs,
    id_key,
)
from ragaudit.ledger.messages.entries import Documents, Version
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import ProvenEntry, ProvenOpening
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.errors import LogOpen, UnknownTenant, WrongState
from ragaudit.prover.index.committed import VERSION, CommittedIndex, IndexForm, load_index, part
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.lifecycle.retention import check_kept
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import FINAL, State
from ragaudit.prover.window.lists import document_list
from ragaudit.prover.window.records import entries_of
from ragaudit.prover.window.windows import Window, Windows

__all__ = ["Owning"]

_REPLY_BYTES: Final = 2**25
"""Of the rows of one reply; a client reads twice as much."""
_ROW_BYTES: Final = 8192  # of a row's JSON beside its text, attributes and vector
_RETRY_SECONDS: Final = 60
_EMPTY: Final = content_digest("", "")


@dataclass(frozen=True)
class _Owned:
    """A countersigned window that has owners, and the tenant whose owner asks."""

    window: Window
    policy: Policy
    tenant: str
    checkpoints: CheckpointStore = field(repr=False)
    versions: list[Entry] = field(repr=False)  # of the tenant, by rising version from 2 on

    @property
    def last(self) -> int:
        """The last version that the log has."""
        return VERSION + len(self.versions)

    def proven(self, entry: Entry) -> ProvenEntry:
        """Return an entry with its proof; TooEarly while no cosigned checkpoint has it."""
        proof = self.checkpoints.tlog_proof(entry.index)
        if proof is None:
            raise self.early()
        return ProvenEntry.of(entry.salt, entry.body, proof)

    def opening(self) -> ProvenOpening:
        """Return the opening with its proof; raises as `proven`."""
        assert self.window.opening_salt is not None and self.window.opening_body is not None
        proof = self.checkpoints.tlog_proof(0)
        if proof is None:
            raise self.early()
        return ProvenOpening.of(self.window.opening_salt, self.window.opening_body, proof)

    def early(self) -> TooEarly:
        return TooEarly(
            "not cosigned yet", where=self.window.name, retry_after=_RETRY_SECONDS,
            expected="the next cosigned checkpoint",
        )  # fmt: skip


@dataclass(frozen=True)
class _Kept:
    """A version of an index that was asked for last, and where it has each id."""

    place: tuple[str, str, int]
    index: CommittedIndex = field(repr=False)
    positions: dict[str, int] = field(repr=False)


class Owning:
    """Proofs for owners. Safe to use from several threads.

    The index, and the document list, that was asked for last are kept: an owner asks for many rows
    of one version.
    """

    def __init__(
        self,
        store: Store,
        windows: Windows,
        open_windows: OpenWindows,
        backend: Backend,
        clock: Callable[[], int],
    ) -> None:
        """Collect the parts.

        Args:
            backend: has the texts, as far as it still has them.
            clock: Unix milliseconds.
        """
        self._store = store
        self._windows = windows
        self._open_windows = open_windows
        self._backend = backend
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: _Kept | None = None
        self._list: tuple[tuple[str, str], DocumentList] | None = None
        # Of versions, which never change: N and how many null rows.
        self._counts: dict[tuple[str, str, int], tuple[int, int]] = {}

    def rows(
        self,
        tenant: str,
        window: str,
        version: int | None,
        *,
        ids: Sequence[str] = (),
        positions: Sequence[int] = (),
    ) -> RowProofs:
        """Return proofs of rows of a tenant's index, in the order of the request.

        Args:
            tenant: whose owner asks.
            window: by name.
            version: None: the one in force, in a closed window the last.
            ids, positions: of one kind, at least one; an id that there is not has None.

        Returns:
            As many of the first rows as one reply holds, at least one.

        Raises:
            UnknownWindow, UnknownTenant, NotFound: no such window, tenant, version or position, or
                it was deleted.
            WrongState: not countersigned, or the policy has no owners.
            TooEarly: opening or version are not cosigned yet.
            BackendUnavailable: the store of the texts does not answer.
        """
        owned = self._owned(tenant, window)
        number = self._in_force(owned) if version is None else version
        head, kept = self._head(owned, number), self._index(owned, number)
        if any(position >= kept.index.count for position in positions):
            raise NotFound(
                "no such row", where=f"version {number}", expected=f"0..{kept.index.count - 1}"
            )
        found = [kept.positions.get(each) for each in ids] or list(positions)
        return RowProofs(head, tuple(self._proven_rows(owned, kept.index, found)))

    def document(self, tenant: str, window: str, name: str) -> DocumentProof:
        """Return what the closed log says of one document.

        Args:
            tenant: whose owner asks.
            window: by name.
            name: id of any document.

        Raises:
            LogOpen: the log is not closed, or its end not cosigned.
            MalformedRecord: not an id.
            RagauditError: as `rows`.
        """
        owned = self._owned(tenant, window)
        with self._store.read() as connection:
            lists = entries_of(connection, window, Documents.KIND)
        entry = next((e for e in lists if Documents.parse(e.body).tenant == tenant), None)
        if entry is None or owned.checkpoints.tlog_proof(entry.index) is None:
            raise self._log_open(owned.policy)
        secret, made = self._secret(owned), self._document_list(owned)
        rows = made.prove(id_key(window, tenant, secret, name))
        listed, gone, last = None, None, None
        if len(rows) == 1:
            position = made.position(rows[0])
            listed = ListedDocument(position, made.lives(position), made.row_digest(position))
            if listed.ended is not None and listed.ended < owned.last:
                gone = owned.proven(owned.versions[listed.ended - VERSION])
            if owned.policy.noised:
                kept = self._index(owned, owned.last)
                [row] = self._proven_rows(owned, kept.index, [position])
                assert row is not None
                last = RowProof(self._head(owned, owned.last), row)
        return DocumentProof(
            origin=owned.policy.origin, tenant=tenant, id=name, document_secret=secret,
            opening=owned.opening(), documents=owned.proven(entry), rows=rows, listed=listed,
            gone=gone, last_row=last,
        )  # fmt: skip

    def counts(self, tenant: str, window: str) -> dict[str, Any]:
        """Return how many rows each version has, and how many of them are null rows.

        Args:
            tenant: whose owner asks.
            window: by name.

        Raises:
            RagauditError: as `rows`.
        """
        owned = self._owned(tenant, window)
        times = [None, *(Version.parse(entry.body).time for entry in owned.versions)]
        versions = []
        for number, time in enumerate(times, start=VERSION):
            rows, null = self._counted((window, tenant, number))
            versions.append({"version": number, "rows": rows, "null_rows": null, "time": time})
        force = self._in_force(owned)
        return {"window": window, "tenant": tenant, "in_force": force, "versions": versions}

    def _counted(self, place: tuple[str, str, int]) -> tuple[int, int]:
        """Return N of a version, and how many of its rows are null rows."""
        with self._lock:
            if place not in self._counts:
                with self._store.read() as connection:
                    index = load_index(connection, *place)
                self._counts[place] = (index.count, _null_rows(index))
            return self._counts[place]

    def _owned(self, tenant: str, name: str) -> _Owned:
        checkpoints = self._open_windows.signed_log(name).checkpoints
        window = self._windows.get(name)
        policy = Policy.parse(window.policy)
        if policy.owners is None:
            expected = "a window that was created with window.owners"
            raise WrongState("the policy has no owners", where=name, expected=expected)
        if tenant not in policy.tenants:
            raise UnknownTenant("the window does not serve it", where=tenant)
        with self._store.read() as connection:
            check_kept(connection, name)
            logged = entries_of(connection, name, Version.KIND)
        own = [entry for entry in logged if Version.parse(entry.body).tenant == tenant]
        return _Owned(window, policy, tenant, checkpoints, own)

    def _in_force(self, owned: _Owned) -> int:
        """Return the version that a record of now would name; of a closed window the last one."""
        window = owned.window
        if window.state in FINAL or window.state in (State.CLOSED, State.CHALLENGED):
            return owned.last
        live = self._open_windows.get(window.name)
        live.catch_up()
        index = live.versions.in_force(owned.tenant, self._clock())
        if index is None:
            raise owned.early()
        return index.version

    def _head(self, owned: _Owned, version: int) -> ProvenIndex:
        if not VERSION <= version <= owned.last:
            expected = f"{VERSION}..{owned.last}"
            raise NotFound("no such version", where=f"version {version}", expected=expected)
        announced = None
        if version > VERSION:
            announced = owned.proven(owned.versions[version - VERSION - 1])
        secret, origin = self._secret(owned), owned.policy.origin
        return ProvenIndex(origin, owned.tenant, version, secret, owned.opening(), announced)

    def _secret(self, owned: _Owned) -> bytes:
        kept = self._kept
        if kept is not None and kept.place[:2] == (owned.window.name, owned.tenant):
            return kept.index.document_secret  # every version has the same
        return self._index(owned, owned.last).index.document_secret

    def _index(self, owned: _Owned, version: int) -> _Kept:
        place = (owned.window.name, owned.tenant, version)
        # Under the lock: a large index is read and held once, however many calls wait for it.
        with self._lock:
            if self._kept is None or self._kept.place != place:
                self._kept = None  # before the next one is read, or both would be in memory
                index = self._read(*place)
                positions = {name: at for at, name in enumerate(index.ids)}
                self._kept = _Kept(place, index, positions)
            return self._kept

    def _read(self, window: str, tenant: str, version: int) -> CommittedIndex:
        live = self._open_windows.loaded(window)
        if live is not None:
            live.catch_up()  # another process may have logged the version
            return live.index_of(tenant, version)
        with self._store.read() as connection:
            return load_index(connection, window, tenant, version)

    def _document_list(self, owned: _Owned) -> DocumentList:
        place = (owned.window.name, owned.tenant)
        with self._lock:
            if self._list is None or self._list[0] != place:
                with self._store.read() as connection:
                    self._list = (place, document_list(connection, *place))
            return self._list[1]

    def _log_open(self, policy: Policy) -> LogOpen:
        left = policy.end - self._clock() // 1000
        return LogOpen(
            "the window's log is not closed, or its end not cosigned", where=policy.window,
            expected=f"an instant after {rfc3339(1000 * policy.end)}, when the window ends",
            retry_after=max(left, _RETRY_SECONDS),
        )  # fmt: skip

    def _proven_rows(
        self, owned: _Owned, index: CommittedIndex, positions: Sequence[int | None]
    ) -> list[ProvenIndexRow | None]:
        held = self._held(owned, index, [at for at in positions if at is not None])
        rows: list[ProvenIndexRow | None] = []
        size = 0
        for at in positions:
            text = None if at is None else held.get(at)
            size += _ROW_BYTES + 2 * index.dimension
            # Every byte of a text may be escaped.
            size += 2 * sum(len(each.encode()) for each in text or ())
            if rows and size > _REPLY_BYTES:
                break
            rows.append(None if at is None else _proven(index, at, text))
        return rows

    def _held(
        self, owned: _Owned, index: CommittedIndex, positions: Sequence[int]
    ) -> dict[int, tuple[str, str]]:
        """Return text and attributes of those rows of which the store has what was committed."""
        form = IndexForm.of(owned.policy)
        digests = {at: part(index.content_digests, at) for at in positions}
        found = {at: ("", "") for at, digest in digests.items() if digest == _EMPTY}
        asked = [at for at in digests if at not in found]
        documents = self._backend.fetch(owned.tenant, [index.ids[at] for at in asked])
        for at, document in zip(asked, documents, strict=True):
            if document is not None and form.digest(document) == digests[at]:
                found[at] = (document.content, document.attributes)
        return found


def _proven(index: CommittedIndex, at: int, text: tuple[str, str] | None) -> ProvenIndexRow:
    content, attributes = text or (None, None)
    entries = index.rows[at].tolist()
    return ProvenIndexRow(
        position=at,
        id=index.ids[at],
        content=content,
        attributes=attributes,
        content_digest=part(index.content_digests, at),
        columns=index.columns_of(at),
        salt=part(index.salts, at),
        vector=tuple(entries[: index.dimension]),
        squares=tuple(entries[index.dimension :]),
        blinding=index.blindings[at].tobytes(),
        commitment=part(index.commitments, at),
        path=index.tree.path(at),
    )


def _null_rows(index: CommittedIndex) -> int:
    """Return how many rows hold nothing; without noise they are marked."""
    if index.columns:
        marked = sum(text == NULL_ROW for text in index.columns)
        if marked:
            return marked
    digests = np.frombuffer(index.content_digests, dtype="V32")
    empty = digests == np.frombuffer(_EMPTY, dtype="V32")[0]
    return int(np.count_nonzero(empty & ~index.vectors.any(axis=1)))
