"""The description of a body names the members that its class takes, and demands the same ones."""

from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.bodies import Body
from ragaudit.verifier.service.bodies import SCHEMAS


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


@pytest.mark.parametrize("kind", SCHEMAS, ids=lambda kind: kind.__name__)
def test_a_described_body_is_taken(kind: type[Body]) -> None:
    schema = SCHEMAS[kind]
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
