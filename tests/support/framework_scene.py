"""A handbook in a real Chroma, the sidecar before it, and programs of other environments.

Prover and verifier are real, in this process, on a clock that only the tests move: a window stays
open however long a program takes to start. The programs reach the prover, an embedding model and
the store through ports of this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chroma_server
import httpx
import numpy as np
from fastapi import FastAPI
from framework_corpus import TENANTS, Corpus, Row, model_app
from ragaudit.circuits.quantise import quantise
from ragaudit.client import offline
from ragaudit.client.checks import Facts
from ragaudit.client.window import Pins
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.states import State
from scenario import ProverScenario, scenarios
from sqlalchemy import func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from surface_app import serving

ROOT = Path(__file__).parents[2]
PROGRAMS = (ROOT / "tests/frameworks/programs", ROOT / "examples")
PYTHON = ROOT / ".venv-frameworks/bin/python"
MISSING = "the frameworks' environment is missing: make setup-frameworks"
# OGX's newest clients ask for a newer Python than ours; where there is none, they are not tried.
NEWER_PYTHON = ROOT / ".venv-ogx/bin/python"
NO_NEWER = "no environment of Python 3.12 for OGX's newest clients: make setup-frameworks"

COLUMNS = {"year": "integer", "part": "string"}
WINDOW = {
    "opens_after_seconds": 60,
    "length_seconds": 3600,
    "activation_every_seconds": 600,
    "sampling_after_seconds": 60,
    "merge_delay_seconds": 55,
    "top_k_max": 20,
    "queries_per_account": 40,
    "slots": 16,
    "release_seconds": 60,
    "public_columns": COLUMNS,
    "filters": True,
    "query_kinds": ["text", "vector"],
    "audit": {"mode": "A", "deadline_seconds": 6000},
}
INTEGRITY = {**WINDOW, "privacy": "none"}
PRIVATE = {
    **WINDOW,
    "privacy": "gaussian",
    "sigma": "400",
    "epsilon_acc": None,
    "coalition_max": 4,
}
# No program says anything to anybody but who it is told to talk to.
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "OTEL_SDK_DISABLED": "true",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}


class Recorder:
    """Passes everything on, and notes the receipts that answers name, as a gateway would."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.receipts: list[str] = []
        self.refused: list[tuple[str, int]] = []
        self.said: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusing = False

        async def noting(message: Message) -> None:
            nonlocal refusing
            if refusing and message["type"] == "http.response.body":
                self.said.append(_text(json.loads(message["body"])))
            if message["type"] == "http.response.start":
                refusing = message["status"] >= 400
                for name, value in message["headers"]:
                    if name.lower() == b"ragaudit-receipt":
                        self.receipts += value.decode("ascii").split(", ")
                if message["status"] >= 400:
                    self.refused.append((scope["path"], message["status"]))
            await send(message)

        await self.app(scope, receive, noting)


def _text(problem: dict[str, Any]) -> str:
    """The text of a refusal, in the shape of Chroma, of OpenAI or of Qdrant."""
    match problem:
        case {"message": str(text)} | {"error": {"message": str(text)}}:
            return text
        case {"status": {"error": str(text)}}:
            return text
    raise AssertionError(problem)


@dataclass
class Scene:
    """A window in front of the store, open, and where everything is."""

    scenario: ProverScenario
    recorder: Recorder
    url: str
    model_url: str
    store_url: str
    corpus: Corpus
    folder: Path
    receipts: dict[str, list[str]] = field(default_factory=dict)

    def run(
        self,
        program: str,
        url: str,
        key: str,
        asked: Sequence[int | str] = (),
        *,
        python: Path = PYTHON,
        **told: str,
    ) -> dict[str, Any]:
        """Run a program in its environment; return what it prints.

        Args:
            asked: texts, and numbers of the corpus's questions.
            python: of the environment.
            told: environment variables.
        """
        # Only what a program needs: no setting of this process reaches it.
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        model = f"{self.model_url}/v1"
        told = {"STORE_URL": url, "STORE_KEY": key, "EMBEDDINGS_URL": model, **told}
        (path,) = (each for folder in PROGRAMS if (each := folder / f"{program}.py").is_file())
        done = subprocess.run(
            [python, "-W", "ignore", path],
            input=json.dumps(
                [self.corpus.questions[it] if isinstance(it, int) else it for it in asked]
            ),
            env={**kept, **QUIET, **told},
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
            cwd=self.folder,
        )
        assert done.returncode == 0, f"{program}: {done.stderr[-4000:]}"
        # Some libraries greet on standard output; the program's own line is the last one.
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def ask(
        self, program: str, account: str, asked: Sequence[int | str], *, python: Path = PYTHON
    ) -> dict[str, Any]:
        """Run a program against the sidecar with an account's key, and keep its receipts' ids."""
        before = len(self.recorder.receipts)
        found = self.run(program, self.url, self.scenario.keys[account], asked, python=python)
        # Those of MCP are no headers: its client finds them beside the result.
        names = self.recorder.receipts[before:] + found.pop("receipts", [])
        self.receipts[account] = list(dict.fromkeys([*self.receipts.get(account, ()), *names]))
        return found

    def entries(self) -> int:
        """How many entries all logs have."""
        with self.scenario.service.store.read() as connection:
            return int(connection.scalar(select(func.count()).select_from(tables.entry)) or 0)

    def files(self, account: str) -> dict[str, bytes]:
        """Return the account's receipt files by id, as the prover hands them out."""
        found = {}
        for name in self.receipts[account]:
            answer = self.scenario.api.get(
                f"/v1/receipts/{name}", headers=self.scenario.headers(account)
            )
            assert answer.status_code == 200, answer.text
            found[name] = answer.content
        return found

    @property
    def index(self) -> Any:
        """The committed integers of the tenant that all programs ask."""
        return self.scenario.service.open_windows.get("w1").indexes["one"]

    def positions(self) -> list[Row]:
        """The rows in the order of the index."""
        return sorted(self.corpus.rows["one"], key=lambda row: row.id.encode())

    def exact(self, number: int, top_k: int, *, filtered: bool = False) -> list[str]:
        """The ids of the K best rows by the committed integers, by an obvious route."""
        rows = self.positions()
        e = quantise(self.corpus.asked[number], self.scenario.policy().norm_bound)
        scores = self.index.vectors.astype(np.int64) @ e.astype(np.int64)
        order = sorted(range(len(rows)), key=lambda at: (-int(scores[at]), at))
        return [rows[at].id for at in order if not filtered or rows[at].passes][:top_k]

    def gap(self, number: int, ours: Sequence[str], theirs: Sequence[str]) -> float:
        """By how much the rows that differ between two rankings differ in cosine, at most."""
        at = {row.id: position for position, row in enumerate(self.corpus.rows["one"])}
        pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
        rows = self.corpus.vectors["one"].astype(np.float64)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        query = self.corpus.asked[number].astype(np.float64)
        cosines = rows @ (query / np.linalg.norm(query))
        return max((abs(float(cosines[at[a]] - cosines[at[b]])) for a, b in pairs), default=0.0)

    def save(self) -> tuple[Path, Path]:
        """Save window and policy, as an account keeps them; return their paths."""
        window = self.scenario.api.get("/v1/windows/w1")
        shown, policy = self.folder / "window.json", self.folder / "policy.json"
        shown.write_bytes(window.content)
        policy.write_bytes(dumps(window.json()["policy"]))
        return shown, policy

    def check_receipts(self, account: str) -> list[Path]:
        """Check all receipts of an account as its holder does; return their files."""
        shown, policy = self.save()
        window = offline.read_window(shown, Pins(policy_digest=offline.read_policy(policy).digest))
        own = self.folder / f"{account}.json"
        own.write_bytes(
            self.scenario.api.get(
                "/v1/windows/w1/account", headers=self.scenario.headers(account)
            ).content
        )
        state = offline.read_account(own)
        view = offline.account_view(state, window)
        facts = Facts(view, state.anchor, embed=offline.embed_of(window))
        paths = []
        for identifier, data in self.files(account).items():
            file = ReceiptFile.parse(data)
            place = f"/v1/windows/w1/receipts/{file.public.index}/proof"
            proof = TlogProof.parse(self.scenario.api.get(place).content)
            # As `ragaudit receipt complete` does: the proof is made when there is a checkpoint.
            public = file.public.with_proofs(proof).to_json()
            path = self.folder / f"{identifier}.json"
            path.write_bytes(dumps({**file.to_json(), "public": public}))
            steps = offline.check(offline.read_file(path), window, facts).checks
            assert {step.status for step in steps} == {"done"}, steps
            paths.append(path)
        return paths

    def verdict(self) -> dict[str, Any]:
        """Close the window, answer the challenge, and return the verdict's predicate."""
        service, clock, policy = self.scenario.service, self.scenario.clock, self.scenario.policy()
        service.driver.checkpoint("w1")
        clock.at(policy.end)
        self.scenario.drive(State.CLOSED)
        service.driver.step("w1")
        clock.at(policy.sampling_instant)
        self.scenario.drive(State.CHALLENGED)
        service.driver.step("w1")
        clock.at(policy.release_time // 1000)
        for _ in range(2000):
            if self.scenario.state() is State.ARCHIVED:
                break
            service.driver.step("w1")
            self.scenario.verifier.get("/v1/windows/w1/progress")
        envelope = json.loads(service.windows.get("w1").verdict or "{}")
        predicate: dict[str, Any] = json.loads(b64_decode(envelope["payload"]))["predicate"]
        return predicate


def failed(predicate: dict[str, Any]) -> list[dict[str, Any]]:
    """The checks of a verdict that did not pass."""
    return [each for each in predicate["checks"] if each["status"] in {"FAIL", "NOT RUN"}]


@contextmanager
def store_server(corpus: Corpus) -> Iterator[chroma_server.ChromaServer]:
    """Chroma's own server with both tenants' collections."""
    with chroma_server.ChromaServer() as server:
        with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as http:
            for tenant in TENANTS:
                corpus.fill(http, tenant)
        yield server


@contextmanager
def scene(
    folder: Path,
    corpus: Corpus,
    store_url: str,
    window: dict[str, Any],
    accounts: Sequence[str],
    store: Callable[[], Backend] | None = None,
) -> Iterator[Scene]:
    """An open window over the store, served with all surfaces.

    Args:
        store: opens another one than the Chroma at store_url.
    """
    with ExitStack() as stack:
        make = stack.enter_context(scenarios(folder))
        scenario = _started(make, store or (lambda: _chroma(store_url)), window, accounts)
        recorder = Recorder(scenario.api.app)
        url = f"http://127.0.0.1:{stack.enter_context(serving(_outside(scenario, recorder)))}"
        model = f"http://127.0.0.1:{stack.enter_context(serving(model_app()))}"
        yield Scene(scenario, recorder, url, model, store_url, corpus, folder)


def _chroma(url: str) -> ChromaStore:
    return ChromaStore(ChromaSettings(url=url, collections=dict(TENANTS)))


def _started(
    make: Callable[..., ProverScenario],
    store: Callable[[], Backend],
    window: dict[str, Any],
    accounts: Sequence[str],
) -> ProverScenario:
    scenario = make(backend=lambda *_: store(), embedder=None)
    given = SurfaceSettings.model_validate(
        {
            "enabled": ["openai", "chroma", "qdrant", "mcp", "dify"],
            "collections": {name: tenant for tenant, name in TENANTS.items()},
            "writes": {"accounts": list(accounts)},
        }
    )
    scenario.settings = scenario.settings.model_copy(update={"surfaces": given})
    scenario.restart()
    people = Accounts(scenario.service.store)
    for name in accounts:
        scenario.keys[name] = people.add("one", name)
    scenario.service.create_window("w1", window)
    scenario.drive(State.COUNTERSIGNED)
    for name in accounts:
        scenario.register(name)
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    return scenario


def _outside(scenario: ProverScenario, recorder: Recorder) -> FastAPI:
    """The prover's application without its background tasks: the tests take those steps."""
    app: Any = scenario.api.app

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with app.state.surfaces.running():
            yield

    outer = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    outer.mount("/", recorder)
    return outer
