"""The scenario's window behind a provider's and a verifier's interface: honest unless a test
interferes."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client import transport
from ragaudit.client.blocking import Client
from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import PrivateKey, sign
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.opening import Account
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.challenge import Activation, Countersignature
from ragaudit.ledger.messages.entries import Record, Registration
from ragaudit.ledger.messages.promises import Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    PublicReceipt,
)
from ragaudit.ledger.messages.requests import Openings, Request
from ragaudit.ledger.messages.shown import (
    RegistrationEntry,
    ShownAccount,
    ShownKeys,
    ShownOpening,
    ShownWindow,
)

SERVED = (1, 4)
API_KEY = "secret-api-key"
ARBITER = PrivateKey.from_seed(bytes([7]) * 32)


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


class FakeProvider(Window):
    """One tenant and one account of a window that is open, in memory."""

    tenants = ("acme",)
    slots = 4
    queries_per_account = 6

    def __init__(
        self,
        *,
        now: int | None = None,
        api_key: str = API_KEY,
        seed: str | None = None,
        merge_delay: int = 10,
    ) -> None:
        """``now``: Unix seconds. It began 100 s before; the sample is 100 s after its end.

        ``seed``: of an experiment.
        """
        self.now = int(time.time()) if now is None else now
        self.api_key = api_key
        self.interfere: Callable[[str, Any], Any] = lambda _call, reply: reply
        self.clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
        self.proofs_ready = True
        self.calls: list[str] = []
        self.pending: dict[int, Pending] = {}
        super().__init__(
            rows=6,
            provider="provider.example",
            start=self.now - 100,
            end=self.now + 1000,
            instants=(self.now - 100, self.now + 1100),
            overrides={
                "top_k_max": 5,
                "merge_delay_seconds": merge_delay,
                "promise_life_seconds": 60,
                "claim_margin_seconds": 5,
                "keys/arbiter": ARBITER.public.raw.hex(),
                "experiment_seed": seed,
            },
        )
        self.account = Account("ann", "acme", structure("pseudonym", b"ann"), None)
        self.open()

    @property
    def counter(self) -> int:
        return self.account.queries

    @counter.setter
    def counter(self, queries: int) -> None:
        self.account.queries = queries

    def previous_checkpoint(self, leaves: int = 0) -> str | None:
        return None

    def document_id(self, tenant: str, position: int) -> str:
        return f"doc {position}"

    def prove_index(self, *_: Any) -> bytes:
        """Accounts check no index argument."""
        return b""

    def select(self, *_: Any) -> tuple[int, ...]:
        return SERVED

    def head(self) -> bytes:
        """The log as it is now, cosigned."""
        return self.cosigned(self.tree, self.now).encode()

    def proof(self, index: int) -> str:
        path = self.tree.inclusion_proof(index)
        return TlogProof(index, path, self.head()).encode().decode()

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
        _, salt, body = self.entries[0]
        return ShownWindow(
            window=self.window,
            state="open",
            policy=self.policy,
            policy_digest=self.policy.digest,
            countersignature=Countersignature.parse(self.countersigned_at(1000 * (self.now - 200))),
            opening=ShownOpening(salt, body),
            embedder=self.model.manifest(),
            activations=(Activation.from_json(self.activation(1, 2)),),
            epochs=() if self.policy.epochs else None,
        ).to_json()

    def _account(self) -> Any:
        registered = self.account.registration
        entry = None
        if registered is not None:
            proof = self.proof(1) if self.proofs_ready else None
            _, salt, body = self.entries[1]
            entry = RegistrationEntry(1, salt, body, proof)
        return ShownAccount(
            tenant=self.account.tenant,
            pseudonym=self.account.pseudonym,
            slot=None if registered is None else 0,
            anchor=None if registered is None else registered.anchor,
            dispute_key=None if registered is None else registered.dispute_key,
            counter=self.counter,
            remaining=self.queries_per_account - self.counter,
            registration=entry,
        ).to_json()

    def _register(self, body: Any) -> Any:
        anchor, key = (
            None if body[name] is None else bytes.fromhex(body[name])
            for name in ("anchor", "dispute_key")
        )
        account = self.account
        if account.registration is None:
            at = 1000 * (self.now - 150)
            account.registration = Registration(
                self.window, account.pseudonym, account.tenant, 0, anchor, key, at
            )
            self.append("registration", account.registration.encode())
        assert (account.registration.anchor, account.registration.dispute_key) == (anchor, key)
        return self._account()

    def _openings(self, query: str) -> Openings:
        return self.open_request(self.account, Request(query, 1))

    def _refused(self) -> httpx.Response:
        refusal = Refusal(
            origin=self.origin,
            pseudonym=self.account.pseudonym,
            counter=self.counter,
            reason="budget",
            time=1000 * self.now,
        ).signed(self.provider_key)
        problem = {"title": "Budget exhausted", "refusal": refusal.to_json()}
        return httpx.Response(429, json=problem)

    def _query(self, body: Any) -> Any:
        if self.counter >= self.queries_per_account:
            return self._refused()
        request = Request(body["query"], body["top_k"])
        openings = self._openings(request.query)
        record = self.promised(self.account, openings, request.top_k, self.clock())
        return self._log(request, openings, record)

    def _promise(self, body: Any) -> Any:
        if self.counter >= self.queries_per_account:
            return self._refused()
        request = Request(body["query"], body["top_k"], body["counter"])
        known = self.pending.get(request.counter or 0)
        if known is None or (known.nonce is None and known.request != request):
            openings = self._openings(request.query)
            record = self.promised(self.account, openings, request.top_k, self.clock())
            promise = Promise.issue(
                self.provider_key,
                origin=self.origin,
                body=record.encode(),
                request=request,
                openings=openings,
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
            record = promise.promised
            assert isinstance(record, Record)
            record = replace(record, nonce=nonce, selection_commitment=bytes(32))
            pending.reply = self._log(pending.request, promise.openings, record)
        assert pending.nonce == nonce
        return pending.reply

    def _log(self, request: Request, openings: Openings, record: Record) -> Any:
        asked = self.serve(self.account, request, openings, record)
        self.log_record(asked)
        self.account.queries += 1
        return self.receipt_file(asked).to_json()

    def signed_anew(self, file: dict[str, Any]) -> dict[str, Any]:
        """A receipt file whose parts, whatever they are now, this provider signs."""
        public = PublicReceipt.from_json(file["public"])
        parts = [file_bytes(file[name]) for name in ("request", "answer", "private")]
        digest = structure("answer", bytes.fromhex(file["private"]["salt_r"]), *parts)
        fields = (public.origin, public.index, public.salt, public.body, public.issued, digest)
        signed = sign(self.provider_key, "receipt", *fields).hex()
        shown = {**file["public"], "answer_digest": digest.hex(), "signature": signed}
        return {**file, "public": shown}


@dataclass
class FakeVerifier:
    """Keeps what it is told; its keys are those of the provider's window."""

    window: Window
    received: list[tuple[str, Any]] = field(default_factory=list)
    refuses: bool = False
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ahead: int = 0
    cosigned: bytes | None = None
    refuses_all: bool = False
    standing: dict[str, Any] = field(default_factory=dict)

    def keys(self) -> ShownKeys:
        return ShownKeys(
            arbiter=ARBITER.public,
            name=self.window.cosigner_key.name,
            cosigner=self.window.cosigner_key.verifier_key,
            verifier=self.window.verifier_key.public,
            verdict=self.window.verdict_key.public,
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
def provider(request: pytest.FixtureRequest) -> FakeProvider:
    return FakeProvider(**getattr(request, "param", {}))


@pytest.fixture
def toy_embedder(provider: FakeProvider) -> HashEmbedder:
    """The one that the window commits to."""
    return provider.model


@pytest.fixture
def verifier(provider: FakeProvider) -> FakeVerifier:
    return FakeVerifier(provider)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_SECONDS", 0.0)


@pytest.fixture
def intercept(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[httpx.Request], httpx.Response]], None]:
    """Has every connection end at a function."""
    real = httpx.AsyncClient

    def intercepted(handle: Callable[[httpx.Request], httpx.Response]) -> None:
        mock = httpx.MockTransport(handle)
        monkeypatch.setattr(
            httpx, "AsyncClient", lambda **given: real(**{**given, "transport": mock})
        )

    return intercepted


@pytest.fixture
def network(provider: FakeProvider, verifier: FakeVerifier, intercept: Callable[..., None]) -> None:
    """Every connection ends at the fake provider or the fake verifier."""

    def handle(request: httpx.Request) -> httpx.Response:
        return (verifier if request.url.host == "verifier" else provider).handle(request)

    intercept(handle)


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
