"""Problem documents: what one party says of an error, another can repeat."""

from typing import Any

import pytest
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.problems import problem, reason


def test_the_reason_is_what_the_error_said() -> None:
    error = RejectedError("another key", where="keys", expected="ours")
    assert reason(problem(error, 422)) == str(error)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"detail": "d", "title": "t"}, "d"),
        ({"detail": "", "title": "t"}, "t"),
        ({"detail": 1, "title": "t"}, "t"),
        ({"detail": ["d"]}, ""),
        ({}, ""),
        ([], ""),
        (None, ""),
        ("detail", ""),
    ],
)
def test_documents_of_another_form_give_no_reason(document: Any, said: str) -> None:
    assert reason(document) == said
