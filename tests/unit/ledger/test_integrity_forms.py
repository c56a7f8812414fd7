"""Forms of requests, answers and private parts, and what is none."""

from typing import Any

import pytest
from for_each import for_each
from integrity_scene import (
    ASKED,
    IN_ENGLISH,
    index,
    integrity_scene,
    policy_value,
    unserved,
)
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import ReceiptFile, UnservedRow, unserved_bytes
from ragaudit.ledger.messages.requests import Answer, Document, Request, float32_bytes


@for_each(
    ("policy", "request_", "error"),
    [
        ({"query_kinds": ["text"]}, {}, UnsupportedError),
        ({"query_kinds": ["vector"]}, {"asked": "a text"}, UnsupportedError),
        ({"dimension": 5}, {}, MalformedRecord),
        ({}, {"asked": float32_bytes([0.0] * 4)}, MalformedRecord),
        ({}, {"top_k": 9}, MalformedRecord),
        ({}, {"filter": "{}"}, MalformedRecord),
        ({"filter_grammar": "empty"}, {"filter": IN_ENGLISH}, UnsupportedError),
        ({}, {"asked": ""}, MalformedRecord),
    ],
)
def test_requests_are_checked_before_anything_is_charged(
    policy: dict[str, Any], request_: dict[str, Any], error: type[MalformedError]
) -> None:
    window = Policy.from_json(policy_value(**{"top_k_max": 8, **policy}))
    asked: dict[str, Any] = {"asked": ASKED, "top_k": 2, **request_}
    with pytest.raises(error):
        Request.of(window, asked.pop("asked"), asked.pop("top_k"), **asked)


def test_a_request_says_what_is_asked() -> None:
    window = Policy.from_json(policy_value())
    assert Request.of(window, "text", 2) == Request("text", 2)
    asked = Request.of(window, ASKED, 2, filter=IN_ENGLISH)
    assert asked.to_json()["kind"] == "vector"
    assert Request.from_json(asked.to_json()) == asked
    assert "en" not in repr(asked)


@for_each(
    "change",
    [
        {"kind": "text"},
        {"query": "x"},
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(change: dict[str, Any]) -> None:
    value = {**integrity_scene().request.to_json(), **change}
    with pytest.raises(MalformedError):
        Request.from_json(value)


def test_the_order_of_an_answer_is_part_of_its_form() -> None:
    def answer(*pairs: tuple[int, int | None]) -> Answer:
        return Answer(tuple(Document(i, f"{i}", "", "{}", "", score) for i, score in pairs))

    assert len(answer((2, 9), (0, 5), (1, 5)).documents) == 3
    for wrong in (((0, 5), (2, 9)), ((1, 5), (0, 5)), ((0, 5), (1, None)), ((0, 5), (0, 4))):
        with pytest.raises(MalformedRecord):
            answer(*wrong)


@for_each(
    "change",
    [
        {"selected": [1, 1]}, {"kind": "text"},
    ],
)  # fmt: skip
def test_malformed_private_halves_are_refused(change: dict[str, Any]) -> None:
    value = integrity_scene().file().to_json()
    value["private"] = {**value["private"], **change}
    with pytest.raises(MalformedError):
        ReceiptFile.from_json(value)


def test_malformed_ties_are_refused() -> None:
    value = integrity_scene(filter_text=IN_ENGLISH).file().to_json()
    ties = value["private"]["ties"]
    change: dict[str, Any]
    for change in (
        {"rows": []}, {"rows": ties["rows"][::-1]}, {"proof": ""}, {"proof": "AAAA"},
        {"rows": [{**ties["rows"][0], "path": ["00"]}]}, {"more": 1},
    ):  # fmt: skip
        private = {**value["private"], "ties": {**ties, **change}}
        with pytest.raises(MalformedError):
            ReceiptFile.from_json({**value, "private": private})


def test_what_unserved_rows_take_of_a_file_is_bounded() -> None:
    """A provider refuses by this bound, so that no account has a file that nobody reads."""
    columns = ["{}", '{"a":"' + '\\"' * 40 + '"}', '{"a":"\u00e9\u6771"}']
    for rows in (1, 2, 1000, 2**20, 2**32 - 1):
        levels = (rows - 1).bit_length()
        path = (bytes(32),) * levels
        made = [UnservedRow(rows - 1, bytes(32), text, bytes(32), path) for text in columns]
        size = sum(len(canonical_json.dumps(row.to_json())) + 1 for row in made)
        assert size <= unserved_bytes(columns, rows) <= 2 * size


def test_nothing_private_is_in_a_repr() -> None:
    made = integrity_scene(filter_text=IN_ENGLISH, withdrawn=(3,))
    shown = repr(made.file())
    for secret in ("doc 1", "content 1", "lang", "'en'", repr(ASKED)[2:10]):
        assert secret not in shown
    rows, _ = index(1)
    assert "lang" not in repr(unserved(rows[1]))
