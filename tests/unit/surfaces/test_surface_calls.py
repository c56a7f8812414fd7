"""Every call of every surface: what comes back, what it costs, and how it says no."""

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from ragaudit.prover.surfaces.chroma import collection_id
from ragaudit.prover.surfaces.queries import PRIVATE_DISTANCE
from surface_app import KEYS, MemoryPort, surface_app
from surface_calls import (
    ASKING,
    BEARER,
    CHROMA_KEY,
    DATABASE,
    HANDBOOK,
    MANUAL,
    MCP_HEADERS,
    QDRANT_KEY,
    VECTOR,
    ask,
    receipts_of,
    tool,
)


@pytest.mark.parametrize("name", ASKING)
def test_an_answer_carries_its_receipt(api: TestClient, port: MemoryPort, name: str) -> None:
    answer = ask(api, name)
    assert answer.status_code == 200, answer.text
    assert receipts_of(name, answer) == ["w1.0"]
    if name != "mcp":
        assert answer.headers["Ragaudit-Receipt"] == "w1.0"
    [(account, query, _)] = port.asked
    assert account == KEYS["key-acme"]
    assert query.top_k == (10 if name == "mcp" else 2)


def test_a_search_by_vectors_may_say_so(api: TestClient) -> None:
    """OGX's and llama-stack's word for the only mode that there is."""
    assert ask(api, "openai", search_mode="vector").status_code == 200


@pytest.mark.parametrize("noised", [False, True])
def test_scores_are_exact_or_say_nothing(noised: bool) -> None:
    with TestClient(surface_app(MemoryPort(noised=noised))) as api:
        page = ask(api, "openai").json()["data"]
        shown = {
            "openai": [row["score"] for row in page],
            "dify": [row["score"] for row in ask(api, "dify").json()["records"]],
            "qdrant": [row["score"] for row in ask(api, "qdrant").json()["result"]["points"]],
        }
        [distances] = ask(api, "chroma").json()["distances"]
    if noised:
        assert all(scores == [1.0, 1.0] for scores in shown.values())
        assert distances == [PRIVATE_DISTANCE] * 2
    else:
        assert all(1 > scores[0] > scores[1] for scores in shown.values())
        assert distances == [1 - score for score in shown["qdrant"]]


def test_thresholds_cut_what_is_shown_where_scores_say_something(api: TestClient) -> None:
    scores = [row["score"] for row in ask(api, "openai", max_num_results=5).json()["data"]]
    between = (scores[1] + scores[2]) / 2
    answer = ask(api, "openai", max_num_results=5, ranking_options={"score_threshold": between})
    assert [row["score"] for row in answer.json()["data"]] == scores[:2]


def test_thresholds_of_a_private_window_change_nothing() -> None:
    with TestClient(surface_app(MemoryPort(noised=True))) as api:
        answer = ask(api, "openai", ranking_options={"score_threshold": 1.0, "ranker": "none"})
        assert len(answer.json()["data"]) == 2
        assert len(ask(api, "qdrant", score_threshold=0.99).json()["result"]["points"]) == 2


def test_each_vector_of_a_batch_is_a_query(api: TestClient, port: MemoryPort) -> None:
    answer = ask(api, "chroma", query_embeddings=[VECTOR, [1, 0, 0, 0], [0, 1, 0, 0]])
    assert answer.headers["Ragaudit-Receipt"] == "w1.0, w1.1, w1.2"
    assert [len(ids) for ids in answer.json()["ids"]] == [2, 2, 2]
    searches = [
        {"query": VECTOR, "limit": 1},
        {"query": {"nearest": [0, 0, 1, 0]}, "limit": 3, "score_threshold": -1},
    ]
    answer = api.post(
        "/collections/handbook/points/query/batch", json={"searches": searches}, headers=QDRANT_KEY
    )
    assert [len(one["points"]) for one in answer.json()["result"]] == [1, 3]
    answer = ask(api, "openai", query=["bread", "butter"], max_num_results=3)
    assert answer.json()["search_query"] == ["bread", "butter"]
    assert len(answer.json()["data"]) == 3
    assert len(port.asked) == 3 + 2 + 2
    assert [query.top_k for _, query, _ in port.asked] == [2, 2, 2, 1, 3, 3, 3]


def test_the_idempotency_key_is_passed_on(api: TestClient, port: MemoryPort) -> None:
    ask(api, "openai", {**BEARER, "Idempotency-Key": "k1"})
    ask(api, "openai")
    assert [key for _, _, key in port.asked] == ["k1", None]


def test_rows_are_shown_by_id_once_they_were_served(api: TestClient, port: MemoryPort) -> None:
    get, points = f"{HANDBOOK}/get", "/collections/handbook/points"
    every = [row.id for row in port.rows["acme"]] + [row.id for row in port.rows["globex"]]
    assert api.post(get, json={"ids": every}, headers=CHROMA_KEY).json()["ids"] == []
    shown = ask(api, "chroma").json()["ids"][0]
    found = api.post(
        get, json={"ids": [*reversed(shown), *every], "include": ["embeddings"]}, headers=CHROMA_KEY
    ).json()
    assert found["ids"] == shown[::-1] and found["documents"] is None
    assert [len(vector) for vector in found["embeddings"]] == [4, 4]
    result = api.post(points, json={"ids": every}, headers=QDRANT_KEY).json()["result"]
    assert {row["id"] for row in result} == set(shown)
    assert all(row["payload"]["page_content"].startswith("acme text") for row in result)
    one = api.get(f"{points}/{shown[0]}", headers=QDRANT_KEY)
    assert one.json()["result"]["payload"]["metadata"]["n"] == int(shown[0].split("-")[1])
    other = next(name for name in every if name not in shown)
    assert api.get(f"{points}/{other}", headers=QDRANT_KEY).status_code == 404
    assert fetched(api, shown[0])["structuredContent"]["text"].startswith("acme text")
    assert fetched(api, other)["isError"]
    # Each account for itself.
    headers = {"x-chroma-token": "key-globex"}
    assert api.post(get.replace(HANDBOOK, MANUAL), json={"ids": shown}, headers=headers).json()[
        "ids"
    ] == []  # fmt: skip


def fetched(api: TestClient, name: str) -> Any:
    return api.post("/mcp", json=tool("fetch", id=name), headers=MCP_HEADERS).json()["result"]


def test_counts_are_of_the_whole_index(api: TestClient) -> None:
    assert api.get(f"{HANDBOOK}/count", headers=CHROMA_KEY).json() == 30
    count = "/collections/handbook/points/count"
    assert api.post(count, json={"exact": True}, headers=QDRANT_KEY).json()["result"] == {
        "count": 30
    }
    given = {"filter": {"must": [{"key": "metadata.n", "match": {"value": 1}}]}}
    assert api.post(count, json=given, headers=QDRANT_KEY).status_code == 403


ENCODED = base64.b64encode(struct.pack("<4f", *VECTOR)).decode()
WRITES = {
    "add": {"ids": ["new"], "embeddings": [VECTOR], "documents": ["text"], "metadatas": [None]},
    "upsert": {"ids": ["new"], "embeddings": [ENCODED]},
    "update": {"ids": ["new"], "metadatas": [{"n": 1, "w": 0.5}], "embeddings": None},
    "delete": {"ids": ["new", "old"]},
}  # fmt: skip


@pytest.mark.parametrize("operation", WRITES)
def test_writes_pass_through(api: TestClient, port: MemoryPort, operation: str) -> None:
    body = WRITES[operation]
    answer = api.post(f"{HANDBOOK}/{operation}", json=body, headers=CHROMA_KEY)
    assert answer.status_code in (200, 201)
    assert port.written == [("acme", operation, body)]
    # How many of the ids there were is not said.
    assert answer.json() == ({"deleted": 2} if operation == "delete" else {})


@pytest.mark.parametrize(
    "body",
    [
        {"where": {"document_id": "a memo"}},  # LlamaIndex's name of what a row is a part of
        {"where": {"source": {"$in": ["a.pdf", "b.pdf"]}}, "limit": 7},
        {"where": {"$and": [{"year": {"$lt": 2000}}, {"draft": True}]}},
        {"ids": ["new", "old"], "where": {"n": {"$ne": 1}}},
        # Ids that name nothing, and a filter: Chroma deletes what both name.
        {"ids": [], "where": {"n": 1}},
    ],
)
def test_rows_are_deleted_by_a_filter(
    api: TestClient, port: MemoryPort, body: dict[str, Any]
) -> None:
    every = {"ids": None, "where": None, "where_document": None, **body}
    answer = api.post(f"{HANDBOOK}/delete", json=every, headers=CHROMA_KEY)
    # On any metadata, as a write is: columns are public or not for what is asked.
    assert port.written == [("acme", "delete", body)]
    # How many rows it took is not said.
    assert answer.status_code == 200 and answer.json() == {}


def test_collections_are_the_mapped_ones(api: TestClient) -> None:
    create = f"{DATABASE}/collections"
    body = {"name": "handbook", "get_or_create": True, "configuration": {"hnsw": {}}}
    made = api.post(create, json=body, headers=CHROMA_KEY).json()
    assert made["id"] == str(collection_id("handbook")) and made["dimension"] == 4
    assert api.get(f"{create}/handbook", headers=CHROMA_KEY).json() == made
    assert api.get(f"{create}/by-id/{made['id']}", headers=CHROMA_KEY).json() == made
    assert api.get(create, headers=CHROMA_KEY).json() == [made]
    assert api.get(f"{create}?limit=1&offset=1", headers=CHROMA_KEY).json() == []
    assert api.get(f"{DATABASE}/collections_count", headers=CHROMA_KEY).json() == 1
    refused = [
        api.post(create, json={"name": name, "get_or_create": True}, headers=CHROMA_KEY)
        for name in ("manual", "new", "Handbook")
    ]
    assert {answer.status_code for answer in refused} == {403}
    assert len({answer.text for answer in refused}) == 1
    assert api.post(create, json={"name": "handbook"}, headers=CHROMA_KEY).status_code == 409
    for place in ("tenants/acme", "tenants/default_tenant/databases/other"):
        assert api.get(f"/api/v2/{place}", headers=CHROMA_KEY).status_code == 404


def test_get_points_takes_no_selection_that_it_cannot_make(api: TestClient) -> None:
    answer = api.post(
        "/collections/handbook/points",
        json={"ids": [1], "with_payload": ["metadata.n"]},
        headers=QDRANT_KEY,
    )
    assert answer.status_code == 400


def test_payloads_may_be_flat_and_in_parts(port: MemoryPort) -> None:
    layout = {"content_key": "text", "metadata_key": None}
    with TestClient(surface_app(port, qdrant=layout)) as api:
        [point, _] = ask(api, "qdrant", with_payload=["text", "n"]).json()["result"]["points"]
        assert set(point["payload"]) == {"text", "n"}
        rest = ask(api, "qdrant", with_payload={"exclude": ["text"]}, with_vector=True)
        [point, _] = rest.json()["result"]["points"]
        assert set(point["payload"]) == {"n", "s", "w", "yes"} and len(point["vector"]) == 4
        filtered = {"must": [{"key": "n", "match": {"value": 7}}]}
        [point] = ask(api, "qdrant", filter=filtered).json()["result"]["points"]
        assert point["payload"]["n"] == 7


def test_the_mcp_surface_has_no_sessions_and_no_streams(api: TestClient) -> None:
    for method in ("GET", "DELETE", "PUT"):
        answer = api.request(method, "/mcp", headers=MCP_HEADERS)
        assert answer.status_code == 405
    answer = api.post(
        "/mcp", content=b"{", headers={**MCP_HEADERS, "Content-Type": "application/json"}
    )
    assert answer.status_code == 400 and "Traceback" not in answer.text
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tools = api.post("/mcp", json=listed, headers=MCP_HEADERS).json()["result"]["tools"]
    assert [each["name"] for each in tools] == ["search", "fetch"]


def test_what_dify_sends_beside_a_retrieval_is_passed_over(api: TestClient) -> None:
    plain = ask(api, "dify").json()["records"]
    assert plain
    setting = {"top_k": 2, "score_threshold": 0.0}
    for change in (
        {"user": "u-1"},
        {"surprise": {"any": ["thing"]}},
        {"retrieval_setting": {**setting, "search_method": "semantic_search", "weights": None}},
        {"retrieval_setting": {**setting, "reranking_enable": False}},
        {"retrieval_setting": {**setting, "score_threshold_enabled": True}},
        # Turned off, it leaves out no row, and none is refused for it.
        {
            "retrieval_setting": {
                "top_k": 2,
                "score_threshold": 1.1,
                "score_threshold_enabled": False,
            }
        },
    ):
        answer = ask(api, "dify", **change)
        assert answer.status_code == 200, (change, answer.text)
        assert answer.json()["records"] == plain, change
    for operator in ("contains", "not contains", "start with", "x" * 500):
        test = {"name": "s", "comparison_operator": operator, "value": "x"}
        answer = ask(api, "dify", metadata_condition={"conditions": [test]})
        assert answer.status_code == 400 and repr(operator[:32]) in answer.json()["error_msg"]
        assert len(answer.text) < 400
    # Beside a condition nothing is passed over: it could choose other rows.
    conditions: list[dict[str, Any]] = [
        {"conditions": [{"name": "s", "comparison_operator": "is", "value": "x", "negate": True}]},
        {"conditions": [], "groups": []},
    ]
    for condition in conditions:
        answer = ask(api, "dify", metadata_condition=condition)
        assert answer.status_code == 400 and "no such member" in answer.text
    answer = ask(api, "dify", retrieval_setting={**setting, "reranking_enable": True})
    assert answer.status_code == 403 and "reranking" in answer.text


def test_the_smallest_surface_stays_small() -> None:
    """What docs/surfaces.md says of a sixth one."""
    import ragaudit.prover.surfaces.dify as adapter

    code = Path(str(adapter.__file__)).read_text(encoding="utf-8").splitlines()
    assert len([line for line in code if line.strip()]) <= 130
