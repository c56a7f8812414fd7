"""A countersigned window in memory: what answering, registering and proving need of it."""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ragaudit.circuits.noise import NoiseParameters, Table, table
from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.ledger.chains import activation_of, activation_randomness
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.fence import Fence
from ragaudit.ledger.identifiers import pseudonym
from ragaudit.ledger.policy import Policy
from ragaudit.ledger.tree import TreeHead
from ragaudit.prover.checkpointer import WindowLog
from ragaudit.prover.index_commitment import CommittedIndex
from ragaudit.prover.randomness import Randomness
from ragaudit.prover.seed_commitment import SeedTree


@dataclass(frozen=True)
class Activation:
    """A released activation value: n_a, and how many entries it activates."""

    number: int
    preimage: bytes
    covered_size: int


class LiveWindow:
    """One window's committed state. Threads answer with it at the same time."""

    def __init__(
        self,
        *,
        policy: Policy,
        pseudonym_key: bytes,
        indexes: Mapping[str, CommittedIndex],
        seed: SeedTree,
        log: WindowLog,
        fence: "WindowFence",
        randomness: Randomness,
        anchor: bytes,
    ) -> None:
        """Collect the parts; ``anchor`` is the countersigned activation chain's."""
        self.policy = policy
        self.policy_digest = policy.digest
        self.name = policy.window
        self.indexes = indexes
        self.seed = seed
        self.log = log
        self.fence = fence
        self.randomness = randomness
        self.anchor = anchor
        self.noise_table: Table = table(NoiseParameters.for_sigma(policy.sigma))
        # Held around (counter, append): the answers of a window are logged one after the other.
        self.commit_lock = threading.Lock()
        self.grown = threading.Event()  # set when the log grew: the checkpointer waits for it
        self._pseudonym_key = pseudonym_key
        self._activations: dict[int, Activation] = {}
        self._account_locks: dict[str, threading.Lock] = {}
        self._locks_guard = threading.Lock()

    @property
    def origin(self) -> str:
        return self.policy.origin

    def pseudonym_of(self, account: str) -> bytes:
        """Return the account's 32-byte pseudonym in this window."""
        return pseudonym(self._pseudonym_key, self.name, account)

    def account_lock(self, account: str) -> AbstractContextManager[bool]:
        """Return the lock under which an account's queries run one after the other."""
        with self._locks_guard:
            return self._account_locks.setdefault(account, threading.Lock())

    def activate(self, activation: Activation) -> None:
        """Take over a verified activation."""
        self._activations[activation.number] = activation

    def activation_of(self, position: int) -> int | None:
        """Return the activation of the log entry at ``position``, None while it has none."""
        sizes: list[int] = []
        while (found := self._activations.get(len(sizes) + 1)) is not None:
            sizes.append(found.covered_size)
        return activation_of(position, sizes)

    def activation_randomness(self, number: int) -> bytes:
        """Return rnd_a of a released activation."""
        found = self._activations.get(number)
        if found is None:
            raise InternalError(f"activation {number} was not released", where=self.name)
        return activation_randomness(self.name, number, found.preimage)


@dataclass
class WindowFence:
    """The fence of a window's log, opened again after a write that failed.

    Args:
        records_of: an account's number of records or promises in the database, by pseudonym.
    """

    path: Path
    log: WindowLog
    records_of: Callable[[bytes], int]
    _fence: Fence | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        """Open the fence and compare the database with it.

        Raises:
            RestoredBackup: the database is behind, or the fence is missing.
        """
        origin = self.log.entries.log_key.name
        fence = Fence(self.path, origin, log_is_empty=self.log.entries.head().size == 0)
        try:
            fence.check(self.log.entries.root, self.records_of)
        except RagauditError:
            fence.close()
            raise
        self._fence = fence

    def advance(self, head: TreeHead, pseudonym: bytes | None = None, records: int = 0) -> None:
        """Make it durable outside the database that the log reached ``head``.

        Raises:
            StoreUnavailable: it is not durable; nothing may be answered.
            RestoredBackup: a fence that was opened again is ahead of the database.
        """
        with self._lock:
            if self._fence is None:
                self.open()
            assert self._fence is not None
            try:
                self._fence.advance(head, pseudonym, records)
            except (OSError, InternalError):
                self.close()
                raise StoreUnavailable(
                    "the fence cannot be written", where=str(self.path), expected="free disk space"
                ) from None

    def close(self) -> None:
        if self._fence is not None:
            self._fence.close()
            self._fence = None
