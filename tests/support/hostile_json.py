"""JSON whose value takes much more memory than its bytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ragaudit.encoding.json_structure import BYTES_FOR_A_BYTE, SPARE_BYTES

WIDE = "\u2014"
ASTRAL = "\U0001f600"
# Short ways to write something that becomes an object of its own, or many.
UNITS = {
    "lists": "[]",
    "objects": "{}",
    "members": '{"a":0}',
    "nested": "[" * 16 + "]" * 16,
    "nulls": "null",
    "empty texts": '""',
    "texts": '"ab"',
    "longer texts": '"abcdefgh"',
    "wide texts": f'"{WIDE}{WIDE}"',
    "digits": "7",
    "integers": "1234",
    "longer integers": "-123456",
    "escapes": '"\\""',
}


def filled(unit: str, size: int) -> str:
    """A list of about ``size`` bytes of one unit, again and again."""
    return f"[{','.join([unit] * (size // (len(unit.encode()) + 1)))}]"


def distinct(size: int) -> str:
    """One object with as many members as have room."""
    members = itertools.takewhile(
        lambda member: len(member) * int(member[1:-3], 16) < size,
        (f'"{number:x}":0' for number in itertools.count(1)),
    )
    return "{" + ",".join(members) + "}"


def documents(size: int) -> Iterator[tuple[str, bytes]]:
    """Documents of about ``size`` bytes, each with a name."""
    for name, unit in UNITS.items():
        yield name, filled(unit, size).encode()
    yield "one object", distinct(size).encode()
    letters = "a" * size
    yield "a text", f'["{letters}"]'.encode()
    yield "a wide text", f'["{letters}{WIDE}"]'.encode()
    yield "an astral text", f'["{letters}{ASTRAL}"]'.encode()
    half = "a" * (size // 2)
    for name in ("lists", "longer integers", "longer texts"):
        mixed = f'["{half}{ASTRAL}",{filled(UNITS[name], size // 2)}]'
        yield f"an astral text and {name}", mixed.encode()
    for name, open_ended in (("brackets", "["), ("marks", '"'), ("backslashes", "\\")):
        yield f"nothing but {name}", (open_ended * size).encode()


def allowed(data: bytes) -> int:
    """Bytes that reading ``data`` may take."""
    return BYTES_FOR_A_BYTE * len(data) + SPARE_BYTES


def with_each_list_long(document: Any, size: int) -> Iterator[tuple[str, Any]]:
    """A document once for each list in it, of which every item is there again and again.

    An empty list gets what costs most of the few kinds of items that lists of integers, texts and
    objects have.
    """
    for place in _lists(document):
        found = document
        for step in place:
            found = found[step]
        choices: list[list[Any]] = [found] if found else [[300], ["ab"], [{}]]
        for items in choices:
            unit = sum(len(repr(item)) for item in items) + len(items)
            yield "/".join(map(str, place)), _replaced(document, place, items * (size // unit + 1))


def _lists(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        yield place
        children = enumerate(value[:3])
    for step, child in children:
        yield from _lists(child, (*place, step))


def _replaced(value: Any, place: tuple[Any, ...], by: Any) -> Any:
    if not place:
        return by
    copy = value.copy()
    copy[place[0]] = _replaced(value[place[0]], place[1:], by)
    return copy
