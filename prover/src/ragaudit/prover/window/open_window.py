"""A countersigned window in memory: what answering, registering and proving need of it.

Of its indexes, some of which take hundreds of megabytes, the version in force is in memory, and
those that follow it (spec 5.13). An earlier one is read from the database again when a proof, or a
retry, asks.
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

from ragaudit.circuits.noise import Table, table_for
from ragaudit.circuits.selection import CandidateRule, candidate_rule
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.checkpoint_store import CheckpointStore, Permit
from ragaudit.ledger.log.checkpoints import SignedCheckpoint
from ragaudit.ledger.log.cosignatures import cosignature_time
from ragaudit.ledger.log.notes import SigningKey
from ragaudit.ledger.log.store import Leaves, LogStore
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.challenge import Activation
from ragaudit.ledger.messages.identifiers import pseudonym
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import WindowUnusable
from ragaudit.prover.index.committed import VERSION, CommittedIndex, IndexForm
from ragaudit.prover.randomness import EPOCH, Randomness, SeedTree
from ragaudit.prover.sequencer import Lookup, TaskLock
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.log_transaction import (
    GroupCommit,
    LockedLog,
    LogTransaction,
    Standings,
    WindowFence,
)
from ragaudit.prover.window.registrations import Registered, find_each
from sqlalchemy import Connection, insert, select


@dataclass(frozen=True)
class StandingEpoch:
    """An epoch that the log has.

    Attributes:
        epoch: g.
        entry: its place in the log: 0 for the opening's.
        tree: its noise keys; None in a window without noise.
    """

    epoch: int
    entry: int
    tree: SeedTree | None = field(repr=False)


class SeedEpochs:
    """All seed epochs of one window. Safe to use from several threads."""

    def __init__(
        self,
        policy: Policy,
        first: SeedTree | None,
        activation_of: Callable[[int], int | None],
    ) -> None:
        """Begin with the opening's epoch.

        Args:
            first: its noise keys; None in a window without noise.
            activation_of: the activation of a log entry, None while it has none.
        """
        self._policy = policy
        self._activation_of = activation_of
        self._standing: tuple[StandingEpoch, ...] = (StandingEpoch(EPOCH, 0, first),)

    def add(self, epoch: StandingEpoch) -> None:
        """Add the next epoch, once its entry is durable."""
        self._standing = (*self._standing, epoch)

    @property
    def latest(self) -> StandingEpoch:
        """The last one that was logged, in force or not."""
        return self._standing[-1]

    def tree(self, epoch: int) -> SeedTree:
        """Return the noise keys of an epoch.

        Args:
            epoch: g, of a record of this window.

        Raises:
            InternalError: there is no such epoch, or the window has no noise.
        """
        for standing in self._standing:
            if standing.epoch == epoch and standing.tree is not None:
                return standing.tree
        raise InternalError(f"no noise keys of epoch {epoch}", where=self._policy.window)

    def activation(self, epoch: int) -> int | None:
        """Return the activation of an epoch's entry, None while it has none."""
        entry = next(each.entry for each in self._standing if each.epoch == epoch)
        return self._activation_of(entry)

    def in_force(self, time: int) -> int | None:
        """Return the epoch that a record of this time names; None between restore and instant.

        Behind the entry of an epoch nothing is answered under an earlier one: records that a
        restore has lost may have had its keys.

        Args:
            time: Unix milliseconds, within the window.
        """
        latest = self._standing[-1]
        if latest.epoch == EPOCH:
            return EPOCH
        activation = self._activation_of(latest.entry)
        if activation is None:
            return None
        instant = 1000 * self._policy.activation_instants[activation - 1]
        return latest.epoch if instant <= time else None


def store_epoch(
    connection: Connection, window: str, epoch: int, noise_seed: bytes, slot_roots: bytes
) -> None:
    """Store the secret of an epoch, in the transaction that logs it.

    Args:
        epoch: g, from 2.
        noise_seed: s_W of the epoch, 32 bytes.
        slot_roots: 32 bytes a slot; empty in a window without noise.
    """
    connection.execute(
        insert(tables.seed_epoch).values(
            window=window, epoch=epoch, noise_seed=noise_seed, slot_roots=slot_roots
        )
    )


def stored_tree(connection: Connection, policy: Policy, epoch: int) -> SeedTree | None:
    """Return the noise keys of an epoch as they are stored; None in a window without noise.

    Args:
        epoch: g, from 2, of the window's log.

    Raises:
        InternalError: the log has an epoch whose seed is not stored.
    """
    if not policy.noised:
        return None
    table = tables.seed_epoch
    row = connection.execute(
        select(table.c.noise_seed, table.c.slot_roots).where(
            table.c.window == policy.window, table.c.epoch == epoch
        )
    ).one_or_none()
    if row is None:
        raise InternalError(f"the seed of epoch {epoch} is missing", where=policy.window)
    tree = SeedTree(policy.window, row.noise_seed, policy.slots, policy.queries_per_account, epoch)
    tree.restore(row.slot_roots)
    return tree


T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class Standing:
    """A version of a tenant's index.

    Attributes:
        entry: its place in the log: 0 for the opening's.
        index: None once it was let go.
    """

    version: int
    entry: int
    index: CommittedIndex | None = field(repr=False)


class IndexVersions:
    """All versions of the indexes of one window. Safe to use from several threads."""

    def __init__(
        self,
        policy: Policy,
        first: Mapping[str, CommittedIndex],
        *,
        sigma_units: float | None,
        activation_of: Callable[[int], int | None],
        released: Callable[[], int],
        load: Callable[[str, int], CommittedIndex] | None = None,
    ) -> None:
        """Begin with the opening's versions.

        Args:
            first: by tenant.
            sigma_units: of the policy's noise; None without any.
            activation_of: the activation of a log entry, None while it has none.
            released: how many activations were released so far, without a gap.
            load: returns a version by tenant and number, as it is stored; without it none is ever
                let go.
        """
        self._policy = policy
        self._sigma_units = sigma_units
        self._activation_of = activation_of
        self._released = released
        self._load = load
        self._lock = threading.Lock()
        # The last one that was read again: proofs of one version follow each other.
        self._again: CommittedIndex | None = None
        # Replaced as a whole when a version is added: readers need no lock.
        self._standing: dict[str, tuple[Standing, ...]] = {
            tenant: (Standing(index.version, 0, index),) for tenant, index in first.items()
        }
        self._rules: dict[tuple[str, int], CandidateRule | None] = {}
        for index in first.values():
            self.rule(index)

    def add(self, index: CommittedIndex, entry: int) -> None:
        """Add the next version of a tenant's index, once its entry is durable. Idempotent.

        Args:
            entry: its place in the log.
        """
        self.rule(index)
        with self._lock:
            if index.version <= self._standing[index.tenant][-1].version:
                return
            new = Standing(index.version, entry, index)
            self._standing[index.tenant] = (*self._standing[index.tenant], new)
        self._let_go(index.tenant)

    def get(self, tenant: str, version: int) -> CommittedIndex:
        """Return a version, read again if it was let go.

        Args:
            tenant, version: of a record of this window.

        Raises:
            InternalError: there is none.
        """
        for standing in self._standing[tenant]:
            if standing.version == version:
                return self._index(tenant, standing)
        raise InternalError(f"no version {version} of the index", where=tenant)

    def latest(self, tenant: str) -> CommittedIndex:
        """Return the last version that was logged, in force or not."""
        return self._index(tenant, self._standing[tenant][-1])

    def in_memory(self, tenant: str) -> list[int]:
        """Return which versions are held, rising, but for the one that was read again."""
        return [each.version for each in self._standing[tenant] if each.index is not None]

    def activation(self, tenant: str, version: int) -> int | None:
        """Return the activation of a version's entry, None while it has none."""
        entry = next(each.entry for each in self._standing[tenant] if each.version == version)
        return self._activation_of(entry)

    def in_force(self, tenant: str, time: int) -> CommittedIndex | None:
        """Return the version that a record of this time must name; None while that is not known.

        It is unknown for a moment: an instant has passed, its activation has not arrived, and it
        may activate a version that is logged.

        Args:
            time: Unix milliseconds, within the window.
        """
        standing = self._standing[tenant]
        instants = self._policy.activation_instants
        for before, each in reversed(list(pairwise(standing))):
            activation = self._activation_of(each.entry)
            if activation is None:
                if self._released() < min(bisect_right(instants, time // 1000), len(instants) - 1):
                    return None
            elif 1000 * instants[activation - 1] <= time:
                if before.index is not None:
                    self._let_go(tenant)
                return self._index(tenant, each)
        return self._index(tenant, standing[0])

    def let_go_superseded(self) -> None:
        """Forget what no new record names, of every tenant."""
        for tenant in self._standing:
            self._let_go(tenant)

    def held(self) -> list[CommittedIndex]:
        """Return every version of every tenant that is in memory."""
        standing = [each for of_tenant in self._standing.values() for each in of_tenant]
        return [each.index for each in standing if each.index is not None]

    def rows(self) -> int:
        """Return how many rows the last versions of all tenants have together."""
        return sum(self.latest(tenant).count for tenant in list(self._standing))

    def _index(self, tenant: str, standing: Standing) -> CommittedIndex:
        if standing.index is not None:
            return standing.index
        again = self._again
        if again is None or (again.tenant, again.version) != (tenant, standing.version):
            assert self._load is not None  # without it none is let go
            self._again = again = self._load(tenant, standing.version)
        return again

    def _let_go(self, tenant: str) -> None:
        """Forget the indexes before the last one that is activated: no new record names them."""
        if self._load is None:
            return
        with self._lock:
            standing = self._standing[tenant]
            newest = max(
                (at for at, each in enumerate(standing) if at and self._activation_of(each.entry)),
                default=0,
            )
            self._standing[tenant] = (
                *(replace(each, index=None) for each in standing[:newest]),
                *standing[newest:],
            )

    def scores_all(self, index: CommittedIndex) -> bool:
        """Return whether answers may score every row of an index."""
        # A filter's rows are scored all, whatever the noise.
        return self.rule(index) is None or self._policy.retrieval.filters

    def rule(self, index: CommittedIndex) -> CandidateRule | None:
        """Return which rows of an index an answer scores; None for all of them."""
        # By the policy, never by settings: those may have changed since the commitment.
        key = (index.tenant, index.version)
        if key not in self._rules:
            units, most = self._sigma_units, self._policy.top_k_max
            self._rules[key] = None if units is None else candidate_rule(units, index.count, most)
        return self._rules[key]


@dataclass
class WindowLog:
    """A window's log, its checkpoints, and the key that signs them.

    Attributes:
        lock: held by the one who signs.
        append_lock: held around an entry's time and the commit of its transaction.
        cosigned_time: Unix milliseconds of the last cosignature that is known, 0 before the first.
        stamped_time: Unix milliseconds of the latest time before this process led, 0 for none.
        again: makes leaves again from the stored entries, before they are signed over.
        compared: whether this process has compared the log with what was cosigned of it.
        permit: asked in the transaction that stores a checkpoint; raises unless this process leads.
    """

    entries: LogStore
    checkpoints: CheckpointStore
    key: SigningKey
    lock: threading.Lock = field(default_factory=threading.Lock)
    append_lock: threading.Lock = field(default_factory=threading.Lock)
    cosigned_time: int = 0
    stamped_time: int = 0
    again: Leaves | None = None
    compared: bool = False
    permit: Permit | None = None

    @property
    def known_time(self) -> int:
        """Unix milliseconds that a right clock does not lie further behind than the skew."""
        return max(self.cosigned_time, self.stamped_time)

    def sign(self) -> SignedCheckpoint:
        """Sign the committed tree; return the last checkpoint if it did not grow.

        Raises:
            NotLeading: another process signs now; what was signed here is thrown away.
        """
        return self.checkpoints.sign(self.key, self.again, self.permit)

    def head_is_cosigned(self) -> bool:
        """Return whether a cosigned checkpoint has every entry."""
        cosigned = self.checkpoints.latest(cosignatures=1)
        return cosigned is not None and cosigned.head == self.entries.head()

    def note_cosigned(self, signed: SignedCheckpoint) -> None:
        """Take the time of a checkpoint's cosignatures, all of which were verified."""
        own = self.key.verifier_key
        times = (cosignature_time(line) for line in signed.note.signatures if not line.by(own))
        self.cosigned_time = max(self.cosigned_time, 1000 * max(times, default=0))


class OpenWindow:
    """One window's committed state. Threads answer with it at the same time."""

    def __init__(
        self,
        *,
        policy: Policy,
        pseudonym_key: bytes,
        indexes: Mapping[str, CommittedIndex],
        seed: SeedTree | None,
        log: WindowLog,
        fence: WindowFence,
        randomness: Randomness,
        anchor: bytes,
        load: Callable[[str, int], CommittedIndex] | None = None,
    ) -> None:
        """Collect the parts.

        Args:
            pseudonym_key: 32 bytes, from which the accounts' pseudonyms are derived.
            indexes: those of the opening, by tenant.
            seed: of the opening's noise keys; None in a window without noise.
            anchor: of the countersigned activation chain, 32 bytes.
            load: returns a version of a tenant's index as it is stored, see `IndexVersions`.
        """
        self.policy = policy
        self.policy_digest = policy.digest
        self.form = IndexForm.of(policy)
        self.name = policy.window
        self.log = log
        self.fence = fence
        self.randomness = randomness
        self.anchor = anchor
        # From the policy, never from the settings: those may have changed since the commitment.
        self._noise_table = table_for(policy.sigma) if policy.noised else None
        table = self._noise_table
        self._activations: dict[int, Activation] = {}
        # Weakly: in a circle they would stay, with all rows, until somebody looks for circles.
        activation_of = _of(WeakMethod(self.activation_of))
        self.epochs = SeedEpochs(policy, seed, activation_of)
        self.versions = IndexVersions(
            policy,
            indexes,
            sigma_units=None if table is None else float(table.parameters.sigma_units),
            activation_of=activation_of,
            released=_of(WeakMethod(self.released)),
            load=load,
        )
        # Held around (counter, time, append): answers are logged one after the other, and what a
        # head read under it lacks is stamped after the reading, as check 9 demands.
        self.commit_lock = log.append_lock
        # Called once the database turns out to be behind the fence.
        self.on_restored: Callable[[RestoredBackup], None] = lambda _: None
        # Told of each transaction that became durable: its seconds, and how many answers it holds.
        self.on_committed: Callable[[float, int], None] = lambda _seconds, _answers: None
        self._group = GroupCommit()
        self.standings = Standings()
        self.log_changed = threading.Event()  # set when the log grew: the checkpointer waits for it
        self._pseudonym_key = pseudonym_key
        # What other processes answer in: set once the window is served, see `OpenWindows`.
        self.turn: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
        # The generation of the window's row whose activations and versions are in memory.
        self.generation = 0
        self.catch_up: Callable[[], None] = lambda: None
        # Held while later versions are committed to: two would commit to one version twice. Store
        # and verifier are asked under it, so that only this window's refreshes wait for them.
        self.refreshing = threading.Lock()
        self._registered: Lookup[str, Registered] | None = None
        self._account_locks: dict[str, TaskLock] = {}
        self._locks_guard = threading.Lock()

    @property
    def seed(self) -> SeedTree:
        """The noise keys of the opening's epoch.

        Raises:
            InternalError: the window has no noise.
        """
        return self.epochs.tree(EPOCH)

    @property
    def noise_table(self) -> Table:
        """The table of the policy's noise; raises as `seed`."""
        if self._noise_table is None:
            raise InternalError("no noise in this window", where=self.name)
        return self._noise_table

    @property
    def indexes(self) -> dict[str, CommittedIndex]:
        """The opening's versions, by tenant."""
        return {tenant: self.versions.get(tenant, VERSION) for tenant in self.policy.tenants}

    def index_of(self, tenant: str, version: int) -> CommittedIndex:
        """Return a version of a tenant's index; InternalError if there is none."""
        return self.versions.get(tenant, version)

    @property
    def origin(self) -> str:
        """The log's name, part of every signed message about the window."""
        return self.policy.origin

    def pseudonym_of(self, account: str, user: str | None = None) -> bytes:
        """Return the account's 32-byte pseudonym in this window (docs/spec/05-records.md §5.1).

        Args:
            account: by name; it need not be registered.
            user: whom the account names; None for itself.
        """
        return pseudonym(self._pseudonym_key, self.name, account, user)

    @contextmanager
    def account_lock(self, account: str) -> Iterator[None]:
        """Hold the lock under which an account's queries run one after the other.

        In this process and in all others: a counter is read, and its noise drawn, under it. Who
        holds it may take it again: a batch holds it over all of its queries.

        Raises:
            StoreUnavailable: another process does not let go of it.
        """
        with self._locks_guard:
            # Never removed: with a second lock, two queries could use one counter.
            lock = self._account_locks.setdefault(account, TaskLock())
        with lock, self.turn(account):
            yield

    def registered(self, store: Store, account: str) -> Registered | None:
        """Return an account's registration, None if there is none.

        Whoever logs something for it reads it again, in the transaction.

        Args:
            store: of the prover's database.
        """
        # Nobody else writes to a file; on a server another process may have answered meanwhile.
        known = None if store.file is None else self.standings.last(account)
        if known is not None:
            return known
        if self._registered is None:
            self._registered = Lookup(partial(find_each, store, self.name))
        return self._registered.get(account)

    @contextmanager
    def committing(self, store: Store) -> Iterator[LogTransaction]:
        """Open a transaction that changes the window's log or counters, and then its fence.

        A database can be restored while the process runs, so each transaction compares head and
        counters with the fence before it writes.

        Args:
            store: of the prover's database, in which the log's tables are, too.

        Raises:
            WindowUnusable: the database is behind the fence. Nothing was written.
            StoreUnavailable: it is not durable; nothing may be answered.
        """
        with self.commit_lock:
            since = time.perf_counter()
            try:
                with store.write() as connection:
                    row = self.fence.check_head(connection)
                    transaction = LogTransaction(
                        LockedLog(
                            connection, self.name, self.log.entries, row,
                            self.standings.at(row.head), self.fence.check_account,
                        )
                    )  # fmt: skip
                    yield transaction
                    head = transaction.flush()
                self.standings.moved(head, transaction.changed)
                # After the commit, before any answer: a fence ahead of the database would look
                # like a restored backup, an answer ahead of the fence could be forgotten.
                if transaction.counters or head != row.head:
                    self.fence.advance(head, transaction.counters)
            except RestoredBackup as error:
                self.on_restored(error)
                raise WindowUnusable(str(error), where=self.name) from error
        self.on_committed(time.perf_counter() - since, len(transaction.counters))
        # Only after the commit: a head that is read for a checkpoint then holds the entry.
        self.log_changed.set()

    def commit(self, store: Store, work: Callable[[LogTransaction], T]) -> T:
        """Return what ``work`` returned in a transaction of `committing`, once that is durable.

        Several threads that come at the same time share one transaction and one fence.

        Args:
            store: as of `committing`.
            work: what a failure of its own undoes is its own alone.

        Raises:
            WindowUnusable, StoreUnavailable: as of `committing`.
            RagauditError: as ``work`` raises.
        """
        return self._group.run(lambda: self.committing(store), work)

    def activate(self, activation: Activation) -> None:
        """Take over an activation; the caller has verified it."""
        self._activations[activation.a] = activation

    def activation_of(self, position: int) -> int | None:
        """Return the activation of a log entry, None while it has none (spec 5.6).

        Args:
            position: in the log, from 0.
        """
        # Up to the first gap: an entry's activation is the first one that covers it (spec 5.6).
        sizes: list[int] = []
        while (activation := self._activations.get(len(sizes) + 1)) is not None:
            sizes.append(activation.covered_size)
        return activation_of(position, sizes)

    def released(self) -> int:
        """Return how many activations were taken over, from the first on without a gap."""
        count = 0
        while count + 1 in self._activations:
            count += 1
        return count

    def activation_randomness(self, number: int) -> bytes:
        """Return rnd_a of a released activation, 32 bytes.

        Args:
            number: a, from 1.

        Raises:
            InternalError: it was not released.
        """
        activation = self._activations.get(number)
        if activation is None:
            raise InternalError(f"activation {number} was not released", where=self.name)
        return activation.randomness()


def _of(method: WeakMethod[Callable[P, T]]) -> Callable[P, T]:
    """Return the method of a window as a function that does not hold the window."""

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        bound = method()
        if bound is None:
            raise InternalError("a part of a window that was forgotten", where="window")
        return bound(*args, **kwargs)

    return call
