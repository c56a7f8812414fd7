"""The calls of a query are read as every other call: who, path, body; and are documented so."""

from typing import Any

import pytest

CALLS = ("query", "promise", "reveal")
JSON = {"Content-Type": "application/json"}


def send(
    scenario: Any, content: bytes, *, call: str = "query", window: str = "w1", **headers: str
) -> Any:
    path = f"/v1/windows/{window}/{call}"
    return scenario.api.post(path, content=content, headers={**JSON, **headers})


@pytest.mark.parametrize("call", CALLS)
def test_who_calls_is_asked_first(open_scenario: Any, call: str) -> None:
    for headers in ({}, {"Authorization": "Basic x"}, {"Authorization": "Bearer nobody"}):
        answer = send(open_scenario, b"not JSON", call=call, window="NO", **headers)
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"not JSON", "body"),
        (b'{"counter": 1, "counter": 1}', "body"),
        (b'{"counter": 1.5}', "body"),
        (b'{"counter": "1"}', "body."),
        (b'{"more": 1}', "body."),
    ],
)
def test_bodies_that_are_none(open_scenario: Any, call: str, content: bytes, where: str) -> None:
    answer = send(open_scenario, content, call=call, **open_scenario.headers("ada"))
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:ragaudit:problem:malformed-request"
    assert answer.json()["where"].startswith(where)


def test_what_is_not_said_to_be_json_is_not_read_as_such(open_scenario: Any) -> None:
    content = b'{"query": "bread", "top_k": 2, "filter": ""}'
    plain = {"Content-Type": "text/plain"}
    answer = send(open_scenario, content, **open_scenario.headers("ada"), **plain)
    assert answer.status_code == 400


def test_the_path_is_checked_before_the_body(open_scenario: Any) -> None:
    answer = send(open_scenario, b"not JSON", window="NO", **open_scenario.headers("ada"))
    assert answer.status_code == 400 and answer.json()["where"] == "path.window"


def test_the_calls_are_documented(open_scenario: Any) -> None:
    paths = open_scenario.api.get("/openapi.json").json()["paths"]
    for call in CALLS:
        shown = paths[f"/v1/windows/{{window}}/{call}"]["post"]
        assert shown["security"] == [{"account": []}]
        assert shown["requestBody"]["required"] is True
