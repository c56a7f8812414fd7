"""docs/spec/01-encoding.md §1 and §2."""

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding import digests, tagged
from ragaudit.encoding.errors import MalformedError

VECTORS = Path(__file__).parents[2] / "vectors"
KNOWN = json.loads((VECTORS / "encoding.json").read_bytes())

integers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]))
fields = st.lists(st.one_of(st.binary(), texts, integers, st.none()), max_size=8)
tags = texts.filter(lambda t: 1 <= len(t.encode()) <= 2**16 - 1)


def field_of(described: dict[str, Any]) -> tagged.Field:
    if "bytes" in described:
        return bytes.fromhex(described["bytes"])
    if "int" in described:
        return int(described["int"])
    return described.get("text")


@for_each("case", KNOWN["tagged"])
def test_known_encodings(case: dict[str, Any]) -> None:
    given_fields = [field_of(f) for f in case["fields"]]
    assert tagged.enc(case["tag"], *given_fields).hex() == case["encoded"]


def test_known_digests() -> None:
    known = KNOWN["digests"]
    salt = bytes.fromhex(known["salt"])
    for case in known["salted"]:
        assert digests.salted(salt, field_of(case["value"])).hex() == case["digest"]
    for case in known["structure"]:
        made = digests.structure(case["kind"], *map(field_of, case["fields"]))
        assert made.hex() == case["digest"]
    for case in known["leaf"]:
        made = digests.leaf_data(salt, case["kind"], bytes.fromhex(case["body"]))
        assert made.hex() == case["digest"]


@given(tags, fields)
def test_decode_is_the_inverse(tag: str, values: list[tagged.Field]) -> None:
    data = tagged.enc(tag, *values)
    parts = tagged.decode(tag, data, len(values))
    assert tagged.enc(tag, *parts) == data
    for part, value in zip(parts, values, strict=True):
        if isinstance(value, int):
            assert tagged.read_int(part) == value
        elif isinstance(value, str):
            assert tagged.read_text(part) == value
        else:
            assert part == (value or b"")


@given(tags, tags, st.lists(st.binary(), max_size=5), st.lists(st.binary(), max_size=5))
def test_injective(tag: str, other: str, a: list[bytes], b: list[bytes]) -> None:
    assert (tagged.enc(tag, *a) == tagged.enc(other, *b)) == ((tag, a) == (other, b))


@given(st.lists(st.binary(max_size=20), max_size=4), st.data())
def test_truncation_and_extension_are_refused(values: list[bytes], data: st.DataObject) -> None:
    encoded = tagged.enc("t", *values)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(MalformedError):
        tagged.decode("t", encoded[:cut], len(values))
    with pytest.raises(MalformedError, match="left over"):
        tagged.decode("t", encoded + b"\x00", len(values))


def one_by_one(tag: str, data: bytes, count: int) -> tuple[bytes, ...] | None:
    """The fields by §1.1 alone; None where the bytes are no such message."""
    head = len(tag.encode()).to_bytes(2, "little") + tag.encode() + count.to_bytes(2, "little")
    at, found = len(head), []
    for _ in range(count):
        length = int.from_bytes(data[at : at + 8], "little")
        at += 8 + length
        found.append(data[at - length : at])
    whole = data[: len(head)] == head and at == len(data)
    return tuple(found) if whole else None


@settings(deadline=None)
@given(st.lists(st.binary(max_size=12), min_size=1, max_size=5), st.data())
def test_what_was_read_before_changes_no_reading(values: list[bytes], data: st.DataObject) -> None:
    encoded, count = tagged.enc("t", *values), len(values)
    assert tagged.decode("t", encoded, count) == tuple(values)
    # The same size: lengths that moved from one field to the next, and bytes that were changed.
    whole = b"".join(values)
    cuts = sorted(data.draw(st.integers(0, len(whole))) for _ in values[1:])
    ends = [0, *cuts, len(whole)]
    moved = tagged.enc("t", *(whole[a:b] for a, b in pairwise(ends)))
    changed = bytearray(moved)
    changed[data.draw(st.integers(0, len(moved) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for message in (moved, encoded, bytes(changed), moved):
        expected = one_by_one("t", message, count)
        if expected is None:
            with pytest.raises(MalformedError):
                tagged.decode("t", message, count)
        else:
            assert tagged.decode("t", message, count) == expected


def test_lengths_that_a_stranger_chooses_fill_no_memory() -> None:
    for size in range(3000):
        tagged.decode("t", tagged.enc("t", bytes(size)), 1)
    assert len(tagged._layouts) <= tagged._MOST_LAYOUTS
    many = tagged._MOST_REMEMBERED + 1
    assert tagged.decode("t", tagged.enc("t", *[b""] * many), many) == (b"",) * many
    assert max(len(lengths) for _, lengths in tagged._layouts.values()) <= tagged._MOST_REMEMBERED


@pytest.mark.parametrize(("tag", "count"), [("u", 1), ("t", 0), ("t", 2), ("tt", 1)])
def test_wrong_tag_or_count(tag: str, count: int) -> None:
    with pytest.raises(MalformedError, match="wrong tag or field count"):
        tagged.decode(tag, tagged.enc("t", b"x"), count)


def test_huge_length_is_refused_without_allocating() -> None:
    data = bytearray(tagged.enc("t", b"x"))
    data[5:13] = b"\xff" * 8
    with pytest.raises(MalformedError, match="past the end"):
        tagged.decode("t", bytes(data), 1)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_integer_range(value: int) -> None:
    with pytest.raises(MalformedError, match="out of range"):
        tagged.enc("t", value)


@pytest.mark.parametrize("value", [True, 1.0, bytearray(b"x"), [b"x"]])
def test_other_types_are_a_programming_error(value: object) -> None:
    with pytest.raises(TypeError):
        tagged.enc("t", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("tag", ["", "x" * 2**16, "\ud800"])
def test_bad_tags(tag: str) -> None:
    with pytest.raises(MalformedError):
        tagged.enc(tag)


def test_too_many_fields() -> None:
    with pytest.raises(MalformedError, match="too many"):
        tagged.enc("t", *([b""] * 2**16))


def test_lone_surrogates_in_a_field() -> None:
    with pytest.raises(MalformedError, match="surrogates"):
        tagged.enc("t", "\udfff")


@pytest.mark.parametrize("data", [b"", b"1234567", b"123456789"])
def test_read_int_length(data: bytes) -> None:
    with pytest.raises(MalformedError):
        tagged.read_int(data)


@pytest.mark.parametrize("data", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80"])
def test_read_text_is_strict(data: bytes) -> None:
    with pytest.raises(MalformedError):
        tagged.read_text(data)


def test_read_digests() -> None:
    assert tagged.read_digest(bytes(32)) == bytes(32)
    assert tagged.read_optional_digest(b"") is None
    assert tagged.read_optional_digest(bytes(32)) == bytes(32)
    for reader in (tagged.read_digest, tagged.read_optional_digest):
        for length in (1, 31, 33):
            with pytest.raises(MalformedError):
                reader(bytes(length))
    with pytest.raises(MalformedError):
        tagged.read_digest(b"")


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_salts_have_32_bytes(length: int) -> None:
    with pytest.raises(MalformedError, match="salt"):
        digests.salted(bytes(length), b"x")
    with pytest.raises(MalformedError, match="salt"):
        digests.leaf_data(bytes(length), "record", b"x")


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_salt_and_kind_separate(a: bytes, b: bytes) -> None:
    one, two = bytes(32), bytes([1]) * 32
    assert (digests.salted(one, a) == digests.salted(one, b)) == (a == b)
    assert digests.salted(one, a) != digests.salted(two, a)
    assert digests.leaf_data(one, "record", a) != digests.leaf_data(one, "close", a)


def streamed(tag: str, data: bytes, count: int, most: int = 10**6) -> tuple[bytes, ...]:
    return tuple(tagged.stream(tag, io.BytesIO(data), count, most))


@given(tag=tags, values=fields, cut=st.integers(0, 20), more=st.binary(max_size=3))
def test_a_stream_accepts_what_decode_accepts(
    tag: str, values: list[tagged.Field], cut: int, more: bytes
) -> None:
    data = tagged.enc(tag, *values)
    for given_data in (data, data[: len(data) - cut], data + more):
        for count in (len(values), len(values) + 1):
            try:
                expected = tagged.decode(tag, given_data, count)
            except MalformedError:
                with pytest.raises(MalformedError):
                    streamed(tag, given_data, count)
            else:
                assert streamed(tag, given_data, count) == expected


def test_a_stream_refuses_a_long_field_before_it_is_read() -> None:
    data = tagged.enc("t", b"abc", b"abcd")
    assert streamed("t", data, 2, most=4) == (b"abc", b"abcd")
    fields_of = tagged.stream("t", io.BytesIO(data), 2, 3)
    assert next(fields_of) == b"abc"
    with pytest.raises(MalformedError, match="field too long"):
        next(fields_of)
