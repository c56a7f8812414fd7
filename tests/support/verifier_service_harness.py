"""What the tests of the verifier service share: a provider, its log, a clock, a service."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import NoneType
from typing import Any, Self

from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response
from kept_folders import KeptFolder
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data, salted, structure
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.policy import policy_document, seeded, small_terms_file
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.errors import CorruptLog
from ragaudit.ledger.log.checkpoints import Checkpoint, parse_checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest, parse_cosignatures
from ragaudit.ledger.log.notes import ED25519, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import handover
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.ledger.messages.challenge import Challenge, ReceiptsList, Stratum
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.entries import Close, Record, Registration
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.requests import Openings, Request, embedding_digest
from ragaudit.ledger.messages.signed import SignedRequest
from ragaudit.verifier import keys
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import providers, submissions, tables, windows
from ragaudit.verifier.service.app import create_app
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.database import Database, create_tables
from ragaudit.verifier.settings import Settings, make_data_folder
from recording_auditor import RecordingAuditor
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import DatabaseError

_kept: dict[str, KeptFolder] = {}


class RunVerifier:
    """A verifier that knows one provider.

    One without a database starts when it is first asked: until then it may go on from another's.
    """

    settings: Settings
    keys: VerifierKeys
    provider: str
    provider_key: PrivateKey
    open_anew: Callable[[], None]

    def __init__(self, folder: Path, auditor: Auditor | None, clock: Clock) -> None:
        self.folder = folder
        self.auditor = auditor
        self.clock = clock
        self._starting = Lock()

    @contextmanager
    def running(self, settings: Settings | None = None) -> Iterator[Self]:
        self._given = used = settings or self.settings
        make_data_folder(used)
        self._app: FastAPI | None = None
        # Of clocks and auditors of a test's own nobody knows what they have to do with a window.
        usual = type(self.clock) is Clock and type(self.auditor) in {RecordingAuditor, NoneType}
        here = not used.database and used.fence is None and used.data == self.folder / "data"
        self._fresh = usual and here and not (used.data / "verifier.db").exists()
        with ExitStack() as self._stack:
            if not self._fresh:
                self._start()
            yield self
            if self._app is None:
                return
            # Whatever a test did: the sums that decide what there is room for are the true ones.
            # Of a database that a test has spoiled there is nothing to say.
            with suppress(DatabaseError, CorruptLog):
                engine = self.service.database.engine
                assert summed_up(engine) == kept_sums(engine)

    def once(self, part: str, make: Callable[[], object], *about: object) -> None:
        """Make a part of the folder, or write it as it once was made."""
        like = repr((part, about)).replace(str(self.folder), "")
        if like in _kept:
            _kept[like].restore(self.folder)
        else:
            make()
            _kept[like] = KeptFolder.of(self.folder, (part,))

    def _start(self) -> None:
        if self._fresh:
            self.once("data", self._pin, self.clock, self.keys.public())
            self._fresh = False
        else:
            self._pin()
        self._app = create_app(self._given, clock=self.clock, auditor=self.auditor)
        client = TestClient(self._app, raise_server_exceptions=False)
        self._client = self._stack.enter_context(client)

    def _pin(self) -> None:
        create_tables(self._given.database_url)
        with closing(Database(self._given.database_url, self.clock)) as database:
            providers.add(database, self.provider, self.provider_key.public)

    @property
    def app(self) -> FastAPI:
        app: FastAPI = self.client.app  # type: ignore[assignment]
        return app

    @property
    def service(self) -> Any:
        return self.app.state.service

    @property
    def client(self) -> TestClient:
        with self._starting:
            if self._app is None:
                self._start()
        return self._client

    def open_window(self) -> None:
        """Open a window, or go on from one that was opened so; its auditor was another."""
        if self._fresh:
            self._fresh = False
            about = (self._given, self.auditor, self.clock, self.keys.public())
            self.once("data", self.open_anew, *about)
        else:
            self.open_anew()


def summed_up(engine: Engine) -> dict[tuple[str, str, bytes], int]:
    """Return what the documents of each window, kind and account take, and of all, bytes."""
    table = tables.submission
    owner = (table.c.window, table.c.kind, table.c.account)
    query = select(*owner, func.sum(func.length(table.c.document))).group_by(*owner)
    found: Counter[tuple[str, str, bytes]] = Counter()
    with engine.connect() as connection:
        for one, kind, account, size in connection.execute(query):
            for counted in (account, submissions.EVERYBODY):
                found[one, kind, counted] += size
    return found


def kept_sums(engine: Engine) -> dict[tuple[str, str, bytes], int]:
    """Return the same as the service keeps it, without sums of nothing."""
    table = tables.submission_space
    query = select(table.c.window, table.c.kind, table.c.account, table.c.bytes)
    with engine.connect() as connection:
        rows = connection.execute(query.where(table.c.bytes != 0))
        return {(one, kind, account): size for one, kind, account, size in rows}


NOW = 1_800_000_000_000
START = 1_800_000_200
END = 1_800_001_000
INSTANTS = (1_800_000_100, 1_800_000_500, 1_800_001_100)
SAMPLING = INSTANTS[-1]
PROVIDER = "acme"
WINDOW = "w1"
ORIGIN = windows.of(PROVIDER, WINDOW)
NAME = "regulator.example/cosigner"
EMBEDDER = HashEmbedder(4).manifest()


@dataclass
class Log:
    """A provider's log of one window."""

    key: SigningKey
    tree: MemoryTree = field(default_factory=MemoryTree)

    def checkpoint(self, size: int | None = None, *, key: SigningKey | None = None) -> bytes:
        head = self.tree.head(size)
        origin = (key or self.key).name
        return sign_checkpoint(Checkpoint(origin, head), key or self.key).encode()

    def add_request(self, old: int, size: int | None = None) -> bytes:
        new = self.tree.size if size is None else size
        proof = self.tree.consistency_proof(old, new) if 0 < old <= new else ()
        return AddCheckpointRequest(old, proof, self.checkpoint(new)).encode()


class VerifierScenario(RunVerifier):
    """One verifier service, one pinned provider, and what they say to each other."""

    def __init__(self, folder: Path, auditor: Auditor | None, clock: Clock | None = None) -> None:
        super().__init__(folder, auditor, clock or Clock(NOW))
        self.settings = Settings(
            name=NAME,
            data=folder / "data",
            secrets=folder / "secrets",
            terms=small_terms_file(folder),
            tick_seconds=60,
        )
        if not self.settings.secrets.exists():
            self.once("secrets", lambda: keys.create(self.settings.secrets, NAME))
        self.keys = keys.load(self.settings.secrets, NAME)
        self.provider, self.provider_key = PROVIDER, seeded("provider")
        self.log = Log(SigningKey(ORIGIN, ED25519, seeded("log")))

    def policy(self, **changes: Any) -> dict[str, Any]:
        public = self.keys.public()
        keys = {
            **{role: public[role] for role in ("arbiter", "cosigner", "verifier", "verdict")},
            "log": str(self._log_key(changes.get("window", WINDOW)).verifier_key),
            "provider": self.provider_key.public.raw.hex(),
        }
        members = {
            "provider": PROVIDER,
            "window": WINDOW,
            "start": START,
            "end": END,
            "activation_instants": list(INSTANTS),
            "sigma": "1000",
            "epsilon_acc": "8",
            "dimension": EMBEDDER.dimension,
            "top_k_max": 2,
            "slots": 4,
            "tenants": [{"id": "t1", "owner_key": None}, {"id": "t2", "owner_key": None}],
            "estimator/tau_seconds": 60,
            "audit/deadline_seconds": 100,
            "merge_delay_seconds": 10,
            "promise_life_seconds": 30,
            "claim_margin_seconds": 5,
            "release_seconds": 20,
        }
        return {**policy_document(keys, members), **changes}

    def _log_key(self, window: object) -> SigningKey:
        """Of a window's log; a window without a possible name has none of its own."""
        named = isinstance(window, str) and window.replace("-", "").isalnum()
        if window == WINDOW or not named:
            return self.log.key
        return SigningKey(f"{PROVIDER}/ragaudit/{window}", ED25519, seeded(f"log of {window}"))

    def headers(self, method: str, target: str, body: bytes, **changes: Any) -> dict[str, str]:
        return SignedRequest.issue(
            changes.get("key", self.provider_key),
            provider=changes.get("provider", self.provider),
            method=method,
            target=target,
            body=body,
            time=changes.get("time", self.clock.now),
        ).encode()

    def send(self, method: str, target: str, body: bytes | dict[str, Any] = b"") -> Response:
        """A signed request."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers(method, target, data)
        return self.client.request(method, target, content=data, headers=headers)  # type: ignore[return-value]

    def register(self, **changes: Any) -> Response:
        document = {"policy": self.policy(**changes), "embedder": EMBEDDER.to_json()}
        return self.send("POST", "/v1/windows", document)

    def put_indexes(self) -> None:
        for tenant in ("t1", "t2"):
            target = f"/v1/windows/{WINDOW}/tenants/{tenant}/versions/1"
            assert self.send("PUT", target, index_of(tenant, b"index")).status_code == 204

    def opening(self) -> dict[str, Any]:
        return {
            "opening": b"opening".hex(),
            "salt": "11" * 32,
            "empty_checkpoint": self.log.checkpoint(0).decode(),
        }

    def countersign(self) -> Response:
        return self.send("POST", f"/v1/windows/{WINDOW}/countersign", self.opening())

    def open_anew(self) -> None:
        assert self.register().status_code == 201
        self.put_indexes()
        answer = self.countersign()
        assert answer.status_code == 200, answer.text

    def add_checkpoint(self, body: bytes, read: int | None = None) -> Response:
        headers = {} if read is None else {"Ragaudit-Time": str(read)}
        return self.client.post("/cosigner/add-checkpoint", content=body, headers=headers)  # type: ignore[return-value]


def index_of(tenant: str, proof: bytes, rows: int = 2) -> bytes:
    """Bytes with the form of an index commitment; nothing in it holds."""
    return IndexCommitment(WINDOW, tenant, 1, 4, b"c" * 32 * rows, b"d" * 32 * rows, proof).encode()


def problem_of(response: Response, status: int, name: str) -> dict[str, Any]:
    """The problem document of an error answer, of this status and type."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["type"] == f"urn:ragaudit:problem:{name}", document
    return document


SALT = b"\x05" * 32


def challenge_of(sample: Iterable[int]) -> bytes:
    """A challenge with this sample, signed by nobody who matters."""
    listed = ReceiptsList(window=WINDOW, digest=bytes(32), count=0, time=0).signed(seeded("list"))
    return (
        Challenge(
            window=WINDOW,
            final_root=bytes(32),
            final_size=1000,
            preimage=bytes(32),
            receipts_list=listed,
            strata=(Stratum("tenant:t1", None, tuple(sample)),),
            deadline=0,
        )
        .signed(seeded("challenge"))
        .encode()
    )


def pseudonym(account: int) -> bytes:
    return sha256(f"account {account}".encode()).digest()


def nonce_chain(account: int) -> NonceChain:
    seed = sha256(f"seed {account}".encode()).digest()
    return NonceChain(WINDOW, pseudonym(account), seed, 4)


def request_for(counter: int, *, anchored: bool) -> Request:
    return Request(query="what is asked", top_k=1, counter=counter if anchored else None)


OPENINGS = Openings(
    query="what is asked",
    salt_q=b"\x01" * 32,
    embedding=(1, 2, 3, 4),
    salt_e=b"\x02" * 32,
    filter="",
    salt_f=b"\x03" * 32,
    sketch=b"\x0f" * 8,
    salt_s=b"\x04" * 32,
)


def registration(
    scenario: VerifierScenario, account: int, *, anchored: bool = False, tenant: str = "t1"
) -> bytes:
    return Registration(
        window=WINDOW,
        pseudonym=pseudonym(account),
        tenant=tenant,
        slot=account,
        anchor=nonce_chain(account).anchor if anchored else None,
        dispute_key=dispute_key(account).public.raw,
        time=1000 * START,
    ).encode()


def dispute_key(account: int) -> PrivateKey:
    return seeded(f"dispute key {account}")


def record(
    scenario: VerifierScenario,
    account: int,
    counter: int,
    *,
    anchored: bool = False,
    tenant: str = "t1",
) -> Record:
    return Record(
        policy_digest=structure("policy", canonical_json.dumps(scenario.policy())),
        window=WINDOW,
        tenant=tenant,
        version=1,
        rows=9,
        top_k=1,
        filter_digest=salted(OPENINGS.salt_f, ""),
        pseudonym=pseudonym(account),
        epoch=1,
        slot=account,
        counter=counter,
        activation=1,
        time=1000 * START + counter,
        nonce=nonce_chain(account).nonce(counter) if anchored else None,
        query_digest=salted(OPENINGS.salt_q, OPENINGS.question.data),
        embedding_digest=embedding_digest(OPENINGS.salt_e, OPENINGS.embedding),
        sketch_digest=salted(OPENINGS.salt_s, OPENINGS.sketch),
        selection_commitment=sha256(b"selection").digest(),
    )


@dataclass
class Entry:
    """A log entry of the test's provider."""

    kind: str
    body: bytes
    salt: bytes = SALT

    def frame(self, index: int, **changes: Any) -> bytes:
        return replace(self._given(index), **changes).encode()

    def document(self, index: int) -> dict[str, Any]:
        return self._given(index).to_json()

    def _given(self, index: int) -> handover.Entry:
        sketch = (OPENINGS.salt_s, OPENINGS.sketch) if self.kind == "record" else ()
        return handover.Entry(index, self.kind, self.salt, self.body, *sketch)


class Story:
    """A whole window of the test's provider: its entries, receipts and close."""

    def __init__(self, scenario: VerifierScenario, accounts: int = 2, queries: int = 3) -> None:
        self.scenario = scenario
        self.entries = [Entry("opening", b"opening", b"\x11" * 32)]
        for account in range(accounts):
            body = registration(scenario, account, anchored=True)
            self.entries.append(Entry("registration", body))
        for counter in range(queries):
            for account in range(accounts):
                self.entries.append(
                    Entry("record", record(scenario, account, counter, anchored=True).encode())
                )
        self.entries.append(
            Entry("close", Close(WINDOW, accounts * queries, 1, 1000 * END).encode())
        )
        for each in self.entries:
            scenario.log.tree.append(leaf_data(each.salt, each.kind, each.body))

    @property
    def records(self) -> list[int]:
        return [i for i, each in enumerate(self.entries) if each.kind == "record"]

    def handover(self) -> bytes:
        return b"".join(each.frame(index) for index, each in enumerate(self.entries))

    def documents(self) -> list[dict[str, Any]]:
        return [each.document(i) for i, each in enumerate(self.entries) if each.kind != "record"]

    def receipt(self, index: int, **changes: Any) -> PublicReceipt:
        fields = {
            "origin": self.scenario.log.key.name,
            "index": index,
            "salt": self.entries[index].salt,
            "body": self.entries[index].body,
            "issued": 1000 * START + 50,
            "answer_digest": sha256(b"answer").digest(),
            **changes,
        }
        key = fields.pop("key", self.scenario.provider_key)
        return PublicReceipt(**fields).signed(key)

    def proof(self, index: int, checkpoint: bytes, tree: MemoryTree | None = None) -> TlogProof:
        size = parse_checkpoint(checkpoint).head.size
        path = (tree or self.scenario.log.tree).inclusion_proof(index, size)
        return TlogProof(index, path, checkpoint)

    def cosign(self) -> bytes:
        """The final checkpoint with its cosignature."""
        answer = self.scenario.add_checkpoint(self.scenario.log.add_request(0))
        assert answer.status_code == 200, answer.text
        lines = parse_cosignatures(answer.content)
        return parse_note(self.scenario.log.checkpoint()).with_signatures(lines).encode()

    def send(self, method: str, path: str, body: bytes | dict[str, Any] = b"") -> Response:
        return self.scenario.send(method, f"/v1/windows/{WINDOW}/{path}", body)

    def finish(self) -> None:
        """Everything that an honest provider does between the window's end and the sampling."""
        final = self.cosign()
        self.scenario.clock.at(END)
        assert self.send("PUT", "records", self.handover()).status_code == 204
        closed = self.send("POST", "close", {"final_checkpoint": final.decode()})
        assert closed.status_code == 204, closed.text
