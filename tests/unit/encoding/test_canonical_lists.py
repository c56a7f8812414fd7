"""Lists read element by element: the same as the whole, and refused where the whole is."""

import io
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from memory_taken import peak
from ragaudit.encoding import canonical_json
from ragaudit.encoding.canonical_json import elements
from ragaudit.encoding.errors import MalformedError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
LISTS = st.lists(VALUES, max_size=6)


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical_json, "_PIECE_BYTES", 3)  # characters and numbers are cut


def read(data: bytes) -> Any:
    """What the whole parser says: the list, or None where there is none."""
    try:
        value = canonical_json.loads(data)
    except MalformedError:
        return None
    return value if isinstance(value, list) else None


def streamed(data: bytes) -> Any:
    try:
        return list(elements(io.BytesIO(data)))
    except MalformedError:
        return None


@given(LISTS)
def test_elements_are_those_of_the_list(value: list[Any]) -> None:
    assert streamed(canonical_json.dumps(value)) == value


@given(LISTS, st.integers(0, 60), st.sampled_from(list(b'[]{},:"0-1.e \\ntu\x80\xff')))
def test_what_the_whole_parser_refuses_is_refused(value: list[Any], at: int, byte: int) -> None:
    data = bytearray(canonical_json.dumps(value))
    at %= len(data)
    for changed in (
        bytes(data[:at] + bytes([byte]) + data[at + 1 :]),
        bytes(data[:at] + bytes([byte]) + data[at:]),
        bytes(data[:at] + data[at + 1 :]),
        bytes(data[:at]),
    ):
        assert streamed(changed) == read(changed), changed


@for_each(
    "data",
    [
        b"", b"{}", b"[", b"[,]", b"[1,]", b"[1 ]", b"[ 1]", b" []", b"[]\n", b"[][]", b"[1][",
        b"[1.0]", b"[01]", b"[1e3]", b"[NaN]", b'[{"b":1,"a":2}]', b'[{"a":1,"a":1}]',
        b'["\\u0041"]', b"[9007199254740992]", b"[" + b"9" * 5000 + b"]", b'["\xff"]',
        b"[" * 33 + b"]" * 33,
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_malformed_lists(data: bytes) -> None:
    assert read(data) is None and streamed(data) is None


def test_nesting_has_the_limit_of_the_whole() -> None:
    deepest = b"[" * 32 + b"]" * 32
    assert streamed(deepest) == canonical_json.loads(deepest)


def test_a_list_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical_json, "MAX_LIST_BYTES", 20)
    assert streamed(b"[1,2,3,4,5,6,7,8,9]") is not None
    with pytest.raises(MalformedError, match="too long"):
        list(elements(io.BytesIO(b"[1,2,3,4,5,6,7,8,9,10]")))


def test_no_more_is_held_than_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical_json, "_PIECE_BYTES", 2**12)
    file = io.BytesIO(canonical_json.dumps([{"text": "x" * 100}] * 4000))

    def read() -> None:
        file.seek(0)
        assert sum(1 for _ in elements(file)) == 4000

    assert peak(read, 100_000) <= 100_000  # of some 440,000 bytes
