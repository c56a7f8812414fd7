"""Requests made from the surfaces' own description: an answer in the surface's form, or a refusal
that costs nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ragaudit.prover.surfaces.chroma import DATABASE, TENANT, collection_id
from schemathesis import GenerationMode
from surface_app import MemoryPort, surface_app
from surface_calls import MCP_HEADERS, assert_shape

pytestmark = pytest.mark.slow
EXAMPLES = 25
KEYS = {**MCP_HEADERS, "x-chroma-token": "key-acme", "api-key": "key-acme"}
# Names that exist: with others every call would end at the path.
NAMES = {
    "store": "handbook",
    "collection_name": "handbook",
    "tenant": TENANT,
    "database": DATABASE,
    "collection_id": str(collection_id("handbook")),
}
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
PORT = MemoryPort()
SCHEMA = schemathesis.openapi.from_dict(surface_app(PORT).openapi())
OPERATIONS: list[Any] = [
    each.ok()  # type: ignore[union-attr]
    for each in SCHEMA.get_all_operations()
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(surface_app(PORT), raise_server_exceptions=False) as made:
        yield made


def test_the_description_has_every_surface() -> None:
    assert {each.tags[0] for each in OPERATIONS} == {"openai", "chroma", "qdrant", "dify"}
    assert len(OPERATIONS) == 4 + 19 + 9 + 1 + 2


def call(client: TestClient, case: Any) -> Any:
    """Send a case; as it is drawn, but for the names in its path."""
    path = case.operation.path
    for name, value in (case.path_parameters or {}).items():
        path = path.replace(f"{{{name}}}", NAMES.get(name) or _quoted(value))
    body = case.body if isinstance(case.body, dict | list | str | int | float | None) else None
    return client.request(
        case.operation.method.upper(), path, params=case.query, json=body, headers=KEYS
    )


def _quoted(value: Any) -> str:
    return "".join(f"%{byte:02x}" for byte in str(value).encode("utf-8", "replace")) or "x"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_any_call_is_answered_in_the_surfaces_form(client: TestClient, operation: Any) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of([operation.as_strategy(generation_mode=mode) for mode in MODES]))
    def check(case: Any) -> None:
        before = (len(PORT.asked), len(PORT.written))
        answer = call(client, case)
        assert answer.status_code < 500, answer.text
        if answer.status_code < 400:
            json.loads(answer.text)
            return
        assert_shape(operation.tags[0], answer)
        # Nothing is logged, charged or written by a call that is refused.
        assert (len(PORT.asked), len(PORT.written)) == before

    check()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(params=VALUES, method=st.sampled_from(["tools/call", "tools/list", "initialize", "x"]))
def test_any_message_of_mcp_is_answered(params: Any, method: str) -> None:
    before = len(PORT.asked)
    with TestClient(surface_app(PORT), raise_server_exceptions=False) as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = client.post("/mcp", content=_text(message), headers={**KEYS, **_JSON})
    assert answer.status_code < 500 and "Traceback" not in answer.text
    assert len(PORT.asked) == before


_JSON = {"Content-Type": "application/json"}


def _text(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=True, allow_nan=False).encode()
