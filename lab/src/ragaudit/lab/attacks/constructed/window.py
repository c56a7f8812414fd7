"""A small window from end to end in one process: a provider, its accounts, and a verifier.

`Window().evidence()` gives an honest window's items (docs/spec/10-verdict.md §10.1). A provider
that cheats is a subclass which overrides the step where it cheats; everything after that step
follows from it, so that what is wrong is that step and nothing else. Times are real Unix times of
a future window; nothing waits.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, noise_key, table
from ragaudit.circuits.quantise import quantise
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.sketch import sketch
from ragaudit.circuits.statements import IndexStatement, SelectionStatement
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data, salted, structure
from ragaudit.encoding.signing import PrivateKey, sign
from ragaudit.lab.attacks.terms import SMALL_TERMS
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import chains, merkle_commitments
from ragaudit.ledger.messages.activation import Activation
from ragaudit.ledger.messages.challenge import Challenge, ReceiptsList, Stratum, receipts_digest
from ragaudit.ledger.messages.clock import Clock
from ragaudit.ledger.messages.countersignature import Countersignature, opening_digest
from ragaudit.ledger.messages.disputes import Dispute, RegistrationStatement
from ragaudit.ledger.messages.handover import Entry, write_handover
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment, IndexTree, SeedCommitment
from ragaudit.ledger.messages.openings import Openings
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.records import (
    Close,
    Opening,
    Record,
    Registration,
    TenantOpening,
)
from ragaudit.ledger.messages.requests import Answer, Document, Request
from ragaudit.ledger.messages.response import Response
from ragaudit.privacy import coalition
from ragaudit.privacy import sample as sampling
from ragaudit.verifier import evidence as names
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Pins
from ragaudit.verifier.procedure.log_view import read_record
from ragaudit.verifier.terms import Terms

START = 1_900_000_000
END = START + 120
INSTANTS = (START - 10, START + 60, END + 50)
COUNTERSIGNED = START - 30
CLOSED = END + 1
HANDED_OVER = END + 5
CHALLENGED = END + 51
DEADLINE_SECONDS = 1000
BITS = 64
THETA = "0.9"


class HashEmbedder:
    """A deterministic embedder of d dimensions: a text's hash seeds its vector."""

    def __init__(self, dimension: int, name: str = "hash") -> None:
        self.dimension = dimension
        self.manifest = canonical_json.dumps(
            {
                "format": "ragaudit/v1/embedder",
                "name": name,
                "dimension": dimension,
                "prompt_template": "{text}",
                "schema": {},
                "files": {},
            }
        )

    @property
    def digest(self) -> bytes:
        return structure("embedder", self.manifest)

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
        return quantise(np.random.default_rng(seed).normal(size=self.dimension))


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
        return PrivateKey.from_seed(hashlib.sha256(f"dispute key of {self.name}".encode()).digest())


@dataclass
class TenantIndex:
    """A tenant's committed index with everything that opens it."""

    tenant: str
    texts: list[str]
    ids: list[str]
    salts: list[bytes]
    rows: npt.NDArray[np.int8]
    blindings: npt.NDArray[np.uint8]
    commitment: IndexCommitment

    @property
    def vectors(self) -> npt.NDArray[np.int8]:
        return np.ascontiguousarray(self.rows[:, :-4])


@dataclass
class Asked:
    """A query that was answered and logged."""

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


@dataclass
class Window:
    """An honest window; see the module's description.

    The order of `script` is the order of events; times are seconds relative to START.
    """

    mode: str = "A"
    seed: int = 1
    rows: int = 20
    dimension: int = 8
    disclosure: str = "sampled"
    terms: Terms = SMALL_TERMS
    overrides: dict[str, Any] = field(default_factory=dict)
    provider: str = "rag.example"

    tenants = ("acme", "beta")
    slots = 6
    queries_per_account = 4
    sigma = "4"

    def script(self) -> list[tuple[Any, ...]]:
        """What happens: register and query name an account, checkpoint is cosigned."""
        return [
            ("register", "alice", "acme", True, -25),
            ("register", "bob", "acme", False, -24),
            ("register", "carol", "beta", False, -23),
            ("checkpoint", -20),
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
        self.embedder = HashEmbedder(self.dimension)
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
        self.noise_table = table(NoiseParameters.for_sigma(self.policy.sigma))

    def draw(self) -> bytes:
        return self.random.randbytes(32)

    def scalar(self) -> bytes:
        return self.random.randbytes(31) + b"\0"  # canonical: below 2^248

    def _key(self) -> PrivateKey:
        return PrivateKey.from_seed(self.draw())

    @property
    def pins(self) -> Pins:
        return Pins(
            self.provider_key.public,
            self.cosigner_key.verifier_key,
            self.verifier_key.public,
            self.verdict_key.public,
        )

    def policy_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "format": "ragaudit/v1/policy",
            "provider": self.provider,
            "window": self.window,
            "start": START,
            "end": END,
            "previous_checkpoint": self.previous_checkpoint(),
            "epsilon_acc": "20",
            "delta_acc": "0.00001",
            "delta_policy": "0.00001",
            "sigma": self.sigma,
            "relation": "replace",
            "rows_per_document": 1,
            "norm_bound": 127,
            "dimension": self.dimension,
            "top_k_max": 3,
            "queries_per_account": self.queries_per_account,
            "slots": self.slots,
            "coalition_max": 2,
            "tenants": [{"id": tenant, "owner_key": None} for tenant in self.tenants],
            "calibration": "chosen for a test",
            "sampler": {"id": "ragaudit/v1/dgs", "distance": "2^-100"},
            "activation_instants": list(INSTANTS),
            "activation_rounds": [None] * len(INSTANTS),
            "beacon": {"kind": "none"},
            "query_text_disclosure": self.disclosure,
            "embedder_tolerance": 0,
            "estimator": {
                "theta": THETA,
                "tau_seconds": 1,
                "sketch_bits": BITS,
                "seed": hashlib.sha256(b"sketch").hexdigest(),
                "hamming_threshold": coalition.hamming_threshold(THETA, BITS),
            },
            "filter_grammar": "empty",
            "proof_mode": "on-demand",
            "audit": {
                "mode": self.mode,
                "beta": "0.4",
                "tenants": {"eta": "0.3", "minimum": 1},
                "submitters": {"by": "account", "eta": "0.3", "minimum": 1},
                "deadline_seconds": DEADLINE_SECONDS,
            },
            "merge_delay_seconds": 30,
            "clock_skew_seconds": 5,
            "promise_life_seconds": 20,
            "claim_margin_seconds": 10,
            "release_seconds": 100,
            "keys": {
                "arbiter": None,
                "log": str(self.log_key.verifier_key),
                "provider": self.provider_key.public.raw.hex(),
                "cosigner": str(self.cosigner_key.verifier_key),
                "verifier": self.verifier_key.public.raw.hex(),
                "verdict": self.verdict_key.public.raw.hex(),
            },
            "experiment_seed": None,
        }
        for path, item in self.overrides.items():
            target, *rest = path.split("/")
            if rest:
                value[target][rest[0]] = item
            else:
                value[target] = item
        return value

    def previous_log(self) -> SigningKey:
        """The key of the log of the window before."""
        key = PrivateKey.from_seed(hashlib.sha256(b"the window before").digest())
        return SigningKey(f"{self.provider}/ragaudit/w0", ED25519, key)

    def previous_checkpoint(self, leaves: int = 3) -> str | None:
        """The final checkpoint of the window before, with ``leaves`` entries."""
        log = self.previous_log()
        tree = MemoryTree([bytes([n]) * 32 for n in range(leaves)])
        signed = sign_checkpoint(Checkpoint(log.name, tree.head()), log)
        line = cosign(signed.note.text, self.cosigner_key, START - 1000)
        return signed.note.with_signatures([line]).encode().decode()

    def previous(self) -> bytes:
        """What the verifier holds of the window before."""
        return canonical_json.dumps(
            {
                "log": str(self.previous_log().verifier_key),
                "cosigner": str(self.cosigner_key.verifier_key),
                "final_checkpoint": Window.previous_checkpoint(self),
            }
        )

    # --- before the window -------------------------------------------------------------------

    def vectors(self, tenant: str) -> npt.NDArray[np.int8]:
        """int8[N, d]: the embeddings of the tenant's texts."""
        return np.stack([self.embedder.embed(text) for text in self.texts(tenant)])

    def texts(self, tenant: str) -> list[str]:
        return [f"document {i} of {tenant}" for i in range(self.rows)]

    def completed(self, tenant: str) -> npt.NDArray[np.int8]:
        """int8[N, d+4], what is committed to."""
        return core.complete_rows(self.vectors(tenant))

    def build_index(self, tenant: str) -> TenantIndex:
        texts = self.texts(tenant)
        rows = self.completed(tenant)
        count = len(rows)
        blindings = np.frombuffer(
            b"".join(self.scalar() for _ in range(count)), dtype=np.uint8
        ).reshape(count, 32)
        commitments = core.commit_rows(rows, blindings)
        ids, salts = [f"{tenant}-{i}" for i in range(count)], [self.draw() for _ in range(count)]
        digests = b"".join(
            merkle_commitments.row_digest(salt, name, merkle_commitments.content_digest(text))
            for salt, name, text in zip(salts, ids, texts, strict=True)
        )
        root = merkle_commitments.index_root(commitments, digests)
        statement = self.index_statement(tenant, commitments, root)
        proof = self.prove_index(statement, rows, blindings)
        commitment = IndexCommitment(
            self.window, tenant, 1, self.dimension, commitments, digests, proof
        )
        return TenantIndex(tenant, texts, ids, salts, rows, blindings, commitment)

    def index_statement(self, tenant: str, commitments: bytes, root: bytes) -> IndexStatement:
        return IndexStatement.of(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=tenant,
            version=1,
            index_root=root,
            dimension=self.dimension,
            commitments=commitments,
        )

    def prove_index(
        self,
        statement: IndexStatement,
        rows: npt.NDArray[np.int8],
        blindings: npt.NDArray[np.uint8],
    ) -> bytes:
        return core.prove_index(statement, rows, blindings)

    def build_opening(self) -> Opening:
        return Opening(
            self.policy.digest,
            self.embedder.digest,
            self.seed_commitment.root,
            tuple(
                TenantOpening(
                    t, index.commitment.rows, index.commitment.root, index.commitment.proof_digest
                )
                for t, index in self.indices.items()
            ),
        )

    def open(self) -> None:
        """Everything up to the countersignature."""
        self.indices = {tenant: self.build_index(tenant) for tenant in self.tenants}
        self.seed_commitment = SeedCommitment.build(
            self.seed_secret, self.window, 1, self.slots, self.queries_per_account
        )
        self.opening = self.build_opening()
        self.append("opening", self.opening.encode())
        self.empty_checkpoint = self.sign_head(MemoryTree())

    def opening_items(self) -> dict[str, bytes]:
        """The evidence that the verifier has before it countersigns."""
        _, salt, body = self.entries[0]
        return {
            names.POLICY: self.policy.canonical,
            names.TERMS: self.terms.canonical,
            names.EMBEDDER: self.embedder.manifest,
            names.OPENING: canonical_json.dumps({"salt": salt.hex(), "body": body.hex()}),
            names.EMPTY_CHECKPOINT: self.empty_checkpoint.encode(),
            names.PREVIOUS: self.previous(),
            **{
                names.index_name(tenant): index.commitment.encode()
                for tenant, index in self.indices.items()
            },
        }

    # --- the log -----------------------------------------------------------------------------

    def append(self, kind: str, body: bytes) -> int:
        salt = self.draw()
        self.entries.append((kind, salt, body))
        return self.tree.append(leaf_data(salt, kind, body))

    def sign_head(self, tree: MemoryTree) -> str:
        return sign_checkpoint(Checkpoint(self.origin, tree.head()), self.log_key).encode().decode()

    def checkpoint(self, time: int) -> None:
        """Sign the tree as it is and have it cosigned at START + ``time``."""
        signed = sign_checkpoint(Checkpoint(self.origin, self.tree.head()), self.log_key)
        line = cosign(signed.note.text, self.cosigner_key, START + time)
        note = signed.note.with_signatures([line]).encode().decode()
        self.checkpoints.append((self.tree.size, START + time, note))

    # --- accounts ----------------------------------------------------------------------------

    def register(self, name: str, tenant: str, anchored: bool, time: int) -> None:
        pseudonym = hashlib.sha256(f"pseudonym of {name}".encode()).digest()
        chain = (
            chains.NonceChain(self.window, pseudonym, self.draw(), self.queries_per_account)
            if anchored
            else None
        )
        account = Account(name, tenant, pseudonym, chain)
        body = Registration(
            window=self.window,
            pseudonym=pseudonym,
            tenant=tenant,
            slot=sum(kind == "registration" for kind, _, _ in self.entries),
            anchor=chain.anchor if chain else None,
            dispute_key=account.dispute_key.public.raw,
            time=1000 * (START + time),
        )
        account.registration = self.alter_registration(account, body)
        self.accounts[name] = account
        self.append("registration", account.registration.encode())

    def alter_registration(self, account: Account, body: Registration) -> Registration:
        """For cheats."""
        return body

    # --- queries -----------------------------------------------------------------------------

    def query(self, name: str, text: str, top_k: int, time: int) -> Asked:
        """Answer and log a query at START + ``time``."""
        account = self.accounts[name]
        asked = self.answer(account, text, top_k, 1000 * (START + time))
        account.queries += 1
        self.log_record(asked)
        return asked

    def log_record(self, asked: Asked) -> None:
        asked.index = self.append("record", asked.body)
        asked.salt = self.entries[asked.index][1]
        self.sketches[asked.index] = (asked.openings.salt_s, asked.openings.sketch)
        self.asked.append(asked)

    def answer(self, account: Account, text: str, top_k: int, time: int) -> Asked:
        openings, embedding = self.open_query(account, text)
        record = self.promised(account, openings, top_k, time)
        if account.chain is not None and account.queries < account.chain.length:
            # A selection stands in until the noise, which the nonce decides, is known.
            nonce = account.chain.nonce(account.queries)
            record = replace(record, nonce=nonce, selection_commitment=bytes(32))
        record = self.alter_record(account, record)
        key = self.noise_secret(record)
        noise = self.noise(record, key)
        served = self.served_tenant(account)
        selected = self.select(served, embedding, noise, record.top_k)
        blinding = self.scalar()
        commitment = core.commit_selection(selected, blinding)
        record = replace(record, selection_commitment=commitment)
        counter = account.queries if account.chain else None
        request = Request(text, top_k, counter)
        return Asked(
            account,
            request,
            record,
            self.encode_record(record),
            b"",
            openings,
            embedding,
            key,
            noise,
            served,
            selected,
            blinding,
        )

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        return self.embedder.embed(text).astype(np.int16)

    def open_query(self, account: Account, text: str) -> tuple[Openings, npt.NDArray[np.int16]]:
        embedding = self.embed(text)
        openings = Openings(
            query=text,
            salt_q=self.draw(),
            embedding=tuple(int(x) for x in embedding),
            salt_e=self.draw(),
            filter="",
            salt_f=self.draw(),
            sketch=self.make_sketch(account, embedding),
            salt_s=self.draw(),
        )
        return openings, embedding

    def make_sketch(self, account: Account, embedding: npt.NDArray[np.int16]) -> bytes:
        return sketch(embedding, self.policy.estimator.seed, BITS)

    def promised(self, account: Account, openings: Openings, top_k: int, time: int) -> Record:
        """What a promise would say of the record."""
        registration = account.registration
        assert registration is not None
        place = next(
            i
            for i, (kind, _, body) in enumerate(self.entries)
            if kind == "registration" and body == registration.encode()
        )
        sizes = self.covered_sizes()
        due = [chains.activation_of(index, sizes) or 1 for index in (0, place)]
        encoded = np.array(openings.embedding, dtype="<i2").tobytes()
        return Record(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=account.tenant,
            version=1,
            rows=self.indices[account.tenant].commitment.rows,
            top_k=top_k,
            filter_digest=salted(openings.salt_f, openings.filter),
            pseudonym=account.pseudonym,
            epoch=1,
            slot=registration.slot,
            counter=account.queries,
            activation=max(due),
            time=time,
            nonce=None,
            query_digest=salted(openings.salt_q, openings.query),
            embedding_digest=salted(openings.salt_e, encoded),
            sketch_digest=salted(openings.salt_s, openings.sketch),
            selection_commitment=None,
        )

    def alter_record(self, account: Account, record: Record) -> Record:
        """For cheats; what follows (noise, selection, proof) is about the altered record."""
        return record

    def encode_record(self, record: Record) -> bytes:
        return record.encode()

    def noise_secret(self, record: Record) -> bytes:
        slot = merkle_commitments.slot_key(self.seed_secret, self.window, record.epoch, record.slot)
        return merkle_commitments.counter_key(slot, record.counter)

    def noise(self, record: Record, key: bytes) -> npt.NDArray[np.int64]:
        stream = noise_key(
            key,
            window=record.window,
            tenant=record.tenant,
            version=record.version,
            pseudonym=record.pseudonym,
            epoch=record.epoch,
            slot=record.slot,
            counter=record.counter,
            activation_randomness=self.randomness(record.activation),
            nonce=record.nonce or b"",
        )
        parameters = self.noise_table.parameters
        return core.sample_noise(
            self.noise_table.thresholds,
            parameters.factor,
            parameters.levels,
            stream,
            self.rows,
        )

    def served_tenant(self, account: Account) -> str:
        return account.tenant

    def select(
        self,
        tenant: str,
        embedding: npt.NDArray[np.int16],
        noise: npt.NDArray[np.int64],
        top_k: int,
    ) -> tuple[int, ...]:
        return select(scores(self.indices[tenant].vectors, embedding) + noise, top_k)

    def promise(self, name: str, text: str, top_k: int, time: int) -> Promise:
        """Promise an anchored account's next query without logging it."""
        account = self.accounts[name]
        openings, _ = self.open_query(account, text)
        record = self.promised(account, openings, top_k, 1000 * (START + time))
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=record.encode(),
            request=Request(text, top_k, account.queries),
            openings=openings,
        )

    def promise_of(self, asked: Asked) -> Promise:
        """The promise that a logged record keeps."""
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=asked.record.promised().encode(),
            request=asked.request,
            openings=asked.openings,
        )

    def claim(self, promise: Promise, nonce: bytes, received: int | None = None) -> None:
        """Hand a claim to the verifier at START + ``received``; 2 s after it was promised."""
        self.claims.append({"promise": promise.to_json(), "nonce": nonce.hex()})
        made = promise.record.time + 2000
        taken = made if received is None else 1000 * (START + received)
        self.claimed.setdefault(promise.identity, taken)

    def refuse(self, name: str, counter: int, reason: str, time: int) -> None:
        refusal = Refusal.issue(
            self.provider_key,
            origin=self.origin,
            pseudonym=self.accounts[name].pseudonym,
            counter=counter,
            reason=reason,  # type: ignore[arg-type]
            time=1000 * (START + time),
        )
        self.refusals.append(refusal.to_json())

    # --- receipts ----------------------------------------------------------------------------

    def private_half(self, asked: Asked) -> PrivateReceipt:
        index = self.indices[asked.served_tenant]
        tree = IndexTree(index.commitment.commitments, index.commitment.row_digests)
        rows = tuple(
            ServedRow(
                position=i,
                id=index.ids[i],
                content=index.texts[i],
                salt=index.salts[i],
                vector=tuple(int(x) for x in index.rows[i][:-4]),
                squares=tuple(int(x) for x in index.rows[i][-4:]),
                blinding=index.blindings[i].tobytes(),
                commitment=index.commitment.commitments[32 * i : 32 * i + 32],
                path=tree.path(i),
            )
            for i in asked.selected
        )
        return PrivateReceipt(
            asked.openings, asked.selected, asked.selection_blinding, self.draw(), rows
        )

    def receipt_file(self, asked: Asked) -> ReceiptFile:
        private = self.private_half(asked)
        answer = Answer(tuple(Document(row.position, row.id, row.content) for row in private.rows))
        public = PublicReceipt.issue(
            self.provider_key,
            origin=self.origin,
            index=asked.index,
            salt=asked.salt,
            body=asked.body,
            issued=asked.record.time + 1,
            answer_digest=answer_digest(asked.request, answer, private),
        )
        return ReceiptFile(asked.request, answer, public, private)

    def proof_for(self, index: int) -> TlogProof:
        """An inclusion proof under the first cosigned checkpoint that covers ``index``."""
        size, _, note = next(each for each in self.checkpoints if each[0] > index)
        return TlogProof(index, self.tree.inclusion_proof(index, size), note.encode())

    def receipts(self) -> list[dict[str, Any]]:
        """The public halves that accounts submitted: all of the first four records."""
        found = []
        for asked in self.asked[:4]:
            public = self.receipt_file(asked).public
            found.append(public.with_proof(self.proof_for(asked.index)).to_json())
        return found

    def disputes(self) -> list[dict[str, Any]]:
        """What accounts disputed, as the verifier keeps it."""
        return []

    def dispute(
        self, asked: Asked, about: dict[str, Any] | None = None, **kept: Any
    ) -> dict[str, Any]:
        """A dispute of the account that asked ``about`` a receipt file; ``kept``: step, file,
        finding."""
        file = about or self.receipt_file(asked).to_json()
        key = asked.account.dispute_key
        dispute = Dispute.issue(key, pseudonym=asked.account.pseudonym, receipt_file=file)
        empty = {"step": None, "file": None, "finding": None}
        return {"dispute": dispute.to_json(), **empty, **kept}

    def judged(self) -> list[dict[str, Any]]:
        """Public halves of the disputed files that somebody judged."""
        return []

    def statements(self) -> list[dict[str, Any]]:
        """What accounts say of their registrations: each anchored one shows its chain."""
        return [
            RegistrationStatement.issue(
                account.dispute_key,
                origin=self.origin,
                pseudonym=account.pseudonym,
                anchor=account.chain.anchor,
            ).to_json()
            for account in self.accounts.values()
            if account.chain is not None
        ]

    # --- the close ---------------------------------------------------------------------------

    def estimate(self) -> int:
        records = [
            coalition.Record(
                a.record.pseudonym,
                a.record.time,
                a.openings.sketch,
                a.record.nonce is not None,
            )
            for a in self.asked
        ]
        return coalition.estimate(
            records,
            tau=self.policy.link_time,
            life=self.policy.promise_life,
            threshold=self.policy.estimator.hamming_threshold,
        ).k_hat

    def close(self) -> None:
        body = Close(self.window, len(self.asked), self.estimate(), 1000 * END)
        self.append("close", self.alter_close(body).encode())
        self.checkpoint(CLOSED - START)

    def alter_close(self, body: Close) -> Close:
        """For cheats."""
        return body

    def play(self) -> None:
        """The whole window, up to the final checkpoint."""
        self.open()
        for event, *arguments in self.script():
            getattr(self, event)(*arguments)
        self.close()

    # --- the verifier ------------------------------------------------------------------------

    def preimage(self, a: int) -> bytes:
        return chains.activation_preimage(self.window, self.chain_seed, len(INSTANTS), a)

    def randomness(self, a: int) -> bytes:
        known = min(a, len(INSTANTS) - 1)
        return chains.activation_randomness(self.window, a, self.preimage(known))

    def covered_sizes(self) -> list[int]:
        return [
            max((size for size, time, _ in self.checkpoints if time < instant), default=0)
            for instant in INSTANTS[:-1]
        ]

    def countersignature(self) -> bytes:
        return self.countersigned_at(1000 * COUNTERSIGNED)

    def countersigned_at(self, time: int) -> bytes:
        _, salt, body = self.entries[0]
        return Countersignature.issue(
            self.verifier_key,
            window=self.window,
            policy_digest=self.policy.digest,
            opening_digest=opening_digest(salt, body),
            terms_digest=self.terms.digest,
            activation_anchor=chains.activation_anchor(self.window, self.chain_seed, len(INSTANTS)),
            time=time,
        ).encode()

    def activation(self, a: int, covered: int) -> dict[str, Any]:
        return Activation.issue(
            self.verifier_key,
            window=self.window,
            a=a,
            preimage=self.preimage(a),
            covered_size=covered,
            time=1000 * INSTANTS[a - 1] + 5,
        ).to_json()

    def receipts_list(self, receipts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        read = [PublicReceipt.from_json(each) for each in receipts]
        listed = {(each.index, each.identity) for each in read}
        return ReceiptsList.issue(
            self.verifier_key,
            window=self.window,
            digest=receipts_digest(listed),
            count=len(listed),
            time=1000 * INSTANTS[-1] - 1,
        ).to_json()

    def draw_sample(self, receipts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        drawn = sampling.draw_sample(
            self.logged(),
            tenants=self.policy.tenants,
            receipts={r["index"] for r in receipts},
            rule=self.policy.audit,
            seed=sampling.sampling_seed(self.tree.root(), self.chain_seed),
        )
        return [
            Stratum(
                each.stratum.id,
                None if each.stratum.id.startswith("tenant:") else each.stratum.population,
                each.sample,
            ).to_json()
            for each in drawn
        ]

    def logged(self) -> list[sampling.LoggedRecord]:
        found = []
        for i, (kind, salt, body) in enumerate(self.entries):
            if kind == "record":
                record = read_record(Entry(i, kind, salt, body)).record
                found.append(sampling.LoggedRecord(i, record.tenant, record.pseudonym))
        return found

    def challenge(self, strata: list[dict[str, Any]], listed: dict[str, Any]) -> dict[str, Any]:
        return Challenge.issue(
            self.verifier_key,
            window=self.window,
            final_root=self.tree.root(),
            final_size=self.tree.size,
            preimage=self.chain_seed,
            receipts_list=ReceiptsList.from_json(listed),
            strata=tuple(Stratum.from_json(each, "strata") for each in strata),
            deadline=1000 * (CHALLENGED + DEADLINE_SECONDS),
        ).to_json()

    def sign_challenge(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sign a challenge as it is, also one that no verifier would write."""
        unsigned = {name: value for name, value in message.items() if name != "signature"}
        digest = hashlib.sha256(canonical_json.dumps(unsigned)).digest()
        signature = sign(self.verifier_key, "challenge", message["window"], digest)
        return {**unsigned, "signature": signature.hex()}

    # --- responses ---------------------------------------------------------------------------

    def open_key(self, asked: Asked) -> merkle_commitments.KeyOpening:
        record = asked.record
        if (
            record.epoch != 1
            or record.slot >= self.slots
            or record.counter >= self.queries_per_account
        ):
            return merkle_commitments.KeyOpening(asked.key, (), ())
        return replace(self.seed_commitment.open(record.slot, record.counter), key=asked.key)

    def statement(self, asked: Asked) -> SelectionStatement:
        """The honest statement about the record, over the index that served it."""
        index = self.indices[asked.served_tenant].commitment
        return SelectionStatement.of(
            asked.record,
            body=asked.record.encode(),
            index_root=index.root,
            commitments=index.commitments,
            seed_root=self.seed_commitment.root,
            activation_randomness=self.randomness(asked.record.activation),
            query=asked.embedding,
            noise=asked.noise,
        )

    def prove(self, asked: Asked) -> bytes:
        index = self.indices[asked.served_tenant]
        return core.prove_selection(
            self.statement(asked),
            index.rows,
            index.blindings,
            asked.selected,
            asked.selection_blinding,
        )

    def response(self, asked: Asked) -> bytes:
        openings = asked.openings
        shown = self.policy.query_text_disclosure == "sampled"
        return Response(
            index=asked.index,
            key=self.open_key(asked),
            salt_q=openings.salt_q if shown else None,
            query=openings.query.encode() if shown else None,
            salt_e=openings.salt_e,
            embedding=tuple(asked.embedding.tolist()),
            salt_f=openings.salt_f,
            filter=openings.filter.encode(),
            salt_s=openings.salt_s,
            sketch=openings.sketch,
            proof=self.prove(asked),
        ).encode()

    # --- everything --------------------------------------------------------------------------

    def handover(self) -> bytes:
        return write_handover(
            Entry(i, kind, salt, body, *self.sketches.get(i, (b"", b"")))
            for i, (kind, salt, body) in enumerate(self.entries)
        )

    def items(self) -> dict[str, bytes]:
        """All items of the evidence of the played window."""
        self.play()
        receipts, disputes = self.receipts(), self.disputes()
        listed = self.receipts_list(receipts)
        strata = self.draw_sample(receipts)
        sampled = {i for stratum in strata for i in stratum["sample"]}
        by_index = {asked.index: asked for asked in self.asked}
        covered = self.covered_sizes()
        received = 1000 * CHALLENGED + 500
        dumps = canonical_json.dumps
        return {
            **self.opening_items(),
            names.COUNTERSIGNATURE: self.countersignature(),
            names.ACTIVATIONS: dumps(
                [self.activation(a, size) for a, size in enumerate(covered, start=1)]
            ),
            names.RECEIPTS_LIST: dumps(listed),
            names.FINAL_CHECKPOINT: self.checkpoints[-1][2].encode(),
            names.ENTRIES: dumps(
                [
                    Entry(i, kind, salt, body).to_json()
                    for i, (kind, salt, body) in enumerate(self.entries)
                    if kind != "record"
                ]
            ),
            names.LEAVES: b"".join(
                leaf_data(salt, kind, body) for kind, salt, body in self.entries
            ),
            names.CHECKPOINTS: dumps([note for _, _, note in self.checkpoints]),
            names.RECEIPTS: dumps(receipts),
            names.REFUSALS: dumps(self.refusals),
            names.CLOCK: Clock(
                dict.fromkeys(sampled, received), self.claimed, 1000 * CLOSED, 1000 * HANDED_OVER
            ).encode(),
            names.RECORDS: self.handover(),
            names.CLAIMS: dumps(self.claims),
            names.DISPUTES: dumps(disputes),
            names.JUDGED: dumps(self.judged()),
            names.STATEMENTS: dumps(self.statements()),
            names.CHALLENGE: dumps(self.challenge(strata, listed)),
            **{names.response_name(i): self.response(by_index[i]) for i in sorted(sampled)},
        }

    def evidence_of_opening(self) -> Evidence:
        """What the verifier has before it countersigns."""
        return Evidence.of(self.opening_items())

    def evidence(self) -> Evidence:
        return Evidence.of(self.items())
