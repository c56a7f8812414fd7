"""docs/spec/01-encoding.md §4 and §5, errors and problem documents."""

import base64
import contextlib
import copy
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding import canonical_json, errors, json_structure, problems, text
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.problems import problem, reason
from ragaudit.encoding.signing import SignatureRejected

KNOWN = json.loads((Path(__file__).parents[2] / "vectors" / "encoding.json").read_bytes())
texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), texts)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20
)


@for_each("coded", KNOWN["canonical_json_base64"]["accepted"])
def test_accepted(coded: str) -> None:
    data = base64.b64decode(coded)
    assert canonical_json.dumps(canonical_json.loads(data)) == data


@for_each("coded", KNOWN["canonical_json_base64"]["refused"])
def test_refused(coded: str) -> None:
    with pytest.raises(MalformedError):
        canonical_json.loads(base64.b64decode(coded))


@given(documents)
def test_round_trip(value: Any) -> None:
    data = canonical_json.dumps(value)
    assert canonical_json.loads(data) == value
    assert json.loads(data) == value


@given(documents)
def test_agrees_with_the_reference_encoder(value: Any) -> None:
    """Two encoders serve `dumps`; whichever it takes, the bytes are those of RFC 8785."""
    assert canonical_json.dumps(value) == rfc8785.dumps(value)


@given(documents, st.integers(1, 3), st.integers(0, 3))
def test_long_documents_are_compared_in_pieces(value: Any, at_once: int, few: int) -> None:
    data = canonical_json.dumps(value)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("_COMPARED", 1), ("_AT_ONCE", at_once), ("_FEW", few)):
            patch.setattr(canonical_json, name, size)
        assert canonical_json.loads(data) == value
        for other in (b" " + data, data + b"\n", data.replace(b",", b", ", 1)):
            if other != data and json.loads(other) == value:
                with pytest.raises(MalformedError, match="canonical"):
                    canonical_json.loads(other)


@given(documents, st.sampled_from([b" ", b"\n", b"\t", b"\x00", b"1"]), st.data())
def test_one_form_only(value: Any, extra: bytes, data: st.DataObject) -> None:
    """Whatever is accepted is the encoding of what it parses to."""
    encoded = canonical_json.dumps(value)
    at = data.draw(st.integers(0, len(encoded)))
    changed = encoded[:at] + extra + encoded[at:]
    try:
        other = canonical_json.loads(changed)
    except MalformedError:
        return
    assert canonical_json.dumps(other) == changed


@given(st.binary(max_size=60))
def test_arbitrary_bytes_never_escape_as_another_error(data: bytes) -> None:
    with contextlib.suppress(MalformedError):
        canonical_json.loads(data)


@for_each(
    "value",
    [1.0, float("nan"), 2**53, -(2**53), b"x", {1: 2}, {"a": {"b": 0.5}}, "\ud800", {"\ud800": 1}],
)
def test_values_without_a_form(value: object) -> None:
    with pytest.raises(MalformedError):
        canonical_json.dumps(value)


def test_depth() -> None:
    deep: Any = 1
    for _ in range(json_structure.MAX_DEPTH):
        deep = [deep]
    assert canonical_json.loads(canonical_json.dumps(deep)) == deep
    with pytest.raises(MalformedError, match="deep"):
        canonical_json.dumps([deep])
    with pytest.raises(MalformedError, match="deep"):
        canonical_json.loads(b"[" * 100_000)
    with pytest.raises(MalformedError, match="deep"):
        canonical_json.loads(b'{"a":' * 100_000)


def test_brackets_inside_strings_are_no_depth() -> None:
    value = ['"[{\\' * 100, {"[" * 50: "{" * 50}]
    assert canonical_json.loads(canonical_json.dumps(value)) == value


def test_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical_json, "MAX_BYTES", 10)
    assert canonical_json.loads(b"1234567890") == 1234567890
    with pytest.raises(MalformedError, match="too long"):
        canonical_json.loads(b"12345678901")
    with pytest.raises(MalformedError, match="too long"):
        canonical_json.dumps("x" * 9)


@given(st.binary(max_size=50))
def test_text_round_trips(data: bytes) -> None:
    assert text.hex_decode(text.hex_encode(data), len(data)) == data
    assert text.b64_decode(text.b64_encode(data), len(data)) == data


@for_each("bad", ["A0", "0", "0g", " 00", "00\n", "0x00", "٠٠"])
def test_bad_hex(bad: str) -> None:
    with pytest.raises(MalformedError):
        text.hex_decode(bad)


@for_each(
    "bad", ["A", "AA", "AA=", "AB==", "AAA", "AAB=", "AA==\n", "AA==AA==", "-_==", "A A=", "é==="]
)
def test_bad_base64(bad: str) -> None:
    with pytest.raises(MalformedError):
        text.b64_decode(bad)


def test_lengths() -> None:
    with pytest.raises(MalformedError, match="wrong length"):
        text.hex_decode("00", 2)
    with pytest.raises(MalformedError, match="wrong length"):
        text.b64_decode("AA==", 2)


def test_errors_read_well_and_survive_copies() -> None:
    error = SignatureRejected("does not verify", where="promise", expected="P's key")
    assert str(error) == "promise: does not verify (expected P's key)"
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is SignatureRejected
        assert (twin.what, twin.where, twin.expected) == (error.what, error.where, error.expected)
    assert str(MalformedError("x")) == "x"


def test_problem_documents() -> None:
    document = problems.problem(SignatureRejected("no", where="w", expected="e"), 422, "/a/1")
    assert document == {
        "type": "urn:ragaudit:problem:signature-rejected", "title": "Signature rejected",
        "status": 422, "detail": "w: no (expected e)", "where": "w", "expected": "e",
        "instance": "/a/1",
    }  # fmt: skip
    assert "where" not in problems.problem(errors.RefusedError("limit"), 429)
    canonical_json.dumps(document)


def test_internal_errors_tell_nothing() -> None:
    document = problems.problem(errors.InternalError("secret path", where="/etc"), 500)
    assert "secret" not in str(document) and "/etc" not in str(document)


@pytest.mark.parametrize("status", [200, 399, 600])
def test_problem_status(status: int) -> None:
    with pytest.raises(ValueError):
        problems.problem(errors.RefusedError("x"), status)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("\ud800", ""),
        ({"a": ["x", "\U0001f600\udc00"]}, "/a/1"),
        ([{"k": {"z": "\udfff"}}], "/0/k/z"),
        ({"b": {"\ud800": 1}}, "/b"),
    ],
)
def test_lone_surrogates_are_refused_at_their_place(value: object, where: str) -> None:
    with pytest.raises(MalformedError, match="lone surrogates") as caught:
        canonical_json.dumps(value)
    assert (caught.value.where or "") == where


def test_the_reason_is_what_the_error_said() -> None:
    error = RejectedError("another key", where="keys", expected="ours")
    assert reason(problem(error, 422)) == str(error)


@for_each(
    ("document", "said"),
    [
        ({"detail": "d", "title": "t"}, "d"), ({"detail": "", "title": "t"}, "t"),
        ({"detail": 1, "title": "t"}, "t"), ({"detail": ["d"]}, ""), ({}, ""), ([], ""), (None, ""),
        ("detail", ""),
    ],
)  # fmt: skip
def test_documents_of_another_form_give_no_reason(document: Any, said: str) -> None:
    assert reason(document) == said


ratios = st.builds(Fraction, st.integers(0, 10**12 - 1), st.integers(1, 10**24))


@given(ratios)
def test_a_fraction_is_cut_off_to_one_that_can_be_written(value: Fraction) -> None:
    cut = text.floor_ratio(value)
    assert text.parse_ratio(str(cut)) == cut
    assert 0 <= value - cut <= max(Fraction(1, 10**11), value / 10**11)


@pytest.mark.parametrize("value", [Fraction(0), Fraction(1, 10**12 - 1), Fraction(10**12 - 1)])
def test_what_can_be_written_is_not_cut_off(value: Fraction) -> None:
    assert text.floor_ratio(value) == value
