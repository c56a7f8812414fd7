"""JSON bodies of the service's calls: the ledger's classes, and how OpenAPI describes them."""

from typing import TypeVar

from ragaudit.encoding.errors import MalformedError, MalformedRequest
from ragaudit.ledger.messages.bodies import Body
from ragaudit.ledger.messages.kernel import OBJECT, Schema
from ragaudit.serving.bodies import json_value

Kind = TypeVar("Kind", bound=Body)


def parse(kind: type[Kind], data: bytes) -> Kind:
    """Return the body that ``data`` is.

    Args:
        data: JSON in any spelling; what is signed in it is read by classes of its own.

    Raises:
        MalformedRequest: not JSON with one meaning, or not a body of this kind.
    """
    value = json_value(data)
    try:
        return kind.from_json(value)
    except MalformedError as error:
        # The call is what is malformed, whichever class of the body found it.
        raise MalformedRequest(error.what, where=error.where, expected=error.expected) from None


def described(kind: type[Body] | None) -> dict[str, object]:
    """Return the OpenAPI description of a JSON body; None is any object."""
    return _content("application/json", OBJECT.schema if kind is None else kind.json_schema())


def octets(media_type: str = "application/octet-stream") -> dict[str, object]:
    """Return the OpenAPI description of a body of bytes."""
    return _content(media_type, {"type": "string", "format": "binary"})


def _content(media_type: str, schema: Schema) -> dict[str, object]:
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}
