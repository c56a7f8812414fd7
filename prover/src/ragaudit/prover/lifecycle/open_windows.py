"""The countersigned windows in memory, loaded when they are first asked for."""

import logging
import threading
import weakref
from collections.abc import Callable
from functools import partial

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.messages.accounts import AccountProof
from ragaudit.ledger.messages.challenge import Activation, Countersignature
from ragaudit.ledger.messages.entries import Epoch, Version
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import WrongState
from ragaudit.prover.index.committed import CommittedIndex, load_index, load_indexes
from ragaudit.prover.lifecycle.committing import Committer, WindowReader, note_times
from ragaudit.prover.lifecycle.retention import check_kept
from ragaudit.prover.randomness import randomness_for
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import FINAL, State
from ragaudit.prover.window.lists import AccountProofs
from ragaudit.prover.window.log_transaction import WindowFence
from ragaudit.prover.window.open_window import OpenWindow, StandingEpoch, WindowLog, stored_tree
from ragaudit.prover.window.records import entries_of
from ragaudit.prover.window.registrations import used_counters
from ragaudit.prover.window.windows import Window, Windows

_log = logging.getLogger(__name__)

_GO_ON = (
    "leave fence and database as they are; stop the service and call `ragaudit prover restore`, or "
    "start a window under another name"
)
_APPENDS = (State.COUNTERSIGNED, State.ACTIVATED, State.OPEN, State.CLOSED)


class OpenWindows:
    """Loads windows from the store, once each. Safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        windows: Windows,
        committer: Committer,
        *,
        vouched: Callable[[], bool],
        on_committed: Callable[[float, int], None],
    ) -> None:
        """Begin without windows.

        Args:
            vouched: returns whether another process serves the windows now.
            on_committed: as of `OpenWindow`, for each window that is loaded.
        """
        self._vouched = vouched
        self._on_committed = on_committed
        self._store = store
        self._windows = windows
        self._committer = committer
        self._account_proofs = AccountProofs(store)
        self._loaded: dict[str, OpenWindow] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> OpenWindow:
        """Return a window.

        Args:
            name: of a countersigned, unfinished window.

        Raises:
            UnknownWindow: there is none of this name.
            WrongState: it is not countersigned, or it is finished.
            RefusedError: another process serves it.
        """
        # Under the lock: two objects of one window would have two locks around its log.
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = self._load(self._windows.get(name))
            return self._loaded[name]

    def loaded(self, name: str) -> OpenWindow | None:
        """Return a window if it is in memory already, None otherwise.

        Args:
            name: of any window, also one that does not exist.
        """
        return self._loaded.get(name)

    def signed_log(self, name: str) -> WindowReader:
        """Return what is public of a window's log, without loading indexes and keys.

        Args:
            name: of a countersigned window, also a finished one.

        Raises:
            UnknownWindow: there is none of this name.
            WrongState: it is not countersigned.
        """
        with self._lock:
            live = self._loaded.get(name)
        if live is not None:
            return WindowReader(live.log.entries, live.log.checkpoints)
        window = self._windows.get(name)
        _check_countersigned(window)
        return self._committer.signed_log(Policy.parse(window.policy))

    def account_proof(self, name: str, account: Account) -> AccountProof:
        """Return the proof of how many records an account has in a closed window, and which.

        Args:
            name: of a countersigned window, also a finished one.
            account: one that was never registered gets a proof of that.

        Raises:
            UnknownWindow, WrongState, TooEarly: as `signed_log` and `AccountProofs.prove`.
            NotFound: the window's records were deleted.
        """
        checkpoints = self.signed_log(name).checkpoints
        with self._store.read() as connection:
            check_kept(connection, name)
        return self._account_proofs.prove(self._windows.get(name), account, checkpoints)

    def forget(self, name: str) -> None:
        """Drop a finished window from memory and release its fence.

        Args:
            name: of a window in memory; another one is ignored.
        """
        with self._lock:
            live = self._loaded.pop(name, None)
        if live is not None:
            live.fence.close()

    def close(self) -> None:
        """Release the fences."""
        with self._lock:
            for live in self._loaded.values():
                live.fence.close()
            self._loaded.clear()

    def _load(self, window: Window) -> OpenWindow:
        _check_countersigned(window)
        if window.state in FINAL:
            raise WrongState(f"the window is {window.state}", where=window.name)
        assert window.slot_roots is not None and window.countersignature is not None
        assert window.opening_salt is not None and window.opening_body is not None
        policy = Policy.parse(window.policy)
        # The chain's anchor decides which activations are accepted: it must be the signed one.
        countersignature = Countersignature.parse(window.countersignature)
        countersignature.authenticate(
            policy, opening_salt=window.opening_salt, opening_body=window.opening_body
        )
        seed = None
        if policy.noised:
            seed = self._committer.seed_of(window, policy)
            seed.restore(window.slot_roots)
        log = self._committer.open_log(window, policy)
        with self._store.read() as connection:
            indexes = load_indexes(connection, window.name)
            epochs = [
                StandingEpoch(g, entry.index, stored_tree(connection, policy, g))
                for g, entry in enumerate(entries_of(connection, window.name, Epoch.KIND), start=2)
            ]
        fences = self._committer.fences
        fences.make()
        live = OpenWindow(
            policy=policy,
            pseudonym_key=window.pseudonym_key,
            indexes=indexes,
            seed=seed,
            log=log,
            fence=WindowFence(
                fences.path(policy.window),
                log.entries,
                partial(self._used, window.name),
                partial(fences.others, policy.window),
                self._vouched,
            ),
            randomness=randomness_for(policy.experiment_seed),
            anchor=countersignature.activation_anchor,
            load=partial(self._index, window.name),
        )
        del indexes  # or those that are let go below would stay
        # An epoch is only logged while no process runs (`ragaudit prover restore`).
        for epoch in epochs:
            live.epochs.add(epoch)
        live.on_committed = self._on_committed
        live.turn = partial(self._store.turn, window.name)
        live.generation = -1  # of no row: everything is read
        # Weakly: a window that is forgotten is gone at once.
        live.catch_up = partial(self._catch_up, weakref.ref(live), threading.Lock())
        live.catch_up()
        if window.state in _APPENDS and window.unusable is None:
            for index in live.versions.held():
                index.prepare(scorer=live.versions.scores_all(index))
            live.on_restored = partial(self.give_up, window.name)
            # Before any answer: a restored backup would use counters, and so noise, twice.
            try:
                live.fence.open()
            except RestoredBackup as error:
                live.on_restored(error)
        return live

    def follow(self, name: str) -> None:
        """Take over what other processes did in a window: what they put in force, and logged.

        Args:
            name: of a countersigned, unfinished window.

        Raises:
            StoreUnavailable: database or fence cannot be used; nothing is answered meanwhile.
        """
        live = self.get(name)
        live.catch_up()
        cosigned = live.log.checkpoints.latest(cosignatures=1)
        if cosigned is not None:
            live.log.note_cosigned(cosigned)
        live.fence.note(live.log.entries.head())

    def compare_again(self) -> None:
        """Have every log compared with what others logged and cosigned, before this process signs.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        with self._lock:
            for live in self._loaded.values():
                live.log.compared = False
                note_times(self._store, live.name, live.log)

    def _catch_up(self, of: "weakref.ref[OpenWindow]", lock: threading.Lock) -> None:
        """Bring activations and versions in memory to what is stored; see `Query.admit`."""
        live = of()
        if live is None:
            return
        with lock:
            with self._store.read() as connection:
                generation = self._windows.status(connection, live.name).generation
                if generation == live.generation:
                    return
                activations = self._windows.activations(live.name, connection)
                logged = entries_of(connection, live.name, Version.KIND)
            # A version that is stored and not logged is the refresher's to log.
            for entry in logged:
                version = Version.parse(entry.body)
                if version.version > live.versions.latest(version.tenant).version:
                    index = self._index(live.name, version.tenant, version.version)
                    if live.generation >= 0:
                        index.prepare(scorer=live.versions.scores_all(index))
                    live.versions.add(index, entry.index)
            # After the versions, which they put in force.
            # Verified again: a database that was tampered with must not decide the noise.
            for number, message in sorted(activations.items()):
                activation = Activation.parse(message)
                activation.authenticate(live.policy, anchor=live.anchor, number=number)
                live.activate(activation)
            live.versions.let_go_superseded()
            live.generation = generation

    def compare(self, name: str, compare: Callable[[WindowLog], None]) -> None:
        """Compare a window's log with what was cosigned of it, before anything is answered.

        A verifier that does not answer stands in no query's way: nothing is signed before it did.

        Args:
            name: of a countersigned window.
            compare: of the checkpointer.
        """
        live, window = self.get(name), self._windows.get(name)
        if window.unusable is not None or window.handed_over:
            return
        try:
            compare(live.log)
        except RestoredBackup as error:
            self.give_up(name, error)
        except RagauditError as error:
            _log.warning("window %s: not compared with what was cosigned: %s", name, error)

    def give_up(self, name: str, error: RestoredBackup) -> None:
        """Store that a window answers no more: its database is behind fence or cosigner."""
        _log.error("window %s answers no more: %s; %s", name, error, _GO_ON)
        self._windows.note(name, unusable=f"{error}; {_GO_ON}")

    def _index(self, window: str, tenant: str, version: int) -> CommittedIndex:
        with self._store.read() as connection:
            return load_index(connection, window, tenant, version)

    def _used(self, window: str, pseudonym: bytes) -> int:
        with self._store.read() as connection:
            return used_counters(connection, window, pseudonym)


def _check_countersigned(window: Window) -> None:
    if window.countersignature is None:
        raise WrongState(f"the window is {window.state}", where=window.name)
