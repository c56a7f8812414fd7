"""`ragaudit attack scope` against a real window: the sidecar before a real Chroma, and the prover's
own interface; nothing is found."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chroma_server
import httpx
import pytest
import scope_runs
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from scenario import ProverScenario
from scope_windows import ACCOUNTS, NAMES, TENANTS, fill_documents, planted, start
from surface_app import serving

pytestmark = pytest.mark.slow

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"


@pytest.fixture(scope="module")
def chroma() -> Iterator[str]:
    with chroma_server.ChromaServer() as server:
        yield server.url


def report(scenario: ProverScenario, folder: Path, store: str, **more: Any) -> dict[str, Any]:
    keys = {tenant: scenario.keys[account] for tenant, account in ACCOUNTS.items()}
    # The scenario drives the service itself; only MCP's sessions need the application's lifespan.
    with serving(scenario.api.app, lifespan="auto" if store == "mcp" else "off") as port:
        url = f"http://127.0.0.1:{port}"
        path = scope_runs.target(folder, store, url, keys, collections=NAMES, top_k=8, **more)
        return scope_runs.scope(path, "--rounds", "2")


def unexpected(found: dict[str, Any]) -> str:
    return str([one for one in found["tried"] if one["result"] != "NOTHING"] or found["findings"])


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
        tmp_path,
        "chroma",
        chroma,
        {"acme": "any key will do", "globex": "any other, too"},
        collections=names,
    )
    bare = scope_runs.scope(path, "--only", "cross-collection")
    assert ("cross-collection", "content") in scope_runs.found(bare)


def test_the_prover_and_its_surfaces_of_text_are_clean(
    make_scenario: Callable[..., ProverScenario], tmp_path: Path
) -> None:
    scenario = make_scenario()
    fill_documents(scenario, tmp_path)
    start(scenario, ["text"])
    for kind in ("prover", "openai", "dify", "mcp"):
        found = report(scenario, tmp_path, kind, dimension=None)
        assert found["result"] == "CLEAN", unexpected(found)
        assert found["controlled"] == ["acme", "globex"]
