"""An application of Chroma before and behind the sidecar: the same rows in the same order, with
receipts, and writes that reach the store at once and the index with its next version."""

from collections.abc import Callable, Iterator
from typing import Any

import chroma_server
import httpx
import numpy as np
import pytest
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.store.states import State
from ragaudit.prover.surfaces.chroma import collection_id
from scenario import ProverScenario

pytestmark = pytest.mark.slow

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
ROWS, D = 60, 16
WINDOW = {
    "privacy": "none",
    "opens_after_seconds": 60,
    "length_seconds": 600,
    "activation_every_seconds": 100,
    "sampling_after_seconds": 60,
    "merge_delay_seconds": 55,
    "top_k_max": 5,
    "queries_per_account": 30,
    "slots": 4,
    "release_seconds": 60,
    "public_columns": {"n": "integer"},
    "filters": True,
    "query_kinds": ["vector"],
    "audit": {"mode": "A", "deadline_seconds": 600},
}


@pytest.fixture(scope="module")
def store() -> Iterator[httpx.Client]:
    with (
        chroma_server.ChromaServer() as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=120) as http,
    ):
        yield http


def filled(store: httpx.Client, tenant: str) -> str:
    """Fill a tenant's collection and return its path in the store."""
    made = store.post(
        BASE, json={"name": f"docs-{tenant}", "configuration": {"hnsw": {"space": "cosine"}}}
    ).json()
    vectors = np.random.default_rng(len(tenant)).normal(size=(ROWS, D))
    body = {
        "ids": [f"{tenant}-{n}" for n in range(ROWS)],
        "embeddings": vectors.astype(np.float32).tolist(),
        "documents": [f"text {n} of {tenant}" for n in range(ROWS)],
        "metadatas": [{"n": n} for n in range(ROWS)],
    }
    assert store.post(f"{BASE}/{made['id']}/add", json=body).is_success
    return f"{BASE}/{made['id']}"


def started(scenario: ProverScenario) -> None:
    surfaces = {
        "enabled": ["chroma"],
        "collections": {"docs-one": "one", "docs-two": "two"},
        "writes": {"accounts": ["ada"]},
    }
    given = SurfaceSettings.model_validate(surfaces)
    scenario.settings = scenario.settings.model_copy(update={"surfaces": given})
    scenario.restart()
    scenario.service.create_window("w1", WINDOW)
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)


def test_an_application_keeps_its_answers_and_its_writes(
    make_scenario: Callable[..., ProverScenario], store: httpx.Client
) -> None:
    real = filled(store, "one")
    filled(store, "two")
    backend = ChromaSettings(
        url=str(store.base_url).rstrip("/"), collections={"one": "docs-one", "two": "docs-two"}
    )
    scenario = make_scenario(backend=lambda _settings, _store: ChromaStore(backend))
    started(scenario)
    ours = f"{BASE}/{collection_id('docs-one')}"
    draw = np.random.default_rng(1)
    found = 0
    for where in (None, {"n": {"$gte": 20}}, {"$or": [{"n": 3}, {"n": {"$in": [4, 5, 6, 7]}}]}):
        body: dict[str, Any] = {
            "query_embeddings": draw.normal(size=(3, D)).tolist(), "n_results": 5, "where": where,
        }  # fmt: skip
        answer, theirs = (
            scenario.post(f"{ours}/query", "ada", body),
            store.post(f"{real}/query", json=body),
        )
        assert answer.status_code == 200, answer.text
        shown, wanted = answer.json(), theirs.json()
        for name in ("ids", "documents", "metadatas"):
            assert shown[name] == wanted[name]
        assert np.allclose(shown["distances"], wanted["distances"], atol=2e-3)
        for name in answer.headers["Ragaudit-Receipt"].split(", "):
            file = scenario.api.get(f"/v1/receipts/{name}", headers=scenario.headers("ada"))
            assert ReceiptFile.parse(file.content).private.withdrawn == ()
            found += 1
    assert found == 9

    # The best row changes in the store: neither its old text is served nor its new one.
    vector = draw.normal(size=D).tolist()
    body = {"query_embeddings": [vector], "n_results": 3}
    before = scenario.post(f"{ours}/query", "ada", body).json()["ids"][0]
    change = {"ids": [before[0]], "documents": ["another text"]}
    assert scenario.post(f"{ours}/update", "ada", change).status_code == 200
    changed = store.post(f"{real}/get", json={"ids": [before[0]]}).json()
    assert changed["documents"] == ["another text"]
    near = {"query_embeddings": [[x + 1e-3 for x in vector]], "n_results": 3}
    answer = scenario.post(f"{ours}/query", "ada", near)
    assert answer.json()["ids"][0] == before[1:]
    name = answer.headers["Ragaudit-Receipt"]
    kept = scenario.api.get(f"/v1/receipts/{name}", headers=scenario.headers("ada")).content
    assert [row.id for row in ReceiptFile.parse(kept).private.withdrawn] == [before[0]]
    # Nor is it shown by its id any more.
    shown = scenario.post(f"{ours}/get", "ada", {"ids": before}).json()
    assert shown["ids"] == before[1:]

    # A deletion says how many ids were named, not how many there were.
    gone = scenario.post(f"{ours}/delete", "ada", {"ids": [before[1], "nothing"]})
    assert gone.json() == {"deleted": 2}
    assert store.post(f"{real}/get", json={"ids": [before[1]]}).json()["ids"] == []
    # The other tenant's collection is not this key's, for reading or for writing.
    other = f"{BASE}/{collection_id('docs-two')}"
    assert scenario.post(f"{other}/query", "ada", body).status_code == 404
    assert scenario.post(f"{other}/delete", "ada", {"ids": ["two-1"]}).status_code == 404
