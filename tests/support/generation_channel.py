"""A window with a generation channel over invented records, and the copying model behind HTTP."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from prover_process import Setting
from ragaudit.lab.generation.serving import application, manifest
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.lab.generation.vocabulary import END
from ragaudit.lab.generation.voters import VOCABULARY
from ragaudit.ledger.messages.receipts import GeneratedFile
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.records import entries
from ragaudit.serving.generators import NextTokens
from scenario import WINDOW, ProverScenario
from sqlalchemy import func, select

QUESTION = "treatment of bazeli ?"
CHANNEL: dict[str, Any] = {
    # So much that the vote is decided: what is asked for is what is answered.
    "epsilon": "160",
    "epsilon_token": "40",
    "voters": 4,
    "tokens": 6,
    "uses": 2,
    "threshold": 0,
    "answer_delay_seconds": 2,
    "reuse": False,
}
WITHIN_TERMS: dict[str, Any] = {
    # With a loss that still says something.
    "epsilon": "5",
    "epsilon_token": "5/2",
    "voters": 4,
    "tokens": 3,
    "uses": 2,
    "threshold": 0,
    "prove": "all",
    "group": 2,
    "differing_votes": 0,
    "answer_delay_seconds": 2,
    "reuse": False,
}
TERMS: dict[str, Any] = {
    **WINDOW,
    "privacy": "gaussian",
    "retry_seconds": 60,
    "epochs": True,
    "generation": CHANNEL,
}

DYING = """
import os, pathlib, signal
from ragaudit.prover.answering import answering, charging, generation
step = pathlib.Path({step!r})
def dying(name, honest):
    def call(*arguments, **named):
        found = honest(*arguments, **named)
        if step.read_text() == name:
            step.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return call
charging.put_promise = dying("in the promise", charging.put_promise)
charging.insert_charge = dying("in the charge", charging.insert_charge)
charging.Charging.promise = dying("promised", charging.Charging.promise)
charging.note_nonce = dying("in the nonce", charging.note_nonce)
charging.Charging.keep = dying("revealed", charging.Charging.keep)
generation.coins_of = dying("charged", generation.coins_of)
generation.put_answer = dying("in the answer", generation.put_answer)
generation.put_void = dying("in the last void", generation.put_void)
generation.Generation.settle = dying("settled", generation.Generation.settle)
generation.Generation._file = dying("answered", generation.Generation._file)
answering.put_void = dying("in the void", answering.put_void)
answering.voided = dying("voided", answering.voided)
"""
"""A prelude: the process is killed where a file says."""


def logged_of(setting: Setting, kind: type[Any]) -> list[tuple[int, Any]]:
    """The bodies of a prover's durable entries of a kind, with their places."""
    store = Store.open(setting.settings.store.url)
    with store.read() as connection:
        found = [each for each in entries(connection, "w1") if each.kind == kind.KIND]
    store.close()
    return [(each.index, kind.parse(each.body)) for each in found]


def records(treatment: str = "mirazo", count: int = 12) -> list[Document]:
    """Records of patients with one disease and one treatment."""
    names = ("dobifu", "nakiro", "ludeso", "pamitu")
    return [
        Document(
            f"record-{n}",
            f"patient {names[n % 4]} ; treatment of bazeli : {treatment} ; "
            "symptom of bazeli : kolupe .",
        )
        for n in range(count)
    ]


@contextmanager
def served(model: FastAPI) -> Iterator[str]:
    """Serve an application; yield the URL of its API."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(model, log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        runner = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        runner.start()
        while not server.started and runner.is_alive():
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            runner.join()


@pytest.fixture(scope="session")
def model() -> Transformer:
    return Transformer.load()


@pytest.fixture(scope="session")
def model_url(model: Transformer) -> Iterator[str]:
    """Where the copying model answers."""
    with served(application(model)) as url:
        yield url


def write_model(folder: Path, model: Transformer) -> dict[str, str]:
    """Write manifest and vocabulary; return the environment that names them."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_bytes(manifest(model).encode())
    (folder / "vocabulary.json").write_text(json.dumps(list(VOCABULARY.tokens)))
    prefix = "RAGAUDIT_PROVER__GENERATOR__"
    return {
        f"{prefix}MANIFEST_FILE": str(folder / "manifest.json"),
        f"{prefix}VOCABULARY_FILE": str(folder / "vocabulary.json"),
    }


@pytest.fixture
def make_channel(
    make_scenario: Callable[..., ProverScenario],
    model: Transformer,
    model_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Callable[..., ProverScenario]:
    """A function that makes a prover with the copying model, which waits by a function."""
    monkeypatch.setenv("RAGAUDIT_PROVER__GENERATOR__URL", model_url)
    for name, value in write_model(tmp_path / "model", model).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGAUDIT_PROVER__SURFACES__ENABLED", '["openai"]')
    monkeypatch.setenv("RAGAUDIT_PROVER__SURFACES__COLLECTIONS", '{"records": "one"}')
    return lambda pause, **parts: make_scenario(pause=pause, **parts)


@pytest.fixture
def real_channel(make_channel: Callable[..., ProverScenario]) -> ProverScenario:
    """A prover with the copying model, whose pauses move its clock."""
    scenarios: list[ProverScenario] = []

    async def pause(seconds: float) -> None:
        scenarios[0].clock.now += round(1000 * seconds)

    scenarios.append(make_channel(pause))
    return scenarios[0]


@pytest.fixture
def channel(real_channel: ProverScenario, monkeypatch: pytest.MonkeyPatch) -> ProverScenario:
    """The same without the model's seconds, for what happens around it."""
    monkeypatch.setattr(NextTokens, "next_tokens", first_tokens)
    return real_channel


def first_tokens(
    _: NextTokens, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
) -> list[int | None]:
    """Whoever reads something says its length, and then that it is over."""
    return [END if len(answer) else 1 + len("".join(texts)) % 7 for texts in documents]


def open_channel(scenario: ProverScenario, **changes: Any) -> None:
    """Open a window whose tenant one has the records, with these changes of its channel."""
    store = StoredDocuments(scenario.service.store)
    store.add("one", records(), replace=True)
    scenario.open(**{**TERMS, "generation": {**CHANNEL, **changes}})


def ask(scenario: ProverScenario, account: str = "ada", query: str = QUESTION, **more: Any) -> Any:
    return scenario.post("/v1/windows/w1/ask", account, {"query": query, **more})


def file_of(answer: Any) -> GeneratedFile:
    assert answer.status_code == 200, answer.text
    return GeneratedFile.parse(answer.content)


def count(scenario: ProverScenario, table: Any) -> int:
    with scenario.service.store.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0
