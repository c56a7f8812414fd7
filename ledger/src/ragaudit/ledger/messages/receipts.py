"""Receipts (docs/spec/05-records.md §5.8): the public half, the private half, their binding.

The public half says: this record stands at this place of this log, and this is the digest of what
I gave out. The private half opens the record to its account. `receipt_check` runs all checks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES, SALT_BYTES, leaf_data, structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import (
    SIGNATURE_BYTES,
    PrivateKey,
    PublicKey,
    SignatureRejected,
    sign,
    verify,
)
from ragaudit.encoding.tagged import Field
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.errors import MalformedNote, MalformedRecord, ReceiptRejected
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, CosignerPolicy
from ragaudit.ledger.log.notes import VerifierKey, check_name
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, leaf_hash
from ragaudit.ledger.messages.json_fields import Fields, vector_text
from ragaudit.ledger.messages.merkle_commitments import MAX_DIMENSION
from ragaudit.ledger.messages.openings import MAX_ENTRY, Openings
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import MAX_ROWS, MAX_TIME, MAX_TOP_K, Record
from ragaudit.ledger.messages.requests import (
    Answer,
    Request,
    check_rising,
    load_canonical,
    read_row,
)

FORMAT = "ragaudit/v1/receipt"
PRIVATE_FORMAT = "ragaudit/v1/receipt/private"
FILE_FORMAT = "ragaudit/v1/receipt/file"
MAX_BODY_BYTES = 4096
SQUARES = 4
MAX_PATH = 40  # of a row among at most 2^40


@dataclass(frozen=True, slots=True)
class PublicReceipt:
    """The half that may be shown: record, place in the log, digest of the answer, signature.

    ``proof`` (text of the .tlog-proof) is added later and is not signed. Times in milliseconds.
    """

    origin: str
    index: int
    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)
    issued: int
    answer_digest: bytes
    signature: bytes
    proof: str | None = None

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        index: int,
        salt: bytes,
        body: bytes,
        issued: int,
        answer_digest: bytes,
    ) -> "PublicReceipt":
        """Sign a receipt for a durable entry, with the provider's key."""
        fields = (origin, index, salt, body, issued, answer_digest)
        return cls(*fields, signature=sign(key, "receipt", *fields))

    @property
    def identity(self) -> bytes:
        """What makes it one receipt, 32 bytes: what is signed, whatever the signature."""
        fields = (self.origin, self.index, self.salt, self.body, self.issued, self.answer_digest)
        return structure("receipt", *fields)

    @property
    def record(self) -> Record:
        """The record of the body; MalformedRecord if it is none."""
        return Record.decode(self.body)

    @property
    def leaf_data(self) -> bytes:
        """The 32 bytes that stand in the log at `index`."""
        return leaf_data(self.salt, Record.KIND, self.body)

    def with_proof(self, proof: TlogProof) -> "PublicReceipt":
        return replace(self, proof=proof.encode().decode())

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "origin": self.origin,
            "index": self.index,
            "salt": self.salt.hex(),
            "body": self.body.hex(),
            "issued": self.issued,
            "answer_digest": self.answer_digest.hex(),
            "signature": self.signature.hex(),
            "proof": self.proof,
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def parse(cls, data: bytes) -> "PublicReceipt":
        """Strict inverse of `encode`; raises MalformedRecord. Nothing is verified."""
        return cls.from_json(load_canonical(data, "receipt"))

    @classmethod
    def from_json(cls, value: Any, where: str = "receipt") -> "PublicReceipt":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        names = "format origin index salt body issued answer_digest signature proof"
        f = Fields(value, names, MalformedRecord, where)
        f.constant("format", FORMAT)
        receipt = cls(
            origin=read_origin(f),
            index=f.integer("index", 0, min(MAX_TREE_SIZE, MAX_TIME)),
            salt=f.hex("salt", SALT_BYTES),
            body=f.hex("body", limit=MAX_BODY_BYTES),
            issued=f.integer("issued", 0, MAX_TIME),
            answer_digest=f.hex("answer_digest", DIGEST_BYTES),
            signature=f.hex("signature", SIGNATURE_BYTES),
            proof=None if f.raw("proof") is None else f.text("proof", 1, MAX_PROOF_BYTES),
        )
        _ = receipt.record
        return receipt

    def verify_signature(self, provider: PublicKey) -> None:
        """Check the provider's signature; ReceiptRejected."""
        fields = (self.origin, self.index, self.salt, self.body, self.issued, self.answer_digest)
        check_signature(provider, self.signature, "receipt", *fields)

    def verify_inclusion(
        self, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> CosignedCheckpoint:
        """Check that the record is leaf `index` under a cosigned checkpoint of the log.

        Raises:
            ReceiptRejected: no proof yet, of another index, or another log's receipt.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: the proof itself.
        """
        if self.origin != log_key.name:
            raise ReceiptRejected("of another log", where="receipt", expected=log_key.name)
        if self.proof is None:
            raise ReceiptRejected("the inclusion proof is outstanding", where="receipt")
        proof = TlogProof.parse(self.proof.encode())
        if proof.index != self.index:
            raise ReceiptRejected("a proof of another index", where="receipt")
        leaf = leaf_hash(self.leaf_data)
        return verify_tlog_proof(proof, leaf=leaf, log_key=log_key, cosigners=cosigners)


@dataclass(frozen=True, slots=True)
class ServedRow:
    """A served row with everything that opens it: vector, four squares, blinding, salt, path."""

    position: int
    id: str = field(repr=False)
    content: str = field(repr=False)
    salt: bytes = field(repr=False)
    vector: tuple[int, ...] = field(repr=False)
    squares: tuple[int, ...] = field(repr=False)
    blinding: bytes = field(repr=False)
    commitment: bytes
    path: tuple[bytes, ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "id": self.id,
            "content": self.content,
            "columns": {},
            "salt": self.salt.hex(),
            "vector": vector_text(self.vector),
            "squares": list(self.squares),
            "blinding": self.blinding.hex(),
            "commitment": self.commitment.hex(),
            "path": [each.hex() for each in self.path],
        }

    @classmethod
    def from_json(cls, value: Any, where: str) -> "ServedRow":
        names = "position id content columns salt vector squares blinding commitment path"
        f = Fields(value, names, MalformedRecord, where)
        return cls(
            *read_row(f),
            salt=f.hex("salt", SALT_BYTES),
            vector=f.vector("vector", MAX_DIMENSION, MAX_ENTRY),
            squares=f.integers("squares", (SQUARES, SQUARES), -MAX_ENTRY, MAX_ENTRY),
            blinding=f.hex("blinding", 32),
            commitment=f.hex("commitment", 32),
            path=f.hexes("path", MAX_PATH, DIGEST_BYTES),
        )


@dataclass(frozen=True, slots=True)
class PrivateReceipt:
    """The half for the account's eyes."""

    openings: Openings
    selected: tuple[int, ...] = field(repr=False)
    selection_blinding: bytes = field(repr=False)
    salt_r: bytes = field(repr=False)
    rows: tuple[ServedRow, ...] = field(repr=False)

    def __post_init__(self) -> None:
        check_rising(list(self.selected), "selected")

    def to_json(self) -> dict[str, Any]:
        return {
            "format": PRIVATE_FORMAT,
            **self.openings.to_json(),
            "selected": list(self.selected),
            "selection_blinding": self.selection_blinding.hex(),
            "salt_r": self.salt_r.hex(),
            "rows": [each.to_json() for each in self.rows],
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def parse(cls, data: bytes) -> "PrivateReceipt":
        """Strict inverse of `encode`; raises MalformedRecord. Nothing is verified."""
        return cls.from_json(load_canonical(data, "private receipt"))

    @classmethod
    def from_json(cls, value: Any, where: str = "private") -> "PrivateReceipt":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        names = f"format {Openings.MEMBERS} selected selection_blinding salt_r rows"
        f = Fields(value, names, MalformedRecord, where)
        f.constant("format", PRIVATE_FORMAT)
        return cls(
            openings=Openings.read(f),
            selected=f.integers("selected", (0, MAX_TOP_K), 0, MAX_ROWS - 1),
            selection_blinding=f.hex("selection_blinding", 32),
            salt_r=f.hex("salt_r", SALT_BYTES),
            rows=tuple(
                ServedRow.from_json(item, place) for place, item in f.objects("rows", 0, MAX_TOP_K)
            ),
        )


@dataclass(frozen=True, slots=True)
class ReceiptFile:
    """Everything an account keeps of one query."""

    request: Request
    answer: Answer
    public: PublicReceipt
    private: PrivateReceipt

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FILE_FORMAT,
            "request": self.request.to_json(),
            "answer": self.answer.to_json(),
            "public": self.public.to_json(),
            "private": self.private.to_json(),
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def parse(cls, data: bytes) -> "ReceiptFile":
        """Strict inverse of `encode`; raises MalformedRecord. Nothing is verified."""
        return cls.from_json(load_canonical(data, "receipt file"))

    @classmethod
    def from_json(cls, value: Any) -> "ReceiptFile":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        f = Fields(value, "format request answer public private", MalformedRecord)
        f.constant("format", FILE_FORMAT)
        return cls(
            Request.from_json(f.raw("request")),
            Answer.from_json(f.raw("answer")),
            PublicReceipt.from_json(f.raw("public"), "public"),
            PrivateReceipt.from_json(f.raw("private")),
        )

    def verify_answer_digest(self) -> None:
        """Check that the public half names exactly this request, answer and private half."""
        digest = answer_digest(self.request, self.answer, self.private)
        if digest != self.public.answer_digest:
            raise ReceiptRejected("another answer was signed", where="answer_digest")


def answer_digest(request: Request, answer: Answer, private: PrivateReceipt) -> bytes:
    """What the public half says of the answer, hidden by the private half's salt_r."""
    halves = (request.encode(), answer.encode(), private.encode())
    return structure("answer", private.salt_r, *halves)


def bound_receipt(document: Mapping[str, Any], policy: Policy) -> PublicReceipt:
    """The public half, without proof, of a file whose every part the provider's signature binds.

    The parts are taken as they are: an answer in a form that no honest provider gives is the
    provider's own when it signed its digest.

    Raises:
        RagauditError: not a receipt file, not signed, or the digest names another answer.
    """
    match document:
        case {
            "format": str(form),
            "request": request,
            "answer": answer,
            "public": public,
            "private": {"salt_r": str(salt)} as private,
            **more,
        } if form == FILE_FORMAT and not more:
            receipt = PublicReceipt.from_json(public, "public")
            if receipt.origin != policy.origin:
                raise ReceiptRejected("of another log", where="origin", expected=policy.origin)
            receipt.verify_signature(policy.keys.provider)
            parts = [canonical_json.dumps(part) for part in (request, answer, private)]
            digest = structure("answer", hex_decode(salt, SALT_BYTES), *parts)
            if digest != receipt.answer_digest:
                raise ReceiptRejected("another answer was signed", where="answer_digest")
            return replace(receipt, proof=None)
    raise MalformedError("not a receipt file", where="receipt file", expected=FILE_FORMAT)


def read_origin(f: Fields) -> str:
    """The member ``origin``: a log's name."""
    origin = f.text("origin", 1, 255)
    try:
        check_name(origin)
    except MalformedNote as error:
        raise f.error("origin", error.what, error.expected) from error
    return origin


def check_signature(key: PublicKey, signature: bytes, what: str, *fields: Field) -> None:
    """Check a signature of the provider, an account or the arbiter; ReceiptRejected."""
    try:
        verify(key, signature, what, *fields)
    except SignatureRejected as error:
        raise ReceiptRejected(error.what, where=what) from error
