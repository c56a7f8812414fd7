"""JSON bodies of the service's calls: the ledger's classes, and how OpenAPI describes them."""

from typing import Any, TypeVar

from ragaudit.encoding.errors import MalformedError, MalformedRequest
from ragaudit.ledger.messages.bodies import (
    MAX_BATCH,
    MAX_NOTES,
    MAX_STAMPS,
    AccessBody,
    Body,
    CaseBody,
    ClaimBody,
    CloseBody,
    CosignedBody,
    DisputesBody,
    EntriesBody,
    FindingBody,
    OpeningBody,
    ReceiptsBody,
    ReferenceBody,
    RefusalsBody,
    RoundBody,
    StampsBody,
    StatementBody,
    WindowBody,
)
from ragaudit.ledger.messages.evidence_access import MAX_READER_BYTES, MAX_REASON_BYTES
from ragaudit.ledger.messages.fields import MAX_TIME
from ragaudit.ledger.messages.handover import KINDS
from ragaudit.ledger.messages.handover_parts import RecordsBody
from ragaudit.ledger.messages.records import Record
from ragaudit.serving.strict_json import json_value
from ragaudit.serving.validation import HEX32_PATTERN

__all__ = ["SCHEMAS", "described", "octets", "parse"]

Kind = TypeVar("Kind", bound=Body)
Schema = dict[str, Any]


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


def _object(required: Schema, **optional: Schema) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**required, **optional},
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "maxItems": MAX_BATCH}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: Schema = {"type": "string"}
_PROOF: Schema = {"type": "string", "minLength": 1}
_SIGNED: Schema = {"type": "object"}  # a signed message of the ledger, or a policy
_HEX: Schema = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
_DIGEST: Schema = {"type": "string", "pattern": HEX32_PATTERN}
# Not any 32 bytes are a key that is taken: this one is of RFC 8032, 7.1, test 1.
_KEY: Schema = {
    **_DIGEST,
    "examples": ["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"],
}
_KIND: Schema = {"type": "string", "enum": sorted(KINDS - {Record.KIND})}


def _index(least: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": MAX_TIME}


def _said(most: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most}


_ENTRY = _object({"index": _index(0), "kind": _KIND, "salt": _DIGEST, "body": _HEX})
_REGISTRATION = _or_null(
    _object({"index": _index(1), "salt": _DIGEST, "body": _HEX, "proof": _PROOF})
)
_HOLDER = _or_null(_SIGNED)
_ROUND = {
    **_object({"round": _index(1), "randomness": _DIGEST, "signature": _HEX}),
    # Round 123 of quicknet: the randomness is the signature's.
    "examples": [
        {
            "round": 123,
            "randomness": "fb8f7bc29bf24db51871ec8c79f3a1e4bd0557bc0dfcee9ed1d924e69d1c60dc",
            "signature": "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482"
            "e26cd02df835d3546d23c4b13e0dfc92",
        }
    ],
}

SCHEMAS: dict[type[Body], Schema] = {
    WindowBody: _object({"policy": _SIGNED, "embedder": _SIGNED}),
    OpeningBody: _object({"opening": _HEX, "salt": _DIGEST, "empty_checkpoint": _TEXT}),
    EntriesBody: _object({"entries": _list(_ENTRY)}),
    CloseBody: _object({"final_checkpoint": _TEXT}),
    CosignedBody: _object(
        {"checkpoints": {"type": "array", "items": _TEXT, "maxItems": MAX_NOTES}}
    ),
    StampsBody: _object(
        {
            "stamps": {
                "type": "array",
                "items": _object({"size": _index(1), "token": _TEXT}),
                "maxItems": MAX_STAMPS,
            }
        }
    ),
    RoundBody: _object({"round": _ROUND}),
    RecordsBody: _object({"parts": _index(1), "digest": _DIGEST}),
    ReceiptsBody: _object({"receipts": _list(_SIGNED)}, holder=_HOLDER, registration=_REGISTRATION),
    RefusalsBody: _object({"refusals": _list(_SIGNED)}, holder=_HOLDER, registration=_REGISTRATION),
    ClaimBody: _object({"promise": _SIGNED, "nonce": _DIGEST}, registration=_REGISTRATION),
    DisputesBody: _object({"disputes": _list(_SIGNED)}, registration=_REGISTRATION),
    StatementBody: _object({"statement": _SIGNED}, registration=_REGISTRATION),
    FindingBody: _object({"finding": _SIGNED, "public": _SIGNED}),
    CaseBody: _object({"file": _SIGNED, "window": _SIGNED}),
    ReferenceBody: _object({"key": _KEY, "result": _SIGNED}),
    AccessBody: _object({"reader": _said(MAX_READER_BYTES), "reason": _said(MAX_REASON_BYTES)}),
}


def described(kind: type[Body] | None) -> dict[str, object]:
    """Return the OpenAPI description of a JSON body; None is any object."""
    return _content("application/json", _SIGNED if kind is None else SCHEMAS[kind])


def octets(media_type: str = "application/octet-stream") -> dict[str, object]:
    """Return the OpenAPI description of a body of bytes."""
    return _content(media_type, {"type": "string", "format": "binary"})


def _content(media_type: str, schema: Schema) -> dict[str, object]:
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}
