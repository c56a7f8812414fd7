"""What an account signs with its dispute key, and findings: round trips, bindings, identities."""

from dataclasses import replace
from typing import Any

import pytest
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import PrivateKey, sign
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.disputes import (
    Dispute,
    Finding,
    HolderStatement,
    RegistrationStatement,
    documents_digest,
    file_digest,
)

KEY = PrivateKey.from_seed(bytes([1]) * 32)
ORIGIN = "rag.example.com/ragaudit/w1"
ANN = b"\xaa" * 32
FILE: dict[str, Any] = {
    "format": "ragaudit/v1/receipt/file",
    "request": {"query": "q"},
    "answer": {"documents": []},
    "public": {
        "origin": ORIGIN, "index": 7, "answer_digest": "0d" * 32, "signature": "00" * 64,
        "proof": None,
    },
    "private": {"salt_r": "01" * 32},
}  # fmt: skip
STATEMENT = RegistrationStatement(origin=ORIGIN, pseudonym=ANN, anchor=b"\x0a" * 32).signed(KEY)
DISPUTE = Dispute.issue(KEY, pseudonym=ANN, receipt_file=FILE)
FINDING = Finding(
    origin=ORIGIN, index=7, answer_digest=b"\x0d" * 32, file_digest=DISPUTE.file_digest, step=8,
    time=1_800_000_000_000,
).signed(KEY)  # fmt: skip


DOCUMENTS = [{"index": 1}, {"index": 2}]
HOLDER = HolderStatement.issue(KEY, origin=ORIGIN, pseudonym=ANN, documents=DOCUMENTS)


def test_known_answers() -> None:
    """The bytes of docs/spec 5.10, spelled out."""
    kept = canonical_json.dumps(FILE)
    assert DISPUTE.file_digest == structure("receipt/file", kept)
    fields = (ORIGIN, ANN, 7, b"\x0d" * 32, DISPUTE.file_digest)
    assert DISPUTE.signature == sign(KEY, "dispute", *fields)
    assert KEY.sign_raw(enc("ragaudit/v1/sign/dispute", *fields)) == DISPUTE.signature
    assert DISPUTE.identity == structure("dispute", *fields)
    plain = RegistrationStatement(origin=ORIGIN, pseudonym=ANN, anchor=None).signed(KEY)
    assert plain.signature == sign(KEY, "registration-statement", ORIGIN, ANN, None)
    finding = (ORIGIN, 7, b"\x0d" * 32, DISPUTE.file_digest, 8, 1_800_000_000_000)
    assert FINDING.signature == sign(KEY, "finding", *finding)


def test_the_file_digest_covers_everything_but_the_proof() -> None:
    completed = {**FILE, "public": {**FILE["public"], "proof": "c2sp.org/tlog-proof@v1 ..."}}
    assert file_digest(completed) == file_digest(FILE)
    for name in FILE:
        assert file_digest({**FILE, name: "changed"}) != file_digest(FILE)
    resigned = {**FILE, "public": {**FILE["public"], "signature": "11" * 64}}
    assert file_digest(resigned) != file_digest(FILE)


def test_who_signs_again_disputes_nothing_new() -> None:
    again = replace(DISPUTE, signature=b"\x05" * 64)
    assert again.identity == DISPUTE.identity
    assert replace(DISPUTE, index=8).identity != DISPUTE.identity


def test_a_dispute_names_a_public_half() -> None:
    for public in (None, "x", {}, {**FILE["public"], "index": -1}, {"origin": ORIGIN, "index": 1}):
        with pytest.raises(MalformedRecord):
            Dispute.issue(KEY, pseudonym=ANN, receipt_file={**FILE, "public": public})


def test_findings() -> None:
    assert FINDING.upheld
    assert not replace(FINDING, step=0).upheld


def test_a_holder_signs_for_documents_in_their_order() -> None:
    HOLDER.verify_documents([dict(each) for each in DOCUMENTS])
    canonical = [canonical_json.dumps(each) for each in DOCUMENTS]
    assert HOLDER.digest == documents_digest(DOCUMENTS) == structure("submission", *canonical)
    for others in ([], DOCUMENTS[:1], DOCUMENTS[::-1], [*DOCUMENTS, {}], [{"index": 1}] * 2):
        with pytest.raises(ReceiptRejected, match="signed for other documents"):
            HOLDER.verify_documents(others)
