"""All that a real server or client knows and nobody served on purpose is refused."""

import re
from importlib import resources
from typing import Any

import chroma_server
import httpx
import pytest
from fastapi.testclient import TestClient
from ragaudit.prover.surfaces.chroma import collection_id
from surface_app import MemoryPort

# What somebody looked at and serves: docs/surfaces.md says how much of it.
CHROMA_SERVED = {
    "GET /api/v2/auth/identity",
    "GET /api/v2/healthcheck",
    "GET /api/v2/heartbeat",
    "GET /api/v2/pre-flight-checks",
    "GET /api/v2/tenants/{}",
    "GET /api/v2/tenants/{}/databases/{}",
    "GET /api/v2/tenants/{}/databases/{}/collections",
    "GET /api/v2/tenants/{}/databases/{}/collections/by-id/{}",
    "GET /api/v2/tenants/{}/databases/{}/collections/{}",
    "GET /api/v2/tenants/{}/databases/{}/collections/{}/count",
    "GET /api/v2/tenants/{}/databases/{}/collections_count",
    "GET /api/v2/version",
    "POST /api/v2/tenants/{}/databases/{}/collections",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/add",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/delete",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/get",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/query",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/update",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/upsert",
}
QDRANT_SERVED = {
    "GET /",
    "GET /collections",
    "GET /collections/{}",
    "GET /collections/{}/exists",
    "GET /collections/{}/points/{}",
    "POST /collections/{}/points",
    "POST /collections/{}/points/count",
    "POST /collections/{}/points/query",
    "POST /collections/{}/points/query/batch",
}
# Of the service itself, not of Qdrant; they say nothing of any collection.
OWN = {"GET /healthz", "GET /readyz", "GET /livez", "GET /metrics"}
METHODS = ("get", "post", "put", "patch", "delete")
EVERYTHING: dict[str, Any] = {
    "ids": ["acme-1"], "where": {}, "include": ["documents", "embeddings"], "limit": 1000,
    "searches": [], "points": [], "name": "handbook", "new_name": "x",
}  # fmt: skip


def template(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def routes(api: TestClient, start: str) -> set[str]:
    """What our own description serves under a prefix."""
    paths = api.get("/openapi.json").json()["paths"]
    return {
        f"{method.upper()} {template(path)}"
        for path, methods in paths.items()
        for method in methods
        if path.startswith(start)
    }


def test_what_is_served_of_qdrant_is_what_was_looked_at(api: TestClient) -> None:
    assert routes(api, "/collections") | {"GET /"} == QDRANT_SERVED


def qdrant_calls() -> set[str]:
    """Every call of the client, by its own sources."""
    pytest.importorskip("qdrant_client", reason="qdrant-client is missing")
    found = set()
    for file in resources.files("qdrant_client.http.api").iterdir():
        if file.name.endswith(".py"):
            text = file.read_text(encoding="utf-8")
            for method, path in re.findall(r'method="(\w+)",\s+url="([^"]+)"', text):
                found.add(f"{method} {path}")
    assert len(found) > 60
    return found


def test_every_other_call_of_qdrants_client_is_refused(api: TestClient, port: MemoryPort) -> None:
    calls = qdrant_calls()
    templates = {f"{call.split()[0]} {template(call.split()[1])}" for call in calls}
    assert templates >= QDRANT_SERVED - {"GET /"}
    refused = 0
    for call in calls:
        method, path = call.split()
        if f"{method} {template(path)}" in QDRANT_SERVED | OWN:
            continue
        target = re.sub(r"\{\w+\}", "1", path.replace("{collection_name}", "handbook"))
        body = None if method == "GET" else EVERYTHING
        answer = api.request(method, target, json=body, headers={"api-key": "key-acme"})
        assert answer.status_code == 403, call
        assert set(answer.json()) == {"status", "time"}, call
        refused += 1
    assert refused > 50 and not port.asked and not port.written


def test_any_method_of_any_path_under_a_surface_is_refused(
    api: TestClient, port: MemoryPort
) -> None:
    paths = (
        "/api/v2", "/api/v2/", "/api/v1/collections", "/api/v2/new", "/api/v2/reset",
        "/collections/handbook/points/new/x", "/collections/handbook/", "/aliases", "/telemetry",
        "/vector_stores", "/v1/vector_stores/handbook/files", "/v1/vector_stores/handbook/search/",
        "/vector_stores/handbook/file_batches", "/v1/vector_stores/handbook/files/1/content",
        "/retrieval/", "/retrieval/x",
    )  # fmt: skip
    headers = {"api-key": "key-acme", "Authorization": "Bearer key-acme"}
    for path in paths:
        for method in (*METHODS, "head", "options"):
            answer = api.request(method, path, headers=headers)
            assert answer.status_code == 403, (method, path)
    assert not port.asked


@pytest.mark.slow
def test_every_route_of_a_real_chroma_server_is_served_on_purpose_or_refused(
    api: TestClient, port: MemoryPort
) -> None:
    program = chroma_server.program()
    if program is None:
        pytest.skip("chromadb is not installed")
    with chroma_server.ChromaServer(program) as server:
        real = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    known = {
        f"{method.upper()} {template(path)}"
        for path, methods in real.items()
        for method in methods
        if method in METHODS
    }
    assert len(known) > 30
    ours = routes(api, "/api/v")
    assert ours == CHROMA_SERVED
    # One of ours that no server has any more would be one that nobody tests.
    assert known >= ours
    for call in sorted(known - CHROMA_SERVED):
        method, path = call.split()
        target = path
        for value in ("default_tenant", "default_database", str(collection_id("handbook")), "x"):
            target = target.replace("{}", value, 1)
        body = None if method == "GET" else EVERYTHING
        answer = api.request(method, target, json=body, headers={"x-chroma-token": "key-acme"})
        assert answer.status_code == 403, call
        assert set(answer.json()) == {"error", "message"}, call
    assert not port.asked and not port.written
