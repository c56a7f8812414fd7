"""Receipts of windows whose rows carry id keys: the secret, and whose key a row has (spec 5.16)."""

from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from integrity_scene import IN_ENGLISH, KEYS, ROWS, SECRET, integrity_scene
from ragaudit.encoding import canonical_json
from ragaudit.ledger.messages.documents import id_key
from ragaudit.ledger.messages.receipts import ReceiptFile, UnservedRow, unserved_bytes
from receipt_scene import Scene


def owned(keys: bytes = KEYS, **asked: Any) -> Scene:
    return integrity_scene(keys=keys, **asked)


def swapped(one: int, other: int) -> bytes:
    """The keys of the rows, of which two are listed as each other."""
    keys = [KEYS[32 * at : 32 * at + 32] for at in range(ROWS)]
    keys[one], keys[other] = keys[other], keys[one]
    return b"".join(keys)


def fails(made: Scene, message: str) -> None:
    made.fails(8, message, embed=None)


ASKED: tuple[dict[str, Any], ...] = (
    {}, {"top_k": 3}, {"filter_text": IN_ENGLISH}, {"version": 2}, {"withdrawn": (0,)},
    {"filter_text": IN_ENGLISH, "withdrawn": (1, 3)},
    {"filter_text": IN_ENGLISH, "version": 2},
    {"filter_text": '{"key":"lang","op":"eq","value":"fr"}'},
)  # fmt: skip


@for_each("asked", ASKED)
def test_honest_answers_pass(asked: dict[str, Any]) -> None:
    made = owned(**asked)
    steps = made.check(embed=None)
    assert [step.name for step in steps if step.status == "not done"] == ["embedder"]
    file = made.file()
    assert ReceiptFile.parse(file.encode()) == file
    assert file.to_json()["private"]["document_secret"] == SECRET.hex()


def test_a_receipt_without_owners_is_what_it_was() -> None:
    made = integrity_scene(filter_text=IN_ENGLISH)
    private = made.file().to_json()["private"]
    assert "document_secret" not in private
    assert all("id_key" not in row for row in private["ties"]["rows"])


# What a provider could try


@pytest.mark.parametrize("version", [1, 2])
def test_a_row_is_listed_under_the_key_of_another_document(version: int) -> None:
    """So it could be said to be gone while it is served; whoever is served sees the key."""
    made = owned(swapped(0, 5), version=version)
    assert made.answer.documents[0].position == 0
    fails(made, "row of C_idx: not the committed value")


def test_a_row_is_listed_under_a_key_of_nobody() -> None:
    fails(owned(bytes(32) + KEYS[32:]), "not the committed value")


def test_the_secret_is_the_committed_one() -> None:
    made = owned()
    fails(made.with_private(document_secret=bytes(32)), "not the committed document secret")
    fails(made.with_private(document_secret=None), "document secret")
    # Also where nothing is served: the account would else hold a key that opens nothing.
    none = owned(filter_text='{"key":"lang","op":"eq","value":"fr"}')
    assert not none.answer.documents
    fails(none.with_private(document_secret=bytes(32)), "not the committed document secret")


def test_a_secret_where_no_owner_checks() -> None:
    fails(
        integrity_scene().with_private(document_secret=SECRET), "none with noise, or without owners"
    )


@pytest.mark.parametrize("made", [owned(), integrity_scene()])
def test_a_key_of_a_served_row_where_none_belongs(made: Scene) -> None:
    first, *others = made.private.rows
    rows = (replace(first, id_key=KEYS[:32]), *others)
    fails(made.with_private(rows=rows), "expected none without noise and owners")


def test_an_opening_that_commits_to_no_secret() -> None:
    made = owned()
    opening = made.view.opening
    first, second = opening.tenants
    without = replace(opening, tenants=(replace(first, id_commitment=None), second))
    fails(replace(made, view=replace(made.view, opening=without)), "not the committed document")


def test_an_unserved_row_has_the_key_of_its_leaf() -> None:
    made = owned(filter_text=IN_ENGLISH)
    ties = made.private.ties
    assert ties is not None
    first, *others = ties.rows
    for key in (None, bytes(32)):
        rows = (replace(first, id_key=key), *others)
        fails(made.with_private(ties=replace(ties, rows=rows)), "not the committed value")


def test_a_withdrawn_row_has_the_key_of_the_id_that_it_is_named_by() -> None:
    """Of rows that are opened; it could else be withdrawn as one document and listed as another."""
    made = owned(swapped(3, 5), filter_text=IN_ENGLISH, withdrawn=(3,))
    assert made.private.ties is not None
    fails(made, "the id key of another document")


# Forms


def test_keys_count_in_what_unserved_rows_take_of_a_file() -> None:
    for rows in (1, 1000, 2**32 - 1):
        path = (bytes(32),) * (rows - 1).bit_length()
        made = UnservedRow(rows - 1, bytes(32), "{}", bytes(32), path, bytes(32))
        size = len(canonical_json.dumps(made.to_json())) + 1
        assert size <= unserved_bytes(["{}"], rows, owned=True) <= 2 * size


def test_no_repr_shows_the_secret() -> None:
    shown = repr(owned(filter_text=IN_ENGLISH).file())
    assert SECRET.hex() not in shown and repr(SECRET) not in shown


def test_the_keys_are_those_of_the_ids() -> None:
    assert KEYS[:32] == id_key("w1", "acme", SECRET, "doc 0")
