"""Every request of a window comes twice at once, and again after a restart, the end, the verdict.

Those of accounts, in words too and over another product's interface, what accounts and an arbiter
signed, and every call that the provider signed: one record or charge for each question, the same
answer byte for byte or a refusal by its name, and the audit passes.
"""

import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from databases import ON_EACH_ENGINE
from generation_channel import WITHIN_TERMS, write_model
from generation_channel import records as documents
from moved_window import LONG, MovedWindow
from prover_process import WORDS
from ragaudit.client import Client
from ragaudit.client.results import CheckedReceipt
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.generation.serving import MODEL
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.log.database import close_engine, open_engine
from ragaudit.ledger.messages.disputes import Finding, file_digest
from ragaudit.ledger.messages.entries import Charge, Generated
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.records import entries_of, records
from sqlalchemy import MetaData, select

_OWN = {"connection", "content-length", "transfer-encoding", "date", "server"}


@dataclass(frozen=True)
class Reply:
    """What a service answered: status, headers that the next one may see, body."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(compare=False)
    body: bytes

    @property
    def told(self) -> str:
        """The status, and of a problem its name."""
        kind = dict(self.headers).get("content-type", "")
        if not kind.startswith("application/problem+json"):
            return str(self.status)
        name = self.body.partition(b"urn:ragaudit:problem:")[2].partition(b'"')[0]
        return f"{self.status} {name.decode()}"


@dataclass(frozen=True)
class Sent:
    """A request, byte for byte, and both replies to it."""

    method: str
    target: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    replies: tuple[Reply, ...] = ()

    @property
    def signed(self) -> bool:
        """Whether a provider signed it."""
        return "ragaudit-signature" in {name.lower() for name in self.headers}


class Repeating:
    """A service's place on the loopback, from which everything reaches it twice.

    Attributes:
        url: that the other party is told.
        sent: the requests that change something, in the order in which they were answered.
    """

    def __init__(self, service: str) -> None:
        """Listen for the service at an address; it need not run yet."""
        self._service = urlsplit(service)
        self.sent: list[Sent] = []
        repeating = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                reply = repeating.twice(Sent(self.command, self.path, dict(self.headers), body))
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = do_PUT = _pass_on

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def twice(self, request: Sent) -> Reply:
        """Send a request twice at once; return the better answer, as the sender would have it."""
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(self.send, (request, request))
        if request.method != "GET":
            parts = (request.method, request.target, request.headers, request.body)
            self.sent.append(Sent(*parts, (first, second)))
        return min(first, second, key=lambda reply: reply.status)

    def send(self, request: Sent) -> Reply:
        """Send a request as it was; return the answer."""
        connection = http.client.HTTPConnection(self._service.netloc, timeout=60)
        try:
            connection.request(request.method, request.target, request.body, request.headers)
            found = connection.getresponse()
            headers = tuple(
                (name.lower(), value)
                for name, value in found.getheaders()
                if name.lower() not in _OWN
            )
            return Reply(found.status, headers, found.read())
        except (OSError, http.client.HTTPException):
            return Reply(502, (), b"")  # as a proxy says of a service that is away
        finally:
            connection.close()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    *ON_EACH_ENGINE,
]

QUESTIONS = 4
ACCOUNTS = {"ada": False, "dan": True}
"""Whether each has a nonce chain."""
ARBITER = PrivateKey.from_seed(b"a" * 32)
IN_WORDS = ("treatment of bazeli ?", "symptom of bazeli ?")

OTHERWISE: dict[str, set[str]] = {
    # The account as it stands now, with its counter and proof; too late after the end.
    "registration": {"200", "409 wrong-state"},
    "query": {"409 query-refused"},
    "promise": {"409 conflict", "409 query-refused"},  # of a counter that was answered
    "reveal": {"409 query-refused"},
    # How many were accepted, and how many were known already.
    "receipts": {"200", "409 too-late"},
    "statements": {"200", "409 too-late"},
    "disputes": {"200", "409 too-late"},
    "refusals": {"200", "409 too-late"},
    "findings": {"200", "409 too-late"},
    # In words: of a window that is over.
    "ask": {"409 query-refused"},
    "completions": {"503"},  # in the shape of that interface
    "claims": {"200", "409 too-late"},
    "windows": {"200"},  # for 201
    "entries": {"409 conflict"},  # after the handover
    "parts": {"409 conflict"},
    "records": {"409 conflict"},
    # Of a size that was passed (C2SP tlog-witness), or of a log that has ended.
    "add-checkpoint": {"200", "409", "403"},
}
"""What else a repetition is answered with, beside the same bytes."""

KEPT_ELSEWHERE = {"V clock", "P prover_leader"}
"""Tables of what time it is and who leads: they change by themselves."""


class Scene(MovedWindow):
    """A window that accounts and provider reach through somebody who repeats everything."""

    def __init__(self, folder: Path, model: Transformer, model_url: str) -> None:
        written = write_model(folder / "model", model)
        super().__init__(
            folder,
            arbiter_key=ARBITER.public.raw.hex(),
            generator={
                "url": model_url,
                "models": [MODEL],
                "vocabulary_file": str(folder / "model" / "vocabulary.json"),
            },
        )
        with closing(Store.open(self.setting.settings.store.url)) as store:
            StoredDocuments(store).add("one", documents(), replace=True)
        self.to_prover = Repeating(f"http://127.0.0.1:{self.prover.port}")
        self.to_verifier = Repeating(self.verifier.url)
        self.prover.environment = {
            "RAGAUDIT_PROVER__VERIFIER__URL": self.to_verifier.url,
            "RAGAUDIT_PROVER__VERIFIER__ARBITER_KEY": ARBITER.public.raw.hex(),
            "RAGAUDIT_PROVER__GENERATOR__URL": model_url,
            "RAGAUDIT_PROVER__SURFACES__ENABLED": '["openai"]',
            "RAGAUDIT_PROVER__SURFACES__COLLECTIONS": '{"records": "one"}',
            **written,
        }
        self.accounts = {
            name: Client(
                self.to_prover.url,
                self.setting.keys[name],
                window="w1",
                verifier_url=self.to_verifier.url,
                verifier_key=self.verifier.keys.statement.public.raw.hex(),
                state_dir=folder / "accounts" / name,
                anchored=anchored,
                clock=self.clock,
            )
            for name, anchored in ACCOUNTS.items()
        }

    def open(self) -> None:
        """Open a window in which both accounts are registered."""
        self.start()
        self.setting.create(**LONG, privacy="gaussian", retry_seconds=3600, generation=WITHIN_TERMS)
        for each in self.accounts.values():
            each.register()
        self.until(lambda: self.cosigned() == 1 + len(self.accounts))
        self.clock.reach(self.policy().start)
        self.until(lambda: self.prover.state() == "open")

    def restart(self) -> None:
        """Kill both services, and start them again."""
        for service in (self.prover, self.verifier):
            service.kill()
        self.verifier.start()
        self.prover.start()
        self.until(lambda: self.prover.http.get("/readyz").is_success)

    def stored(self) -> dict[str, Counter[Any]]:
        """Every row that the services keep, by table."""
        urls = {"P": self.setting.settings.store.url, "V": self.verifier.settings.database_url}
        found = {}
        for party, url in urls.items():
            engine = open_engine(url)
            tables = MetaData()
            tables.reflect(engine)
            with engine.connect() as connection:
                for name, table in tables.tables.items():
                    if f"{party} {name}" in KEPT_ELSEWHERE:
                        continue
                    found[f"{party} {name}"] = Counter(
                        map(tuple, connection.execute(select(table)))
                    )
            close_engine(engine)
        return found

    def close(self) -> None:
        for each in self.accounts.values():
            each.close()
        super().close()
        for way in (self.to_prover, self.to_verifier):
            way.close()


@pytest.fixture
def scene(tmp_path: Path, model: Transformer, model_url: str) -> Iterator[Scene]:
    with closing(Scene(tmp_path, model, model_url)) as made:
        yield made


def covered(scene: Scene, receipts: list[CheckedReceipt]) -> None:
    """Wait until a cosigned checkpoint covers every answer, so that nothing is under way."""
    last = max(each.index for each in receipts)
    scene.until(lambda: scene.cosigned() > last)


def replay(scene: Scene) -> None:
    """Send everything once more; nothing that the services keep changes by it."""
    before = scene.stored()
    for way in (scene.to_prover, scene.to_verifier):
        for each in list(way.sent):
            check_repeated(each, way.send(each))
    assert scene.stored() == before


def check_repeated(request: Sent, reply: Reply) -> None:
    """The same answer, byte for byte, or one of those that a repetition may have."""
    allowed = OTHERWISE.get(kind(request), set()) | {"429 too-many-requests"}
    if request.signed:
        allowed = allowed | {"401 not-authenticated"}  # of more than a minute ago
    assert reply in request.replies or reply.told in allowed, (request, reply)


def kind(request: Sent) -> str:
    """The last word of the path."""
    path = request.target.partition("?")[0]
    return [part for part in path.split("/") if part.replace("-", "").isalpha()][-1]


def ask_in_words(scene: Scene) -> None:
    """Ask one question as ragaudit has it, and one as OpenAI's clients do."""
    url, headers = scene.to_prover.url, {"Authorization": f"Bearer {scene.setting.keys['ada']}"}
    asked = [
        ("/v1/windows/w1/ask", {"query": IN_WORDS[0]}),
        (
            "/v1/chat/completions",
            {"model": "records", "messages": [{"role": "user", "content": IN_WORDS[1]}]},
        ),
    ]
    for path, body in asked:
        answer = httpx.post(url + path, json=body, headers=headers, timeout=60, trust_env=False)
        assert answer.status_code == 200, answer.text


def refused(scene: Scene) -> Any:
    """Ask a window that is over; what the provider signed."""
    answer = httpx.post(
        f"{scene.to_prover.url}/v1/windows/w1/query",
        json={"query": "is anybody there", "top_k": 3, "filter": "", "kind": "text"},
        headers={"Authorization": f"Bearer {scene.setting.keys['ada']}"},
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code == 409, answer.text
    return answer.json()["refusal"]


def find(scene: Scene, receipt: CheckedReceipt) -> None:
    """Have the arbiter dismiss what an account disputes."""
    public = receipt.file.public
    finding = Finding(
        origin=public.origin,
        index=public.index,
        answer_digest=public.answer_digest,
        file_digest=file_digest(receipt.file.to_json()),
        step=0,
        time=scene.clock(),
    ).signed(ARBITER)
    url = f"{scene.to_verifier.url}/v1/windows/w1/findings"
    body = {"finding": finding.to_json(), "public": {**public.to_json(), "proof": None}}
    answer = httpx.post(url, json=body, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text


def claim(scene: Scene) -> None:
    """Claim the last answer of the anchored account, which has it: the log stays as it is."""
    sent = [each for each in scene.to_prover.sent if kind(each) in {"promise", "reveal"}]
    promise, reveal = sent[-2:]
    claimed = {
        "promise": json.loads(promise.replies[0].body),
        "nonce": json.loads(reveal.body)["nonce"],
    }
    url = f"{scene.to_verifier.url}/v1/windows/w1/claims"
    answer = httpx.post(url, json=claimed, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text


def test_what_comes_twice_and_again_is_one_record(scene: Scene) -> None:
    scene.open()
    asked: dict[str, list[CheckedReceipt]] = {name: [] for name in ACCOUNTS}
    for number in range(QUESTIONS):
        for name, account in scene.accounts.items():
            asked[name].append(account.search(f"{WORDS[number]} {number}", 3).receipt)
    claim(scene)
    ask_in_words(scene)
    receipts = [each for of_account in asked.values() for each in of_account]
    covered(scene, receipts)
    replay(scene)
    scene.restart()
    replay(scene)
    for name, account in scene.accounts.items():
        account.submit(asked[name])
        account.dispute(asked[name][0])
        find(scene, asked[name][0])
    replay(scene)
    scene.clock.reach(scene.policy().end)
    scene.accounts["ada"].submit_refusal(refused(scene))
    scene.until(lambda: scene.window().handed_over)
    replay(scene)
    scene.finish()
    replay(scene)

    for way in (scene.to_prover, scene.to_verifier):
        for each in way.sent:
            # At once, too, one is the repetition of the other.
            first, second = sorted(
                each.replies, key=lambda it: (it.status >= 400, it.status == 200)
            )
            check_repeated(replace(each, replies=(first,)), second)
    seen = {kind(each) for way in (scene.to_prover, scene.to_verifier) for each in way.sent}
    assert seen >= {*OTHERWISE, "windows", "versions", "countersign", "close", "challenge"}
    assert scene.shown("/verdict").content == scene.window().verdict
    result, report = scene.shown().json()["result"], scene.shown("/report.txt").text
    scene.close()
    assert result == "PASS", report
    for of_account in asked.values():
        assert [each.counter for each in of_account] == list(range(QUESTIONS))
    scene.check(each.file.public.to_json() for each in receipts)
    with closing(Store.open(scene.setting.settings.store.url)) as store, store.read() as connection:
        assert len(list(records(connection, "w1"))) == len(receipts)
        for message in (Charge, Generated):
            assert len(entries_of(connection, "w1", message.KIND)) == len(IN_WORDS)
