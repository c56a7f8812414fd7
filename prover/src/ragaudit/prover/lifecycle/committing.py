"""From a draft to a countersigned window: spec 8.2."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.fence import Fence
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages.commitments import index_proof_digest
from ragaudit.ledger.messages.documents import id_commitment
from ragaudit.ledger.messages.entries import Opening, TenantOpening
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import VerifierRefused
from ragaudit.prover.index.builder import IndexBuilder
from ragaudit.prover.index.committed import (
    CommittedIndex,
    IndexForm,
    last_index,
    load_indexes,
    save_index,
)
from ragaudit.prover.randomness import Randomness, SeedTree, randomness_for
from ragaudit.prover.store.database import Store, marks_of
from ragaudit.prover.store.fences import FenceFolder
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import WindowLog
from ragaudit.prover.window.records import latest_time, stored_leaves
from ragaudit.prover.window.windows import Window, Windows
from ragaudit.prover.work import WindowWork
from ragaudit.serving.jobs.runner import Runner
from sqlalchemy import Connection, Engine

_log = logging.getLogger(__name__)

Notify = Callable[[str, float], bool | None]  # tenant, share done of its proof; False cancels


@dataclass(frozen=True)
class WindowReader:
    """The public part of a window's log: its entries' leaves and its checkpoints."""

    entries: LogStore
    checkpoints: CheckpointStore


class Committer:
    """Builds the commitments of a window and has them countersigned."""

    def __init__(
        self,
        *,
        store: Store,
        windows: Windows,
        builder: Callable[[Randomness, WindowWork], IndexBuilder],
        runner: Runner,
        seed_tree: type[SeedTree],
        verifier: VerifierClient,
        fences: FenceFolder,
        asked: TrustPolicy | None = None,
    ) -> None:
        """Collect the parts.

        Args:
            asked: the further cosigners, whose signatures are kept, and their quorum.
        """
        self._asked = asked
        self._store = store
        self._windows = windows
        self._builder = builder
        self._runner = runner
        self._seed_tree = seed_tree
        self._verifier = verifier
        self.fences = fences

    def commit(self, window: Window, notify: Notify | None = None) -> None:
        """Commit to every tenant's index and to the noise keys: draft to committed.

        An index that an interrupted run finished is kept.

        Args:
            window: a draft, as it was read.
            notify: called with the progress of each tenant's index; its False cancels.

        Raises:
            MalformedDocument, MalformedError: documents that cannot be committed to.
            WrongState: the window is no longer a draft.
        """
        policy = Policy.parse(window.policy)
        randomness = randomness_for(policy.experiment_seed)
        indexes = self._indexes(policy, randomness, notify)
        # A window without noise has no noise keys to commit to.
        seed = self.seed_of(window, policy).commit() if policy.noised else None
        body = self.opening(policy, window, indexes, b"" if seed is None else seed.root)
        with self._store.write() as connection:
            self._windows.advance(
                connection,
                window.name,
                State.DRAFT,
                State.COMMITTED,
                slot_roots=b"" if seed is None else seed.slot_roots,
                opening_salt=randomness.draw(SALT_BYTES, "opening", window.name),
                opening_body=body.encode(),
            )

    def seed_of(self, window: Window, policy: Policy) -> SeedTree:
        """Return the noise keys of a window, not yet committed to.

        Args:
            window: holds s_W, 32 bytes.
        """
        return self._seed_tree(
            window.name, window.noise_seed, policy.slots, policy.queries_per_account
        )

    def opening(
        self,
        policy: Policy,
        window: Window,
        indexes: Mapping[str, CommittedIndex],
        seed_root: bytes,
    ) -> Opening:
        """Return the body of entry 0: everything that is fixed before the first query.

        Args:
            window: holds the embedder's manifest.
            indexes: by tenant.
            seed_root: C_seed, 32 bytes; empty in a window without noise.
        """
        return Opening(
            policy.digest,
            EmbedderManifest.parse(window.embedder).digest(),
            seed_root,
            tuple(_opened(window.name, index) for _, index in sorted(indexes.items())),
        )

    def countersign(self, window: Window) -> None:
        """Hand everything to the verifier and log the opening: committed to countersigned.

        A refusal moves the window to refused, with the verifier's signed verdict. Every call may
        be repeated: the verifier takes the same artefacts again.

        Args:
            window: committed, as it was read.

        Raises:
            VerifierUnreachable, VerifierRefused: it took no decision; call again.
            RejectedError: the countersignature is not one of this window.
        """
        assert window.opening_salt is not None and window.opening_body is not None
        policy = Policy.parse(window.policy)
        log = self.open_log(window, policy)
        # Signed while it is empty: check 3 sees that nothing was logged before the opening.
        empty = log.checkpoints.at(0) if log.entries.head().size else log.sign()
        self._make_fence(policy, log)
        self._verifier.register(window.policy, window.embedder)
        with self._store.read() as connection:
            indexes = load_indexes(connection, window.name)
        for tenant, index in indexes.items():
            commitment = index.commitment(window.name)
            self._verifier.put_index(window.name, tenant, commitment.version, commitment.encode())
        try:
            message = self._verifier.countersign(
                window.name,
                opening=window.opening_body,
                salt=window.opening_salt,
                empty_checkpoint=empty.encode(),
            )
        except VerifierRefused as error:
            self._refused(window, error)
            return
        # Nothing is logged under a signature that is not of this policy and opening.
        message.authenticate(
            policy, opening_salt=window.opening_salt, opening_body=window.opening_body
        )
        self._log_opening(window, log, message.encode())

    def open_log(self, window: Window, policy: Policy) -> WindowLog:
        """Open the window's log, or create it; its key signs no other window's log.

        Args:
            window: holds the seed of the log's key.
            policy: the window's, parsed; names the log.
        """
        # A key of its own: one that leaks signs one window's log.
        key = SigningKey(policy.origin, ED25519, PrivateKey.from_seed(window.log_seed))
        entries = LogStore.create(self._store.engine, key.verifier_key)

        def again(connection: Connection, start: int, end: int) -> Iterator[bytes]:
            return stored_leaves(connection, window.name, start, end)

        checkpoints, permit = self._checkpoints(entries, policy), self._store.permit
        log = WindowLog(entries, checkpoints, key, again=again, permit=permit)
        note_times(self._store, window.name, log)
        return log

    def signed_log(self, policy: Policy) -> WindowReader:
        """Open the window's log for reading what was signed of it, without its key.

        Args:
            policy: the window's, parsed; names the log and its key.
        """
        return read_log(self._store.engine, policy, self._asked)

    def _indexes(
        self, policy: Policy, randomness: Randomness, notify: Notify | None
    ) -> dict[str, CommittedIndex]:
        with self._store.read() as connection:
            indexes = load_indexes(connection, policy.window)
        work = WindowWork(self._runner, policy.window)
        builder = self._builder(randomness, work)
        for tenant in policy.tenants:
            if tenant in indexes:
                continue
            # Rows that did not change keep their commitments, blinded anew: that is much faster.
            with self._store.read() as connection:
                previous = last_index(connection, tenant)
                marks = marks_of(connection, tenant)
            # Outside of a transaction: a proof may take long, and queries of other windows go on.
            indexes[tenant] = builder.build(
                policy_digest=policy.digest,
                window=policy.window,
                tenant=tenant,
                form=IndexForm.of(policy),
                previous=previous,
                progress=None if notify is None else partial(notify, tenant),
            )
            # At once, tenant by tenant: after a crash no proof is made again.
            with self._store.write() as connection:
                save_index(connection, policy.window, indexes[tenant], marks)
            work.done()
        return indexes

    def _make_fence(self, policy: Policy, log: WindowLog) -> None:
        """Create the fence before the first entry: one that is missing later was lost."""
        self.fences.make()
        path, is_empty = self.fences.path(policy.window), log.entries.head().size == 0
        Fence(path, policy.origin, log_is_empty=is_empty).close()

    def _refused(self, window: Window, error: VerifierRefused) -> None:
        # Without a verdict nothing is decided: a proxy's 403 must not end a window.
        verdict = error.document.get("verdict")
        if verdict is None:
            raise error
        _log.warning("window %s: %s", window.name, error)
        with self._store.write() as connection:
            self._windows.advance(
                connection, window.name, State.COMMITTED, State.REFUSED, verdict=dumps(verdict)
            )

    def _log_opening(self, window: Window, log: WindowLog, countersignature: bytes) -> None:
        salt, body = window.opening_salt, window.opening_body
        assert salt is not None and body is not None
        # Entry 0 and the state in one transaction: no window is countersigned without its opening.
        with self._store.write() as connection:
            transaction = LogTransaction.alone(connection, log.entries, window.name)
            transaction.append(Opening.KIND, salt, body)
            transaction.flush()
            self._windows.advance(
                connection,
                window.name,
                State.COMMITTED,
                State.COUNTERSIGNED,
                countersignature=countersignature,
            )

    def _checkpoints(self, entries: LogStore, policy: Policy) -> CheckpointStore:
        return _checkpoints_of(entries, policy, self._asked)


def note_times(store: Store, window: str, log: WindowLog) -> None:
    """Take the times that other processes gave: a clock behind them stamps and signs nothing.

    Args:
        store: of the prover's database.
        window: by name.
        log: the window's.
    """
    cosigned = log.checkpoints.latest(cosignatures=1)
    if cosigned is not None:
        log.note_cosigned(cosigned)
    with store.read() as connection:
        size = cosigned.head.size if cosigned else 0
        log.stamped_time = max(log.stamped_time, latest_time(connection, window, size))


def _opened(window: str, index: CommittedIndex) -> TenantOpening:
    """What the opening says of a tenant's first version."""
    proof, secret = index_proof_digest(index.proof), index.document_secret
    commitment = id_commitment(window, index.tenant, secret) if secret else None
    return TenantOpening(
        index.tenant, index.count, index.root, proof, index.version, id_commitment=commitment
    )


def read_log(engine: Engine, policy: Policy, asked: TrustPolicy | None = None) -> WindowReader:
    """Open a window's log for reading what was signed of it.

    Args:
        engine: of the prover's database.
        policy: the window's; names the log and its key.
        asked: the further cosigners of the settings, and their quorum.

    Raises:
        UnknownResource, CorruptLog: as `LogStore.open`.
    """
    entries = LogStore.open(engine, policy.keys.log)
    return WindowReader(entries, _checkpoints_of(entries, policy, asked))


def _checkpoints_of(
    entries: LogStore, policy: Policy, asked: TrustPolicy | None
) -> CheckpointStore:
    # What a policy promises of further cosigners outranks what the settings say today.
    asked = asked if policy.cosigners is None else policy.cosigners.trust
    return CheckpointStore(entries, CosignerPolicy((policy.keys.cosigner,), 1), asked)
