"""How every surface says no: in its own shape, before anything is logged or charged."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.surfaces.chroma import collection_id
from surface_app import MemoryPort, surface_app
from surface_calls import (
    ASKING,
    CHROMA_KEY,
    HANDBOOK,
    MANUAL,
    QDRANT_KEY,
    VECTOR,
    ask,
    assert_shape,
)


@pytest.mark.parametrize("name", ASKING)
def test_who_has_no_key_is_told_so_in_the_surfaces_shape(
    api: TestClient, port: MemoryPort, name: str
) -> None:
    for headers in (
        {},
        {"Authorization": "Basic x"},
        {"Authorization": "Bearer nobody", "x-chroma-token": "nobody", "api-key": "nobody"},
    ):
        answer = ask(api, name, headers)
        assert answer.status_code == 401 and "WWW-Authenticate" in answer.headers
        assert_shape(name, answer)
    assert not port.asked


@pytest.mark.parametrize("name", ["openai", "chroma", "qdrant", "dify"])
def test_bad_bodies_cost_nothing(api: TestClient, port: MemoryPort, name: str) -> None:
    path, headers, body = ASKING[name]
    for content in (
        b"", b"[]", b"not JSON", b'{"query": NaN}', b'{"a": 1, "a": 1}', b"\xff", b'"x"', b"{}",
        b"[" * 10_000,
    ):  # fmt: skip
        answer = api.post(
            path, content=content, headers={**headers, "Content-Type": "application/json"}
        )
        assert answer.status_code in (400, 403), answer.text
        assert_shape(name, answer)
    if name != "dify":
        answer = api.post(path, json={**body, "surprise": None}, headers=headers)
        assert answer.status_code == 400 and "no such member" in answer.text
    answer = api.post(path, json=body, headers={**headers, "Content-Type": "text/plain"})
    assert answer.status_code == 400
    answer = api.post(f"{path}?surprise=1", json=body, headers=headers)
    assert answer.status_code == 400 and "no such parameter" in answer.text
    assert not port.asked


ROW = {"ids": ["new"], "embeddings": [VECTOR]}

REFUSED: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"rewrite_query": True},
        {"search_mode": "keyword"},
        {"search_mode": "hybrid"},
        {"ranking_options": {"ranker": "default-2024-11-15"}},
        {"ranking_options": {"ranker": "auto", "hybrid_search": {"embedding_weight": 1}}},
        {"ranking_options": {"score_threshold": 1.5}},
        {"max_num_results": 0},
        {"max_num_results": 51},
        {"max_num_results": 21},
        {"max_num_results": "5"},
        {"max_num_results": True},
        {"query": ""},
        {"query": []},
        {"query": ["bread"] * 17},
        {"query": ["bread", ""]},
        {"query": 1},
        {"filters": {"type": "eq", "key": "secret", "value": "x"}},
        {"filters": {"type": "eq", "key": "n", "value": "x"}},
        {"filters": {"type": "gt", "key": "s", "value": "x"}},
    ],
    "chroma": [
        {"where_document": {"$contains": "salary"}},
        {"ids": ["acme-1"]},
        {"ids": []},
        {"where": {"secret": "x"}},
        {"where": {"n": "x"}},
        {"where": {"s": {"$gt": "x"}}},
        {"where": {"n": {"$contains": 1}}},
        {"query_embeddings": []},
        {"query_embeddings": [[]]},
        {"query_embeddings": [[1, 2, 3]]},
        {"query_embeddings": [VECTOR, [1, 2, 3]]},
        {"query_embeddings": [VECTOR] * 17},
        {"query_embeddings": [[1e39, 0, 0, 0]]},
        {"query_texts": ["bread"]},
        {"n_results": 0},
        {"n_results": 21},
        {"include": ["data"]},
    ],
    "qdrant": [
        {"prefetch": {"query": VECTOR}},
        {"prefetch": [{"query": VECTOR}, {"query": VECTOR}]},
        {"query": {"fusion": "rrf"}},
        {"query": {"recommend": {"positive": [1]}}},
        {"query": {"discover": {"target": 1, "context": []}}},
        {"query": {"nearest": VECTOR, "mmr": {}}},
        {"query": {"order_by": "n"}},
        {"query": {"sample": "random"}},
        {"query": 7},
        {"query": "acme-1"},
        {"query": None},
        {"query": [VECTOR]},
        {"query": [1, 2, 3]},
        {"using": "title"},
        {"offset": 1},
        {"lookup_from": {"collection": "manual"}},
        {"score_threshold": 1.01},
        {"params": {"indexed_only": True}},
        {"with_vector": ["title"]},
        {"with_payload": ["metadata.n"]},
        {"with_payload": {"both": []}},
        {"limit": 0},
        {"limit": 21},
        {"filter": {"must": [{"key": "metadata.secret", "match": {"value": "x"}}]}},
        {"filter": {"must": [{"key": "page_content", "match": {"text": "salary"}}]}},
    ],
    "dify": [
        {"query": ""},
        {"retrieval_setting": {"top_k": 0, "score_threshold": 0.0}},
        {"retrieval_setting": {"top_k": 21, "score_threshold": 0.0}},
        {"retrieval_setting": {"top_k": 2, "score_threshold": 1.1}},
        {"retrieval_setting": {"top_k": 2, "reranking": True}},
        {"metadata_condition": {"conditions": [{"name": "s", "comparison_operator": "empty"}]}},
    ],
    "mcp": [
        {"params": {"name": "search", "arguments": {"query": "bread", "top_k": 100}}},
        {"params": {"name": "search", "arguments": {}}},
        {"params": {"name": "search"}},
        {"params": {"name": "search", "arguments": {"query": 1}}},
        {"params": {"name": "search", "arguments": {"query": ""}}},
        {"params": {"name": "drop", "arguments": {"query": "bread"}}},
        {"params": {"name": "fetch", "arguments": {"id": "acme-1"}}},
        {"method": "tools/nothing"},
    ],
}


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name, some in REFUSED.items() for change in some]
)
def test_what_is_not_served_costs_nothing(
    api: TestClient, port: MemoryPort, name: str, change: dict[str, Any]
) -> None:
    answer = ask(api, name, **change)
    if name != "mcp":
        assert answer.status_code in (400, 403), answer.text
    assert_shape(name, answer)
    assert not port.asked


def others(name: str) -> list[tuple[str, dict[str, Any]]]:
    """The same call for the other tenant's collection, and for variants of the own one's name."""
    path, _, body = ASKING[name]
    names = ["manual", "Handbook", "HANDBOOK", "handbook ", "handbo\u043ek", "handb%6Fok%00", "x"]
    if name == "dify":
        return [(path, {**body, "knowledge_id": each}) for each in names]
    if name == "chroma":
        own = str(collection_id("handbook"))
        variants = [str(collection_id("manual")), own.upper(), own.replace("-", ""), "handbook"]
        return [(path.replace(own, each), body) for each in variants]
    return [(path.replace("handbook", each), body) for each in names]


@pytest.mark.parametrize("name", ["openai", "chroma", "qdrant", "dify"])
def test_other_collections_do_not_exist(api: TestClient, port: MemoryPort, name: str) -> None:
    texts = set()
    for path, body in others(name):
        answer = api.post(path, json=body, headers=ASKING[name][1])
        assert answer.status_code == 404, answer.text
        assert_shape(name, answer)
        texts.add(answer.text)
    # Another tenant's collection and none at all cannot be told apart.
    assert len(texts) == 1 and not port.asked


def test_without_a_mapping_there_is_nothing(port: MemoryPort) -> None:
    with TestClient(surface_app(port, collections={"manual": "globex"})) as api:
        for name in ("openai", "chroma", "qdrant", "dify"):
            assert ask(api, name).status_code == 404
        assert ask(api, "mcp").json()["result"]["isError"]
        assert api.get("/collections", headers=QDRANT_KEY).json()["result"] == {"collections": []}
    assert not port.asked


def test_surfaces_that_are_not_enabled_are_not_there(port: MemoryPort) -> None:
    with TestClient(surface_app(port, enabled=["dify"])) as api:
        assert ask(api, "dify").status_code == 200
        for name in ("openai", "chroma", "qdrant", "mcp"):
            answer = ask(api, name)
            assert answer.status_code == 404
            assert answer.headers["Content-Type"] == "application/problem+json"


def test_one_bad_query_of_a_batch_costs_nothing(api: TestClient, port: MemoryPort) -> None:
    answer = api.post(
        "/collections/handbook/points/query/batch",
        json={"searches": [{"query": VECTOR}, {"query": VECTOR, "limit": 21}]},
        headers=QDRANT_KEY,
    )
    assert answer.status_code == 400
    assert_shape("qdrant", answer)
    assert not port.asked


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": []},
        {"where": {"n": 1}},
        {"ids": ["acme-1"], "where": {"n": 1}},
        {"ids": ["acme-1"], "where_document": {"$contains": "salary"}},
        {"limit": 10},
        {"ids": ["acme-1"], "limit": 1},
        {"ids": ["acme-1"], "offset": 1},
    ],
)
def test_a_collection_is_not_read(api: TestClient, body: dict[str, Any]) -> None:
    answer = api.post(f"{HANDBOOK}/get", json=body, headers=CHROMA_KEY)
    assert answer.status_code == 403
    assert_shape("chroma", answer)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("delete", {}),
        ("delete", {"ids": []}),
        ("delete", {"where": {}}),
        ("delete", {"ids": [], "where": {}}),
        ("delete", {"where": {"a": 1, "b": 2}}),
        ("delete", {"where": {"n": {"$gt": 1, "$lt": 5}}}),
        ("delete", {"where": {"n": {"$contains": "x"}}}),
        ("delete", {"where": {"#document": {"$contains": "salary"}}}),
        ("delete", {"where": {"$or": [{"n": 1}, {"#document": {"$regex": "s.*"}}]}}),
        ("delete", {"where": {"#embedding": 1}}),
        ("delete", {"where": {"$not": [{"n": 1}]}}),
        ("delete", {"where": {"n": None}}),
        ("delete", {"where": {"n": {"$in": list(range(10_000))}}}),
        ("delete", {"where": {"$or": [{"n": number} for number in range(1_000)]}}),
        ("delete", {"where": {"n": 1}, "limit": 0}),
        ("delete", {"where": {"n": 1}, "where_document": {"$contains": "salary"}}),
        ("delete", {"ids": ["a"], "where_document": {"$contains": "salary"}}),
        ("delete", {"where": {"n": 1}, "include": ["documents"]}),
        ("add", {"ids": []}),
        ("add", {"ids": ["a"], "collection": "manual"}),
        ("add", {"ids": [1]}),
        ("upsert", {"ids": ["a"] * 251}),
        ("delete", {"ids": ["a"] * 251}),
    ],
)
def test_writes_that_are_refused(
    api: TestClient, port: MemoryPort, operation: str, body: dict[str, Any]
) -> None:
    answer = api.post(f"{HANDBOOK}/{operation}", json=body, headers=CHROMA_KEY)
    assert answer.status_code in (400, 403)
    assert_shape("chroma", answer)
    assert not port.written


def test_only_who_is_listed_writes(port: MemoryPort) -> None:
    delegation = {"accounts": ["ada"], "register_tenants": ["acme"]}
    for writes, user, status in (
        (False, None, 403),
        ({}, None, 403),
        ({"accounts": ["bob"]}, None, 403),
        ({"users": {"ada": ["grace"]}}, None, 403),
        ({"accounts": ["ada"]}, None, 201),
        # An end user has no right of the account's that names it, nor of another one's user.
        ({"accounts": ["ada", "grace"]}, "grace", 403),
        ({"accounts": ["ada"], "users": {"bob": ["grace"], "ada": ["hedy"]}}, "grace", 403),
        ({"users": {"ada": ["Grace"]}}, "grace", 403),
        ({"users": {"ada": ["grace"]}}, "grace", 201),
    ):
        port.written.clear()
        headers = CHROMA_KEY if user is None else {**CHROMA_KEY, "Ragaudit-User": user}
        with TestClient(surface_app(port, writes=writes, delegation=delegation)) as api:
            for operation, body in (
                ("add", ROW), ("upsert", ROW), ("update", ROW),
                ("delete", {"ids": ["a"]}), ("delete", {"where": {"n": 1}}),
            ):  # fmt: skip
                answer = api.post(f"{HANDBOOK}/{operation}", json=body, headers=headers)
                written = 201 if operation == "add" else 200
                wanted = 403 if status == 403 else written
                assert answer.status_code == wanted, (writes, user, operation, answer.text)
            if status == 403:
                assert "surfaces.writes" in answer.text
        assert len(port.written) == (0 if status == 403 else 5), (writes, user)


def test_without_the_setting_nobody_writes_and_it_is_a_list() -> None:
    assert SurfaceSettings().writes is False
    others: list[Any] = [True, "yes", 1, ["ada"], {"accounts": "ada"}, {"users": ["grace"]}]
    for wrong in (*others, {"all": []}):
        with pytest.raises(ValueError, match=r"lists of accounts and users|writes\.WriteSettings"):
            SurfaceSettings.model_validate({"writes": wrong})


def test_writes_reach_the_own_tenant_only(api: TestClient, port: MemoryPort) -> None:
    answer = api.post(f"{MANUAL}/add", json=ROW, headers=CHROMA_KEY)
    assert answer.status_code == 404 and not port.written


def test_numbers_beyond_a_double_are_not_written(api: TestClient, port: MemoryPort) -> None:
    body = b'{"ids": ["a"], "embeddings": [[1e999, 0, 0, 0]], "metadatas": [{"n": -1e999}]}'
    headers = {**CHROMA_KEY, "Content-Type": "application/json"}
    answer = api.post(f"{HANDBOOK}/add", content=body, headers=headers)
    assert answer.status_code == 400 and not port.written


def test_ids_that_are_asked_for_are_bounded(api: TestClient) -> None:
    ids = [str(n) for n in range(1001)]
    answer = api.post(f"{HANDBOOK}/get", json={"ids": ids}, headers=CHROMA_KEY)
    assert answer.status_code == 400
    assert_shape("chroma", answer)
    answer = api.post("/collections/handbook/points", json={"ids": ids}, headers=QDRANT_KEY)
    assert answer.status_code == 400
    assert_shape("qdrant", answer)
