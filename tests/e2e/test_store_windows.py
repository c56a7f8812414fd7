"""Windows without noise over real stores: exact answers, withdrawn rows, and a verdict."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import chroma_server
import httpx
import numpy as np
import numpy.typing as npt
import pytest
from exact_windows import EXACT, shown
from ragaudit.circuits.quantise import quantise
from ragaudit.embedders.base import NoEmbedder
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.store.states import State
from scenario import ProverScenario
from whole_windows import verdict

pytestmark = pytest.mark.slow

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
ROWS, D = 60, 24


@pytest.fixture
def chroma() -> Iterator[chroma_server.ChromaServer]:
    with chroma_server.ChromaServer() as server:
        yield server


def fill(server: chroma_server.ChromaServer, name: str, seed: int) -> str:
    """A collection of rows with text and a year; its place."""
    rows = np.random.default_rng(seed).normal(size=(ROWS, D)).astype(np.float32)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as http:
        body = {"name": name, "configuration": {"hnsw": {"space": "cosine"}}}
        place = f"{BASE}/{http.post(BASE, json=body).json()['id']}"
        added = {
            "ids": [f"{name}-{n}" for n in range(ROWS)],
            "documents": [f"row {n} of {name}" for n in range(ROWS)],
            "metadatas": [{"year": 2020 + n % 3} for n in range(ROWS)],
            "embeddings": rows.tolist(),
        }
        assert http.post(f"{place}/add", json=added).is_success
    return place


@pytest.fixture
def over_chroma(
    chroma: chroma_server.ChromaServer, make_scenario: Callable[..., ProverScenario]
) -> Iterator[tuple[ProverScenario, str]]:
    """An open window over two collections, and the place of the first."""
    place = fill(chroma, "docs-one", 1)
    fill(chroma, "docs-two", 2)
    collections = {"one": "docs-one", "two": "docs-two"}
    store = ChromaStore(ChromaSettings(url=chroma.url, collections=collections))
    scenario = make_scenario(
        backend=lambda *_: store, embedder=lambda _: NoEmbedder(store.dimension)
    )
    window = {"query_kinds": ["vector"], "public_columns": {"year": "integer"}}
    scenario.service.create_window("w1", {**EXACT, **window})
    scenario.drive(State.COUNTERSIGNED)
    for account in ("ada", "cyd"):
        scenario.register(account)
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    yield scenario, place
    store.close()


def ask(
    scenario: ProverScenario, vector: npt.NDArray[np.float32], account: str = "ada", **more: Any
) -> ReceiptFile:
    body = {"vector": b64_encode(float32_bytes(vector.tolist())), "top_k": 3, **more}
    answer = scenario.post("/v1/windows/w1/query", account, body)
    assert answer.status_code == 200, answer.text
    return ReceiptFile.parse(answer.content)


def queries(count: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(9).normal(size=(count, D)).astype(np.float32)


def test_a_window_over_chroma_is_exact_and_passes(
    over_chroma: tuple[ProverScenario, str], chroma: chroma_server.ChromaServer
) -> None:
    scenario, place = over_chroma
    index = scenario.service.open_windows.get("w1").indexes["one"]
    for query in queries(4):
        file = ask(scenario, query)
        e = quantise(query, 4095).astype(np.int64)
        scores = index.vectors.astype(np.int64) @ e
        best = np.argsort(-scores, kind="stable")[:3]
        assert shown(file) == [(at, scores[at]) for at in best.tolist()]
        # The store's own ranking of the same vector, by its floats.
        with httpx.Client(base_url=chroma.url, trust_env=False, timeout=60) as http:
            body = {"query_embeddings": [query.tolist()], "n_results": 3, "include": []}
            theirs = http.post(f"{place}/query", json=body).json()["ids"][0]
        assert [document.id for document in file.answer.documents] == theirs
    other = ask(scenario, queries(1)[0], "cyd")
    assert {document.id.rpartition("-")[0] for document in other.answer.documents} == {"docs-two"}
    filtered = ask(scenario, queries(1)[0], filter='{"key":"year","op":"eq","value":2021}')
    years = [json.loads(document.columns)["year"] for document in filtered.answer.documents]
    assert years == [2021] * 3
    predicate = verdict(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    assert predicate["claims"]["privacy"]["result"] == "NOT CLAIMED"


def test_a_changed_and_a_deleted_document_are_served_in_no_form(
    over_chroma: tuple[ProverScenario, str], chroma: chroma_server.ChromaServer
) -> None:
    scenario, place = over_chroma
    query = queries(1)[0]
    first, second, third = ask(scenario, query).answer.documents
    with httpx.Client(base_url=chroma.url, trust_env=False, timeout=60) as http:
        assert http.post(f"{place}/delete", json={"ids": [first.id]}).is_success
        changed = {"ids": [second.id], "documents": ["another text"]}
        assert http.post(f"{place}/update", json=changed).is_success
    # Another request, or the stored answer would come back.
    file = ask(scenario, query * np.float32(2))
    assert [document.id for document in file.answer.documents] == [third.id]
    assert [row.id for row in file.private.withdrawn] == [first.id, second.id]
    assert "another text" not in file.encode().decode("utf-8", "replace")
