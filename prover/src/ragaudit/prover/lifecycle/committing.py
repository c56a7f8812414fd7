"""From a draft to a countersigned window: spec 8.2."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.fence import Fence
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.merkle_commitments import index_proof_digest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, TenantOpening, entry_leaf_data
from ragaudit.prover.errors import VerifierRefused
from ragaudit.prover.index.index_commitment import (
    CommittedIndex,
    IndexBuilder,
    last_index,
    load_indexes,
    save_index,
)
from ragaudit.prover.randomness import Randomness, randomness_for
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.checkpointer import WindowLog
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.entries import insert_entry
from ragaudit.prover.window.seed_commitment import SeedTree
from ragaudit.prover.window.windows import Window, Windows

_log = logging.getLogger(__name__)

Notify = Callable[[str, float], bool | None]  # tenant, done share of its proof


@dataclass(frozen=True)
class WindowReader:
    """What was signed of a window's log, for everybody."""

    entries: LogStore
    checkpoints: CheckpointStore


class Committer:
    """Builds the commitments of a window and has them countersigned."""

    def __init__(
        self,
        *,
        store: Store,
        windows: Windows,
        builder: Callable[[Randomness], IndexBuilder],
        seed_tree: type[SeedTree],
        verifier: VerifierClient,
        fence_folder: Path,
    ) -> None:
        self._store = store
        self._windows = windows
        self._builder = builder
        self._seed_tree = seed_tree
        self._verifier = verifier
        self._fence_folder = fence_folder

    def commit(self, window: Window, notify: Notify | None = None) -> None:
        """Commit to every tenant's index and to the noise keys: draft to committed.

        An index that an interrupted run finished is kept.
        """
        policy = Policy.parse(window.policy)
        randomness = randomness_for(policy.experiment_seed)
        indexes = self._indexes(policy, randomness, notify)
        seed = self.seed_of(window, policy).commit()
        body = self.opening(policy, window, indexes, seed.root)
        with self._store.write() as connection:
            self._windows.advance(
                connection,
                window.name,
                State.DRAFT,
                State.COMMITTED,
                slot_roots=seed.slot_roots,
                opening_salt=randomness.draw(SALT_BYTES, "opening", window.name),
                opening_body=body.encode(),
            )

    def seed_of(self, window: Window, policy: Policy) -> SeedTree:
        """Return the noise keys of a window."""
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
        """Return the body of entry 0."""
        return Opening(
            policy.digest,
            EmbedderManifest.parse(window.embedder).digest(),
            seed_root,
            tuple(
                TenantOpening(name, each.count, each.root, index_proof_digest(each.proof))
                for name, each in sorted(indexes.items())
            ),
        )

    def countersign(self, window: Window) -> None:
        """Hand everything to the verifier and log the opening: committed to countersigned.

        A refusal moves the window to refused, with the verifier's signed verdict.
        """
        assert window.opening_salt is not None and window.opening_body is not None
        policy = Policy.parse(window.policy)
        log = self.open_log(window, policy)
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
        message.authenticate(
            policy, opening_salt=window.opening_salt, opening_body=window.opening_body
        )
        self._log_opening(window, log, message.encode())

    def open_log(self, window: Window, policy: Policy) -> WindowLog:
        """Open the window's log, or create it; its key signs no other window's."""
        key = SigningKey(policy.origin, ED25519, PrivateKey.from_seed(window.log_seed))
        entries = LogStore.create(self._store.engine, key.verifier_key)
        return WindowLog(
            entries, CheckpointStore(entries, CosignerPolicy((policy.keys.cosigner,), 1)), key
        )

    def signed_log(self, policy: Policy) -> WindowReader:
        """Open the window's log for reading what was signed of it."""
        entries = LogStore.open(self._store.engine, policy.keys.log)
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        return WindowReader(entries, CheckpointStore(entries, cosigners))

    def fence_path(self, policy: Policy) -> Path:
        return self._fence_folder / f"{policy.window}.fence"

    def _indexes(
        self, policy: Policy, randomness: Randomness, notify: Notify | None
    ) -> dict[str, CommittedIndex]:
        with self._store.read() as connection:
            indexes = load_indexes(connection, policy.window)
        builder = self._builder(randomness)
        for tenant in policy.tenants:
            if tenant in indexes:
                continue
            with self._store.read() as connection:
                previous = last_index(connection, tenant)
            indexes[tenant] = builder.build(
                policy_digest=policy.digest,
                window=policy.window,
                tenant=tenant,
                previous=previous,
                progress=None if notify is None else _bound(notify, tenant),
            )
            with self._store.write() as connection:
                save_index(connection, policy.window, indexes[tenant])
        return indexes

    def _make_fence(self, policy: Policy, log: WindowLog) -> None:
        """The fence must exist before the first entry: a missing one means a lost one."""
        self._fence_folder.mkdir(parents=True, exist_ok=True)
        fence = Fence(
            self.fence_path(policy), policy.origin, log_is_empty=log.entries.head().size == 0
        )
        fence.close()

    def _refused(self, window: Window, error: VerifierRefused) -> None:
        verdict = error.document.get("verdict")
        if verdict is None:
            raise error
        _log.warning("window %s: %s", window.name, error)
        with self._store.write() as connection:
            self._windows.advance(
                connection, window.name, State.COMMITTED, State.REFUSED, verdict=dumps(verdict)
            )

    def _log_opening(self, window: Window, log: WindowLog, countersignature: bytes) -> None:
        assert window.opening_salt is not None and window.opening_body is not None
        body = Opening.decode(window.opening_body)
        with self._store.write() as connection:
            leaf = entry_leaf_data(window.opening_salt, body)
            position = log.entries.append(connection, leaf)
            insert_entry(
                connection,
                window.name,
                position,
                Opening.KIND,
                window.opening_salt,
                window.opening_body,
            )
            self._windows.advance(
                connection,
                window.name,
                State.COMMITTED,
                State.COUNTERSIGNED,
                countersignature=countersignature,
            )


def _bound(notify: Notify, tenant: str) -> Callable[[float], bool | None]:
    return lambda share: notify(tenant, share)
