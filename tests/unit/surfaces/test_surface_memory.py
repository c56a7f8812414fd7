"""What an application puts into the lists of a surface's bodies takes memory in proportion."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from memory_taken import peak
from pydantic import TypeAdapter
from ragaudit.encoding import json_structure
from ragaudit.encoding.errors import MalformedError, MalformedRequest
from ragaudit.encoding.json_structure import check_structure
from ragaudit.prover import surfaces
from ragaudit.prover.surfaces.dialects import MAX_MEMBERS, Body, read_member

ITEMS: tuple[Any, ...] = (
    1, 0.125, 123456789, "ab", "abcdefghijklmn", None, [], {}, {"a": 1}, [1] * 99, ["ab" * 9] * 9,
)  # fmt: skip
COUNT = 1000
# Beside the JSON's own, for a byte: the library makes each list anew.
MODEL = 8


def bodies() -> list[type[Body]]:
    """Every class of a body, or of a part of one, of every surface."""
    for module in pkgutil.walk_packages(surfaces.__path__, f"{surfaces.__name__}."):
        importlib.import_module(module.name)
    found, new = set(), {Body}
    while new:
        new = {kind for parent in new for kind in parent.__subclasses__()}
        found |= new
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def hostile(kind: type[Body]) -> Iterator[tuple[str, Any]]:
    for name, field in kind.model_fields.items():
        for item in ITEMS:
            yield name, {field.alias or name: [item] * COUNT}
            yield name, {field.alias or name: [[item] * COUNT]}
        # Long enough that such an object may be long.
        members = {f"a member of a name with {number:6d}": 0 for number in range(COUNT)}
        yield f"members of {name}", {field.alias or name: members}
    yield "unknown members", {f"member {number}": 0 for number in range(COUNT)}


def test_memory_is_bounded_by_the_bytes_received(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that what is tried here, which is short, is what a long body may be.
    monkeypatch.setattr(json_structure, "SPARE_BYTES", 0)
    kinds = bodies()
    assert len(kinds) > 10
    for kind in kinds:
        adapter = TypeAdapter(kind)
        for name, document in hostile(kind):

            def read(document: Any = document, adapter: Any = adapter) -> object:
                with suppress(MalformedRequest):
                    return read_member(adapter, document, "body")
                return None

            data = json.dumps(document, separators=(",", ":")).encode()
            try:
                check_structure(data)
            except MalformedError:
                continue
            size = len(data)
            read()  # what is made at a first time is no memory of a body
            allowed = MODEL * size + 2**15
            taken = peak(read, allowed)
            assert taken <= allowed, f"{kind.__name__}.{name}: {taken / size:.1f}"


def test_members_are_counted_before_they_are_named() -> None:
    class Known(Body):
        name: str = ""

    adapter = TypeAdapter(Known)
    members = {f"member {number}": 0 for number in range(MAX_MEMBERS + 1)}
    with pytest.raises(MalformedRequest, match="too many members"):
        read_member(adapter, members, "body")
