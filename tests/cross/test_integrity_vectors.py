"""Formats of windows without noise, against bytes made from the specification alone."""

import json
from typing import Any

import pytest
from for_each import for_each
from ragaudit.circuits.selection import ColumnArrays
from ragaudit.encoding.digests import leaf_data, salted
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.columns import NULL_ROW, columns_text, read_columns
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    IndexTree,
    content_digest,
    index_leaf,
    index_proof_digest,
    row_digest,
    verify_index_row,
)
from ragaudit.ledger.messages.entries import Opening, Version
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PrivateReceipt, TiesOpening, answer_digest
from ragaudit.ledger.messages.requests import Answer, Question, Request
from vector_scripts import VECTORS, script

VECTOR: dict[str, Any] = json.loads((VECTORS / "integrity.json").read_bytes())
POLICY = Policy.parse(VECTOR["policy"].encode())
DECLARED = POLICY.retrieval.public_columns
some = script("make_integrity").some


def test_policy() -> None:
    assert POLICY.digest.hex() == VECTOR["policy_digest"]
    assert POLICY.encode().decode() == VECTOR["policy"]
    assert (POLICY.noised, POLICY.norm_bound, POLICY.retrieval.largest_norm) == (
        False,
        4095,
        "12.5",
    )


def test_columns() -> None:
    for text in VECTOR["columns"]:
        if text != NULL_ROW:
            assert columns_text(read_columns(text, DECLARED), DECLARED) == text
    with pytest.raises(MalformedRecord):
        read_columns(NULL_ROW, DECLARED)


@for_each("case", VECTOR["filters"])
def test_filters(case: dict[str, Any]) -> None:
    if case["allowed"] is None:
        with pytest.raises(MalformedRecord):
            Filter.parse(case["text"], DECLARED)
        return
    made = Filter.parse(case["text"], DECLARED)
    rows = IndexCommitment.parse(bytes.fromhex(VECTOR["index"]["commitment"])).column_values(POLICY)
    assert (made.text, list(made.allowed(rows))) == (case["text"], case["allowed"])
    assert made.allowed_in(ColumnArrays(rows)) == tuple(case["allowed"])


def test_questions() -> None:
    for case in VECTOR["questions"]:
        asked = bytes.fromhex(case["asked"])
        question = Question.parse(bytes.fromhex(case["data"]), POLICY)
        assert question.kind == case["kind"]
        assert (question.vector or question.text.encode()) == asked
        made = Request.of(POLICY, asked.decode() if case["kind"] == "text" else asked, 1).question
        assert made.data.hex() == case["data"]
        assert salted(some("salt q"), made.data).hex() == case["digest"]


def test_index() -> None:
    index = IndexCommitment.parse(bytes.fromhex(VECTOR["index"]["commitment"]))
    assert index.encode().hex() == VECTOR["index"]["commitment"]
    assert index.root.hex() == VECTOR["index"]["root"]
    assert list(index.columns) == VECTOR["columns"]
    tree = IndexTree(index.commitments, index.row_digests, index.columns)
    for position, row in enumerate(VECTOR["index"]["rows"]):
        content = content_digest(row["content"], row["attributes"])
        digest = row_digest(bytes.fromhex(row["salt"]), row["id"], content)
        commitment = bytes.fromhex(row["commitment"])
        assert (content.hex(), digest.hex()) == (row["content_digest"], row["row_digest"])
        assert index_leaf(commitment, digest, row["columns"]).hex() == row["leaf"]
        verify_index_row(
            root=index.root, rows=index.rows, position=position, commitment=commitment,
            row=digest, path=tree.path(position), columns=row["columns"],
        )  # fmt: skip


def test_entries() -> None:
    opening = Opening.parse(bytes.fromhex(VECTOR["entries"]["opening"]))
    assert (opening.seed_root, opening.policy_digest) == (b"", POLICY.digest)
    assert opening.encode().hex() == VECTOR["entries"]["opening"]
    version = Version.parse(bytes.fromhex(VECTOR["entries"]["version"]))
    assert version.encode().hex() == VECTOR["entries"]["version"]
    assert version.index.index_root.hex() == VECTOR["index"]["root"]
    assert version.proof_digest == index_proof_digest(b"proof")
    leaf = leaf_data(some("salt of an entry"), Version.KIND, version.encode())
    assert leaf.hex() == VECTOR["entries"]["version_leaf"]


def test_receipt() -> None:
    case = VECTOR["receipt"]
    request = Request.parse(case["request"].encode())
    answer = Answer.parse(case["answer"].encode())
    private = PrivateReceipt.parse(case["private"].encode())
    assert answer_digest(request, answer, private).hex() == case["answer_digest"]
    assert private.encode().decode() == case["private"]
    assert private.openings.question == request.question
    assert salted(private.openings.salt_f, request.filter).hex() == case["filter_digest"]
    ties = TiesOpening.parse(case["ties"].encode())
    assert ties.encode().decode() == case["ties"]
    root, rows = bytes.fromhex(VECTOR["index"]["root"]), len(VECTOR["columns"])
    for row in ties.rows:
        verify_index_row(
            root=root, rows=rows, position=row.position, commitment=row.commitment,
            row=row.row_digest, path=row.path, columns=row.columns,
        )  # fmt: skip
    for served in private.rows:
        digest = row_digest(
            served.salt, served.id, content_digest(served.content, served.attributes)
        )
        verify_index_row(
            root=root, rows=rows, position=served.position, commitment=served.commitment,
            row=digest, path=served.path, columns=served.columns,
        )  # fmt: skip
