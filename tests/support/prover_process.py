"""The prover as a process, beside the verifier service in a thread: for tests of faults."""

import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from forking import Forked, Forks
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.scenario.policy import small_terms_file
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.set_up import SetUp, set_up
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.windows import Windows
from ragaudit.verifier import keys as verifier_keys
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.app import create_app
from ragaudit.verifier.service.database import create_tables
from ragaudit.verifier.settings import Settings as VerifierSettings
from ragaudit.verifier.settings import make_data_folder
from verifier_process import VerifierProcess

PLAIN = ("ada", "bea", "cyd")
ANCHORED = "dan"
WORDS = ("river", "train", "bread", "violin", "library", "tomato", "museum", "bicycle")
PATIENCE = 0.05

SOON = {"merge_delay_seconds": 4, "clock_skew_seconds": 2, "sampling_after_seconds": 6}
"""Of a window whose verdict is waited for, and whose services live."""

PATIENT = {"merge_delay_seconds": 25, "clock_skew_seconds": 5, "sampling_after_seconds": 30}
"""Of one whose services are killed, or stand still for a while."""

STEPPING = """
import pathlib, time
honest, offset = time.time_ns, pathlib.Path(%r)
time.time_ns = lambda: honest() + 10**6 * int(offset.read_text() or 0)
"""
"""A prelude: the system's clock as somebody sets it, off by a file's number of milliseconds."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Verifier:
    """The verifier service in a thread of this process."""

    def __init__(self, folder: Path) -> None:
        verifier_keys.create(folder / "secrets", "regulator.example/cosigner")
        settings = VerifierSettings(
            name="regulator.example/cosigner",
            data=folder / "data",
            secrets=folder / "secrets",
            tick_seconds=0.2,
            terms=small_terms_file(folder),
        )
        make_data_folder(settings)
        create_tables(settings.database_url)
        self.app = create_app(settings)
        self.keys = self.app.state.service.keys
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        config = uvicorn.Config(self.app, port=port, log_config=None, access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(PATIENCE)

    def pin(self, provider: str, key: PublicKey) -> None:
        providers.add(self.app.state.service.database, provider, key)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


class Prover:
    """``ragaudit prover serve`` in a process of its own."""

    def __init__(self, made: SetUp, pins: dict[str, str]) -> None:
        """``pins``: the verifier's keys by role."""
        self.made = made
        self.pins = {
            f"RAGAUDIT_PROVER__VERIFIER__{role.upper()}_KEY": key for role, key in pins.items()
        }
        self.port = free_port()
        self.prelude = ""
        self.environment: dict[str, str] = {}  # of the process, beside the usual
        self.log = made.settings.with_name("log.txt")
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.forks: Forks | None = None  # once `fork` was called
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=20, trust_env=False
        )

    def start(self) -> None:
        """Start it, with ``prelude`` (Python code) run before, and wait until it answers."""
        self.launch()
        self.wait_for(self.answers, 300)

    def launch(self) -> None:
        """Start it, and do not wait."""
        script = f"{self.prelude}\nfrom ragaudit.prover.command.cli import app; app()"
        if self.forks is not None:
            self.process = self.forks.launch(script)
            return
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", script, *self.arguments], env=self.variables, stderr=log
            )

    @property
    def arguments(self) -> list[str]:
        """Of the command."""
        return ["serve", "--settings", str(self.made.settings), "--log-level", "error"]

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the process."""
        port = {"RAGAUDIT_PROVER__SERVER__PORT": str(self.port)}
        return {**os.environ, **self.pins, **self.environment, **port}

    def fork(self) -> None:
        """From now on fork its processes; `forks` is to be closed."""
        self.forks = Forks(["ragaudit.prover.http.app"], self.arguments, self.variables, self.log)

    def answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.log.read_text()
        return self.http.get("/healthz").is_success

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
    """Verifier, prover, documents and accounts; the verifier in this process, if not given."""

    def __init__(self, folder: Path, verifier: VerifierProcess | None = None) -> None:
        self.verifier = verifier or Verifier(folder / "verifier")
        made = set_up(folder / "prover", provider="p.example", verifier=self.verifier.url)
        self.verifier.pin("p.example", made.provider_key)
        self.settings = load_settings(made.settings)
        store = Store.open(self.settings.store.url)
        texts = itertools.islice(itertools.permutations(WORDS, 3), 40)
        StoredDocuments(store).add(
            "one", [Document(f"d{n}", " ".join(words)) for n, words in enumerate(texts)]
        )
        self.keys = {name: Accounts(store).add("one", name) for name in (*PLAIN, ANCHORED)}
        self.plain = list(PLAIN)
        store.close()
        shown = self.verifier.keys.public()
        self.prover = Prover(
            made, {role: str(shown[role]) for role in ("cosigner", "verifier", "verdict")}
        )
        self.made = made
        self.chain: NonceChain | None = None

    def add(self, account: str, tenant: str, documents: Sequence[Document]) -> None:
        """Add an account, and the documents of its tenant, before the window is opened."""
        store = Store.open(self.settings.store.url)
        StoredDocuments(store).add(tenant, documents, replace=True)
        self.keys[account] = Accounts(store).add(tenant, account)
        store.close()
        self.plain.append(account)

    def post(self, account: str, path: str, body: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.keys[account]}"}
        return self.prover.http.post(f"/v1/windows/w1/{path}", json=body, headers=headers)

    def open(self, **overrides: Any) -> None:
        """Start the prover, open the window, register everybody."""
        if self.prover.forks is None:
            self.prover.fork()
        self.prover.start()
        self.register(**overrides)
        seconds = overrides.get("opens_after_seconds", 0) + 120
        self.prover.wait_for(lambda: self.prover.state() == "open", seconds)

    def register(self, **overrides: Any) -> None:
        """Have a window countersigned, and register everybody in it."""
        self.create(**overrides)
        for account in self.plain:
            assert self.post(account, "registration", {"anchor": None}).status_code == 201
        headers = {"Authorization": f"Bearer {self.keys[ANCHORED]}"}
        shown = self.prover.http.get("/v1/windows/w1/account", headers=headers).json()
        pseudonym = bytes.fromhex(shown["pseudonym"])
        self.chain = NonceChain(
            "w1", pseudonym, os.urandom(32), overrides.get("queries_per_account", 100)
        )
        anchor = self.chain.anchor.hex()
        assert self.post(ANCHORED, "registration", {"anchor": anchor}).status_code == 201

    def create(self, **overrides: Any) -> None:
        """Have a window countersigned."""
        standard = {
            "opens_after_seconds": 20,
            "activation_every_seconds": 1000,
            **SOON,
            "sigma": "300",
            "retry_seconds": 0,
            "epsilon_acc": None,
            "queries_per_account": 100,
            "slots": 4,
            "coalition_max": 4,  # all ask alike here
            "audit": {"mode": "A", "deadline_seconds": 300},
            "release_seconds": 5,
            "claim_margin_seconds": 5,
        }
        body = {"window": "w1", "overrides": {**standard, **overrides}}
        self.prover.operator("POST", "/windows", body)
        seconds = overrides.get("opens_after_seconds", 0) + 120
        self.prover.wait_for(lambda: self.prover.state() == "countersigned", seconds)

    def log(self) -> tuple[LogStore, Store]:
        store = Store.open(self.settings.store.url)
        policy = Policy.parse(Windows(store).get("w1").policy)
        return LogStore.open(store.engine, policy.keys.log), store

    def stop(self) -> None:
        if self.prover.process is not None and self.prover.process.poll() is None:
            self.prover.kill(signal.SIGTERM)
        if self.prover.forks is not None:
            self.prover.forks.close()
        self.prover.http.close()
        self.verifier.stop()


class Steady(threading.Thread):
    """An account that goes on asking, so that there are checkpoints all the time."""

    def __init__(self, setting: Setting, account: str) -> None:
        super().__init__()
        self.setting, self.account = setting, account
        self.done = threading.Event()
        self.answers: list[httpx.Response] = []

    def run(self) -> None:
        while not self.done.wait(0.1):
            number = len(self.answers)
            self.answers.append(self.setting.post(self.account, "query", body_of(number)))

    def end(self) -> None:
        self.done.set()
        self.join()


def check_log(setting: Setting, public: list[dict[str, Any]]) -> None:
    """Every answered record stands in the log; counters and noise inputs are used once."""
    log, store = setting.log()
    log.audit()
    leaves = log.entries(0, log.head().size)
    store.close()
    for each in public:
        salt, body = bytes.fromhex(each["salt"]), bytes.fromhex(each["body"])
        assert leaves[each["index"]] == leaf_data(salt, "record", body)
    decoded = [Record.parse(bytes.fromhex(each["body"])) for each in public]
    inputs = [(each.pseudonym, each.counter, each.nonce) for each in decoded]
    assert len(set(inputs)) == len(inputs)
    assert len({each["index"] for each in public}) == len(public)


def body_of(number: int) -> dict[str, Any]:
    return {"query": f"{WORDS[number % len(WORDS)]} {number}", "top_k": 3, "filter": ""}
