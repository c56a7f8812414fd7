"""What is said of requests: never a query, whichever way it arrives."""

import json
import logging
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from ragaudit.serving.exchange import Exchange, begun
from ragaudit.serving.observed import Observed, Observer
from ragaudit.serving.settings import OperationSettings
from surface_app import MemoryPort, surface_app
from surface_calls import ASKING, CHROMA_KEY, HANDBOOK, MCP_HEADERS, ask, tool

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
