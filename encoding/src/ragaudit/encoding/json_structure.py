"""What parsing a JSON text would cost, from its bytes alone: nesting, and memory (spec 1.4).

Three bytes such as ``[],`` become an object of sixty-four. Whoever reads what a stranger sent looks
here first: in time and memory linear in the bytes, and before a parser makes anything of them.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from ragaudit.encoding.errors import MalformedError

__all__ = [
    "BYTES_FOR_A_BYTE",
    "INTERNED",
    "MAX_DEPTH",
    "SPARE_BYTES",
    "beyond_basic_plane",
    "check_depth",
    "check_structure",
    "loads",
]

# Deeper documents than any format of ours are refused before a recursive parser sees them.
MAX_DEPTH: Final = 32
BYTES_FOR_A_BYTE: Final = 16
"""Of memory that a parsed document may take, the parser's own included, for each that arrived."""
SPARE_BYTES: Final = 2**22
"""That any document may take beside: so no short one is refused, whatever it is made of."""
INTERNED: Final = {str(number): number for number in range(-999, 1000)}
"""Integers that cost nothing but their place in a list: parsers take them from here."""

_PIECE: Final = 2**14
_SPACES: Final = b" \t\r\n"
# Bytes of CPython's objects, the largest of versions 3.11 to 3.14, rounded up.
_LIST, _OBJECT, _MEMBER, _ITEM, _NUMBER = 96, 120, 112, 9, 32
_TEXT, _WIDE_TEXT = 58, 80  # beside its characters
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
# Every digit alike, every mark of a fraction alike, whatever may stand before a number alike.
_NUMBERS: Final = bytes.maketrans(b"123456789eE+[:", b"000000000...,,")


def loads(
    data: bytes,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
) -> Any:
    """Return the value of JSON as other programs write it, with fractions and in any spelling.

    Args:
        data: UTF-8, from anybody.
        object_pairs_hook, parse_constant: as of `json.loads`.

    Raises:
        ValueError: not JSON, or not UTF-8.
        MalformedError: as `check_structure`.
    """
    check_structure(data)
    return json.loads(
        data.decode("utf-8"),
        parse_int=_integer,
        object_pairs_hook=object_pairs_hook,
        parse_constant=parse_constant,
    )


def _integer(digits: str) -> int:
    small = INTERNED.get(digits)
    return int(digits) if small is None else small


def check_structure(data: bytes) -> None:
    """Check that JSON nests at most MAX_DEPTH deep, and what its objects would take.

    That is at most BYTES_FOR_A_BYTE for each byte of ``data`` and SPARE_BYTES: the decoded text,
    and the lists, objects, texts and numbers that it becomes.

    Args:
        data: JSON in UTF-8, or anything.

    Raises:
        MalformedError: it nests deeper, or would take more.
    """
    bare = _without_texts(data)
    _check_nesting(bare)
    _check_cost(data, bare)


def check_depth(data: bytes) -> None:
    """Check that brackets nest at most MAX_DEPTH deep.

    Args:
        data: as of `check_structure`.

    Raises:
        MalformedError: they nest deeper.
    """
    _check_nesting(_without_texts(data))


def beyond_basic_plane(data: bytes) -> bool:
    """Return whether UTF-8 has a character of four bytes.

    Args:
        data: UTF-8, or anything.
    """
    return not data.isascii() and any(first in data for first in range(0xF0, 0xF8))


def _check_cost(data: bytes, bare: bytes) -> None:
    width = _width(data)
    cost = _LIST * bare.count(b"[") + _OBJECT * bare.count(b"{") + _ITEM * bare.count(b",")
    cost += _MEMBER * bare.count(b":")
    cost += (_TEXT if width == 1 else _WIDE_TEXT) * bare.count(b'"')
    cost += _NUMBER * _numbers(bare)
    cost += width * (len(data) - len(bare))  # what the texts hold
    cost += width * len(data)  # the text that is parsed
    if cost > BYTES_FOR_A_BYTE * len(data) + SPARE_BYTES:
        raise MalformedError(
            "too many elements for its length",
            expected=f"what takes at most {BYTES_FOR_A_BYTE} bytes of memory for each",
        )


def _width(data: bytes) -> int:
    """Return how many bytes a character of the decoded text takes: as many as the widest needs."""
    if data.isascii():
        return 1
    return 4 if beyond_basic_plane(data) else 2


def _numbers(bare: bytes) -> int:
    """Return how many numbers there are that become objects of their own."""
    alike = bare.translate(_NUMBERS, b"-")
    return sum(alike.count(each) for each in (b",0000", b",0.", b",00.", b",000."))


def _check_nesting(bare: bytes) -> None:
    brackets = bare.translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    # What is not paired is for the parser to refuse; it goes down no further than this.
    if b"[]" in brackets or brackets.count(b"[") > MAX_DEPTH:
        raise MalformedError("nested too deeply", expected=f"at most {MAX_DEPTH} levels")


def _without_texts(data: bytes) -> bytes:
    """Return JSON without spaces, and one quotation mark in the place of each text."""
    if b"\\" in data:
        # In this order: a quotation mark behind two backslashes ends its text.
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if b'"' not in data:
        return data.translate(None, _SPACES)
    bare, inside = bytearray(), False
    # In pieces: what lies between the marks of a long text, all at once, would be the objects that
    # this is to keep away.
    for start in range(0, len(data), _PIECE):
        parts = data[start : start + _PIECE].split(b'"')
        outside = parts[inside::2]
        bare += b'"'.join(outside)
        marks = len(parts) - 1
        if outside and inside + 2 * (len(outside) - 1) < marks:
            bare += b'"'
        inside ^= bool(marks % 2)
    return bytes(bare.translate(None, _SPACES))
