"""A window with one record, whose receipt a test can change before it is signed."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.digests import salted
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import key_members, policy_document
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.ledger.messages.commitments import IndexTree, content_digest, row_digest
from ragaudit.ledger.messages.entries import Opening, Record, TenantOpening
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import (
    AccountView,
    StepResult,
    WindowView,
    check_file,
)
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request, embedding_digest
from ragaudit.ledger.messages.ties import TiesStatement

FROZEN = Path(__file__).parents[1] / "frozen" / "0.1.0" / "policy.json"
DIMENSION = 4
ROWS = 6
POSITIONS = (1, 4)
VECTORS = [
    (100, 20, -7, 0), (0, 0, 0, 127), (3, 4, 5, 6), (90, 80, 0, 0), (1, 2, 3, 4), (9, 9, 9, 9),
]  # fmt: skip


def key(number: int) -> PrivateKey:
    return PrivateKey.from_seed(bytes([number]) * 32)


LOG = SigningKey("provider.example/ragaudit/w1", ED25519, key(1))
PROVIDER = key(2)
COSIGNER = SigningKey("regulator.example/cosigner", COSIGNATURE_V1, key(3))


class ToyOperations:
    """Hash commitments in place of curve points: the steps do not depend on the group."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        return hashlib.sha256(b"row" + repr(list(row)).encode() + blinding).digest()

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        return hashlib.sha256(b"sel" + repr(list(positions)).encode() + blinding).digest()

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        return hashlib.sha256(repr(list(query)).encode() + seed).digest()[: bits // 8]

    def quantise(self, vector: Sequence[float], norm_bound: int) -> tuple[int, ...]:
        return tuple(round(entry * norm_bound) for entry in vector)

    def prove_ties(self, statement: TiesStatement) -> bytes:
        return hashlib.sha256(b"ties" + repr(statement).encode() + statement.commitments).digest()

    def verify_ties(self, statement: TiesStatement, proof: bytes) -> None:
        if proof != self.prove_ties(statement):
            raise ReceiptRejected("toy opening", where="ties opening")


OPERATIONS = ToyOperations()


def four_squares(rest: int) -> tuple[int, int, int, int]:
    """Some completion by brute force; the numbers are small."""
    for a in range(int(rest**0.5), -1, -1):
        left_a = rest - a * a
        for b in range(int(left_a**0.5), -1, -1):
            left_b = left_a - b * b
            for c in range(int(left_b**0.5), -1, -1):
                d = int((left_b - c * c) ** 0.5)
                for each in (d, d + 1):
                    if each * each == left_b - c * c:
                        return a, b, c, each
    raise AssertionError("every number is a sum of four squares")


def toy_embed(texts: Sequence[str]) -> list[list[int]]:
    known = {f"content {i}": list(vector) for i, vector in enumerate(VECTORS)}
    known["what is it?"] = [120, 0, 30, 0]
    return [known.get(text, [1, 1, 1, 1]) for text in texts]


@lru_cache(maxsize=1)
def policy() -> Policy:
    keys = key_members(
        log=LOG, provider=PROVIDER, cosigner=COSIGNER, verifier=key(4), verdict=key(5)
    )
    members = {
        "provider": "provider.example",
        "start": 1000,
        "end": 2000,
        "activation_instants": [900, 1500, 2100],
        "dimension": DIMENSION,
        "queries_per_account": 8,
        "tenants": [{"id": "acme", "owner_key": None}, {"id": "zeta", "owner_key": None}],
        "embedder_tolerance": 2,
        "estimator/seed": "07" * 32,
    }
    return Policy.from_json(policy_document(keys, members))


def salt(number: int) -> bytes:
    return bytes([number]) * 32


def committed_row(position: int) -> ServedRow:
    vector = VECTORS[position]
    squares = four_squares(16129 - sum(x * x for x in vector))
    return ServedRow(
        position=position, id=f"doc {position}", content=f"content {position}",
        salt=salt(100 + position), vector=vector, squares=squares, blinding=salt(150 + position),
        commitment=OPERATIONS.commit_row((*vector, *squares), salt(150 + position)), path=(),
    )  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """A window with one record, in parts that a test can change before they are signed."""

    request: Request
    record: Record
    answer: Answer
    private: PrivateReceipt
    view: WindowView
    account: AccountView
    anchor: bytes | None
    promise: Promise | None
    index: int = 3
    proof: bool = True
    issued: int = 1_200_500

    def file(self) -> ReceiptFile:
        body = self.record.encode()
        public = PublicReceipt(origin=LOG.name, index=self.index, salt=salt(9), body=body,
            issued=self.issued,
            answer_digest=answer_digest(self.request, self.answer, self.private),
        ).signed(PROVIDER)  # fmt: skip
        if self.proof:
            public = public.with_proofs(tlog_proof(public.leaves[0][2], self.index))
        return ReceiptFile(self.request, self.answer, public, self.private)

    def check(self, **changes: Any) -> list[StepResult]:
        arguments: dict[str, Any] = {
            "anchor": self.anchor,
            "promise": self.promise,
            "embed": toy_embed,
            "account": self.account,
        }
        file = changes.pop("file", None) or self.file()
        return check_file(file, self.view, OPERATIONS, **{**arguments, **changes})

    def fails(self, step: int, message: str, **changes: Any) -> None:
        with pytest.raises(ReceiptRejected, match=message) as caught:
            self.check(**changes)
        assert caught.value.where.startswith(f"step {step} "), caught.value

    def with_record(self, **changes: Any) -> "Scene":
        record = replace(self.record, **changes)
        return replace(self, record=record, promise=None)

    def with_private(self, **changes: Any) -> "Scene":
        return replace(self, private=replace(self.private, **changes))

    def with_row(self, **changes: Any) -> "Scene":
        first, *others = self.private.rows
        return self.with_private(rows=(replace(first, **changes), *others))


def tlog_proof(data: bytes, index: int, cosigner: SigningKey = COSIGNER) -> TlogProof:
    tree = MemoryTree([f"leaf {i}".encode() for i in range(index)])
    tree.append(data)
    for number in range(3):
        tree.append(f"later {number}".encode())
    signed = sign_checkpoint(Checkpoint(LOG.name, tree.head()), LOG)
    note = signed.note.with_signatures([cosign(signed.note.text, cosigner, 1201)])
    return TlogProof(index, tree.inclusion_proof(index), note.encode())


def scene(anchored: bool = True) -> Scene:
    return _scenes()[anchored]


@lru_cache(maxsize=1)
def _scenes() -> dict[bool, Scene]:
    return {anchored: _scene(anchored) for anchored in (True, False)}


def _scene(anchored: bool) -> Scene:
    rows = [committed_row(i) for i in range(ROWS)]
    tree = IndexTree(
        b"".join(row.commitment for row in rows),
        b"".join(row_digest(row.salt, row.id, content_digest(row.content)) for row in rows),
    )
    served = tuple(replace(rows[i], path=tree.path(i)) for i in POSITIONS)
    tenants = (
        TenantOpening("acme", ROWS, tree.root, bytes(32)),
        TenantOpening("zeta", ROWS, bytes(32), bytes(32)),
    )
    opening = Opening(policy().digest, bytes(32), salt(77), tenants)
    pseudonym, counter = salt(55), 2
    chain = NonceChain("w1", pseudonym, salt(66), policy().queries_per_account)
    embedding = (120, 0, 30, 0)
    openings = Openings(
        query="what is it?", salt_q=salt(11), embedding=embedding, salt_e=salt(12), filter="",
        salt_f=salt(13), sketch=OPERATIONS.sketch(embedding, bytes([7]) * 32, 64), salt_s=salt(14),
    )  # fmt: skip
    request = Request(openings.query, 3, counter if anchored else None)
    record = Record(
        policy_digest=policy().digest, window="w1", tenant="acme", version=1, rows=ROWS, top_k=3,
        filter_digest=salted(openings.salt_f, ""), pseudonym=pseudonym, epoch=1, slot=1,
        counter=counter, activation=2, time=1_200_000, nonce=None,
        query_digest=salted(openings.salt_q, openings.question.data),
        embedding_digest=embedding_digest(openings.salt_e, embedding),
        sketch_digest=salted(openings.salt_s, openings.sketch), selection_commitment=None,
    )  # fmt: skip
    promise = None
    if anchored:
        promise = Promise.issue(
            PROVIDER, origin=LOG.name, body=record.encode(), request=request, openings=openings
        )
    blinding = salt(15)
    record = replace(
        record,
        nonce=chain.nonce(counter) if anchored else None,
        selection_commitment=OPERATIONS.commit_selection(POSITIONS, blinding),
    )
    return Scene(
        request=request,
        record=record,
        answer=Answer(tuple(Document(row.position, row.id, row.content) for row in served)),
        private=PrivateReceipt(openings, POSITIONS, blinding, salt(16), served),
        view=WindowView(policy(), opening, covered_sizes=(1, 3)),
        account=AccountView("acme", pseudonym, 1, 2, counter),
        anchor=chain.anchor if anchored else None,
        promise=promise,
    )


def changed(value: Any) -> Any:
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        hexadecimal = value and all(c in "0123456789abcdef" for c in value)
        return (("1" if value[0] == "0" else "0") + value[1:]) if hexadecimal else value + "x"
    return "x"
