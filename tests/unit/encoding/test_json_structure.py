"""What a stranger's JSON costs whoever reads it: memory and time in proportion to its bytes."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hostile_json import ASTRAL, UNITS, WIDE, allowed, documents, filled
from hypothesis import given
from hypothesis import strategies as st
from memory_taken import peak
from ragaudit.encoding import canonical_json, json_structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.json_structure import MAX_DEPTH, check_depth, check_structure

SIZE = 2**20


def read(reader: Callable[[Any], Any], data: Any) -> Any:
    """What a reader makes of it, None if it refuses."""
    with contextlib.suppress(MalformedError, ValueError):
        return reader(data)
    return None


def test_memory_is_bounded_by_the_bytes_received() -> None:
    for name, data in documents(SIZE):
        taken = peak(partial(read, canonical_json.loads, data), allowed(data))
        assert taken <= allowed(data), f"{name}: {taken / len(data):.1f} bytes for a byte"


def test_shorter_documents_are_no_dearer() -> None:
    """They may be made of more objects: the spare bytes are more beside them."""
    for size in (209_000, 290_000, 524_000, 681_000):
        for name, data in documents(size):
            if name not in {"members", "texts", "wide texts", "one object"}:
                continue
            taken = peak(partial(read, canonical_json.loads, data), allowed(data))
            assert taken <= allowed(data), f"{name} of {size}: {taken / allowed(data):.2f}"


@pytest.mark.parametrize("reader", [canonical_json.loads_any, json_structure.loads])
def test_other_readers(reader: Callable[[bytes], Any]) -> None:
    for unit in ("lists", "longer integers", "longer texts"):
        data = filled(UNITS[unit], SIZE).encode()
        assert peak(partial(read, reader, data), allowed(data)) <= allowed(data), unit


def test_one_long_element_of_a_list_that_is_read_by_elements() -> None:
    for unit in ("lists", "members", "longer integers"):
        data = f"[{filled(UNITS[unit], SIZE)}]".encode()

        def by_elements(data: bytes = data) -> object:
            return read(lambda file: list(canonical_json.elements(file)), io.BytesIO(data))

        taken = peak(by_elements, allowed(data))
        assert taken <= allowed(data), f"{unit}: {taken / len(data):.1f} bytes for a byte"


def test_time_is_linear() -> None:
    def seconds(data: bytes) -> float:
        began = time.process_time()
        read(canonical_json.loads, data)
        return time.process_time() - began

    # A quadratic reader takes sixteen times as long for four times as much; 40 ms are below what
    # such a clock tells apart on a busy machine.
    for (name, short), (_, long) in zip(documents(2**18), documents(2**20), strict=True):
        assert seconds(long) < 8 * seconds(short) + 0.04, name


@pytest.mark.parametrize("unit", ["lists", "objects", "nested", "empty texts", "members"])
def test_many_small_objects_are_refused(unit: str) -> None:
    with pytest.raises(MalformedError, match="too many elements"):
        canonical_json.loads(filled(UNITS[unit], SIZE).encode())


def test_short_documents_may_hold_anything() -> None:
    deepest = '{"":' * 31 + f'"{ASTRAL}"' + "}" * 31
    for unit in (*UNITS.values(), "[[]]", deepest):
        data = filled(unit, 2**16 - 2).encode()
        assert len(data) <= 2**16
        canonical_json.loads_any(data)


def test_long_documents_of_texts_and_rows_pass() -> None:
    vector = [number % 255 - 127 for number in range(384)]
    row = json.dumps({"blinding": "ab" * 32, "position": 123456, "vector": vector})
    said = json.dumps({"content": "word, word: [1] {2} \n " * 40 + WIDE, "salt": "ab" * 32})
    for unit in (row, said, json.dumps("ab" * 32)):
        data = filled(unit, 8 * SIZE).encode()
        assert canonical_json.loads_any(data) == json.loads(data)


def test_lists_of_small_objects_pass() -> None:
    """A policy and a verdict have such of each of their tenants, a challenge of its accounts."""
    units: tuple[dict[str, Any], ...] = (
        {"id": "0000", "owner_key": None},
        {"id": "0000", "rows": 6},
        {"id": "tenant:0000", "population": None, "sample": []},
        {"bad": 1, "eta": "0.05", "id": "tenant:0000", "miss_probability": "0.000000000000",
         "population": 2, "sample": 2, "with_replacement": "0.460000000000"},
    )  # fmt: skip
    for unit in units:
        data = canonical_json.dumps([unit] * 10_000)
        assert len(canonical_json.loads(data)) == 10_000


structures = st.recursive(
    st.none() | st.booleans() | st.integers(-9999, 9999) | st.text('"\\[]{},: a', max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('"\\[a', max_size=3), inner),
    max_leaves=30,
)


@given(structures, st.sampled_from([None, 1]))
def test_depth_is_that_of_the_value(value: Any, indent: int | None) -> None:
    def depth(value: Any) -> int:
        if not isinstance(value, dict | list):
            return 0
        items = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, items), default=0)

    room = MAX_DEPTH - depth(value)
    for more, fits in ((room, True), (room + 1, False)):
        data = ("[" * more + json.dumps(value, indent=indent) + "]" * more).encode()
        for check in (check_depth, check_structure):
            if fits:
                check(data)
            else:
                with pytest.raises(MalformedError, match="deep"):
                    check(data)


@given(st.integers(2**13, 2**15), st.integers(0, 40))
def test_a_text_may_be_cut_anywhere(length: int, before: int) -> None:
    """The bytes are looked at in pieces: what lies in a text is none of the structure."""
    value = ["x" * before, ['"[{,\\' * (length // 4)], "[" * length]
    data = json.dumps(value).encode()
    assert canonical_json.loads_any(data) == value


def test_another_encoding_of_json_is_none() -> None:
    """The library would guess UTF-16 from zero bytes, and count other bytes than these."""
    with pytest.raises(ValueError, match="codec"):
        json_structure.loads("[1]".encode("utf-16"))
