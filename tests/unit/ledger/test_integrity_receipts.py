"""Receipts of windows without noise: scores, order, filters, ties, withdrawn rows, versions."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import integrity_scene as integrity
import pytest
from for_each import for_each
from integrity_scene import (
    IN_ENGLISH,
    NOISE,
    document,
    index,
    integrity_scene,
    policy_value,
    with_ties,
)
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import (
    AccountView,
    WindowView,
    _Check,
    check_openings,
    check_rows,
)
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import (
    Answer,
    Document,
    Request,
    embedding_digest,
    float32_bytes,
)
from ragaudit.ledger.messages.ties import first_of
from receipt_scene import OPERATIONS, Scene, changed


def check(made: Scene) -> list[str]:
    steps = made.check(embed=None)
    return [step.name for step in steps if step.status == "not done"]


def fails(made: Scene, step: int, message: str) -> None:
    made.fails(step, message, embed=None)


# Honest answers


@for_each(
    "asked",
    [
        {},
        {"asked": "what is it?"},
        {"filter_text": IN_ENGLISH},
        {"filter_text": IN_ENGLISH, "top_k": 3},
        {"top_k": 1},
        {"top_k": 3},
        {"version": 2},
        {"withdrawn": (0,)},
        {"filter_text": IN_ENGLISH, "withdrawn": (3,)},
        {"filter_text": IN_ENGLISH, "withdrawn": (1, 3)},
        {"filter_text": '{"key":"lang","op":"eq","value":"fr"}'},
        {"filter_text": '{"key":"lang","op":"eq","value":"de"}'},
    ],
)
def test_honest_answers_pass(asked: dict[str, Any]) -> None:
    made = integrity_scene(**asked)
    assert check(made) == ["embedder"]
    file = made.file()
    assert ReceiptFile.parse(file.encode()) == file
    assert file.to_json()["format"] == "ragaudit/v1/receipt/file"
    assert file.to_json()["private"]["format"] == "ragaudit/v1/receipt/private"


def test_the_best_come_first_and_among_equals_the_first_positions() -> None:
    positions = [d.position for d in integrity_scene(top_k=3).answer.documents]
    assert positions == [0, 2, 1]
    english = integrity_scene(filter_text=IN_ENGLISH, top_k=2)
    assert [d.position for d in english.answer.documents] == [1, 3]
    assert english.private.selected == (1, 3, 4, 6)
    assert english.private.ties is not None
    assert [row.position for row in english.private.ties.rows] == [4, 6]


# What a provider could try


def test_a_row_of_ties_is_passed_over() -> None:
    fails(integrity_scene(filter_text=IN_ENGLISH, top=(1, 4)), 8, "passed over")
    fails(integrity_scene(filter_text=IN_ENGLISH, top=(4, 6)), 8, "passed over")


def test_a_better_row_is_left_out_and_called_a_tie() -> None:
    # T is {0, 1, 2, 3, 4, 6} at K = 3: rows 0 and 2 are better than the tied ones.
    fails(integrity_scene(top_k=3, top=(2, 1, 3)), 8, "passed over")


def test_the_opening_must_be_of_this_answer() -> None:
    other = integrity_scene(filter_text=IN_ENGLISH, version=2).private.ties
    assert other is not None
    made = integrity_scene(filter_text=IN_ENGLISH)
    fails(made.with_private(ties=other), 8, "not the committed value")
    assert made.private.ties is not None
    fails(made.with_private(ties=replace(made.private.ties, proof=bytes(32))), 8, "toy opening")
    fails(made.with_private(ties=None), 7, "other rows opened")
    short = replace(made.private.ties, rows=made.private.ties.rows[:1])
    fails(made.with_private(ties=short), 7, "other rows opened")
    fails(integrity_scene(top_k=1).with_private(ties=made.private.ties), 7, "other rows opened")


def test_a_score_is_the_rows_own() -> None:
    made = integrity_scene()
    first, *others = made.answer.documents
    assert first.score is not None
    better = replace(first, score=first.score + 1)
    fails(replace(made, answer=Answer((better, *others))), 8, "another score")
    without = Answer(tuple(replace(d, score=None) for d in made.answer.documents))
    fails(replace(made, answer=without), 7, "scores")


def test_nothing_is_drawn_so_no_record_has_a_nonce() -> None:
    made = integrity_scene()
    asked = replace(made, request=replace(made.request, counter=2))
    fails(asked.with_record(nonce=bytes(32)), 3, "no noise is drawn")


def test_a_filter_is_honoured() -> None:
    rows, _ = index(1)
    made = integrity_scene(filter_text=IN_ENGLISH, top_k=2)
    german = rows[0]
    # With the score that it has, at its place, and committed: only the filter is against it.
    score = sum(a * b for a, b in zip(german.vector, made.private.openings.embedding, strict=True))
    selected = (0, 1, 3, 4, 6)
    forged = replace(
        made, answer=Answer((document(german, score), made.answer.documents[0]))
    ).with_private(selected=selected, rows=(german, rows[1]))
    forged = forged.with_record(
        selection_commitment=OPERATIONS.commit_selection(selected, made.private.selection_blinding)
    )
    fails(with_ties(forged), 8, "does not pass the filter")


def test_an_unserved_row_passes_the_filter_too() -> None:
    made = integrity_scene(filter_text=IN_ENGLISH)
    selected = (1, 2, 3, 4, 6)
    forged = made.with_private(selected=selected).with_record(
        selection_commitment=OPERATIONS.commit_selection(selected, made.private.selection_blinding)
    )
    fails(with_ties(forged), 8, "row 2")


def test_columns_and_attributes_are_the_committed_ones() -> None:
    made = integrity_scene()
    for change in ({"columns": '{"lang":"en","year":2001}'}, {"attributes": ""}):
        row, *rows = made.private.rows
        first, *others = made.answer.documents
        forged = replace(made, answer=Answer((replace(first, **change), *others)))  # type: ignore[arg-type]
        forged = forged.with_private(rows=(replace(row, **change), *rows))  # type: ignore[arg-type]
        fails(forged, 8, "row of C_idx")
        fails(replace(forged, private=made.private), 7, "not the receipt's rows")


def test_a_row_of_another_version_or_tenant() -> None:
    old = integrity_scene()
    fails(
        replace(integrity_scene(version=2), answer=old.answer, private=old.private),
        8,
        "row of C_idx",
    )
    stale = integrity_scene().with_record(version=2, time=1_600_000, activation=2)
    fails(stale, 8, "row of C_idx")
    fails(integrity_scene().with_record(tenant="zeta"), 3, "acme")
    other = replace(
        integrity_scene().with_record(tenant="zeta"),
        account=AccountView("zeta", integrity_scene().account.pseudonym, 1, 1, 2),
    )
    other = replace(other, view=replace(other.view, versions=()))
    fails(other, 8, "row of C_idx")


def test_the_version_in_force_is_the_one_of_the_time() -> None:
    fails(integrity_scene().with_record(time=1_600_000), 3, "version")
    fails(integrity_scene(version=2).with_record(time=1_200_000), 3, "version")
    fails(integrity_scene(version=2).with_record(activation=1), 3, "activation")
    fails(integrity_scene().with_record(version=3), 3, "version")
    made = integrity_scene(version=2)
    unknown = replace(made, view=WindowView(made.view.policy, made.view.opening, (2, 3)))
    fails(unknown, 3, "version")
    late = replace(made, view=replace(made.view, covered_sizes=()))
    assert check(late) == ["body", "embedder"]


def test_withdrawn_rows_are_first_ones_and_named_once() -> None:
    made = integrity_scene(withdrawn=(0,))
    assert [d.position for d in made.answer.documents] == [2]
    fails(made.with_private(withdrawn=()), 7, "1 rows served")
    again = replace(made.private.withdrawn[0], position=2)
    fails(made.with_private(withdrawn=(again,)), 7, "named twice")
    fails(made.with_private(withdrawn=(replace(again, position=5),)), 7, "not selected")
    for counted in (None, 0, 2):
        other = replace(made, record=replace(made.record, withheld=counted))
        fails(other, 7, f"the record counts {counted} rows")
    scored = replace(made.private.withdrawn[0], score=1)
    fails(made.with_private(withdrawn=(scored,)), 7, "scores of withdrawn")
    tied = integrity_scene(filter_text=IN_ENGLISH, withdrawn=(3,))
    bare = replace(tied.private.withdrawn[0], score=None)
    fails(tied.with_private(withdrawn=(bare,)), 7, "scores of withdrawn")


def test_a_row_without_a_text_has_no_embedding_to_repeat() -> None:
    made = integrity_scene()
    texts: list[str] = []

    def embed(asked: Sequence[str]) -> list[tuple[int, ...]]:
        texts.extend(asked)
        return [row.vector for row in made.private.rows if row.content.strip()]

    first, *rest = made.private.rows
    made = made.with_private(rows=(replace(first, content=" "), *rest))
    checking = _Check(made.file(), made.view, OPERATIONS, None, None, embed, AccountView())
    assert checking.embedder() is None
    assert texts == [row.content for row in rest]


def test_a_deleted_row_is_not_served() -> None:
    made = integrity_scene(top_k=7)
    assert 7 in made.private.selected
    fails(made, 8, "a deleted row")
    assert check(integrity_scene(top_k=7, withdrawn=(7,))) == ["embedder"]


def test_a_row_that_is_marked_as_deleted_is_of_no_selection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not served, and not among the rows that tie: it would keep a document out of the first K."""
    everyone = tuple(range(integrity.ROWS))
    assert check(integrity_scene(version=2, top_k=7)) == ["embedder"]
    assert 7 not in integrity_scene(version=2, top_k=7).private.selected
    fails(integrity_scene(version=2, top_k=7, let=everyone), 8, "a row marked as deleted")
    monkeypatch.setattr(integrity, "DELETED", {6})
    monkeypatch.setattr(integrity, "index", integrity.index.__wrapped__)
    made = integrity_scene(version=2, filter_text=IN_ENGLISH, let=(1, 3, 4, 6))
    assert made.private.ties is not None and made.private.ties.rows[-1].position == 6
    fails(made, 8, "a row marked as deleted")


def test_a_document_whose_vector_rounds_to_zero_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner products have one scale for all rows: far below it a vector is zero (2.5)."""
    monkeypatch.setattr(integrity, "DELETED", set())
    monkeypatch.setattr(integrity, "index", integrity.index.__wrapped__)
    made = integrity_scene(top_k=7)
    assert not any(made.private.rows[-1].vector)
    assert check(made) == ["embedder"]


def test_a_row_that_does_not_pass_the_filter_is_not_hidden_among_the_ties() -> None:
    """Four rows tie and one of them lacks the year: a T that holds it is of another filter."""
    since = '{"key":"year","op":"ge","value":2002}'
    assert check(integrity_scene(filter_text=since)) == ["embedder"]
    made = integrity_scene(filter_text=since, let=(1, 3, 4, 6))
    assert made.private.ties is not None and made.private.ties.rows[0].position == 4
    fails(made, 8, "does not pass the filter")


def test_a_question_of_a_kind_that_the_window_does_not_know() -> None:
    for kinds, asked in ((["vector"], "a text"), (["text"], integrity.ASKED)):
        made = integrity_scene(asked=asked)
        other = Policy.from_json(policy_value(query_kinds=kinds))
        openings, request = made.private.openings, made.request
        with pytest.raises(UnsupportedError, match=f"a {request.kind}"):
            check_openings(openings, made.record, request, other, OPERATIONS)


def test_a_vector_is_quantised_exactly() -> None:
    made = integrity_scene()
    request = Request.of(made.view.policy, float32_bytes([0.5, 0.25, 0.125, 0.1]), 2)
    fails(replace(made, request=request), 5, "another query")
    embedding = (*made.private.openings.embedding[:3], 0)
    openings = replace(made.private.openings, embedding=embedding)
    digest = embedding_digest(openings.salt_e, embedding)
    moved = made.with_private(openings=openings).with_record(embedding_digest=digest)
    fails(moved, 5, "not the integers of the vector")


def test_a_request_that_the_window_does_not_take() -> None:
    made = integrity_scene()
    undeclared = '{"key":"secret","op":"eq","value":"en"}'
    fails(replace(made, request=replace(made.request, filter=undeclared)), 5, "undeclared")
    fails(integrity_scene().with_record(nonce=bytes(32)), 3, "nonce")


# Against everything else that could be answered


@pytest.mark.parametrize("asked", [{"top_k": 3}, {"top_k": 2, "filter_text": IN_ENGLISH}])
def test_of_all_choices_of_k_rows_the_first_ones_alone_pass(asked: dict[str, Any]) -> None:
    honest = integrity_scene(**asked)
    top_k, selected = asked["top_k"], honest.private.selected
    rows, _ = index(1)
    embedding = honest.private.openings.embedding
    scores = {
        i: sum(a * b for a, b in zip(rows[i].vector, embedding, strict=True)) for i in selected
    }
    first = set(first_of(scores, top_k))
    for chosen in combinations(selected, top_k):
        ranked = sorted(chosen, key=lambda i: (-scores[i], i))
        for left_out in (*((i,) for i in chosen), ()):
            made = integrity_scene(**asked, top=ranked, withdrawn=left_out)
            least = min(scores[i] for i in chosen)
            # An opening proves this much of the rest (4.6.10), so a false one does not exist.
            provable = all(scores[i] == least for i in selected if i not in chosen)
            if set(chosen) == first:
                assert provable
                assert check(made) == ["embedder"]
            elif provable:
                fails(made, 8, "passed over")


# With noise


def test_a_noised_window_of_version_2_shows_no_scores_and_no_order() -> None:
    noised = Policy.from_json(policy_value(**NOISE))
    made = integrity_scene(withdrawn=(0,), top_k=3)
    documents = sorted(made.answer.documents, key=lambda document: document.position)
    without = Answer(tuple(replace(document, score=None) for document in documents))
    rows = tuple(sorted(made.private.rows, key=lambda row: row.position))
    private = replace(
        made.private, selected=(0, 1, 2), rows=rows, ties=None,
        withdrawn=tuple(replace(row, score=None) for row in made.private.withdrawn),
    )  # fmt: skip
    file = replace(made.file(), answer=without, private=private)
    record = replace(made.record, withheld=None)
    check_rows(file, record, noised)
    with pytest.raises(ReceiptRejected, match=r"the record counts 0 rows .expected None"):
        check_rows(file, replace(record, withheld=0), noised)
    change: dict[str, Any]
    for change, message in (
        ({"answer": Answer(tuple(sorted(made.answer.documents, key=by_score)))}, "scores|rows"),
        ({"private": replace(private, rows=rows[::-1])}, "not the selected ones"),
        ({"private": replace(private, withdrawn=())}, "2 rows served"),
        ({"private": replace(private, ties=made.private.ties)}, "other rows opened"),
        ({"private": made.private}, "other rows opened|scores of withdrawn|not the selected"),
    ):
        with pytest.raises(ReceiptRejected, match=message):
            check_rows(replace(file, **change), record, noised)


def by_score(document: Document) -> tuple[int, int]:
    return -(document.score or 0), document.position


@pytest.mark.parametrize(
    "asked",
    [
        {"filter_text": IN_ENGLISH, "withdrawn": (3,)},
        {"top_k": 3},
        {"filter_text": IN_ENGLISH, "withdrawn": (3,), "keys": integrity.KEYS},
    ],
)
def test_no_member_of_the_file_can_change(asked: dict[str, Any]) -> None:
    made = integrity_scene(**asked)
    honest = made.file().to_json()
    paths = leaves(honest)
    assert len(paths) > 60
    for path in paths:
        file = copy.deepcopy(honest)
        place = file
        for each in path[:-1]:
            place = place[each]
        place[path[-1]] = changed(place[path[-1]])
        with pytest.raises((ReceiptRejected, MalformedError, UnsupportedError)):
            made.check(file=file, embed=None)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [each for name in value for each in leaves(value[name], (*path, name))]
    if isinstance(value, list):
        return [each for i, item in enumerate(value) for each in leaves(item, (*path, i))]
    return [path]
