"""The description of a body names the members that its class takes, and demands the same ones."""

from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages import bodies
from ragaudit.ledger.messages.bodies import (
    LONGEST,
    SHORT_BYTES,
    Body,
    CloseBody,
    CosignedBody,
    EntriesBody,
    OpeningBody,
    RecordsBody,
    RoundBody,
    StampsBody,
)
from verifier_service_harness import VerifierScenario, problem_of


def sample(schema: dict[str, Any]) -> Any:
    """A value that the schema allows, with every member that it names."""
    if "examples" in schema:
        return schema["examples"][0]
    if "anyOf" in schema:
        return sample(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: sample(member) for name, member in schema.get("properties", {}).items()}
    if schema["type"] == "array":
        return [sample(schema["items"])]
    if schema["type"] == "integer":
        return schema["minimum"]
    return "00" * 32


KINDS = [
    kind for kind in vars(bodies).values() if isinstance(kind, type) and issubclass(kind, Body)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_described_body_is_taken(kind: type[Body]) -> None:
    schema = kind.schema()
    value = sample(schema)
    assert kind.from_json(value).to_json() == value
    assert schema["additionalProperties"] is False
    for name in schema["properties"]:
        less = {key: member for key, member in value.items() if key != name}
        if name not in schema["required"]:
            assert kind.from_json(less).to_json() == less
            continue
        with pytest.raises(MalformedError, match="missing member"):
            kind.from_json(less)


SIGNED: dict[type[Body], tuple[str, str]] = {
    EntriesBody: ("POST", "entries"),
    CosignedBody: ("POST", "cosigned"),
    StampsBody: ("POST", "time-stamps"),
    CloseBody: ("POST", "close"),
    RecordsBody: ("POST", "records"),
    RoundBody: ("POST", "rounds"),
    OpeningBody: ("POST", "countersign"),
}


def test_a_providers_body_is_no_longer_than_its_call_needs(scenario: VerifierScenario) -> None:
    scenario.register()
    calls = {
        path: (method, LONGEST.get(kind, SHORT_BYTES)) for kind, (method, path) in SIGNED.items()
    }
    calls["challenge"] = calls["records/parts"] = calls["claims"] = ("GET", SHORT_BYTES)
    for path, (method, most) in calls.items():
        answer = scenario.send(method, f"/v1/windows/w1/{path}", b" " * (most + 1))
        assert problem_of(answer, 413, "too-large")["expected"] == f"at most {most} bytes", path
        answer = scenario.send(method, f"/v1/windows/w1/{path}", b" " * most)
        assert answer.status_code != 413, path


def test_packed_bodies_are_refused_whoever_sends_them(scenario: VerifierScenario) -> None:
    scenario.register()
    for path, body in (("receipts", b"{}"), ("entries", b'{"entries":[]}')):
        target = f"/v1/windows/w1/{path}"
        headers = {**scenario.headers("POST", target, body), "Content-Encoding": "gzip"}
        answer: Any = scenario.client.post(target, content=body, headers=headers)
        problem_of(answer, 415, "unsupported-coding")
