"""Noticing what was written to a vector store behind the prover's back.

What such a store holds is compared, from time to time, with the last version of each index. A
difference marks the index as stale, so that the next version takes it up. That is all it decides:
an answer compares the rows that it serves by itself.
"""

import logging
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.messages.merkle_commitments import content_digest
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.errors import BackendMoved, MalformedDocument
from ragaudit.prover.index.committed import CommittedIndex, part
from ragaudit.prover.index.form import IndexForm
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.staleness import mark_stale, marks_of, taken_marks
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.windows import Windows

__all__ = ["Marks", "Watcher", "difference"]

_log = logging.getLogger(__name__)

SAME, CHANGED, FAILED = "same", "changed", "failed"


@runtime_checkable
class Marks(Protocol):
    """A backend that says cheaply whether a tenant's documents may have changed."""

    def mark(self, tenant: str) -> str:
        """Return a text that is another one once anything of the tenant was changed."""


class Watcher:
    """Compares a store with what open windows have committed to. For one thread."""

    def __init__(
        self,
        *,
        store: Store,
        windows: Windows,
        open_windows: OpenWindows,
        backend: Backend,
        page_rows: int,
        tell: Callable[[str, str, str], None],
    ) -> None:
        """Collect the parts.

        Args:
            store: the prover's own database.
            backend: that others write to as well.
            page_rows: the largest number of documents that is read at a time.
            tell: is told of each comparison: the window, the tenant, and how it ended: "same",
                "changed" or "failed".
        """
        self._store = store
        self._windows = windows
        self._open_windows = open_windows
        self._backend = backend
        self._page_rows = page_rows
        self._tell = tell
        # The mark of the documents that were found to be those of a version.
        self._same: dict[tuple[str, str], tuple[int, str]] = {}
        self._failures: dict[tuple[str, str], str] = {}

    def step(self) -> None:
        """Compare every index of every open window once, but for those that are stale already."""
        names = set(self._windows.open())
        for known in (self._same, self._failures):
            for place in [place for place in known if place[0] not in names]:
                del known[place]
        for name in names:
            live = self._open_windows.get(name)
            for tenant in live.policy.tenants:
                self._look(live, tenant)

    def _look(self, live: OpenWindow, tenant: str) -> None:
        place = (live.name, tenant)
        try:
            with self._store.read() as connection:
                known = marks_of(connection, tenant) > taken_marks(connection, live.name, tenant)
            # What is stale already is taken up as it will be then, whatever else changes.
            if known:
                return
            found = self._difference(live, tenant)
        except Exception as error:
            # Of one tenant; all others are compared all the same, and this one at the next turn.
            self._failed(place, error)
            return
        self._failures.pop(place, None)
        if found is None:
            self._tell(*place, SAME)
            return
        with self._store.write() as connection:
            mark_stale(connection, tenant)
        _log.warning("window %s: the documents of %s changed in their store: %s", *place, found)
        self._tell(*place, CHANGED)

    def _difference(self, live: OpenWindow, tenant: str) -> str | None:
        """Return in words what is not as the last version has it, None if all is."""
        latest = live.versions.latest(tenant)
        backend, place = self._backend, (live.name, tenant)
        # Before the documents: what is written while they are read changes the next mark.
        mark = backend.mark(tenant) if isinstance(backend, Marks) else None
        if mark is not None and self._same.get(place) == (latest.version, mark):
            return None
        found = difference(latest, backend, live.form, self._page_rows)
        if found is None and mark is not None:
            self._same[place] = (latest.version, mark)
        return found

    def _failed(self, place: tuple[str, str], error: Exception) -> None:
        text = str(error) if isinstance(error, RagauditError) else type(error).__name__
        if self._failures.get(place) != text:
            _log.warning("window %s: the store of %s is not compared: %s", *place, text)
        self._failures[place] = text
        self._tell(*place, FAILED)


def difference(
    index: CommittedIndex, backend: Backend, form: IndexForm, page_rows: int
) -> str | None:
    """Return in words where a backend's documents are not those of an index, None if they are.

    Args:
        index: of a tenant.
        backend: is read page by page, to the first difference.
        form: of the indexes of this window.
        page_rows: the largest number of documents in a page.

    Raises:
        BackendUnavailable: the documents cannot be read.
    """
    places = {name: position for position, name in enumerate(index.ids)}
    empty = content_digest("")
    # A row of a document that is gone: nothing to find, and nothing to miss.
    missing = {
        name
        for name, position in places.items()
        if part(index.content_digests, position) != empty or index.vectors[position].any()
    }
    try:
        for page in backend.pages(index.tenant, page_rows):
            for document in page:
                position = places.get(document.id)
                if position is None:
                    return "a document is new"
                if not index.holds(position, document, form):
                    return "a document is another one"
                missing.discard(document.id)
    except BackendMoved:
        return "it is being written to"
    except MalformedDocument as error:
        return f"a document cannot be committed to: {error.what}"
    return "a document is gone" if missing else None
