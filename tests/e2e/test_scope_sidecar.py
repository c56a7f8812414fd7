"""`ragaudit attack scope` against a real window: the sidecar before a real Chroma, and the prover's
own interface; nothing is found."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chroma_server
import httpx
import pytest
import scope_runs
from ragaudit.lab.attacks.scope import canaries
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.states import State
from ragaudit.prover.surface_settings import SurfaceSettings
from ragaudit.prover.vector_stores.chroma import ChromaStore
from scenario import ProverScenario, make_scenario
from surface_app import serving

__all__ = ["make_scenario"]
pytestmark = pytest.mark.slow

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
WINDOW = {
    "privacy": "none",
    "opens_after_seconds": 60,
    "length_seconds": 600,
    "activation_every_seconds": 100,
    "sampling_after_seconds": 60,
    "top_k_max": 8,
    "queries_per_account": 10_000,
    "slots": 4,
    "release_seconds": 60,
    "public_columns": {"tenant": "string", "ragaudit_tag": "string"},
    "filters": True,
    "audit": {"mode": "A", "deadline_seconds": 600},
}
ACCOUNTS = {"acme": "ada", "globex": "cyd"}
TENANTS = {"acme": "one", "globex": "two"}
NAMES = {"acme": "handbook", "globex": "manual"}
SURFACES = {"enabled": ["openai", "chroma", "qdrant", "mcp", "dify"],
            "collections": {"handbook": "one", "manual": "two"}}  # fmt: skip


@pytest.fixture(scope="module")
def chroma() -> Iterator[str]:
    command = chroma_server.program()
    if command is None:
        pytest.skip("Chroma's server is not installed: make setup")
    with chroma_server.ChromaServer(command) as server:
        yield server.url


def start(scenario: ProverScenario, kinds: list[str]) -> None:
    given = SurfaceSettings.model_validate(SURFACES)
    scenario.settings = scenario.settings.model_copy(update={"surfaces": given})
    scenario.restart()
    scenario.service.create_window("w1", {**WINDOW, "query_kinds": kinds})
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    scenario.register("cyd")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)


def report(scenario: ProverScenario, folder: Path, store: str, **more: Any) -> dict[str, Any]:
    keys = {tenant: scenario.keys[account] for tenant, account in ACCOUNTS.items()}
    # The scenario drives the service itself; only MCP's sessions need the application's lifespan.
    with serving(scenario.api.app, lifespan="auto" if store == "mcp" else "off") as port:
        url = f"http://127.0.0.1:{port}"
        path = scope_runs.target(folder, store, url, keys, collections=NAMES, top_k=8, **more)
        return scope_runs.scope_of_sound(path, "--rounds", "2")


def unexpected(found: dict[str, Any]) -> str:
    return str([one for one in found["tried"] if one["result"] != "NOTHING"] or found["findings"])


def planted(folder: Path) -> list[canaries.Canary]:
    scope_runs.target(folder, "prover", "http://x", {})
    found = canaries.read(folder / "canaries.jsonl", "canaries")
    return [canary for canary in found if canary.planted]


def fill_chroma(url: str, folder: Path) -> None:
    rows = planted(folder)
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        for tenant in TENANTS:
            made = http.post(
                BASE,
                json={"name": f"docs-{tenant}", "configuration": {"hnsw": {"space": "cosine"}}},
            ).json()
            own = [canary for canary in rows if canary.tenant == tenant]
            body = {
                "ids": [canary.id for canary in own],
                "embeddings": [canary.vector for canary in own],
                "documents": [canary.text for canary in own],
                "metadatas": [canary.metadata("tenant", tenant) for canary in own],
            }
            http.post(f"{BASE}/{made['id']}/add", json=body).raise_for_status()  # fmt: skip


def test_the_sidecar_before_chroma_is_clean(
    make_scenario: Callable[..., ProverScenario], chroma: str, tmp_path: Path
) -> None:
    fill_chroma(chroma, tmp_path)
    collections = {TENANTS[tenant]: f"docs-{tenant}" for tenant in TENANTS}
    backend = ChromaSettings(url=chroma, collections=collections)
    scenario = make_scenario(backend=lambda _settings, _store: ChromaStore(backend))
    start(scenario, ["vector"])
    for store in ("chroma", "qdrant"):
        found = report(scenario, tmp_path, store)
        assert found["result"] == "CLEAN", unexpected(found)
        assert found["controlled"] == ["acme", "globex"]
    # The same probes see the rows where the sidecar is passed by.
    names = {tenant: f"docs-{tenant}" for tenant in TENANTS}
    path = scope_runs.target(
        tmp_path, "chroma", chroma, {"acme": "x", "globex": "y"}, collections=names
    )
    bare = scope_runs.scope(path, "--only", "cross-collection")
    assert ("cross-collection", "content") in scope_runs.found(bare)


def test_the_prover_and_its_surfaces_of_text_are_clean(
    make_scenario: Callable[..., ProverScenario], tmp_path: Path
) -> None:
    scenario = make_scenario()
    store = StoredDocuments(scenario.service.store)
    rows = planted(tmp_path)
    for tenant, name in TENANTS.items():
        documents = [
            Document(
                canary.id, canary.text, attributes_text(canary.metadata("tenant", tenant), "canary")
            )
            for canary in rows if canary.tenant == tenant
        ]  # fmt: skip
        store.add(name, documents, replace=True)
    start(scenario, ["text"])
    for kind in ("prover", "openai", "dify", "mcp"):
        found = report(scenario, tmp_path, kind, dimension=None)
        assert found["result"] == "CLEAN", unexpected(found)
        assert found["controlled"] == ["acme", "globex"]
