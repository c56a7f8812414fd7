"""What is said of requests: never a query, whichever way it arrives."""

import json
import logging
from typing import Any

import pytest
from fastapi.testclient import TestClient
from ragaudit.serving.exchange import Exchange, begun
from surface_app import MemoryPort
from surface_calls import ASKING, MCP_HEADERS, ask, tool

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
