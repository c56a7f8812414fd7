"""A window all of whose salts, keys and times are known beforehand, to be answered again."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit import core
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.ledger.messages.challenge import Activation
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.prover.answering.answering import Promises, Retrieval
from ragaudit.prover.answering.context import Context
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Stages
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.index.committed import CommittedIndex, IndexForm
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.randomness import SeededRandomness, SeedTree
from ragaudit.prover.settings import WindowSettings
from ragaudit.prover.store.accounts import Account, Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.prover.window.log_transaction import WindowFence
from ragaudit.prover.window.open_window import OpenWindow, WindowLog
from ragaudit.prover.window.registrations import Registrar
from ragaudit.prover.window.windows import Windows

START, ROWS, DIMENSION, TENANT = 1_790_000_000_000, 40, 16, "one"
SETTINGS: dict[str, dict[str, Any]] = {
    "noise": {"sigma": "40", "epsilon_acc": None, "coalition_max": 1},
    "exact": {"privacy": "none", "query_kinds": ["text", "vector"]},
}
_COMMON = {
    "opens_after_seconds": 1, "length_seconds": 10**6, "activation_every_seconds": 10**6,
    "top_k_max": 5, "queries_per_account": 8, "slots": 2, "retry_seconds": 60, "filters": True,
    "public_columns": {"lang": "string", "year": "integer"},
}  # fmt: skip


def key(name: str) -> PrivateKey:
    return PrivateKey.from_seed(sha256(name.encode()).digest())


class RecordedWindow:
    """One window, open, of a plain account ``ada`` and, with noise, an anchored one ``bob``."""

    def __init__(self, store: Store, folder: Path, kind: str) -> None:
        self.now, self.name, self.store = START, f"w-{kind}", store
        provider, log_key = key("provider"), key("log")
        cosigner = SigningKey("verifier.example", COSIGNATURE_V1, key("cosigner"))
        policy = PolicyBuilder("recorded.example", provider.public).build(
            window=self.name,
            log_key=log_key.public,
            settings=WindowSettings(**{**_COMMON, **SETTINGS[kind]}),
            tenants=[TENANT],
            dimension=DIMENSION,
            verifier=ShownKeys(
                arbiter=None,
                name="recorded",
                cosigner=cosigner.verifier_key,
                verifier=key("verifier").public,
                verdict=key("verdict").public,
                time=START,
            ),
            previous_checkpoint=None,
            now=START - 10_000,
            generator=None,
        )
        randomness, embedder = SeededRandomness(f"recorded {kind}"), HashEmbedder(DIMENSION)
        self.backend, windows = StoredDocuments(store), Windows(store)
        self.backend.add(TENANT, DOCUMENTS)
        secret = randomness.draw(32, "noise seed")
        windows.create(
            self.name,
            policy=policy.canonical,
            embedder=embedder.manifest().encode(),
            log_seed=log_key.seed(),
            noise_seed=secret,
            pseudonym_key=randomness.draw(32, "pseudonyms"),
        )
        windows.note(self.name, state=State.OPEN)
        signing = SigningKey(policy.origin, ED25519, log_key)
        entries = LogStore.create(store.engine, signing.verifier_key)
        cosigners = CosignerPolicy((cosigner.verifier_key,), 1)
        fence = WindowFence(folder / "fence", entries, lambda _: 0)
        fence.open()
        self.live = OpenWindow(
            policy=policy,
            pseudonym_key=randomness.draw(32, "pseudonyms"),
            indexes={TENANT: _index(IndexForm.of(policy), randomness, embedder, policy.norm_bound)},
            seed=SeedTree(self.name, secret, policy.slots, policy.queries_per_account)
            if policy.noised
            else None,
            log=WindowLog(entries, CheckpointStore(entries, cosigners), signing),
            fence=fence,
            randomness=randomness,
            anchor=bytes(32),
        )
        self.chain = NonceChain(self.name, self.live.pseudonym_of("bob"), b"\x07" * 32, 8)
        self.ada, self.bob = Account("ada", TENANT), Account("bob", TENANT)
        accounts, registrar = Accounts(store), Registrar(store, windows, lambda: self.now)
        anchors = {self.ada: None, self.bob: self.chain.anchor if policy.noised else None}
        for account, anchor in anchors.items():
            accounts.add(TENANT, account.name)
            registrar.register(self.live, account, anchor, None)
        self.live.activate(
            Activation(window=self.name, a=1, preimage=bytes(32), covered_size=2, time=0)
        )
        self.retrieval = Retrieval(
            Context(
                store=store,
                windows=windows,
                backend=self.backend,
                mechanism=Mechanism(embedder),
                key=provider,
                clock=lambda: self.now,
                stages=Stages(),
            )
        )
        unasked: Any = None  # no promise of these expires
        self.promises = Promises(retrieval=self.retrieval, verifier=unasked)

    def root(self) -> str:
        """Root of the tree, hexadecimal."""
        return self.live.log.entries.head().root_hash.hex()


DOCUMENTS = [
    Document(
        f"doc-{n}",
        f"document {n}: “naïve” \\ \t{n * n}",
        attributes_text({"lang": "en" if n % 2 else "de", "year": 2020 + n % 3, "n": n}, "d"),
    )
    for n in range(ROWS)
]


def _index(
    form: IndexForm, randomness: SeededRandomness, embedder: HashEmbedder, bound: int
) -> CommittedIndex:
    vectors = embedder.embed([each.content for each in DOCUMENTS])
    rows = core.complete_rows(quantise_rows(vectors, bound), bound**2)
    return CommittedIndex(
        tenant=TENANT,
        ids=tuple(each.id for each in DOCUMENTS),
        content_digests=b"".join(map(form.digest, DOCUMENTS)),
        rows=np.asarray(rows),
        blindings=randomness.scalars(ROWS, "blindings"),
        salts=randomness.draw(32 * ROWS, "salts"),
        # Copied into receipts, and no more.
        commitments=randomness.draw(32 * ROWS, "commitments"),
        root=randomness.draw(32, "root"),
        proof=b"",
        columns=tuple(map(form.columns_of, DOCUMENTS)),
    )


@contextmanager
def recorded(folder: Path, kind: str, patch: pytest.MonkeyPatch) -> Iterator[RecordedWindow]:
    """Yield a window of a kind of `SETTINGS`, on an SQLite database in ``folder``."""
    patch.setattr(
        "ragaudit.prover.lifecycle.policy_builder.randomness_for",
        lambda _: SeededRandomness("policy"),
    )
    store = Store.create(f"sqlite:///{folder / 'prover.sqlite'}")
    try:
        yield RecordedWindow(store, folder, kind)
    finally:
        store.close()
