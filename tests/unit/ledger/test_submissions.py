"""Replies of verifier and arbiter to what an account submits: round trips and refusals."""

from typing import Any

import pytest
from for_each import for_each
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.bodies import Submission
from ragaudit.ledger.messages.receipts import GeneratedFile, query_index


def test_submissions_add_up() -> None:
    assert Submission.from_json({"accepted": 3, "known": 1}) == Submission(3, 1)
    assert Submission.total([Submission(3, 1), Submission(2, 0)]) == Submission(5, 1)
    assert Submission.total([]) == Submission(0, 0)


@for_each(
    "reply",
    [
        None, [], {}, {"accepted": 1}, {"accepted": 1, "known": True}, {"accepted": -1, "known": 0},
        {"accepted": "1", "known": 0}, {"accepted": 1, "known": 0, "more": 0},
    ],
)  # fmt: skip
def test_a_reply_of_another_form_is_no_count(reply: Any) -> None:
    with pytest.raises(MalformedRecord):
        Submission.from_json(reply)


def test_a_file_of_any_form_names_its_query() -> None:
    assert query_index({"public": {"index": 7, "forged": True}, "answer": None}) == 7
    words = {"format": GeneratedFile.FORMAT, "public": {"index": 9, "charge": {"index": 7}}}
    assert query_index(words) == 7


@pytest.mark.parametrize("file", [{}, {"public": 7}, {"public": {}}, {"public": {"index": "7"}}])
def test_a_file_without_an_index_names_no_query(file: dict[str, Any]) -> None:
    with pytest.raises(MalformedRecord, match="public"):
        query_index(file)
    with pytest.raises(MalformedRecord, match="public"):
        query_index({**file, "format": GeneratedFile.FORMAT})
