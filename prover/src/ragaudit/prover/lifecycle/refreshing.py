"""Later versions of an index within a window (spec 5.13): committed, proven, logged.

A version is stored before its entry is logged, and handed to the verifier in between: whatever
ends the process, the next call goes on with the version that is stored. It is in force from the
instant that activates its entry; until then changed documents are withdrawn.

What a vector store holds, to which others may write, is compared, from time to time, with the last
version of each index. A difference marks the index as stale, so that the next version takes it up.
That is all it decides: an answer compares the rows that it serves by itself.
"""

import logging
from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.messages.commitments import content_digest, index_proof_digest
from ragaudit.ledger.messages.entries import Version
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.errors import BackendMoved, MalformedDocument, UnknownTenant, WrongState
from ragaudit.prover.index.builder import IndexBuilder, following
from ragaudit.prover.index.committed import CommittedIndex, IndexForm, find_index, part, save_index
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.randomness import Randomness, randomness_for
from ragaudit.prover.store.database import Store, mark_stale, marks_of, note_taken, taken_marks
from ragaudit.prover.store.states import FINAL, REGISTERS, State, check_state
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.windows import Windows
from ragaudit.prover.work import WindowWork
from ragaudit.serving.jobs.runner import Runner

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


class Refresher:
    """Commits to documents that changed. Safe to use from several threads."""

    def __init__(
        self,
        *,
        store: Store,
        windows: Windows,
        open_windows: OpenWindows,
        builder: Callable[[Randomness, WindowWork], IndexBuilder],
        runner: Runner,
        verifier: VerifierClient,
        clock: Callable[[], int],
        before_seconds: float,
    ) -> None:
        """Collect the parts.

        Args:
            before_seconds: how long before an instant `step` takes up what is stale.
        """
        self._store = store
        self._windows = windows
        self._open_windows = open_windows
        self._builder = builder
        self._runner = runner
        self._verifier = verifier
        self._clock = clock
        self._before = before_seconds

    def mark_stale(self, tenant: str) -> None:
        """Note that a tenant's documents changed, durably."""
        with self._store.write() as connection:
            mark_stale(connection, tenant)

    def step(self, name: str) -> bool:
        """Commit to every stale index if an instant is near; return whether there will be another.

        Args:
            name: of a window.

        Raises:
            RagauditError: as `refresh`; call again.
        """
        window = self._windows.get(name)
        if window.state in FINAL or window.state in (State.CLOSED, State.CHALLENGED):
            return False
        if window.state not in REGISTERS:
            return True
        live = self._open_windows.get(name)
        policy, now = live.policy, self._clock()
        if not policy.retrieval.versions:
            return False
        with live.refreshing:
            live.catch_up()
        instants = policy.activation_instants[:-1]
        # The first instant that is still to come; an entry behind the last one is never activated.
        after = bisect_right(instants, now // 1000)
        if after == len(instants):
            return False
        if 1000 * instants[after] - now <= 1000 * self._before:
            self._refresh_stale(live)
        return True

    def _refresh_stale(self, live: OpenWindow) -> None:
        """Commit to every stale index; raise the first error once all of them had their turn."""
        failed: Exception | None = None
        for tenant in live.policy.tenants:
            with self._store.read() as connection:
                taken = taken_marks(connection, live.name, tenant)
                stale = marks_of(connection, tenant) > taken
            try:
                if stale:
                    self.refresh(live.name, tenant)
            except Exception as error:
                # Documents of one tenant must not keep back those of all others.
                failed = failed or error
        if failed is not None:
            raise failed

    def refresh(self, name: str, tenant: str) -> int:
        """Commit to a tenant's documents as they are now; return the latest version.

        Where nothing changed there is no new version.

        Args:
            name: of the window.

        Raises:
            UnknownWindow: there is none of this name.
            UnknownTenant: the window does not serve it.
            WrongState: the policy allows no versions, the window is not open, or no instant is
                left.
            MalformedDocument, MalformedError: documents that cannot be committed to.
            BackendUnavailable, VerifierUnreachable, VerifierRefused: call again.
            NotLeading: another process commits to indexes; ask it.
        """
        self._store.hold()
        live = self._open_windows.get(name)
        policy = live.policy
        if tenant not in policy.tenants:
            raise UnknownTenant("the window does not serve it", where=tenant)
        if not policy.retrieval.versions:
            raise WrongState(
                "the policy allows no versions", where=name, expected="window.versions: true"
            )
        if self._clock() >= 1000 * policy.activation_instants[-2]:
            raise WrongState("no instant is left", where=name, expected="the next window")
        with live.refreshing:
            # A version that is logged and, for a failure just after that, not in memory comes into
            # force all the same, and must not be logged twice.
            live.catch_up()
            latest = live.versions.latest(tenant)
            with self._store.read() as connection:
                check_state(name, self._windows.status(connection, name).state, REGISTERS)
                marks = marks_of(connection, tenant)
                pending = find_index(connection, name, tenant, latest.version + 1)
            # What an interrupted call has stored may have reached the verifier: it is that one.
            version = pending or self._commit(live, latest, marks)
            if version is not None:
                self._publish(live, version)
        return latest.version if version is None else version.version

    def _commit(
        self, live: OpenWindow, latest: CommittedIndex, marks: int
    ) -> CommittedIndex | None:
        """Return the next version, stored; None if nothing changed.

        Args:
            marks: of the tenant, before its documents are read.
        """
        policy = live.policy
        work = WindowWork(self._runner, live.name)
        builder = self._builder(randomness_for(policy.experiment_seed), work)
        form = IndexForm.of(policy)
        source, place = following(
            builder.read(latest.tenant, form), latest, builder.complete_rows, form.null_columns
        )
        if source is None:
            with self._store.write() as connection:
                note_taken(connection, live.name, latest.tenant, latest.version, marks)
            return None
        version = builder.commit(
            source,
            policy_digest=policy.digest,
            window=live.name,
            tenant=latest.tenant,
            version=latest.version + 1,
            previous=(latest, place),
            progress=None,
            secret=latest.document_secret,
        )
        with self._store.write() as connection:
            save_index(connection, live.name, version, marks)
        work.done()
        return version

    def _publish(self, live: OpenWindow, version: CommittedIndex) -> None:
        """Hand a version to the verifier, then log it."""
        commitment = version.commitment(live.name)
        self._verifier.put_index(live.name, version.tenant, version.version, commitment.encode())
        # Before it is logged: no query waits for the tree of a version that is in force.
        version.prepare(scorer=live.versions.scores_all(version))
        salt = live.randomness.draw(
            SALT_BYTES, "version", live.name, version.tenant, version.version
        )
        with live.committing(self._store) as transaction:
            connection = transaction.connection
            state = self._windows.status(connection, live.name).state
            check_state(live.name, state, REGISTERS)
            body = Version(
                window=live.name,
                tenant=version.tenant,
                version=version.version,
                rows=version.count,
                index_root=version.root,
                proof_digest=index_proof_digest(version.proof),
                time=self._clock(),
            )
            entry = transaction.append(body.KIND, salt, body.encode())
            self._windows.raise_generation(connection, live.name)
        # Long before the instant that puts it in force, and only once it is durable.
        live.versions.add(version, entry)
        _log.info(
            "window %s: version %d of the index of %s is logged",
            live.name,
            version.version,
            version.tenant,
        )
