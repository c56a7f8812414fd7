"""JSON as applications send it: with fractions, which our own messages never have."""

import json
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from ragaudit.encoding.errors import MalformedRequest
from ragaudit.serving.validation import in_words

MAX_DEPTH = 32


class Body(BaseModel):
    """A body of a surface. Members that nobody looked at are refused: they could mean anything."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class OpenBody(Body):
    """A body of a client that sends more to each service than it reads: the rest is ignored."""

    model_config = ConfigDict(extra="ignore")


def read_json(data: bytes) -> Any:
    """Return the value of a JSON body.

    Args:
        data: UTF-8, in any spelling; numbers may have fractions.

    Raises:
        MalformedRequest: not JSON, a key twice, NaN or infinity, or nested too deeply.
    """
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_number
        )
        if b"\\u" in data:  # the only way to write half of a pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise _malformed("not JSON", "JSON in UTF-8, without duplicate keys") from None
    _check_depth(value)
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


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        nested = [item for item in level if isinstance(item, dict | list)]
        if not nested:
            return
        level = []
        for item in nested:
            level.extend(item.values() if isinstance(item, dict) else item)
    raise _malformed("nested too deeply", f"at most {MAX_DEPTH} levels")


def _malformed(what: str, expected: str) -> MalformedRequest:
    return MalformedRequest(what, where="body", expected=expected)
