"""Chat completions: what every client sends is taken, and what nobody can honour is refused."""

from typing import Any

from fastapi.testclient import TestClient
from surface_app import MemoryPort
from surface_calls import assert_shape

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
