"""Later versions of an index within a window (spec 5.13): committed, proven, logged.

A version is stored before its entry is logged, and handed to the verifier in between: whatever
ends the process, the next call goes on with the version that is stored. It is in force from the
instant that activates its entry; until then changed documents are withdrawn.
"""

import logging
from bisect import bisect_right
from collections.abc import Callable

from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.ledger.messages.merkle_commitments import index_proof_digest
from ragaudit.ledger.messages.records import Version
from ragaudit.prover.errors import UnknownTenant, WrongState
from ragaudit.prover.index.builder import IndexBuilder
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.index.form import IndexForm
from ragaudit.prover.index.stored import find_index, save_index
from ragaudit.prover.index.versions import following
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.randomness import Randomness, randomness_for
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.staleness import (
    mark_stale,
    marks_of,
    note_taken,
    taken_marks,
)
from ragaudit.prover.store.states import FINAL, REGISTERS, State, check_state
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import append_entry
from ragaudit.prover.window.windows import Windows
from ragaudit.prover.work import WindowWork
from ragaudit.serving.jobs.runner import Runner

_log = logging.getLogger(__name__)


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
            entry = append_entry(
                connection, live.log.entries, live.name, body.KIND, salt, body.encode()
            )
            self._windows.raise_generation(connection, live.name)
        # Long before the instant that puts it in force, and only once it is durable.
        live.versions.add(version, entry)
        _log.info(
            "window %s: version %d of the index of %s is logged",
            live.name,
            version.version,
            version.tenant,
        )
