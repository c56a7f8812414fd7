"""Going on with a window after a restore: a new fence, and a new seed epoch (spec 6.15).

Nothing here repairs a log. A database that lacks entries which were cosigned, or whose answers
left, is refused with what would help; one that has them all may have lost what nobody else saw
(answers of the last moments), so that its seed must not make noise any more.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.fence import GROUP_RECORDS, Fence
from ragaudit.ledger.log.tree import EMPTY_ROOT, TreeHead
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.entries import Epoch
from ragaudit.prover.errors import WrongState
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.randomness import SeedTree
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.verifier.connection import check_clocks
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow, StandingEpoch, store_epoch
from ragaudit.prover.window.registrations import all_used_counters
from ragaudit.prover.window.windows import Windows

_log = logging.getLogger(__name__)

_BETTER = (
    "a later backup (with archived write-ahead logs: the last commit), then this command again; "
    "without one the window has failed, and its tenants go on in a window under another name"
)
_RESTORES = (State.COUNTERSIGNED, State.ACTIVATED, State.OPEN, State.CLOSED)


@dataclass(frozen=True)
class Restored:
    """What became of a window.

    Attributes:
        epoch: the seed epoch under which it goes on.
        entry: of that epoch, in the log.
        entries: how many the log has now.
        instant: Unix seconds from which it answers again, if the service is started well before;
            None: no instant is left, and the window only closes.
    """

    epoch: int
    entry: int
    entries: int
    instant: int | None


class Restorer:
    """Restores windows of a service that does not run."""

    def __init__(
        self,
        *,
        store: Store,
        windows: Windows,
        open_windows: OpenWindows,
        verifier: VerifierClient,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._windows = windows
        self._open_windows = open_windows
        self._verifier = verifier
        self._clock = clock

    def restore(self, name: str, reason: str = "restore") -> Restored:
        """Let a window go on after its database or fence was restored or lost.

        An epoch that is logged and under which no noise can have been drawn stays: calling again,
        also after a crash in here, does no harm.

        Args:
            name: of a countersigned window that is not handed over.
            reason: one of `Epoch.REASONS`.

        Raises:
            RefusedError: the service runs.
            WrongState: the window is not of this kind, or its policy allows no epochs.
            RestoredBackup: the database lacks entries that were cosigned, or answered; the error
                says which, and what would help.
            VerifierUnreachable, VerifierRefused: what was cosigned is not known.
            ClocksDiffer: this machine's clock is not the verifier's.
        """
        self._store.take()
        window = self._windows.get(name)
        if window.countersignature is None or window.state not in _RESTORES or window.handed_over:
            raise WrongState(
                f"the window is {window.state}", where=name, expected="one that still logs"
            )
        live = self._open_windows.get(name)
        if not live.policy.epochs:
            raise WrongState(
                "the window's policy allows no seed epochs",
                where=name,
                expected="a window under another name (window.epochs: true)",
            )
        check_clocks(self._clock(), self._verifier.keys().time, live.policy.clock_skew_seconds)
        known = self._compare(live)
        lost = self._compare_fence(live)
        if self._used(live):
            self._begin_epoch(live, reason, known)
        self._make_fence(live, lost=lost)
        # Last: whatever ends this before, the window stays closed.
        self._windows.note(name, unusable=None)
        latest = live.epochs.latest
        _log.warning("window %s goes on with seed epoch %d", name, latest.epoch)
        return Restored(
            latest.epoch, latest.entry, live.log.entries.head().size, self._next_instant(live)
        )

    def _compare(self, live: OpenWindow) -> TreeHead:
        """Return the head of the largest cosigned checkpoint, which the log must have."""
        note = self._verifier.cosigned(live.origin)
        if note is None:
            return TreeHead(0, EMPTY_ROOT)
        try:
            live.log.checkpoints.compare(note)
        except RestoredBackup as error:
            raise self._behind(live, error, "were cosigned") from error
        return parse_checkpoint(note).head

    def _compare_fence(self, live: OpenWindow) -> bool:
        """Return whether the fence is missing; if it is there, the database must have all of it."""
        # Those of other processes know of their answers, whoever's own is lost.
        if not live.fence.path.exists() and not live.fence.others():
            return True
        try:
            live.fence.opened()
        except RestoredBackup as error:
            raise self._behind(live, error, "have answers that left") from error
        except MalformedError as error:
            # What it still says is the only word on answers that left.
            raise MalformedError(
                error.what,
                where=error.where,
                expected="the fence, whole; if it is lost for good, move the file away",
            ) from error
        return False

    def _behind(self, live: OpenWindow, error: RestoredBackup, what: str) -> RestoredBackup:
        size = live.log.entries.head().size
        return RestoredBackup(
            f"{error.what}: the database has {size} entries, and more {what}",
            where=f"{live.name}, {error.where}",
            expected=f"{error.expected}; {_BETTER}" if error.expected else _BETTER,
        )

    def _used(self, live: OpenWindow) -> bool:
        """Return whether noise of the latest epoch can have been drawn: an instant activated it.

        The verifier is asked: activations in the database may be as old as the backup.
        """
        sizes, now = [], self._clock()
        for number, instant in enumerate(live.policy.activation_instants[:-1], start=1):
            if 1000 * instant > now:
                break
            activation = self._verifier.activation(live.name, number)
            if activation is None:
                break
            activation.authenticate(live.policy, anchor=live.anchor, number=number)
            sizes.append(activation.covered_size)
        return activation_of(live.epochs.latest.entry, sizes) is not None

    def _begin_epoch(self, live: OpenWindow, reason: str, known: TreeHead) -> None:
        """Commit to fresh noise keys and log them, behind everything that was cosigned."""
        policy, before = live.policy, live.epochs.latest
        number = before.epoch + 1
        secret = live.randomness.draw(32, "noise seed", live.name, number)
        tree = None
        if policy.noised:
            tree = SeedTree(live.name, secret, policy.slots, policy.queries_per_account, number)
        root = b"" if tree is None else tree.commit().root
        body = Epoch(
            window=live.name,
            epoch=number,
            reason=reason,
            previous_root=b"" if before.tree is None else before.tree.commit().root,
            seed_root=root,
            size=known.size,
            root=known.root_hash,
            time=self._clock(),
        )
        salt = live.randomness.draw(SALT_BYTES, "epoch", live.name, number)
        with live.commit_lock, self._store.write() as connection:
            roots = b"" if tree is None else tree.commit().slot_roots
            store_epoch(connection, live.name, number, secret, roots)
            transaction = LogTransaction.alone(connection, live.log.entries, live.name)
            entry = transaction.append(body.KIND, salt, body.encode())
            transaction.flush()
        live.epochs.add(StandingEpoch(number, entry, tree))

    def _make_fence(self, live: OpenWindow, *, lost: bool) -> None:
        """Make it durable outside the database how far the log is now."""
        head, origin = live.log.entries.head(), live.origin
        if not lost:
            live.fence.advance(head, {})
            return
        with self._store.read() as connection:
            counters = all_used_counters(connection, live.name)
        fence = Fence(live.fence.path, origin, log_is_empty=True)
        try:
            fence.advance(head)
            accounts = sorted(counters.items())
            for at in range(0, len(accounts), GROUP_RECORDS):
                fence.advance_all(head, dict(accounts[at : at + GROUP_RECORDS]))
        finally:
            fence.close()

    def _next_instant(self, live: OpenWindow) -> int | None:
        now, instants = self._clock(), live.policy.activation_instants[:-1]
        return next((instant for instant in instants if 1000 * instant > now), None)
