"""Calls of every surface, as applications make them, and the shapes in which they are refused."""

from typing import Any

from fastapi.testclient import TestClient
from ragaudit.prover.surfaces.chroma import collection_id

BEARER = {"Authorization": "Bearer key-acme"}
CHROMA_KEY = {"x-chroma-token": "key-acme"}
QDRANT_KEY = {"api-key": "key-acme"}
MCP_HEADERS = {**BEARER, "Accept": "application/json, text/event-stream"}
DATABASE = "/api/v2/tenants/default_tenant/databases/default_database"
HANDBOOK = f"{DATABASE}/collections/{collection_id('handbook')}"
MANUAL = f"{DATABASE}/collections/{collection_id('manual')}"
VECTOR = [0.5, 0.25, -1, 0]


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def dify(**more: Any) -> dict[str, Any]:
    setting = {"top_k": 2, "score_threshold": 0.0}
    return {"knowledge_id": "handbook", "query": "bread", "retrieval_setting": setting, **more}


# Every way to ask: path, headers, body.
ASKING: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "openai": (
        "/v1/vector_stores/handbook/search",
        BEARER,
        {"query": "bread", "max_num_results": 2},
    ),
    "chroma": (f"{HANDBOOK}/query", CHROMA_KEY, {"query_embeddings": [VECTOR], "n_results": 2}),
    "qdrant": (
        "/collections/handbook/points/query",
        QDRANT_KEY,
        {"query": VECTOR, "limit": 2, "with_payload": True},
    ),
    "mcp": ("/mcp", MCP_HEADERS, tool("search", query="bread")),
    "dify": ("/retrieval", BEARER, dify()),
}


def ask(api: TestClient, name: str, headers: dict[str, str] | None = None, **change: Any) -> Any:
    path, own, body = ASKING[name]
    return api.post(path, json={**body, **change}, headers=own if headers is None else headers)


def receipts_of(name: str, answer: Any) -> list[str]:
    body = answer.json()
    return list((body["result"]["_meta"] if name == "mcp" else body)["ragaudit_receipts"])


def assert_shape(name: str, answer: Any) -> None:
    """The error in the shape that the surface's clients read."""
    body = answer.json()
    assert "Traceback" not in answer.text and "ragaudit_receipts" not in body
    match name:
        case "openai":
            assert set(body) == {"error"} and set(body["error"]) == {
                "message", "type", "param", "code",
            }  # fmt: skip
        case "chroma":
            assert set(body) == {"error", "message"}
        case "qdrant":
            assert set(body) == {"status", "time"} and set(body["status"]) == {"error"}
        case "mcp":
            assert body["jsonrpc"] == "2.0" and ("error" in body or body["result"]["isError"])
        case "dify":
            assert set(body) == {"error_code", "error_msg"}
