"""The prover as a process: killed at random moments, out of disk; no answer is ever lost."""

import itertools
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from ragaudit.encoding.digests import leaf_data
from ragaudit.ledger.chains import NonceChain
from ragaudit.ledger.notes import ED25519, VerifierKey
from ragaudit.ledger.records import Record
from ragaudit.ledger.store import LogStore
from ragaudit.prover.accounts import Accounts
from ragaudit.prover.backends.base import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.set_up import SetUp, set_up
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store import Store
from ragaudit.verifier import keys as verifier_keys
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.app import create_app
from ragaudit.verifier.settings import Settings as VerifierSettings

PLAIN = ("ada", "bea", "cyd")
ANCHORED = "dan"
WORDS = ("river", "train", "bread", "violin", "library", "tomato", "museum", "bicycle")
PATIENCE = 0.05


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Verifier:
    """The verifier service in a thread of this process."""

    def __init__(self, folder: Path) -> None:
        verifier_keys.create(folder / "secrets", "regulator.example/cosigner")
        self.app = create_app(
            VerifierSettings(
                name="regulator.example/cosigner",
                data=folder / "data",
                secrets=folder / "secrets",
                tick_seconds=0.2,
            )
        )
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        config = uvicorn.Config(self.app, port=port, log_config=None, access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(PATIENCE)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


class Prover:
    """``ragaudit prover serve`` in a process of its own."""

    def __init__(self, made: SetUp) -> None:
        self.made = made
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=20, trust_env=False
        )

    def start(self) -> None:
        script = "from ragaudit.prover.cli import app; app()"
        arguments = ["serve", "--settings", str(self.made.settings), "--log-level", "error"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env={**os.environ, "RAGAUDIT_PROVER__SERVER__PORT": str(self.port)},
            stderr=subprocess.DEVNULL,
        )
        self.wait_for(lambda: self.http.get("/healthz").is_success)

    def kill(self, how: int = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait()

    def limit_files(self, size: int = resource.RLIM_INFINITY) -> None:
        """Let the process write no file beyond ``size`` bytes, as on a full disk."""
        assert self.process is not None
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def wait_for(self, condition: Any, seconds: float = 120) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if condition():
                    return
            except httpx.HTTPError:
                pass
            time.sleep(PATIENCE)
        raise AssertionError("waited too long")

    def operator(self, method: str, path: str, body: Any = None) -> Any:
        token = self.made.operator_token.read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        answer = self.http.request(method, f"/v1/operator{path}", json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def state(self) -> str:
        return str(self.operator("GET", "/windows/w1")["state"])


class Setting:
    """Verifier, prover, documents and accounts."""

    def __init__(self, folder: Path) -> None:
        self.verifier = Verifier(folder / "verifier")
        made = set_up(folder / "prover", provider="p.example", verifier=self.verifier.url)
        providers.add(self.verifier.app.state.service.database, "p.example", made.provider_key)
        self.settings = load_settings(made.settings)
        store = Store.open(self.settings.store.url)
        texts = itertools.islice(itertools.permutations(WORDS, 3), 40)
        StoredDocuments(store).add(
            "one", [Document(f"d{n}", " ".join(words)) for n, words in enumerate(texts)]
        )
        self.keys = {name: Accounts(store).add("one", name) for name in (*PLAIN, ANCHORED)}
        store.close()
        self.prover = Prover(made)
        self.made = made
        self.chain: NonceChain | None = None

    def post(self, account: str, path: str, body: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.keys[account]}"}
        return self.prover.http.post(f"/v1/windows/w1/{path}", json=body, headers=headers)

    def open(self, **overrides: Any) -> None:
        """Start the prover, open the window, register everybody."""
        self.prover.start()
        standard = {
            "opens_after_seconds": 8,
            "activation_every_seconds": 1000,
            "sampling_after_seconds": 6,
            "sigma": "300",
            "epsilon_acc": None,
            "queries_per_account": 100,
            "slots": 4,
            "coalition_max": 4,  # all ask alike here
            "audit": {"mode": "A", "deadline_seconds": 300},
            "release_seconds": 5,
        }
        body = {"window": "w1", "overrides": {**standard, **overrides}}
        self.prover.operator("POST", "/windows", body)
        self.prover.wait_for(lambda: self.prover.state() == "countersigned")
        for account in PLAIN:
            assert self.post(account, "registration", {"anchor": None}).status_code == 201
        headers = {"Authorization": f"Bearer {self.keys[ANCHORED]}"}
        shown = self.prover.http.get("/v1/windows/w1/account", headers=headers).json()
        pseudonym = bytes.fromhex(shown["pseudonym"])
        self.chain = NonceChain("w1", pseudonym, os.urandom(32), 100)
        anchor = self.chain.anchor.hex()
        assert self.post(ANCHORED, "registration", {"anchor": anchor}).status_code == 201
        self.prover.wait_for(lambda: self.prover.state() == "open")

    def log(self) -> tuple[LogStore, Store]:
        store = Store.open(self.settings.store.url)
        key = VerifierKey("p.example/ragaudit/w1", ED25519, self.made.log_key)
        return LogStore.open(store.engine, key), store

    def stop(self) -> None:
        if self.prover.process is not None and self.prover.process.poll() is None:
            self.prover.kill(signal.SIGTERM)
        self.prover.http.close()
        self.verifier.stop()


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    made = Setting(tmp_path)
    yield made
    made.stop()


class Asking(threading.Thread):
    """An account that goes on asking; connection errors are retried as its kind may."""

    def __init__(self, setting: Setting, account: str, count: int) -> None:
        super().__init__()
        self.setting, self.account, self.count = setting, account, count
        self.public: list[dict[str, Any]] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        while len(self.public) < self.count and not self.wrong:
            try:
                answer = self.ask(len(self.public))
            except httpx.HTTPError:
                time.sleep(PATIENCE)
                continue
            if answer.status_code == 200:
                self.public.append(answer.json()["public"])
            elif answer.status_code < 500:
                self.wrong.append(answer.text)

    def ask(self, number: int) -> httpx.Response:
        query = f"{WORDS[number % len(WORDS)]} {number}"
        body: dict[str, Any] = {"query": query, "top_k": 3, "filter": ""}
        if self.account != ANCHORED:
            return self.setting.post(self.account, "query", body)
        promised = self.setting.post(self.account, "promise", {**body, "counter": number})
        # After a kill the answer may be logged already: then only the nonce is asked for again.
        if promised.status_code not in {200, 409}:
            return promised
        assert self.setting.chain is not None
        nonce = self.setting.chain.nonce(number).hex()
        return self.setting.post(self.account, "reveal", {"counter": number, "nonce": nonce})


def check_log(setting: Setting, public: list[dict[str, Any]]) -> None:
    """Every answered record stands in the log; counters and noise inputs are used once."""
    log, store = setting.log()
    log.audit()
    leaves = log.entries(0, log.head().size)
    store.close()
    for each in public:
        salt, body = bytes.fromhex(each["salt"]), bytes.fromhex(each["body"])
        assert leaves[each["index"]] == leaf_data(salt, "record", body)
    decoded = [Record.decode(bytes.fromhex(each["body"])) for each in public]
    inputs = [(each.pseudonym, each.counter, each.nonce) for each in decoded]
    assert len(set(inputs)) == len(inputs)
    assert len({each["index"] for each in public}) == len(public)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_random_points_of_200_queries(setting: Setting) -> None:
    setting.open(length_seconds=150)
    threads = [Asking(setting, account, 50) for account in (*PLAIN, ANCHORED)]
    for thread in threads:
        thread.start()
    moments = random.Random(20_261_120)
    for _ in range(6):
        time.sleep(moments.uniform(0.05, 1.5))
        setting.prover.kill()
        setting.prover.start()
    for thread in threads:
        thread.join()
    assert [thread.wrong for thread in threads] == [[]] * 4
    public = [each for thread in threads for each in thread.public]
    assert len(public) == 200
    counters = [Record.decode(bytes.fromhex(each["body"])).counter for each in threads[-1].public]
    assert counters == list(range(50))
    setting.prover.wait_for(lambda: setting.prover.state() == "archived", 400)
    setting.prover.kill(signal.SIGTERM)
    check_log(setting, public)
    shown = httpx.get(f"{setting.verifier.url}/v1/windows/w1", trust_env=False).json()
    assert shown["result"] == "PASS"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_full_disk_answers_with_a_problem_and_loses_nothing(setting: Setting) -> None:
    setting.open(length_seconds=600)
    answered = [setting.post("ada", "query", body_of(0)).json()["public"]]
    files = setting.made.settings.parent.glob("prover.db*")
    setting.prover.limit_files(max(file.stat().st_size for file in files) + 40_000)
    refused = []
    for number in range(1, 60):
        answer = setting.post("ada", "query", body_of(number))
        if answer.status_code == 200:
            answered.append(answer.json()["public"])
        else:
            refused.append(answer)
            if len(refused) == 3:
                break
    assert len(refused) == 3
    for answer in refused:
        assert answer.status_code == 503, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in answer.text and "INSERT" not in answer.text
    setting.prover.limit_files()
    answer = setting.post("ada", "query", body_of(99))
    assert answer.status_code == 200, answer.text
    answered.append(answer.json()["public"])
    setting.prover.kill()
    check_log(setting, answered)


def body_of(number: int) -> dict[str, Any]:
    return {"query": f"{WORDS[number % len(WORDS)]} {number}", "top_k": 3, "filter": ""}
