"""Every call of every surface: what comes back, what it costs, and how it says no."""

from __future__ import annotations

import base64
import importlib
import json
import logging
import pkgutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from memory_taken import peak
from pydantic import TypeAdapter
from ragaudit.encoding import json_structure
from ragaudit.encoding.errors import MalformedError, MalformedRequest
from ragaudit.encoding.json_structure import check_structure
from ragaudit.prover import surfaces
from ragaudit.prover.surfaces.chroma import collection_id
from ragaudit.prover.surfaces.dialects import MAX_MEMBERS, Body, read_member
from ragaudit.prover.surfaces.queries import PRIVATE_DISTANCE
from ragaudit.serving.exchange import Exchange, begun
from ragaudit.serving.observed import Observed, Observer
from ragaudit.serving.settings import OperationSettings
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
    assert_shape,
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


# Chat completions: what every client sends is taken, and what nobody can honour is refused.

PATH = "/v1/chat/completions"
HEADERS = {"Authorization": "Bearer key-acme"}
BODY = {"model": "handbook", "messages": [{"role": "user", "content": "why?"}]}


def test_settings_that_change_nothing_are_taken_and_named(
    api: TestClient, port: MemoryPort
) -> None:
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({}, ()),
        ({"n": 1, "stream": False}, ()),
        ({"n": None, "stream": None, "temperature": None, "user": None}, ()),
        ({"temperature": 0}, ("temperature",)),
        ({"temperature": 0.7, "seed": -1}, ("seed", "temperature")),
        ({"max_tokens": 5, "max_completion_tokens": 5}, ("max_completion_tokens", "max_tokens")),
        ({"top_p": 1.0, "user": "u-1"}, ("top_p", "user")),
        ({"tools": [], "tool_choice": "none", "logprobs": False, "stop": None}, ()),
        ({"response_format": {"type": "text"}}, ()),
    ]
    for more, ignored in cases:
        answer = api.post(PATH, json={**BODY, **more}, headers=HEADERS)
        assert answer.status_code == 200, (more, answer.text)
        assert port.ignored[-1] == ignored, more
    assert len(port.ignored) == len(cases)


def test_another_kind_of_answer_is_refused_by_name(api: TestClient, port: MemoryPort) -> None:
    function = {"type": "function", "function": {"name": "f"}}
    cases: list[tuple[str, Any, int]] = [
        ("n", 2, 403),
        ("stream", True, 403),
        ("tools", [function], 403),
        ("tool_choice", "auto", 403),
        ("parallel_tool_calls", True, 403),
        ("functions", [{"name": "f"}], 403),
        ("function_call", "auto", 403),
        ("logprobs", True, 403),
        ("top_logprobs", 3, 403),
        ("response_format", {"type": "json_object"}, 403),
        ("stop", ["\n"], 403),
        # Of no possible value, or nobody's.
        ("n", 0, 400),
        ("n", "1", 400),
        ("temperature", 3, 400),
        ("temperature", "0", 400),
        ("top_p", -0.1, 400),
        ("max_tokens", 0, 400),
        ("max_completion_tokens", 1.5, 400),
        ("seed", "x", 400),
        ("user", 7, 400),
        ("stream", "no", 400),
        ("frequency_penalty", 0.5, 400),
        ("modalities", ["audio"], 400),
        ("surprise", None, 400),
    ]
    for name, value, status in cases:
        answer = api.post(PATH, json={**BODY, name: value}, headers=HEADERS)
        assert answer.status_code == status, (name, value, answer.text)
        assert name in answer.text, (name, answer.text)
        assert_shape("openai", answer)
    assert not port.ignored, "something was asked"


# What an application puts into the lists of a surface's bodies takes memory in proportion.

ITEMS: tuple[Any, ...] = (
    1, 0.125, 123456789, "ab", "abcdefghijklmn", None, [], {}, {"a": 1}, [1] * 99, ["ab" * 9] * 9,
)  # fmt: skip
COUNT = 1000
# Beside the JSON's own, for a byte: the library makes each list anew.
MODEL = 8


def bodies() -> list[type[Body]]:
    """Every class of a body, or of a part of one, of every surface."""
    for module in pkgutil.walk_packages(surfaces.__path__, f"{surfaces.__name__}."):
        importlib.import_module(module.name)
    found, new = set(), {Body}
    while new:
        new = {kind for parent in new for kind in parent.__subclasses__()}
        found |= new
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def hostile(kind: type[Body]) -> Iterator[tuple[str, Any]]:
    for name, field in kind.model_fields.items():
        for item in ITEMS:
            yield name, {field.alias or name: [item] * COUNT}
            yield name, {field.alias or name: [[item] * COUNT]}
        # Long enough that such an object may be long.
        members = {f"a member of a name with {number:6d}": 0 for number in range(COUNT)}
        yield f"members of {name}", {field.alias or name: members}
    yield "unknown members", {f"member {number}": 0 for number in range(COUNT)}


def test_memory_is_bounded_by_the_bytes_received(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that what is tried here, which is short, is what a long body may be.
    monkeypatch.setattr(json_structure, "SPARE_BYTES", 0)
    kinds = bodies()
    assert len(kinds) > 10
    for kind in kinds:
        adapter = TypeAdapter(kind)
        for name, document in hostile(kind):

            def read(document: Any = document, adapter: Any = adapter) -> object:
                with suppress(MalformedRequest):
                    return read_member(adapter, document, "body")
                return None

            data = json.dumps(document, separators=(",", ":")).encode()
            try:
                check_structure(data)
            except MalformedError:
                continue
            size = len(data)
            read()  # what is made at a first time is no memory of a body
            allowed = MODEL * size + 2**15
            taken = peak(read, allowed)
            assert taken <= allowed, f"{kind.__name__}.{name}: {taken / size:.1f}"


def test_members_are_counted_before_they_are_named() -> None:
    class Known(Body):
        name: str = ""

    adapter = TypeAdapter(Known)
    members = {f"member {number}": 0 for number in range(MAX_MEMBERS + 1)}
    with pytest.raises(MalformedRequest, match="too many members"):
        read_member(adapter, members, "body")


# What is said of requests: never a query, whichever way it arrives.

SECRET = "the merger with Initech"


def odd_messages() -> list[bytes]:
    """Messages to the endpoint of MCP that hold a query, and are wrong in one way each."""
    good = tool("search", query=SECRET)
    wrong: list[Any] = [
        {**good, "params": {"name": SECRET, "arguments": {}}},
        {**good, "params": {"name": "search", "arguments": {"query": [SECRET]}}},
        {**good, "params": {"name": "search", "arguments": {SECRET: SECRET}}},
        {**good, "params": {"name": ["search"], "arguments": SECRET}},
        {**good, "method": SECRET},
        {**good, "method": f"notifications/{SECRET}"},
        {**good, "id": [SECRET]},
        {**good, "jsonrpc": SECRET},
        [good, good],
        SECRET,
        {"jsonrpc": "2.0", "id": 7, "result": {"text": SECRET}},
    ]
    return [*(json.dumps(each).encode() for each in wrong), b'{"query": "' + SECRET.encode()]


@pytest.mark.parametrize("message", odd_messages())
def test_odd_messages_are_not_logged(
    api: TestClient, port: MemoryPort, caplog: pytest.LogCaptureFixture, message: bytes
) -> None:
    with caplog.at_level(logging.DEBUG):
        headers = {**MCP_HEADERS, "Content-Type": "application/json"}
        answer = api.post("/mcp", content=message, headers=headers)
    assert answer.status_code < 500
    assert SECRET not in caplog.text and not port.asked


@pytest.mark.parametrize("name", ["openai", "dify", "mcp"])
def test_queries_are_not_logged(
    api: TestClient, port: MemoryPort, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    path, headers, body = ASKING[name]
    text = json.dumps(body).replace("bread", SECRET)
    with caplog.at_level(logging.DEBUG):
        given = {**headers, "Content-Type": "application/json"}
        assert api.post(path, content=text, headers=given).status_code == 200
    assert port.asked and SECRET not in caplog.text


def test_an_error_that_mcp_calls_a_result_is_counted_as_one(api: TestClient) -> None:
    exchange = Exchange()
    with begun(exchange):
        answer = api.post("/mcp", json=tool("fetch", id="acme-1"), headers=MCP_HEADERS)
    assert answer.status_code == 200 and answer.json()["result"]["isError"]
    assert exchange.reason == "not-found"
    assert ask(api, "mcp").status_code == 200


def test_each_write_is_a_line_of_the_audit_stream(port: MemoryPort, tmp_path: Path) -> None:
    stream = tmp_path / "audit.jsonl"
    delegation = {"accounts": ["ada"], "register_tenants": ["acme"]}
    app = surface_app(
        port,
        writes={"accounts": ["ada"], "users": {"ada": ["grace"]}},
        delegation=delegation,
    )
    row = {"ids": ["a", "b"], "documents": [SECRET, SECRET]}
    where = {"n": 11}
    calls: list[tuple[str, Any, str, str, int]] = [
        ("add", row, "", "creation", 2),
        ("upsert", row, "grace", "change", 2),
        ("update", row, "hedy", "access", 0),  # who may not
        ("delete", {"ids": ["a"]}, "", "deletion", 1),
        ("delete", {"where": where}, "", "deletion", 0),
        ("delete", {"ids": [SECRET], "where": where}, "", "deletion", 1),
        ("delete", {}, "", "access", 0),  # nothing
    ]
    settings = OperationSettings(audit_file=stream)
    with Observer(settings, service="ragaudit-prover", name="example.org") as observer:
        app.add_middleware(Observed, observer=observer)
        with TestClient(app) as api:
            for operation, body, user, _, _ in calls:
                headers = {**CHROMA_KEY, **({"Ragaudit-User": user} if user else {})}
                api.post(f"{HANDBOOK}/{operation}", json=body, headers=headers)
    lines = stream.read_text().splitlines()
    assert SECRET not in stream.read_text()
    filters = set()
    for line, (operation, body, user, kind, count) in zip(lines, calls, strict=True):
        event = json.loads(line)
        name = {"name": "ada", "effective": {"name": user}} if user else {"name": "ada"}
        assert event["user"] == name and event["organization"] == {"name": "acme"}
        assert event["event"]["type"][0] == kind, (operation, body)
        written = event["ragaudit"].get("write")
        if kind == "access":
            assert written is None and event["event"]["outcome"] == "failure"
            continue
        assert event["event"]["outcome"] == "success" and written["operation"] == operation
        ids = [sha256(each.encode()).hexdigest() for each in body.get("ids", [])]
        assert written["ids"] == ids and len(ids) == count
        assert ("where" in written) == ("where" in body)
        filters |= {written["where"]} if "where" in written else set()
    assert len(filters) == 1 and len(next(iter(filters))) == 64
