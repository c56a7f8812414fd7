"""Filters and public columns against an oracle that is as plain as the text of spec 5.12."""

import json
import math
import operator
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from integrity_scene import policy_value
from ragaudit.circuits.selection import ColumnArrays
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.errors import MalformedPolicy, MalformedRecord
from ragaudit.ledger.messages.columns import (
    MAX_COLUMNS_BYTES,
    PublicColumn,
    canonical_text,
    columns_text,
    parse_text,
    read_columns,
)
from ragaudit.ledger.messages.filters import (
    MAX_DEPTH,
    MAX_FILTER_BYTES,
    MAX_LEAVES,
    Filter,
    request_filter,
)
from ragaudit.ledger.messages.policy import Policy
from receipt_scene import policy as first_policy

COLUMNS = (
    PublicColumn("draft", "boolean"), PublicColumn("lang", "string"),
    PublicColumn("size", "number"), PublicColumn("year", "integer"),
)  # fmt: skip
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "draft": st.booleans(),
    "lang": st.sampled_from(["", "de", "en", "EN", "\u00e9", "e\u0301", "\U0001f600", "\uffff"]),
    # Both signs of zero, integers that are doubles, the largest and the smallest double.
    "size": st.sampled_from([0, -0.0, 0.1, 1, 1.0, 1e-7, -1.5, 1e20, 1e21, 1.7e308, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False),
    "year": st.sampled_from([0, 1, -1, 2**53 - 1, -(2**53) + 1]),
}
ORDER = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Any]:
    key = draw(st.sampled_from(sorted(VALUES)))
    ordered = sorted(ORDER) if key in ("size", "year") else []
    op = draw(st.sampled_from(["eq", "ne", "in", "nin", *ordered]))
    one = VALUES[key]
    value = draw(st.lists(one, min_size=1, max_size=4) if op in ("in", "nin") else one)
    return {"op": op, "key": key, "value": value}


NODES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    leaves(),
    lambda node: st.one_of(
        st.builds(lambda of: {"op": "not", "of": [of]}, node),
        st.builds(
            lambda op, of: {"op": op, "of": of},
            st.sampled_from(["and", "or"]),
            st.lists(node, min_size=1, max_size=3),
        ),
    ),
    max_leaves=12,
)
ROWS = st.fixed_dictionaries({}, optional=VALUES)


def oracle(node: dict[str, Any], row: dict[str, Any]) -> bool:
    """The text of the specification, one line for each of its sentences."""
    op = node["op"]
    if op == "and":
        return all(oracle(part, row) for part in node["of"])
    if op == "or":
        return any(oracle(part, row) for part in node["of"])
    if op == "not":
        return not oracle(node["of"][0], row)
    if node["key"] not in row:
        return op in ("ne", "nin")
    found, wanted = row[node["key"]], node["value"]
    if isinstance(found, str):
        found = found.encode()
        wanted = [w.encode() for w in wanted] if isinstance(wanted, list) else wanted.encode()
    elif not isinstance(found, bool):
        found = float(found)
        wanted = [float(w) for w in wanted] if isinstance(wanted, list) else float(wanted)
    if op in ORDER:
        return ORDER[op](found, wanted)
    equal = found in wanted if op in ("in", "nin") else found == wanted
    return equal == (op in ("eq", "in"))


@given(NODES, ROWS)
def test_a_filter_does_what_the_specification_says(node: dict[str, Any], row: Any) -> None:
    try:
        made = Filter.from_json(node, COLUMNS)
    except MalformedRecord as error:
        assert "deep" in error.what  # nothing else can be wrong with these
        return
    assert made.passes(row) == oracle(node, row)
    again = Filter.parse(made.text, COLUMNS)
    assert again.text == made.text
    assert again.passes(read_columns(columns_text(row, COLUMNS), COLUMNS)) == oracle(node, row)


@given(NODES, st.lists(st.none() | ROWS, max_size=12))
def test_arrays_of_columns_say_of_all_rows_what_a_filter_says_of_each(
    node: dict[str, Any], rows: list[Any]
) -> None:
    try:
        made = Filter.from_json(node, COLUMNS)
    except MalformedRecord:
        return
    assert made.allowed_in(ColumnArrays(rows)) == made.allowed(rows)
    everyone = Filter(None).allowed_in(ColumnArrays(rows))
    # None is the whole index: only where there is no row that nobody may select.
    assert (everyone is None) == (None not in rows)
    assert Filter(None).allowed(rows) == (tuple(range(len(rows))) if everyone is None else everyone)


@given(ROWS)
def test_columns_come_back_as_the_doubles_they_were(row: dict[str, Any]) -> None:
    text = columns_text(row, COLUMNS)
    back = read_columns(text, COLUMNS)
    assert back == row  # as numbers: the double 1.0 and the integer 1 have one encoding
    assert columns_text(back, COLUMNS) == text
    assert json.loads(text, parse_int=float) == row


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_has_one_text(number: float) -> None:
    text = canonical_text(number)
    assert parse_text(text, "test") == number
    assert math.copysign(1, parse_text(text, "test") or 1) == math.copysign(1, number or 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, "\ud800", {"a": [-math.inf]}])
def test_what_no_double_and_no_unicode_says_has_no_text(value: Any) -> None:
    with pytest.raises(MalformedRecord, match="no canonical JSON"):
        canonical_text(value)


def test_no_filter_passes_every_row() -> None:
    empty = Filter.parse("", ())
    assert empty == Filter.from_json(None, ()) == Filter(None)
    assert (empty.text, empty.allowed([{}, {"lang": "de"}])) == ("", (0, 1))


def test_allowed_positions_rise() -> None:
    english = Filter.from_json({"op": "eq", "key": "lang", "value": "en"}, COLUMNS)
    assert english.allowed([{"lang": "en"}, {}, {"lang": "EN"}, {"lang": "en"}]) == (0, 3)


LEAF = {"op": "eq", "key": "lang", "value": "en"}


def nested(depth: int) -> dict[str, Any]:
    return LEAF if depth == 1 else {"op": "not", "of": [nested(depth - 1)]}


def test_limits_are_inclusive() -> None:
    Filter.from_json(nested(MAX_DEPTH), COLUMNS)
    Filter.from_json({"op": "or", "of": [LEAF] * MAX_LEAVES}, COLUMNS)
    for wrong, message in (
        (nested(MAX_DEPTH + 1), "deep"),
        ({"op": "or", "of": [LEAF] * (MAX_LEAVES + 1)}, "comparisons"),
        ({"op": "eq", "key": "lang", "value": "x" * MAX_FILTER_BYTES}, "long"),
    ):
        with pytest.raises(MalformedRecord, match=message):
            Filter.from_json(wrong, COLUMNS)
        with pytest.raises(MalformedRecord, match=message):
            Filter.parse(canonical_text(wrong), COLUMNS)


@for_each(
    "wrong",
    [
        {}, [], "en", 1, True, {"op": "eq"}, {**LEAF, "more": 1}, {"op": "and", "of": []},
        {"op": "or", "of": []}, {"op": "not", "of": []}, {"op": "not", "of": [LEAF, LEAF]},
        {"op": "xor", "of": [LEAF]}, {"op": "and", "of": LEAF}, {"op": "and", "of": [1]},
        {"op": "like", "key": "lang", "value": "e%"}, {"op": "eq", "key": "secret", "value": 1},
        {"op": "eq", "key": "lang", "value": 1}, {"op": "eq", "key": "lang", "value": None},
        {"op": "eq", "key": "lang", "value": ["en"]}, {"op": "lt", "key": "lang", "value": "en"},
        {"op": "lt", "key": "draft", "value": True}, {"op": "eq", "key": "draft", "value": 1},
        {"op": "eq", "key": "year", "value": True}, {"op": "eq", "key": "year", "value": 1.5},
        {"op": "eq", "key": "year", "value": 2**53}, {"op": "eq", "key": "size", "value": "1"},
        {"op": "eq", "key": "size", "value": False}, {"op": "in", "key": "lang", "value": "en"},
        {"op": "in", "key": "lang", "value": []}, {"op": "in", "key": "lang", "value": ["en", 1]},
        {"op": "eq", "key": "size", "value": math.inf}, {"op": "eq", "key": 1, "value": 1},
        {"op": "EQ", "key": "lang", "value": "en"}, {"op": "lt", "key": "year", "value": [1]},
    ],
)  # fmt: skip
def test_what_is_no_filter_is_refused(wrong: Any) -> None:
    with pytest.raises(MalformedRecord) as caught:
        Filter.from_json(wrong, COLUMNS)
    assert "en" not in str(caught.value).split("expected")[0].replace("undeclared", "")


@for_each(
    "text",
    [
        "{", "null", '{"op":"eq","key":"lang","value":"en"}',
        ' {"key":"lang","op":"eq","value":"en"}',
        '{"key":"size","op":"eq","value":1.0}', '{"key":"size","op":"eq","value":-0}',
        '{"key":"size","op":"eq","value":1e400}', '{"key":"size","op":"eq","value":NaN}',
        '{"key":"size","op":"eq","value":1E5}', '{"key":"lang","key":"lang","op":"eq","value":"x"}',
        '{"key":"lang","op":"eq","value":"\\u0065n"}', '{"key":"lang","op":"eq","value":"\\ud800"}',
        "[" * 5000, '{"of":[' * 500, "{}\n", "\ufeff{}", "x" * (MAX_FILTER_BYTES + 1),
    ],
)  # fmt: skip
def test_texts_in_another_spelling_are_refused(text: str) -> None:
    with pytest.raises(MalformedRecord):
        Filter.parse(text, COLUMNS)


@for_each(
    "text",
    [
        "", "[]", "1", '{"lang":1}', '{"secret":1}', '{"draft":0}', '{"year":1.5}', '{"lang":null}',
        '{"year":1,"lang":"en"}', '{"lang": "en"}', '{"year":9007199254740993}', "{",
        '{"lang":"' + "x" * MAX_COLUMNS_BYTES + '"}',
    ],
)  # fmt: skip
def test_columns_that_are_not_declared_or_not_canonical(text: str) -> None:
    with pytest.raises(MalformedRecord):
        read_columns(text, COLUMNS)


@pytest.mark.parametrize(
    "row", [{"secret": 1}, {"year": "1"}, {"lang": "x" * MAX_COLUMNS_BYTES}, {"size": math.nan}]
)
def test_columns_are_checked_before_they_are_committed(row: dict[str, Any]) -> None:
    with pytest.raises(MalformedRecord):
        columns_text(row, COLUMNS)


def test_the_policy_decides_whether_there_are_filters() -> None:
    window = Policy.from_json(policy_value())
    text = Filter.from_json(LEAF, COLUMNS).text
    assert request_filter(text, window).text == text
    without = Policy.from_json(policy_value(filter_grammar="empty"))
    for other in (without, first_policy()):
        assert request_filter("", other) == Filter(None)
        with pytest.raises(UnsupportedError):
            request_filter(text, other)


@for_each(
    "columns",
    [
        [{"name": "a", "type": "string"}] * 2,
        [{"name": "b", "type": "string"}, {"name": "a", "type": "string"}],
    ],
)  # fmt: skip
def test_a_policy_declares_columns_in_one_form(columns: Any) -> None:
    with pytest.raises(MalformedPolicy):
        Policy.from_json(policy_value(public_columns=columns))
