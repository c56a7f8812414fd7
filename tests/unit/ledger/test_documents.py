"""Id keys, document lists, and what they prove present and absent (spec 5.16)."""

import json
from dataclasses import replace
from io import BytesIO
from typing import Any, NamedTuple

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.tagged import decode, enc
from ragaudit.ledger.errors import CommitmentRejected, MalformedRecord, ProofRejected
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    IndexTree,
    index_leaf,
    index_leaves,
    index_root,
    verify_index_row,
)
from ragaudit.ledger.messages.documents import (
    DocumentList,
    DocumentLives,
    Life,
    check_secret,
    document_row,
    id_commitment,
    id_key,
    id_keys,
)
from ragaudit.ledger.messages.entries import Documents, Opening, TenantOpening, parse_body
from ragaudit.ledger.messages.handover import check_index_lengths
from ragaudit.ledger.messages.sorted_rows import (
    FIRST,
    LAST,
    KeyedRow,
    ProvenRow,
    SortedRows,
    verify_absent,
    verify_present,
)
from vector_scripts import VECTORS

VECTOR: dict[str, Any] = json.loads((VECTORS / "documents.json").read_bytes())
PLACE = WINDOW, TENANT = VECTOR["window"], VECTOR["tenant"]
SECRET = bytes.fromhex(VECTOR["secret"])
IDS = [each["id"] for each in VECTOR["ids"]]
INDEXES = [IndexCommitment.parse(bytes.fromhex(each["commitment"])) for each in VECTOR["indexes"]]
INDEX = INDEXES[0]


def listed(indexes: list[IndexCommitment] | None = None) -> DocumentList:
    lives = DocumentLives(*PLACE)
    for index in INDEXES if indexes is None else indexes:
        lives.add(index)
    return lives.listed()


# --- as the specification writes them


def test_keys_and_commitment_are_those_of_the_specification() -> None:
    assert id_commitment(*PLACE, SECRET).hex() == VECTOR["id_commitment"]
    keys = [each["key"] for each in VECTOR["ids"]]
    assert [id_key(*PLACE, SECRET, name).hex() for name in IDS] == keys
    assert id_keys(*PLACE, SECRET, IDS).hex() == "".join(keys)


def test_indexes_with_keys_are_those_of_the_specification() -> None:
    for version, (index, case) in enumerate(zip(INDEXES, VECTOR["indexes"], strict=True), 1):
        assert index.version == version and index.encode().hex() == case["commitment"]
        assert index.id_keys == id_keys(*PLACE, SECRET, IDS[: index.rows])
        parts = index.commitments, index.row_digests, index.columns, index.id_keys
        assert [leaf.hex() for leaf in index_leaves(*parts)] == case["leaves"]
        assert index.root.hex() == case["root"]


def test_an_opening_that_commits_to_a_secret_is_that_of_the_specification() -> None:
    opened = TenantOpening.parse(bytes.fromhex(VECTOR["opening"]))
    assert opened.encode().hex() == VECTOR["opening"]
    stated = replace(INDEX.opening(), id_commitment=id_commitment(*PLACE, SECRET))
    assert opened == stated
    check_secret(*PLACE, SECRET, opened.id_commitment)


def test_the_document_list_is_that_of_the_specification() -> None:
    made = listed()
    body = bytes.fromhex(VECTOR["body"])
    assert made.entry.encode() == body and parse_body("documents", body) == made.entry
    tree = MemoryTree(map(bytes.fromhex, VECTOR["rows"]))
    for position, name in enumerate(IDS):
        lives = tuple(tuple(life) for life in VECTOR["lives"][position])
        assert made.lives(position) == lives
        (row,) = made.prove(id_key(*PLACE, SECRET, name))
        assert made.position(row) == position
        assert row.row.encode().hex() == VECTOR["rows"][row.position]
        assert row.path == tree.inclusion_proof(row.position)
        assert row.row == document_row(row.row.key, position, lives, made.row_digest(position))


# --- presence and absence


class Step(NamedTuple):
    """What a version adds, and which of the rows are then marked."""

    added: int
    marked: frozenset[int]


STEPS = st.lists(st.builds(Step, st.integers(0, 3), st.frozensets(st.integers(0, 11))), max_size=5)


def index_of(version: int, rows: int, marked: frozenset[int]) -> IndexCommitment:
    texts = tuple(NULL_ROW if i in marked else NO_COLUMNS for i in range(rows))
    return IndexCommitment(
        *PLACE, version, 3,
        b"".join(b"C%31d" % i for i in range(rows)),
        b"".join(b"%16d%16d" % (version, i) for i in range(rows)),
        b"proof",
        texts if set(texts) != {NO_COLUMNS} else (),
        id_keys(*PLACE, SECRET, map(str, range(rows))),
    )  # fmt: skip


def lives_by_looking(marks: list[tuple[int, frozenset[int]]], position: int) -> list[Life]:
    """The slow way: each version by itself, and then intervals."""
    live = [v for v, (n, marked) in enumerate(marks, 1) if position < n and position not in marked]
    starts = [v for v in live if v - 1 not in live]
    return [(a, next(v for v in range(a, 99) if v + 1 not in live)) for a in starts]


@given(st.integers(1, 4), STEPS)
def test_lives_are_the_intervals_in_which_a_row_is_not_marked(
    first: int, steps: list[Step]
) -> None:
    marks = [(first, frozenset[int]())]
    for step in steps:
        marks.append((marks[-1][0] + step.added, step.marked))
    made = listed([index_of(v, *each) for v, each in enumerate(marks, 1)])
    count = marks[-1][0]
    assert (made.entry.version, made.entry.documents) == (len(marks), count)
    for position in range(count):
        assert list(made.lives(position)) == lives_by_looking(marks, position)
        appeared = next(v for v, (n, _) in enumerate(marks, 1) if position < n)
        assert made.row_digest(position) == b"%16d%16d" % (appeared, position)


@given(st.sets(st.text(min_size=1, max_size=4), min_size=1), st.sets(st.text(min_size=1)))
def test_every_document_is_proven_present_or_absent(there: set[str], asked: set[str]) -> None:
    ids = sorted(there)
    keys = id_keys(*PLACE, SECRET, ids)
    index = IndexCommitment(
        *PLACE, 1, 3, bytes(len(keys)), bytes(len(keys)), b"proof", id_keys=keys
    )
    made = listed([index])
    head: dict[str, Any] = {"count": made.entry.documents, "root": made.entry.list_root}
    for name in there | asked:
        key = id_key(*PLACE, SECRET, name)
        rows = made.prove(key)
        assert rows == tuple(ProvenRow.from_json(row.to_json()) for row in rows)
        assert len(rows) == (1 if name in there else 2)
        if name in there:
            verify_present(rows[0], key, **head)
            assert ids[made.position(rows[0])] == name
        else:
            verify_absent(rows, key, **head)


# --- lies


def test_a_document_that_is_there_cannot_be_denied() -> None:
    made = listed()
    head: dict[str, Any] = {"count": made.entry.documents, "root": made.entry.list_root}
    rows = [made._rows.proven(i) for i in range(made.entry.documents + 2)]
    key = rows[2].row.key
    for pair in ((rows[1], rows[3]), (rows[1], rows[2]), (rows[2], rows[3]), (rows[3], rows[4])):
        with pytest.raises(ProofRejected, match=r"no neighbours|does not belong"):
            verify_absent(pair, key, **head)
    for pair in ((rows[3], rows[1]), (rows[2], rows[2])):
        with pytest.raises(ProofRejected, match="no neighbours"):
            verify_absent(pair, key, **head)
    with pytest.raises(ProofRejected, match="another key"):
        verify_present(rows[1], key, **head)
    with pytest.raises(ProofRejected, match="another root"):
        verify_present(replace(rows[2], key=key, digest=bytes(32)), key, **head)
    with pytest.raises(ProofRejected, match="another root"):
        verify_absent((rows[1], replace(rows[2], key=LAST.key, digest=LAST.digest)), key, **head)


def test_the_rows_at_both_ends_are_nobodys() -> None:
    empty = SortedRows([FIRST.encode(), LAST.encode()])
    rows = empty.prove(b"k" * 32)
    assert [row.row for row in rows] == [FIRST, LAST] and empty.count == 0
    verify_absent(rows, b"k" * 32, count=0, root=empty.root)


def test_a_position_keeps_its_key() -> None:
    turned = replace(INDEXES[1], id_keys=INDEXES[1].id_keys[32:] + INDEXES[1].id_keys[:32])
    with pytest.raises(CommitmentRejected, match="another id key") as error:
        listed([INDEX, turned])
    assert error.value.where == "position 0 of version 2"
    last = replace(INDEXES[1], id_keys=bytes(32).join([INDEXES[1].id_keys[:64], bytes(32)]))
    with pytest.raises(CommitmentRejected, match="another id key") as error:
        listed([INDEX, last])
    assert error.value.where == "position 2 of version 2"


def test_two_positions_have_two_keys() -> None:
    keys = INDEXES[1].id_keys
    twice = replace(INDEXES[1], id_keys=keys[:96] + keys[:32])
    with pytest.raises(CommitmentRejected, match="one id key twice") as error:
        listed([INDEX, twice])
    assert error.value.where == "positions 0 and 3"


@pytest.mark.parametrize("position", [0, 2])
@pytest.mark.parametrize("nobody", [FIRST, LAST])
def test_nobodys_keys_are_no_documents(position: int, nobody: KeyedRow) -> None:
    """Rows rise strictly, also beside the two at the ends."""
    keys = INDEX.id_keys[: 32 * position] + nobody.key + INDEX.id_keys[32 * position + 32 :]
    with pytest.raises(CommitmentRejected, match="nobody's id key") as error:
        listed([replace(INDEX, id_keys=keys)])
    assert error.value.where == f"position {position}"


@pytest.mark.parametrize(
    ("indexes", "what"),
    [
        ([INDEXES[1]], "does not follow"),
        ([INDEX, INDEX], "does not follow"),
        ([INDEX, INDEXES[2]], "does not follow"),
        ([replace(INDEXES[1], version=1), replace(INDEX, version=2)], "does not follow"),
        ([replace(INDEX, id_keys=b"")], "no id key a row"),
    ],
)
def test_versions_follow_each_other(indexes: list[IndexCommitment], what: str) -> None:
    with pytest.raises(MalformedRecord, match=what):
        listed(indexes)


def test_a_secret_opens_its_commitment_alone() -> None:
    commitment = id_commitment(*PLACE, SECRET)
    for window, tenant, secret in (
        ("w0", TENANT, SECRET), (WINDOW, "t", SECRET), (*PLACE, bytes(32)),
    ):  # fmt: skip
        with pytest.raises(CommitmentRejected, match="document secret"):
            check_secret(window, tenant, secret, commitment)
    with pytest.raises(CommitmentRejected):
        check_secret(*PLACE, SECRET, None)
    for short in (b"", bytes(31), bytes(33)):
        with pytest.raises(MalformedRecord, match="another length"):
            id_commitment(*PLACE, short)
        with pytest.raises(MalformedRecord, match="another length"):
            id_key(*PLACE, short, "a")
    with pytest.raises(MalformedRecord, match="document id"):
        id_key(*PLACE, SECRET, "")


def test_a_key_is_of_one_window_tenant_and_secret() -> None:
    keys = {
        id_key(window, tenant, secret, "a")
        for window in ("w1", "w2") for tenant in ("t1", "t2") for secret in (SECRET, bytes(32))
    }  # fmt: skip
    assert len(keys) == 8


def test_no_error_shows_a_secret() -> None:
    with pytest.raises(CommitmentRejected) as error:
        check_secret(*PLACE, SECRET, bytes(32))
    assert SECRET.hex() not in repr(error.value) + str(error.value)


# --- forms


@for_each(
    "change",
    [
        {"window": "W"}, {"tenant": ""}, {"version": 0}, {"version": 2**32}, {"documents": 0},
        {"documents": 2**40 + 1}, {"list_root": b"r"},
    ],
)  # fmt: skip
def test_an_entry_out_of_range_is_malformed(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedRecord):
        replace(listed().entry, **change)


@pytest.mark.parametrize("life", [(0, 1), (1, 2**32)])
def test_a_life_out_of_range_is_malformed(life: Life) -> None:
    with pytest.raises(MalformedRecord, match="version"):
        document_row(bytes(32), 0, [life], bytes(32))


def test_the_kind_of_an_entry_is_hashed_too() -> None:
    with pytest.raises(MalformedRecord):
        parse_body("accounts", bytes.fromhex(VECTOR["body"]))
    assert isinstance(parse_body("documents", bytes.fromhex(VECTOR["body"])), Documents)


def test_leaves_that_are_cut_out_of_one_are_those_of_each_row() -> None:
    for keys in (INDEX.id_keys, b""):
        made = list(index_leaves(INDEX.commitments, INDEX.row_digests, (), keys))
        for at, leaf in enumerate(made):
            part = slice(32 * at, 32 * at + 32)
            key = keys[part] if keys else None
            row = INDEX.commitments[part], INDEX.row_digests[part]
            assert leaf == index_leaf(*row, NO_COLUMNS, key)


def test_a_leaf_has_the_key_of_its_row() -> None:
    parts = INDEX.commitments, INDEX.row_digests, INDEX.columns
    tree = IndexTree(*parts, INDEX.id_keys)
    assert tree.root == INDEX.root != index_root(*parts)
    row: dict[str, Any] = {
        "root": INDEX.root, "rows": 3, "position": 1, "commitment": INDEX.commitments[32:64],
        "row": INDEX.row_digests[32:64], "path": tree.path(1), "columns": INDEX.columns[1],
    }  # fmt: skip
    verify_index_row(**row, id_key=INDEX.id_keys[32:64])
    for other in (None, INDEX.id_keys[:32]):
        with pytest.raises(CommitmentRejected, match="not the committed"):
            verify_index_row(**row, id_key=other)
    with pytest.raises(MalformedRecord):
        index_leaf(bytes(32), bytes(32), id_key=b"")


def test_an_index_has_keys_of_all_rows_or_of_none() -> None:
    for keys in (INDEX.id_keys[:-1], INDEX.id_keys[32:], INDEX.id_keys + bytes(32)):
        with pytest.raises(MalformedRecord, match="id keys"):
            replace(INDEX, id_keys=keys)
    tag = "ragaudit/v1/index/commitment"
    f = decode(tag, INDEX.encode(), 10)
    with pytest.raises(MalformedRecord, match="no id keys"):
        IndexCommitment.parse(enc(tag, *f[:8], b"", f[9]))
    with pytest.raises(MalformedRecord, match="id keys"):
        IndexCommitment.parse(enc(tag, *f[:8], f[8][32:], f[9]))
    with pytest.raises(MalformedRecord):
        IndexCommitment.parse(enc(tag, *f, b""))
    without = replace(INDEX, id_keys=b"")
    assert IndexCommitment.parse(without.encode()) == without


def test_lengths_are_those_of_an_index_with_keys() -> None:
    with_keys, without = INDEX.encode(), replace(INDEX, id_keys=b"").encode()
    check_index_lengths(BytesIO(with_keys), len(with_keys), columns_allowed=True, owned=True)
    check_index_lengths(BytesIO(without), len(without), columns_allowed=True)
    tag = "ragaudit/v1/index/commitment"
    f = decode(tag, with_keys, 10)
    short = enc(tag, *f[:8], f[8][32:], f[9])
    for data, owned in ((with_keys, False), (without, True), (short, True)):
        with pytest.raises(MalformedRecord, match="not an index commitment"):
            check_index_lengths(BytesIO(data), len(data), columns_allowed=True, owned=owned)


def test_an_opening_commits_to_secrets_where_owners_check() -> None:
    plain, owned = INDEX.opening(), replace(INDEX.opening(), id_commitment=bytes(32))
    assert TenantOpening.parse(plain.encode()) == plain
    for tenant, due in ((plain, False), (owned, True)):
        opening = Opening(bytes(32), bytes(32), b"", (tenant,))
        assert Opening.parse(opening.encode()) == opening
        opening.check_terms(noised=False, owned=due)
        with pytest.raises(MalformedRecord, match="id commitments"):
            opening.check_terms(noised=False, owned=not due)
    two = (plain, replace(owned, tenant="clinic-b"))
    with pytest.raises(MalformedRecord, match="id commitments"):
        Opening(bytes(32), bytes(32), b"", two).check_terms(noised=False, owned=True)
    tag = "ragaudit/v1/opening/tenant"
    for more in ((b"",), (bytes(31),), (bytes(32), b"")):
        with pytest.raises(MalformedRecord):
            TenantOpening.parse(enc(tag, *decode(tag, plain.encode(), 5), *more))
