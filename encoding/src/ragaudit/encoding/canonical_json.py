"""Canonical JSON: RFC 8785 without floating point (docs/spec/01-encoding.md §1.4)."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias, TypeGuard

import rfc8785
from ragaudit.encoding.errors import MalformedError

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

# Deeper documents than any format of ours are refused before a recursive parser sees them.
MAX_DEPTH = 32
# Larger documents are refused: a reader must not be made to parse without bound.
MAX_BYTES = 2**28
MAX_INTEGER = 2**53 - 1

_BEYOND_BASIC_PLANE = re.compile("[\U00010000-\U0010ffff]")

# A bracket, or a whole string (brackets inside it do not count). The possessive loops and
# the accepted end of input keep the scan linear on unterminated strings.
_BRACKET_OR_STRING = re.compile(rb'[\[\]{}]|"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)


def dumps(value: object) -> bytes:
    """Return the one encoding of ``value``.

    Args:
        value: None, bool, int within ±(2^53 - 1), str, list or tuple, dict with str keys.
            Decimal numbers travel as strings.

    Raises:
        MalformedError: any other type (floats included), an integer out of range, text
            with lone surrogates, more than MAX_DEPTH levels, more than MAX_BYTES bytes.
    """
    _check(value, 1, "")
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        # The encoder finds it faster than a look at every text; this says where.
        _check_texts(value, "")
        raise
    if len(data) > MAX_BYTES:
        raise MalformedError("document too long", expected=f"at most {MAX_BYTES} bytes")
    return data


def join(members: Mapping[str, bytes]) -> bytes:
    """Return the one encoding of an object whose members are encoded already, as `dumps` would.

    Args:
        members: what `dumps` returned of each, by name, nested below MAX_DEPTH levels; names are
            ASCII.

    Raises:
        MalformedError: more than MAX_BYTES bytes.
    """
    parts = [b"%s:%s" % (dumps(name), members[name]) for name in sorted(members)]
    data = b"{%s}" % b",".join(parts)
    if len(data) > MAX_BYTES:
        raise MalformedError("document too long", expected=f"at most {MAX_BYTES} bytes")
    return data


def loads(data: bytes) -> Any:
    """Return the value of ``data``, which must be exactly what :func:`dumps` writes.

    Spaces, another key order, duplicate keys, floats, other escapes, a byte order mark,
    invalid UTF-8, deep nesting and trailing bytes are all refused.

    Args:
        data: from anybody, of any length; above MAX_BYTES nothing is parsed.

    Raises:
        MalformedError: ``data`` is not canonical.
    """
    value = _parse(data)
    # Compared as bytes: what the parser lets pass, in this version or the next, comes out here.
    if dumps(value) != data:
        raise MalformedError("not in canonical form", expected="RFC 8785 encoding")
    return value


def loads_any(data: bytes) -> Any:
    """Return the value of JSON in any spelling, if it has a canonical form.

    Spaces, another order of keys and other escapes are accepted, as people and other libraries
    write them; duplicate keys, fractions, lone surrogates, deep nesting and integers out of range
    are refused, as in :func:`loads`: two readers must never understand one document differently.

    Args:
        data: as of :func:`loads`.

    Raises:
        MalformedError: anything else.
    """
    value = _parse(data)
    dumps(value)
    return value


def _parse(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise MalformedError("document too long", expected=f"at most {MAX_BYTES} bytes")
    check_depth(data)
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_int=_integer,
            parse_float=_refuse("number with fraction or exponent"),
            parse_constant=_refuse("NaN or infinity"),
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise MalformedError("document is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise MalformedError("not JSON", where=f"offset {error.pos}") from error


def _encode(value: object) -> bytes:
    """Return RFC 8785 of a checked value, by the standard library's compiled encoder.

    Without floats the two differ in the order of keys only (UTF-16 code units against code points),
    and not even there while no key leaves the basic multilingual plane.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    data = text.encode("utf-8")
    if not text.isascii() and _BEYOND_BASIC_PLANE.search(text):
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    return data


def _check(value: object, depth: int, where: str) -> None:
    if isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise MalformedError("integer out of range", where=where, expected="±(2^53 - 1)")
    elif isinstance(value, (list, tuple, dict)):
        if depth > MAX_DEPTH:
            raise MalformedError("nested too deeply", expected=f"at most {MAX_DEPTH} levels")
        _check_children(value, depth, where)
    elif value is not None and not isinstance(value, str):
        raise MalformedError(
            f"{type(value).__name__} has no canonical form",
            where=where,
            expected="integers or decimal strings for numbers",
        )


def _check_children(
    value: list[object] | tuple[object, ...] | dict[object, object], depth: int, where: str
) -> None:
    if not isinstance(value, dict):
        # Long lists are of small integers, or of texts.
        if _all_texts(value):
            return
        if _all_integers(value) and min(value) >= -MAX_INTEGER and max(value) <= MAX_INTEGER:
            return
        for index, item in enumerate(value):
            _check(item, depth + 1, f"{where}/{index}")
        return
    for key, item in value.items():
        if not isinstance(key, str):
            raise MalformedError("object key is not text", where=where)
        if type(item) is not str:
            _check(item, depth + 1, f"{where}/{key}")


def _check_texts(value: object, where: str) -> None:
    """Check every text and key; the error names the first with lone surrogates by its place."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise MalformedError("text has lone surrogates", where=where) from error
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key, where)
            _check_texts(item, f"{where}/{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_texts(item, f"{where}/{index}")


def _all_texts(values: list[object] | tuple[object, ...]) -> bool:
    return set(map(type, values)) == {str}


def _all_integers(values: list[object] | tuple[object, ...]) -> TypeGuard[list[int]]:
    return set(map(type, values)) == {int}


def check_depth(data: bytes) -> None:
    """Check that brackets nest at most MAX_DEPTH deep, before a recursive parser sees them.

    Args:
        data: JSON, or anything.

    Raises:
        MalformedError: they nest deeper.
    """
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(data):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise MalformedError("nested too deeply", expected=f"at most {MAX_DEPTH} levels")
        elif token[0] in (b"]", b"}"):
            depth -= 1


def _integer(digits: str) -> int:
    # Checked by length first: int() of very long digit strings is refused by Python itself.
    if len(digits) > 17:
        raise MalformedError("integer out of range", expected="±(2^53 - 1)")
    return int(digits)


def _refuse(what: str) -> Callable[[str], NoReturn]:
    def refuse(text: str) -> NoReturn:
        raise MalformedError(what, expected="integers or decimal strings")

    return refuse


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    # This reader would take the last of two equal keys, another one the first.
    if len(value) != len(pairs):
        raise MalformedError("duplicate key in object")
    return value
