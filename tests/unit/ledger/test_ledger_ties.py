"""Which rows of T are answered, and the statement of it (docs/spec 4.6.10)."""

from dataclasses import dataclass
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.ties import TiesStatement, check_named, first_of

SCORES = {0: 9, 1: 9, 3: 10, 4: 9, 5: 9}
POINTS = {position: bytes([position]) * 32 for position in SCORES}


@dataclass(frozen=True)
class Record:
    rows: int = 7
    top_k: int = 2


def statement(**changes: Any) -> TiesStatement:
    arguments: dict[str, Any] = {
        "body": b"body", "index_root": bytes(32), "query": [3, -1], "selected": tuple(SCORES),
        "served": {0: 9}, "withdrawn": {3: 10}, "commitments": POINTS, "squared_norm": 127**2,
    }  # fmt: skip
    return TiesStatement.of(Record(), **(arguments | changes))


def test_a_statement_names_every_row_of_t() -> None:
    made = statement()
    assert made.served == ((0, 9),) and made.withdrawn == ((3, 10),) and made.others == (1, 4, 5)
    assert made.unserved == (1, 3, 4, 5)
    assert made.commitments == b"".join(POINTS[i] for i in made.unserved)
    assert made.context == structure("context/ties", bytes(32), b"body")
    assert (made.rows, made.top_k, made.query) == (7, 2, (3, -1))


def test_rows_are_listed_in_rising_order() -> None:
    made = statement(served={5: 9, 0: 9}, withdrawn={4: 9, 3: 10}, selected=[5, 4, 3, 1, 0])
    assert made.served == ((0, 9), (5, 9)) and made.withdrawn == ((3, 10), (4, 9))
    assert made.others == (1,)


@for_each(
    "changes",
    [
        {"served": {2: 9}},
        {"withdrawn": {6: 9}},
        {"served": {3: 10}},
        {"commitments": {1: bytes(32)}},
        {"commitments": POINTS | {4: bytes(31)}},
        {"index_root": bytes(31)},
    ],
)
def test_statements_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        statement(**changes)


def test_the_query_is_not_shown() -> None:
    assert "-1" not in repr(statement(query=[3, -1])).split("context")[1].split("rows")[1]
    assert "query" not in repr(statement())


@given(st.dictionaries(st.integers(0, 99), st.integers(-3, 3)), st.integers(1, 9))
def test_the_first_rows_precede_all_others(scores: dict[int, int], top_k: int) -> None:
    first = first_of(scores, top_k)
    assert len(first) == len(set(first)) == min(top_k, len(scores))
    order = [(-scores[i], i) for i in first]
    assert order == sorted(order)
    assert all((-scores[i], i) > order[-1] for i in scores if i not in first)


@pytest.mark.parametrize(
    ("selected", "served", "withdrawn", "top_k"),
    [
        ([1, 2], [1], [2], 2), ([1, 2], [1, 2], [], 5), ([1, 2], [], [1, 2], 5), ([], [], [], 3),
        ([1, 2, 3], [3], [1], 2),
    ],
)  # fmt: skip
def test_answers_that_name_the_first_rows(
    selected: list[int], served: list[int], withdrawn: list[int], top_k: int
) -> None:
    check_named(selected, served, withdrawn, top_k)


@for_each(
    ("selected", "served", "withdrawn", "top_k", "reason"),
    [
        ([1, 2], [1], [], 2, "1 rows served or withdrawn"),
        ([1, 2], [1], [1], 2, "named twice"),
        ([1, 2], [1, 1], [], 2, "named twice"),
        ([1, 2], [1], [3], 2, "not selected"),
        ([1, 2, 3], [1, 2], [3], 2, "3 rows served or withdrawn"),
        ([1, 2, 3], [1], [], 2, "1 rows served or withdrawn"),
    ],
)
def test_answers_that_do_not(
    selected: list[int], served: list[int], withdrawn: list[int], top_k: int, reason: str
) -> None:
    with pytest.raises(ReceiptRejected, match=reason):
        check_named(selected, served, withdrawn, top_k)
