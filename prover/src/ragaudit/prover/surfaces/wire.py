"""JSON as applications send it: with fractions, which our own messages never have."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema
from ragaudit.encoding.errors import MalformedError, MalformedRequest
from ragaudit.encoding.json_structure import loads
from ragaudit.serving.settings import in_words

MAX_MEMBERS = 64  # of an object whose members are known: no dialect has half as many


def few_members(value: Any) -> Any:
    """Return a value, if it is no object of more than MAX_MEMBERS members; ValueError otherwise.

    Args:
        value: of which nothing is known; each member of it would have a fault of its own.
    """
    if isinstance(value, dict) and len(value) > MAX_MEMBERS:
        raise ValueError(f"too many members; expected at most {MAX_MEMBERS}")
    return value


def _fail_fast(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in ("list", "tuple"):
            schema["fail_fast"] = True
        for each in schema.values():
            _fail_fast(each)
    elif isinstance(schema, list | tuple):
        for each in schema:
            _fail_fast(each)


class Body(BaseModel):
    """A body of a surface. Members that nobody looked at are refused: they could mean anything.

    The first fault ends the reading: each takes more memory than what it is about.
    """

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema by which the library reads, whose lists end with their first fault."""
        schema = handler(source)
        _fail_fast(schema)
        return schema

    @model_validator(mode="before")
    @classmethod
    def _check_members(cls, value: Any) -> Any:
        return few_members(value)


def _vector(value: Any) -> Any:
    if type(value) is not list or not {*map(type, value)} <= {int, float}:
        raise ValueError("not a vector; expected a list of numbers")
    return value


Vector = Annotated[
    list[Any],  # of numbers; with floats alone the library would warn of integers
    PlainValidator(_vector),
    WithJsonSchema({"type": "array", "items": {"type": "number"}}),
]
"""A vector as it was read: the library would make each number anew, 16 bytes for one of a digit."""


class OpenBody(Body):
    """A body of a client that sends more to each service than it reads: the rest is ignored."""

    model_config = ConfigDict(extra="ignore")


def read_json(data: bytes) -> Any:
    """Return the value of a JSON body.

    Args:
        data: UTF-8, in any spelling; numbers may have fractions.

    Raises:
        MalformedRequest: not JSON, a key twice, NaN or infinity, nested too deeply, or more than
            its length allows (`json_structure`).
    """
    try:
        value = loads(data, object_pairs_hook=_distinct, parse_constant=_no_number)
        if b"\\u" in data:  # the only way to write half of a pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except MalformedError as error:
        raise _malformed(error.what, error.expected) from None
    except ValueError:
        raise _malformed("not JSON", "JSON in UTF-8, without duplicate keys") from None
    return value


def read_member(adapter: TypeAdapter[Any], value: Any, *where: str) -> Any:
    """Return a value as a declared type.

    Args:
        adapter: of the type.
        value: as it arrived.
        where: it stands, for the error.

    Raises:
        MalformedRequest: another type, an unknown member, or out of range.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        what, expected = in_words(fault)
        place = ".".join(str(part) for part in (*where, *fault["loc"]))
        # A key may be text of the application's: no more of it than a name has.
        raise MalformedRequest(what, where=place[:128], expected=expected) from None


def vector_bytes(values: Sequence[float], where: str) -> bytes:
    """Return a vector as little-endian float32.

    Args:
        values: as read, doubles.
        where: they stand, for the error.

    Raises:
        MalformedRequest: empty, or a number beyond float32.
    """
    if not values:
        raise MalformedRequest("no numbers", where=where, expected="a vector")
    with np.errstate(over="ignore"):
        packed = np.asarray(values, dtype="<f4")
    if not np.isfinite(packed).all():
        raise MalformedRequest("not a float32", where=where, expected="finite numbers")
    return packed.tobytes()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _no_number(_name: str) -> NoReturn:
    raise ValueError


def _malformed(what: str, expected: str) -> MalformedRequest:
    return MalformedRequest(what, where="body", expected=expected)
