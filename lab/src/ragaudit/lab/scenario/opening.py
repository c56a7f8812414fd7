"""A window's parties, accounts, policy, indexes and opening."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.circuits.statements import IndexStatement
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.policy import (
    CHALLENGED,
    END,
    INSTANTS,
    SMALL_TERMS,
    START,
    key_members,
    policy_document,
    seeded,
)
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey, parse_note
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.columns import NO_COLUMNS
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    SeedCommitment,
    content_digest,
    index_root,
    row_digest,
)
from ragaudit.ledger.messages.entries import (
    Opening,
    Record,
    Registration,
    TenantOpening,
)
from ragaudit.ledger.messages.items import OpeningItem, PreviousWindow
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.requests import Openings, Request
from ragaudit.verifier.procedure import Pins
from ragaudit.verifier.terms import Terms


@dataclass
class Account:
    """A tenant's user; with a nonce chain if it is anchored."""

    name: str
    tenant: str
    pseudonym: bytes
    chain: chains.NonceChain | None
    registration: Registration | None = None
    queries: int = 0

    @property
    def dispute_key(self) -> PrivateKey:
        """Return the key, made from the name, that signs what the account says (spec 5.10)."""
        return seeded(f"dispute key of {self.name}")


@dataclass
class TenantIndex:
    """A tenant's committed index with everything that opens it.

    Attributes:
        rows: int8 or int16[N, d+4], completed.
        columns, attributes: texts of each row; empty: no row has any.
        version: v.
    """

    tenant: str
    texts: list[str]
    ids: list[str]
    salts: list[bytes]
    rows: IntegerRows
    blindings: npt.NDArray[np.uint8]
    commitment: IndexCommitment
    columns: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    version: int = 1

    @property
    def vectors(self) -> IntegerRows:
        """Return [N, d]: the rows without the four integers that complete their norm to B²."""
        return self.rows[:, :-4].copy()


@dataclass
class Asked:
    """A query that was answered and logged.

    Attributes:
        record, body: the record, and the bytes that were logged; a cheat may let them differ.
        salt: of the leaf.
        embedding: int16[d], the query vector e.
        key: k, the key of the noise (docs/spec/05-records.md §5.5), 32 bytes.
        noise: int64[N], z for every row of the index.
        served_tenant: whose index was scored; an honest window's is the account's.
        selected: T, row positions in rising order.
        selection_blinding: rho_sel, a canonical scalar of 32 bytes.
        index: place in the log; -1 until the record is logged.
        answered_by: the index that was scored; None for version 1 of the served tenant's.
        served: positions of the answer in their order; of a noised window all of T, rising.
        withdrawn: positions of the answer that were left out since their documents changed.
    """

    account: Account
    request: Request
    record: Record
    body: bytes
    salt: bytes
    openings: Openings
    embedding: npt.NDArray[np.int16]
    key: bytes
    noise: npt.NDArray[np.int64]
    served_tenant: str
    selected: tuple[int, ...]
    selection_blinding: bytes
    index: int = -1
    answered_by: TenantIndex | None = None
    served: tuple[int, ...] = ()
    withdrawn: tuple[int, ...] = ()


Event = tuple[Any, ...]
"""What happens (a method of the window), to whom or what, and when."""


def registered(*, anchored: bool = False) -> list[Event]:
    """Return how scripts begin: three accounts register, the first with an anchor or without."""
    return [
        ("register", "alice", "acme", anchored, -25),
        ("register", "bob", "acme", False, -24),
        ("register", "carol", "beta", False, -23),
        ("checkpoint", -20),
    ]


@dataclass
class OpenedWindow:
    """The window up to its countersigned opening.

    The order of `script` is the order of events; times are seconds relative to `start`.
    """

    mode: str = "A"
    seed: int = 1
    rows: int = 20
    dimension: int = 8
    disclosure: str = "sampled"
    terms: Terms = SMALL_TERMS
    overrides: dict[str, Any] = field(default_factory=dict)
    provider: str = "rag.example"
    start: int = START
    end: int = END
    instants: tuple[int, ...] = INSTANTS

    tenants: ClassVar[tuple[str, ...]] = ("acme", "beta")
    slots = 6
    queries_per_account = 4
    sigma = "4"

    def script(self) -> list[Event]:
        """Return what happens: register and query name an account, checkpoint is cosigned."""
        return [
            *registered(anchored=True),
            ("query", "alice", "first question of alice", 3, 1),
            ("query", "bob", "first question of bob", 2, 6),
            ("checkpoint", 7),
            ("query", "carol", "first question of carol", 3, 12),
            ("register", "dora", "beta", True, 15),
            ("query", "alice", "second question of alice", 1, 18),
            ("checkpoint", 20),
            ("query", "bob", "second question of bob", 3, 30),
            ("query", "alice", "third question of alice", 2, 40),
            ("checkpoint", 42),
            ("query", "dora", "first question of dora", 3, 70),
            ("query", "carol", "second question of carol", 2, 80),
            ("checkpoint", 81),
        ]

    # --- the parties ----------------------------------------------------------------------

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.model = HashEmbedder(self.dimension)
        self.embedder = self.model.installed()
        self.window = "w1"
        self.origin = f"{self.provider}/ragaudit/{self.window}"
        self.log_key = SigningKey(self.origin, ED25519, self._key())
        self.provider_key = self._key()
        self.cosigner_key = SigningKey("verifier.example/cosigner", COSIGNATURE_V1, self._key())
        self.verifier_key = self._key()
        self.verdict_key = self._key()
        self.chain_seed = self.draw()
        self.seed_secret = self.draw()
        self.entries: list[tuple[str, bytes, bytes]] = []  # kind, salt, body
        self.sketches: dict[int, tuple[bytes, bytes]] = {}
        self.tree = MemoryTree()
        self.accounts: dict[str, Account] = {}
        self.asked: list[Asked] = []
        self.checkpoints: list[tuple[int, int, str]] = []  # size, time, note
        self.claims: list[dict[str, Any]] = []
        self.claimed: dict[bytes, int] = {}  # identity of a promise, when it was claimed
        self.refusals: list[dict[str, Any]] = []
        self.policy = Policy.from_json(self.policy_json())

    def draw(self) -> bytes:
        """Return 32 bytes of the window's own generator: the same in every run of one seed."""
        return self.random.randbytes(32)

    def scalar(self) -> bytes:
        """Return a canonical scalar as 32 bytes, of the window's own generator."""
        return self.random.randbytes(31) + b"\0"  # canonical: below 2^248

    def _key(self) -> PrivateKey:
        return PrivateKey.from_seed(self.draw())

    @property
    def pins(self) -> Pins:
        """Return the public keys that whoever judges the window has pinned."""
        return Pins(
            self.provider_key.public,
            self.cosigner_key.verifier_key,
            self.verifier_key.public,
            self.verdict_key.public,
        )

    def policy_json(self) -> dict[str, Any]:
        """Return the policy document; `overrides` are changes as `policy_document` takes them."""
        keys = key_members(
            log=self.log_key,
            provider=self.provider_key,
            cosigner=self.cosigner_key,
            verifier=self.verifier_key,
            verdict=self.verdict_key,
        )
        members = {
            "provider": self.provider,
            "window": self.window,
            "start": self.start,
            "end": self.end,
            "activation_instants": list(self.instants),
            "previous_checkpoint": self.previous_checkpoint(),
            "sigma": self.sigma,
            "dimension": self.dimension,
            "queries_per_account": self.queries_per_account,
            "slots": self.slots,
            "tenants": [{"id": tenant, "owner_key": None} for tenant in self.tenants],
            "query_text_disclosure": self.disclosure,
            "audit/mode": self.mode,
        }
        return self.document(keys, {**members, **self.overrides})

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        """Return the policy document of keys and changes."""
        return policy_document(keys, changes)

    def previous_log(self) -> SigningKey:
        """Return the key of the log of the window before."""
        return SigningKey(f"{self.provider}/ragaudit/w0", ED25519, seeded("the window before"))

    def previous_checkpoint(self, leaves: int = 3) -> str | None:
        """Return the cosigned final checkpoint of the window before, which the policy names.

        Args:
            leaves: entries of that window's log; a cheat names a checkpoint of another size.
        """
        tree = MemoryTree([bytes([n]) * 32 for n in range(leaves)])
        return self.cosigned(tree, self.start - 1000, self.previous_log())

    def previous(self) -> bytes:
        """Return the item ``previous.json``: what the verifier holds of the window before (§10.1).

        It takes the honest checkpoint whatever the policy names, so that check 1 has both to
        compare.
        """
        return PreviousWindow(
            self.previous_log().verifier_key,
            self.cosigner_key.verifier_key,
            OpenedWindow.previous_checkpoint(self),
        ).encode()

    # --- values of the instants: every one of them is a hook for cheats -----------------------

    def preimage(self, a: int) -> bytes:
        """Return n_a of the activation chain (docs/spec/05-records.md §5.6), for a = 1..A."""
        return chains.activation_preimage(self.window, self.chain_seed, len(self.instants), a)

    def randomness(self, a: int) -> bytes:
        """Return rnd_a (docs/spec/05-records.md §5.6).

        Args:
            a: an activation; from A on the last one that is not the sampling nonce stands in for
                n_a, so that records with an activation that there is not can be made.
        """
        known = min(a, len(self.instants) - 1)
        return chains.activation_randomness(
            self.window, a, self.preimage(known), self.beacon(known)
        )

    def round(self, a: int) -> BeaconRound | None:
        """Return the beacon's round that is shown with a release: none here.

        Args:
            a: 1..A, the sampling instant included.
        """
        return None

    def beacon(self, a: int) -> bytes:
        """Return what the provider and the verifier take for a round's randomness.

        Args:
            a: as of `round`.
        """
        shown = self.round(a)
        return b"" if shown is None else shown.randomness

    def released(self, a: int) -> int:
        """Return when an activation is released, Unix milliseconds.

        Args:
            a: 1..A-1.
        """
        return 1000 * self.instants[a - 1] + 5

    def drawn(self) -> int:
        """Return when the sample is drawn, Unix milliseconds."""
        return 1000 * CHALLENGED

    def covered_sizes(self) -> list[int]:
        """Return covered_size(a) for a = 1..A-1 (docs/spec/05-records.md §5.6)."""
        return [
            max((size for size, time, _ in self.checkpoints if time < instant), default=0)
            for instant in self.instants[:-1]
        ]

    # --- before the window -------------------------------------------------------------------

    def vectors(self, tenant: str) -> npt.NDArray[np.int8]:
        """Return int8[N, d]: the quantised embeddings of the tenant's texts."""
        return np.stack([self.embedder.embed(text) for text in self.texts(tenant)])

    def texts(self, tenant: str) -> list[str]:
        """Return the contents of a tenant's documents, in row order."""
        return [f"document {i} of {tenant}" for i in range(self.rows)]

    def document_id(self, tenant: str, position: int) -> str:
        """Return the identifier of a tenant's document at a row."""
        return f"{tenant}-{position}"

    def completed(self, tenant: str) -> npt.NDArray[np.int8]:
        """Return int8[N, d+4]: the rows that are committed to, each of squared norm B²."""
        return core.complete_rows(self.vectors(tenant))

    def build_index(self, tenant: str) -> TenantIndex:
        """Commit to a tenant's documents and prove the index (docs/spec/05-records.md §5.4)."""
        texts = self.texts(tenant)
        rows = self.completed(tenant)
        count = len(rows)
        blindings = self.blindings(count)
        commitments = core.commit_rows(rows, blindings)
        ids, salts = (
            [self.document_id(tenant, i) for i in range(count)],
            [self.draw() for _ in range(count)],
        )
        digests = b"".join(
            row_digest(salt, name, content_digest(text))
            for salt, name, text in zip(salts, ids, texts, strict=True)
        )
        root = index_root(commitments, digests)
        statement = self.index_statement(tenant, commitments, root)
        proof = self.prove_index(statement, rows, blindings)
        commitment = IndexCommitment(
            self.window, tenant, 1, self.dimension, commitments, digests, proof
        )
        bare = [NO_COLUMNS] * count, [""] * count
        return TenantIndex(tenant, texts, ids, salts, rows, blindings, commitment, *bare)

    def blindings(self, count: int) -> npt.NDArray[np.uint8]:
        """Return uint8[N, 32], fresh canonical scalars."""
        scalars = b"".join(self.scalar() for _ in range(count))
        return np.frombuffer(scalars, dtype=np.uint8).reshape(count, 32)

    def index_statement(
        self, tenant: str, commitments: bytes, root: bytes, version: int = 1
    ) -> IndexStatement:
        """Return the statement of the index argument of a version (docs/spec/04-arguments.md §4.7).

        Args:
            tenant, version: whose index, and which.
            commitments: C_0 || .. || C_(N-1), 32 bytes each.
            root: C_idx[t, v]; it enters the argument's context.
        """
        return IndexStatement.of(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=tenant,
            version=version,
            index_root=root,
            dimension=self.dimension,
            commitments=commitments,
            squared_norm=self.policy.squared_norm,
        )

    def prove_index(
        self,
        statement: IndexStatement,
        rows: IntegerRows,
        blindings: npt.NDArray[np.uint8],
    ) -> bytes:
        """Return pi_idx: a hook for cheats.

        Args:
            statement: what is claimed.
            rows: int8 or int16[N, d+4].
            blindings: uint8[N, 32], rho_i as canonical scalars.
        """
        return core.prove_index(statement, rows, blindings)

    def build_opening(self) -> Opening:
        """Return the opening entry over the indexes and seed as they were built (§5.7)."""
        return Opening(
            self.policy.digest,
            self.manifest().digest(),
            self.seed_root,
            tuple(
                TenantOpening(
                    t, index.commitment.rows, index.commitment.root, index.commitment.proof_digest
                )
                for t, index in self.indices.items()
            ),
        )

    def manifest(self) -> EmbedderManifest:
        """Return the embedder manifest: a hook for cheats."""
        return self.model.manifest()

    def open(self) -> None:
        """Make everything up to the countersignature."""
        self.indices = {tenant: self.build_index(tenant) for tenant in self.tenants}
        self.commit_keys()
        self.opening = self.build_opening()
        self.append("opening", self.opening.encode())
        self.empty_checkpoint = self.sign_head(MemoryTree())

    def commit_keys(self) -> None:
        """Commit to the noise keys of all slots and counters (docs/spec/05-records.md §5.5)."""
        if self.policy.noised:
            self.seed_commitment = SeedCommitment.build(
                self.seed_secret, self.window, 1, self.slots, self.queries_per_account
            )

    @property
    def seed_root(self) -> bytes:
        """Return the root of C_seed, which opening and statements name; empty without noise."""
        return self.seed_commitment.root if self.policy.noised else b""

    def opening_items(self) -> dict[str, bytes]:
        """Return the evidence that the verifier has before it countersigns."""
        _, salt, body = self.entries[0]
        return {
            names.POLICY: self.policy.canonical,
            names.TERMS: self.terms.canonical,
            names.EMBEDDER: self.manifest().encode(),
            names.OPENING: OpeningItem(salt, body).encode(),
            names.EMPTY_CHECKPOINT: self.empty_checkpoint.encode(),
            names.PREVIOUS: self.previous(),
            **{
                names.index_name(tenant): index.commitment.encode()
                for tenant, index in self.indices.items()
            },
        }

    def append(self, kind: str, body: bytes) -> int:
        """Log an entry under a fresh salt and return its index.

        Args:
            kind: of the entry (docs/spec/05-records.md §5.7).
            body: its bytes, well-formed or not.
        """
        salt = self.draw()
        self.entries.append((kind, salt, body))
        return self.tree.append(leaf_data(salt, kind, body))

    def leaves(self, size: int | None = None) -> list[bytes]:
        """Return the leaf data of the entries as they are now, logged or not.

        Args:
            size: of how many, from the first; None for all.
        """
        return [leaf_data(salt, kind, body) for kind, salt, body in self.entries[:size]]

    def log_again(self) -> None:
        """Log what stands in `entries`, as if nothing else had ever been logged."""
        self.tree = MemoryTree(self.leaves())

    def forked(self, size: int) -> MemoryTree:
        """Return another log of the same length, whose last entry is not this window's.

        Args:
            size: number of entries, at least 1.
        """
        return MemoryTree([*self.leaves(size - 1), b"f" * 32])

    def sign_head(self, tree: MemoryTree, key: SigningKey | None = None) -> str:
        """Return the signed note of a tree's head, without a cosignature.

        Args:
            tree: any tree.
            key: of the log; this window's if it is not given.
        """
        log = key or self.log_key
        return sign_checkpoint(Checkpoint(log.name, tree.head()), log).encode().decode()

    def cosigned(self, tree: MemoryTree, time: int, key: SigningKey | None = None) -> str:
        """Return the note of a tree's head with the log's signature and the cosigner's.

        Unlike the cosigner it checks nothing: forks and rewritten logs get their cosignature too.

        Args:
            tree: any tree.
            time: of the cosignature, Unix seconds.
            key: of the log; this window's if it is not given.
        """
        note = parse_note(self.sign_head(tree, key).encode())
        return note.with_signatures([cosign(note.text, self.cosigner_key, time)]).encode().decode()
