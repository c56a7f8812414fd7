"""A small provider and verifier behind httpx mock transports: honest unless a test interferes."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import pytest
from ragaudit import core
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import sketch
from ragaudit.client import transport
from ragaudit.client.blocking import Client
from ragaudit.encoding.digests import leaf_data, salted, structure
from ragaudit.encoding.signing import PrivateKey, sign
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.chains import activation_anchor, activation_preimage
from ragaudit.ledger.messages.countersignature import Activation, Countersignature, opening_digest
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.merkle_commitments import IndexTree, content_digest, row_digest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.records import Opening, Record, Registration, TenantOpening
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request, embedding_digest
from ragaudit.ledger.messages.shown import (
    RegistrationEntry,
    ShownAccount,
    ShownKeys,
    ShownOpening,
    ShownWindow,
)

DIMENSION = 8
SERVED = (1, 4)
BUDGET = 6
ACTIVATION_SEED = bytes([33]) * 32
PSEUDONYM = bytes([55]) * 32
API_KEY = "secret-api-key"


def key(number: int) -> PrivateKey:
    return PrivateKey.from_seed(bytes([number]) * 32)


LOG = SigningKey("provider.example/ragaudit/w1", ED25519, key(1))
PROVIDER = key(2)
COSIGNER = SigningKey("regulator.example/cosigner", COSIGNATURE_V1, key(3))
VERIFIER = key(4)


class ToyEmbedder:
    """Letters counted into eight places: deterministic, and different for different texts."""

    name = "toy"
    dimension = DIMENSION

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = np.ones((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            for place, letter in enumerate(text.encode()):
                vectors[row, (letter + place) % DIMENSION] += letter
        return vectors

    def manifest(self) -> EmbedderManifest:
        return EmbedderManifest(self.name, DIMENSION, "{text}", {}, {"toy": "00" * 32})


EMBEDDER = ToyEmbedder()


def make_policy(now: int) -> Policy:
    return Policy.from_json(
        {
            "format": "ragaudit/v1/policy",
            "provider": "provider.example",
            "window": "w1",
            "start": now - 100,
            "end": now + 1000,
            "previous_checkpoint": None,
            "epsilon_acc": "10",
            "delta_acc": "0.000001",
            "delta_policy": "0.000001",
            "sigma": "3.5",
            "relation": "null-replace",
            "rows_per_document": 1,
            "norm_bound": 127,
            "dimension": DIMENSION,
            "top_k_max": 5,
            "queries_per_account": BUDGET,
            "slots": 4,
            "coalition_max": 2,
            "tenants": [{"id": "acme", "owner_key": None}],
            "calibration": "by hand",
            "sampler": {"id": "ragaudit/v1/dgs", "distance": "2^-100"},
            "activation_instants": [now - 100, now + 1100],
            "activation_rounds": [None, None],
            "beacon": {"kind": "none"},
            "query_text_disclosure": "sampled",
            "embedder_tolerance": 2,
            "estimator": {
                "theta": "0.9",
                "tau_seconds": 600,
                "sketch_bits": 64,
                "seed": "07" * 32,
                "hamming_threshold": 9,
            },
            "filter_grammar": "empty",
            "proof_mode": "on-demand",
            "audit": {
                "mode": "A",
                "beta": "0.1",
                "tenants": {"eta": "0.1", "minimum": 1},
                "submitters": {"by": "account", "eta": "0.1", "minimum": 1},
                "deadline_seconds": 60,
            },
            "merge_delay_seconds": 10,
            "clock_skew_seconds": 5,
            "promise_life_seconds": 60,
            "claim_margin_seconds": 5,
            "release_seconds": 20,
            "keys": {
                "arbiter": key(7).public.raw.hex(),
                "log": str(LOG.verifier_key),
                "provider": PROVIDER.public.raw.hex(),
                "cosigner": str(COSIGNER.verifier_key),
                "verifier": VERIFIER.public.raw.hex(),
                "verdict": key(5).public.raw.hex(),
            },
            "experiment_seed": None,
        }
    )


def file_bytes(value: Any) -> bytes:
    """A receipt file as it is sent; what has no canonical form stays as near as it can."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode()


@dataclass
class Pending:
    """A promise of the provider, and the answer once its nonce has come."""

    request: Request
    promise: Promise
    nonce: bytes | None = None
    reply: dict[str, Any] | None = None


@dataclass
class FakeProvider:
    """One tenant, one account, one window, in memory."""

    now: int = field(default_factory=lambda: int(time.time()))
    interfere: Callable[[str, Any], Any] = lambda _call, reply: reply
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    proofs_ready: bool = True
    api_key: str = API_KEY

    def __post_init__(self) -> None:
        self.policy = make_policy(self.now)
        self.calls: list[str] = []
        self.tree = MemoryTree()
        self.counter = 0
        self.registration: Registration | None = None
        self.pending: dict[int, Pending] = {}
        self.contents = [f"document number {i}" for i in range(6)]
        self._commit()
        self._append("opening", self.opening.encode())

    def _commit(self) -> None:
        vectors = quantise_rows(EMBEDDER.embed(self.contents))
        self.completed = core.complete_rows(vectors)
        self.blindings = core.random_scalars(len(vectors))
        points = core.commit_rows(self.completed, self.blindings)
        self.points = [points[32 * i : 32 * i + 32] for i in range(len(vectors))]
        self.salts = [bytes([100 + i]) * 32 for i in range(len(vectors))]
        digests = [
            row_digest(salt, f"doc {i}", content_digest(self.contents[i]))
            for i, salt in enumerate(self.salts)
        ]
        self.index = IndexTree(points, b"".join(digests))
        tenant = TenantOpening("acme", len(vectors), self.index.root, bytes(32))
        manifest = EMBEDDER.manifest().digest()
        self.opening = Opening(self.policy.digest, manifest, bytes(32), (tenant,))

    def _append(self, kind: str, body: bytes) -> int:
        return self.tree.append(leaf_data(self._salt(self.tree.size), kind, body))

    @staticmethod
    def _salt(index: int) -> bytes:
        return bytes([200 + index % 50]) * 32

    def checkpoint(self) -> bytes:
        """The log as it is now, cosigned."""
        signed = sign_checkpoint(Checkpoint(LOG.name, self.tree.head()), LOG)
        note = signed.note.with_signatures([cosign(signed.note.text, COSIGNER, self.now)])
        return note.encode()

    def proof(self, index: int) -> str:
        path = self.tree.inclusion_proof(index)
        return TlogProof(index, path, self.checkpoint()).encode().decode()

    def handle(self, request: httpx.Request) -> httpx.Response:
        call = request.url.path.removeprefix("/v1/windows").removeprefix("/w1").strip("/")
        self.calls.append(call or "window")
        if call == "account" or request.method == "POST":
            assert request.headers["authorization"] == f"Bearer {self.api_key}"
        body = json.loads(request.content) if request.content else None
        reply = self.interfere(call or "window", self._answer(call, body))
        if isinstance(reply, httpx.Response):
            return reply
        if isinstance(reply, str):
            return httpx.Response(200, text=reply)
        if call in ("query", "reveal"):
            return httpx.Response(200, content=file_bytes(reply))
        return httpx.Response(200, json=reply)

    def _answer(self, call: str, body: Any) -> Any:
        if call.startswith("receipts/"):
            if not self.proofs_ready:
                return httpx.Response(425, json={"title": "Too early"})
            return self.proof(int(call.split("/")[1]))
        if call in ("", "account"):
            return self._window() if call == "" else self._account()
        return {
            "registration": self._register,
            "query": self._query,
            "promise": self._promise,
            "reveal": self._reveal,
        }[call](body)

    def _window(self) -> Any:
        body, salt = self.opening.encode(), self._salt(0)
        signed = Countersignature.issue(
            VERIFIER,
            window="w1",
            policy_digest=self.policy.digest,
            opening_digest=opening_digest(salt, body),
            terms_digest=bytes(32),
            activation_anchor=activation_anchor("w1", ACTIVATION_SEED, 2),
            time=1000 * (self.now - 200),
        )
        released = Activation.issue(
            VERIFIER,
            window="w1",
            a=1,
            preimage=activation_preimage("w1", ACTIVATION_SEED, 2, 1),
            covered_size=2,
            time=1000 * (self.now - 100),
        )
        return ShownWindow(
            window="w1",
            state="open",
            policy=self.policy,
            policy_digest=self.policy.digest,
            countersignature=signed,
            opening=ShownOpening(salt, body),
            embedder=EMBEDDER.manifest(),
            activations=[released],
        ).to_json()

    def _account(self) -> Any:
        registered = self.registration
        entry = None
        if registered is not None:
            proof = self.proof(1) if self.proofs_ready else None
            entry = RegistrationEntry(1, self._salt(1), registered.encode(), proof)
        return ShownAccount(
            tenant="acme",
            pseudonym=PSEUDONYM,
            slot=None if registered is None else 0,
            anchor=None if registered is None else registered.anchor,
            dispute_key=None if registered is None else registered.dispute_key,
            counter=self.counter,
            remaining=BUDGET - self.counter,
            registration=entry,
        ).to_json()

    def _register(self, body: Any) -> Any:
        anchor, key = (
            None if body[name] is None else bytes.fromhex(body[name])
            for name in ("anchor", "dispute_key")
        )
        if self.registration is None:
            at = 1000 * (self.now - 150)
            self.registration = Registration("w1", PSEUDONYM, "acme", 0, anchor, key, at)
            self._append("registration", self.registration.encode())
        assert (self.registration.anchor, self.registration.dispute_key) == (anchor, key)
        return self._account()

    def _openings(self, query: str) -> Openings:
        embedding = quantise_rows(EMBEDDER.embed([query]))[0].astype(np.int16)
        return Openings(
            query=query,
            salt_q=bytes([11]) * 32,
            embedding=tuple(embedding.tolist()),
            salt_e=bytes([12]) * 32,
            filter="",
            salt_f=bytes([13]) * 32,
            sketch=sketch(embedding, bytes([7]) * 32, 64),
            salt_s=bytes([14]) * 32,
        )

    def _record(self, request: Request, openings: Openings) -> Record:
        return Record(
            policy_digest=self.policy.digest,
            window="w1",
            tenant="acme",
            version=1,
            rows=len(self.contents),
            top_k=request.top_k,
            filter_digest=salted(openings.salt_f, ""),
            pseudonym=PSEUDONYM,
            epoch=1,
            slot=0,
            counter=self.counter,
            activation=1,
            time=self.clock(),
            nonce=None,
            query_digest=salted(openings.salt_q, openings.query),
            embedding_digest=embedding_digest(openings.salt_e, openings.embedding),
            sketch_digest=salted(openings.salt_s, openings.sketch),
            selection_commitment=None,
        )

    def _refused(self) -> httpx.Response:
        refusal = Refusal.issue(
            PROVIDER,
            origin=LOG.name,
            pseudonym=PSEUDONYM,
            counter=self.counter,
            reason="budget",
            time=1000 * self.now,
        )
        problem = {"title": "Budget exhausted", "refusal": refusal.to_json()}
        return httpx.Response(429, json=problem)

    def _query(self, body: Any) -> Any:
        if self.counter >= BUDGET:
            return self._refused()
        request = Request(body["query"], body["top_k"])
        openings = self._openings(request.query)
        return self._log(request, openings, self._record(request, openings), None)

    def _promise(self, body: Any) -> Any:
        if self.counter >= BUDGET:
            return self._refused()
        request = Request(body["query"], body["top_k"], body["counter"])
        known = self.pending.get(request.counter or 0)
        if known is None or (known.nonce is None and known.request != request):
            openings = self._openings(request.query)
            record = self._record(request, openings).encode()
            promise = Promise.issue(
                PROVIDER, origin=LOG.name, body=record, request=request, openings=openings
            )
            known = self.pending[request.counter or 0] = Pending(request, promise)
        if known.request != request:
            return httpx.Response(409, json={"title": "Another request was promised"})
        return known.promise.to_json()

    def _reveal(self, body: Any) -> Any:
        pending = self.pending[body["counter"]]
        nonce = bytes.fromhex(body["nonce"])
        if pending.reply is None:
            pending.nonce = nonce
            promise = pending.promise
            pending.reply = self._log(pending.request, promise.openings, promise.record, nonce)
        assert pending.nonce == nonce
        return pending.reply

    def _log(
        self, request: Request, openings: Openings, record: Record, nonce: bytes | None
    ) -> Any:
        blinding = core.random_scalars(1)[0].tobytes()
        commitment = core.commit_selection(SERVED, blinding)
        record = replace(record, nonce=nonce, selection_commitment=commitment)
        index = self._append("record", record.encode())
        self.counter += 1
        rows = tuple(
            ServedRow(
                position=i,
                id=f"doc {i}",
                content=self.contents[i],
                salt=self.salts[i],
                vector=tuple(self.completed[i][:DIMENSION].tolist()),
                squares=tuple(self.completed[i][DIMENSION:].tolist()),
                blinding=self.blindings[i].tobytes(),
                commitment=self.points[i],
                path=self.index.path(i),
            )
            for i in SERVED
        )
        answer = Answer(tuple(Document(row.position, row.id, row.content) for row in rows))
        private = PrivateReceipt(openings, SERVED, blinding, bytes([16]) * 32, rows)
        public = PublicReceipt.issue(
            PROVIDER,
            origin=LOG.name,
            index=index,
            salt=self._salt(index),
            body=record.encode(),
            issued=self.clock(),
            answer_digest=answer_digest(request, answer, private),
        )
        return ReceiptFile(request, answer, public, private).to_json()

    def signed_anew(self, file: dict[str, Any]) -> dict[str, Any]:
        """A receipt file whose parts, whatever they are now, this provider signs."""
        public = PublicReceipt.from_json(file["public"])
        parts = [file_bytes(file[name]) for name in ("request", "answer", "private")]
        digest = structure("answer", bytes.fromhex(file["private"]["salt_r"]), *parts)
        fields = (public.origin, public.index, public.salt, public.body, public.issued, digest)
        signed = sign(PROVIDER, "receipt", *fields).hex()
        shown = {**file["public"], "answer_digest": digest.hex(), "signature": signed}
        return {**file, "public": shown}


@dataclass
class FakeVerifier:
    """Keeps what it is told."""

    received: list[tuple[str, Any]] = field(default_factory=list)
    refuses: bool = False
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ahead: int = 0
    cosigned: bytes | None = None
    refuses_all: bool = False
    standing: dict[str, Any] = field(default_factory=dict)

    def keys(self) -> ShownKeys:
        return ShownKeys(
            arbiter=key(7).public,
            name=COSIGNER.name,
            cosigner=COSIGNER.verifier_key,
            verifier=VERIFIER.public,
            verdict=key(5).public,
            time=self.clock() + self.ahead,
        )

    def handle(self, request: httpx.Request) -> httpx.Response:
        if self.refuses_all:
            raise httpx.ConnectError("nobody listens")
        if request.url.path == "/v1/keys":
            return httpx.Response(200, json=self.keys().to_json())
        if request.url.path.startswith("/cosigner/"):
            if self.cosigned is None:
                return httpx.Response(404, json={"title": "Unknown"})
            return httpx.Response(200, content=self.cosigned)
        if self.refuses:
            return httpx.Response(409, json={"title": "Conflict", "detail": "too late"})
        call = request.url.path.removeprefix("/v1/windows/w1/")
        assert dict(request.url.params) == {
            "provider": "provider.example"
        }  # names are each provider's
        if request.method == "GET":
            return httpx.Response(200, json=self.standing)
        body = json.loads(request.content)
        self.received.append((call, body))
        if request.method == "PUT":
            return httpx.Response(200, json=self.standing)
        return httpx.Response(200, json={"accepted": len(body.get("receipts", [1])), "known": 0})


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider()


@pytest.fixture
def toy_embedder() -> ToyEmbedder:
    return EMBEDDER


@pytest.fixture
def verifier() -> FakeVerifier:
    return FakeVerifier()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture
def options(provider: FakeProvider, verifier: FakeVerifier, tmp_path: Path) -> Callable[..., Any]:
    """Options of clients of the fake provider, anchored unless told otherwise."""

    def chosen(*, anchored: bool = True, **changes: Any) -> dict[str, Any]:
        return {
            "window": "w1",
            "verifier_url": "http://verifier",
            "verifier_key": provider.policy.keys.verifier.raw.hex(),
            "state_dir": tmp_path / "state" if anchored else None,
            "transport": httpx.MockTransport(provider.handle),
            "verifier_transport": httpx.MockTransport(verifier.handle),
            **changes,
        }

    return chosen


@pytest.fixture
def opened(options: Callable[..., Any]) -> Iterator[Callable[..., Client]]:
    """Opens clients of the fake provider; closes them."""
    clients: list[Client] = []

    def open_client(**changes: Any) -> Client:
        clients.append(Client("http://provider", API_KEY, **options(**changes)))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()
