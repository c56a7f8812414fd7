"""Canonical JSON: RFC 8785 without floating point (docs/spec/01-encoding.md §1.4)."""

import codecs
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any, BinaryIO, Final, NoReturn, TypeAlias, TypeGuard

import rfc8785
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.json_structure import (
    INTERNED,
    MAX_DEPTH,
    beyond_basic_plane,
    check_structure,
)

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

# Larger documents are refused: a reader must not be made to parse without bound.
MAX_BYTES = 2**28
MAX_LIST_BYTES = 2**31  # of a list that is read element by element: an item of the evidence
MAX_INTEGER = 2**53 - 1

_COMPARED = 2**16  # characters that are encoded at a time
_AT_ONCE = 2**8  # items of a list, and members of an object, that are encoded at a time
_FEW = 2**5  # elements of one of them
_CONTAINERS = {list, dict}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def dumps(value: object) -> bytes:
    """Return the one encoding of ``value``.

    Args:
        value: None, bool, int within ±(2^53 - 1), str, list or tuple, dict with str keys.
            Decimal numbers travel as strings.

    Raises:
        MalformedError: any other type (floats included), an integer out of range, text
            with lone surrogates, more than MAX_DEPTH levels, more than MAX_BYTES bytes.
    """
    _check(value, 1, ())
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        # The encoder finds it faster than a look at every text; this says where.
        _check_texts(value, "")
        raise
    if len(data) > MAX_BYTES:
        raise MalformedError("document too long", expected=f"at most {MAX_BYTES} bytes")
    return data


def text(value: str) -> bytes:
    """Return the one encoding of a text, as `dumps` would.

    Args:
        value: Unicode, without lone surrogates.
    """
    return encode_basestring(value).encode()


def join(members: Mapping[str, bytes]) -> bytes:
    """Return the one encoding of an object whose members are encoded already, as `dumps` would.

    Args:
        members: what `dumps` returned of each, by name, nested below MAX_DEPTH levels; names are
            ASCII, and nothing in them is escaped.

    Raises:
        MalformedError: more than MAX_BYTES bytes.
    """
    parts = [b'"%s":%s' % (name.encode(), members[name]) for name in sorted(members)]
    data = b"{%s}" % b",".join(parts)
    if len(data) > MAX_BYTES:
        raise MalformedError("document too long", expected=f"at most {MAX_BYTES} bytes")
    return data


def loads(data: bytes) -> Any:
    """Return the value of ``data``, which must be exactly what :func:`dumps` writes.

    Spaces, another key order, duplicate keys, floats, other escapes, a byte order mark,
    invalid UTF-8, deep nesting and trailing bytes are all refused.

    Args:
        data: from anybody, of any length; nothing is parsed above MAX_BYTES, nor what would take
            more memory than `json_structure` allows for its length.

    Raises:
        MalformedError: ``data`` is not canonical.
    """
    value = _parse(data)
    # Compared as bytes: what the parser lets pass, in this version or the next, comes out here.
    if not _encodes_to(value, data):
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
    if b"\\u" in data:  # the only way to write half of a pair
        _check_texts(value, "")
    return value


def _parse(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise MalformedError("document too long", expected=f"at most {MAX_BYTES} bytes")
    check_structure(data)
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


class _Comparison:
    """A file for writing that demands what is written to be what it was given."""

    def __init__(self, expected: bytes) -> None:
        self._expected = expected
        self._at = 0

    def write(self, data: bytes) -> int:
        """Take the next bytes; MalformedError if they are others."""
        if not self._expected.startswith(data, self._at):
            raise MalformedError("not in canonical form", expected="RFC 8785 encoding")
        self._at += len(data)
        return len(data)

    @property
    def ended(self) -> bool:
        """Whether everything was written."""
        return self._at == len(self._expected)


def _encodes_to(value: object, data: bytes) -> bool:
    """Return whether ``data`` is the one encoding of a value that `_parse` gave.

    Nothing of its length is made beside the text: what strangers send is compared here.
    """
    compared = _Comparison(data)
    try:
        if beyond_basic_plane(data):
            rfc8785.dump(value, compared)  # type: ignore[arg-type]  # it only writes
        else:
            for text in _pieces(value) if len(data) > _COMPARED else [_dumped(value)]:
                for start in range(0, len(text), _COMPARED):
                    compared.write(text[start : start + _COMPARED].encode("utf-8"))
    except (UnicodeEncodeError, rfc8785.CanonicalizationError):
        _check_texts(value, "")
        raise
    return compared.ended


def _pieces(value: Any) -> Iterator[str]:
    """Yield what `_dumped` returns of a parsed value, a part at a time.

    The compiled encoder holds a text of its own for each element until it is done.
    """
    if type(value) is dict:
        yield "{"
        keys = sorted(value)
        for start in range(0, len(keys), _AT_ONCE):
            members = {key: value[key] for key in keys[start : start + _AT_ONCE]}
            if _all_small(members.values()):
                yield "," * bool(start) + _dumped(members)[1:-1]
                continue
            for key, item in members.items():
                yield "," * (key != keys[0]) + f"{_dumped(key)}:"
                yield from _pieces(item)
        yield "}"
    elif type(value) is list:
        yield "["
        for start in range(0, len(value), _AT_ONCE):
            items = value[start : start + _AT_ONCE]
            if _all_small(items):
                yield "," * bool(start) + _dumped(items)[1:-1]
                continue
            for place, item in enumerate(items, start):
                yield "," * bool(place)
                yield from _pieces(item)
        yield "]"
    else:
        yield _dumped(value)


def _all_small(values: Collection[Any]) -> bool:
    """Return whether all have few elements, and those none of their own."""
    return _CONTAINERS.isdisjoint(map(type, values)) or all(map(_is_small, values))


def _is_small(value: Any) -> bool:
    if type(value) not in _CONTAINERS:
        return True
    if len(value) > _FEW:
        return False
    return _CONTAINERS.isdisjoint(map(type, value.values() if type(value) is dict else value))


def _dumped(value: object) -> str:
    return _ENCODER.encode(value)


def _encode(value: object) -> bytes:
    """Return RFC 8785 of a checked value, by the standard library's compiled encoder.

    Without floats the two differ in the order of keys only (UTF-16 code units against code points),
    and not even there while no key leaves the basic multilingual plane.
    """
    text = _dumped(value)
    data = text.encode("utf-8")
    if beyond_basic_plane(data):
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    return data


def _check(value: object, depth: int, path: tuple[object, ...]) -> None:
    # The path is (key or place, path of what holds it), () for the whole. A text is made of it in
    # errors alone: that takes longer than the check.
    if isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise MalformedError("integer out of range", where=_where(path), expected="±(2^53 - 1)")
    elif isinstance(value, (list, tuple, dict)):
        if depth > MAX_DEPTH:
            raise MalformedError("nested too deeply", expected=f"at most {MAX_DEPTH} levels")
        _check_children(value, depth + 1, path)
    elif value is not None and not isinstance(value, str):
        raise MalformedError(
            f"{type(value).__name__} has no canonical form",
            where=_where(path),
            expected="integers or decimal strings for numbers",
        )


def _check_children(
    value: list[object] | tuple[object, ...] | dict[object, object],
    depth: int,
    path: tuple[object, ...],
) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise MalformedError("object key is not text", where=_where(path))
            if type(item) is not str and item is not None:
                _check(item, depth, (key, path))
        return
    # Long lists are of small integers, or of texts.
    if _all_texts(value):
        return
    if _all_integers(value) and min(value) >= -MAX_INTEGER and max(value) <= MAX_INTEGER:
        return
    for index, item in enumerate(value):
        _check(item, depth, (index, path))


def _where(path: tuple[Any, ...]) -> str:
    return f"{_where(path[1])}/{path[0]}" if path else ""


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


def _integer(digits: str) -> int:
    small = INTERNED.get(digits)
    if small is not None:
        return small
    # Checked by length first: int() of very long digit strings is refused by Python itself.
    if len(digits) > 17 or not -MAX_INTEGER <= (number := int(digits)) <= MAX_INTEGER:
        raise MalformedError("integer out of range", expected="±(2^53 - 1)")
    return number


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


_PIECE_BYTES: Final = 2**16
# It finds where an element ends, no more: numbers are not even read.
_SHORT: Final = 2**17  # characters that take no more than `SPARE_BYTES`, whatever they are
_FIND: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def elements(file: BinaryIO) -> Iterator[Any]:
    """Yield the elements of a canonical JSON list, which is refused where `loads` refuses it.

    It may be longer than what is read as a whole.

    An element may be yielded before a later one is found to be malformed.

    Args:
        file: the list's bytes, from the file's position to its end.

    Raises:
        MalformedError: not a list, or not canonical.
    """
    return (value for value, _, _ in located(file))


def located(file: BinaryIO) -> Iterator[tuple[Any, int, int]]:
    """Yield the elements, each with the offsets at which it begins and ends in the list's bytes.

    Args:
        file: as for :func:`elements`.

    Raises:
        MalformedError: as :func:`elements`.
    """
    text, start = _Text(file), 1
    if text.take() != "[":
        raise MalformedError("not a list")
    if text.peek() == "]":
        text.take()
    else:
        separator = ","
        while separator == ",":
            # In a list, as it is in the file: so that it may be nested as deeply, and no deeper.
            alone = f"[{text.element()}]".encode()
            end = start + len(alone) - 2
            yield loads(alone)[0], start, end
            start = end + 1
            separator = text.take()
        if separator != "]":
            raise MalformedError("not JSON", expected="',' or ']' after an element")
    if text.peek():
        raise MalformedError("not in canonical form", expected="nothing behind the list")


class _Text:
    """The text of a file, of which no more is held than the present element needs."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._size = "", 0, 0

    def peek(self) -> str:
        """Return the next character, "" at the end."""
        if self._at == len(self._text):
            self._read(_PIECE_BYTES)
        return self._text[self._at : self._at + 1]

    def take(self) -> str:
        """Return the next character and go behind it."""
        found = self.peek()
        self._at += len(found)
        return found

    def element(self) -> str:
        """Return the JSON value that begins here, as it is written, and go behind it."""
        size = _PIECE_BYTES
        while True:
            end = self._end()
            # A number may go on in what was not read yet.
            if end is not None and end < len(self._text):
                found, self._at = self._text[self._at : end], end
                return found
            if not self._read(size):
                raise MalformedError("not JSON")
            size *= 2  # a long element is not looked through again for each piece

    def _end(self) -> int | None:
        try:
            return _FIND.raw_decode(self._text, self._at)[1]
        except json.JSONDecodeError:
            return None
        except RecursionError as error:
            raise MalformedError("nested too deeply") from error

    def _read(self, size: int) -> bool:
        """Read on; return False at the end."""
        data = self._file.read(size)
        self._size += len(data)
        if self._size > MAX_LIST_BYTES:
            raise MalformedError("document too long", expected=f"at most {MAX_LIST_BYTES} bytes")
        try:
            more = self._decode.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise MalformedError("document is not UTF-8") from error
        self._text, self._at = self._text[self._at :] + more, 0
        if len(self._text) > _SHORT:
            check_structure(self._text.encode())
        return bool(data)
