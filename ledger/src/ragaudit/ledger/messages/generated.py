"""Questions, answers and receipts of the generation channel (docs/spec/11-generation.md §11.10).

Nothing here depends on how many documents paid, or on which: that stays with the provider.
"""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

from ragaudit.encoding.digests import DIGEST_BYTES, SALT_BYTES, leaf_data, structure
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey
from ragaudit.encoding.tagged import Field
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, CosignerPolicy
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, leaf_hash
from ragaudit.ledger.messages.charges import Charge, Generated
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES, Fields, JsonMessage
from ragaudit.ledger.messages.generated_answers import AnyAnswer, read_answer
from ragaudit.ledger.messages.generation_requests import GenerationRequest
from ragaudit.ledger.messages.kernel import MAX_TIME, Digest, Hex, Integer, Message, Text
from ragaudit.ledger.messages.receipts import digest_of
from ragaudit.ledger.messages.requests import Openings
from ragaudit.ledger.messages.signed import AccountMessage

__all__ = [
    "GeneratedFile",
    "GeneratedPrivate",
    "GeneratedReceipt",
    "GenerationRequest",
    "LoggedEntry",
]


class LoggedEntry(Message):
    """An entry of a receipt, and where it stands.

    Attributes:
        index: in the log.
        salt, body: of the entry.
        proof: text of the .tlog-proof; it is added later, and proves itself.
    """

    index: Annotated[int, Integer(1, min(MAX_TREE_SIZE, MAX_TIME))]
    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)] = field(repr=False)
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)] | None = field(default=None, repr=False)

    def leaf_data(self, kind: str) -> bytes:
        """Return the leaf of an entry of ``kind`` before it is hashed, 32 bytes."""
        return leaf_data(self.salt, kind, self.body)

    def with_proof(self, proof: TlogProof | None) -> "LoggedEntry":
        """Return the entry with its inclusion proof, which is not checked here, or without one."""
        return replace(self, proof=None if proof is None else proof.encode().decode())

    def verify_inclusion(
        self, kind: str, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> CosignedCheckpoint:
        """Return the cosigned checkpoint under which an entry of ``kind`` is leaf `index`.

        Raises:
            ReceiptRejected: no proof yet, or of another index.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: the proof itself.
        """
        if self.proof is None:
            raise ReceiptRejected("the inclusion proof is outstanding", where=kind)
        proof = TlogProof.parse(self.proof.encode())
        if proof.index != self.index:
            raise ReceiptRejected("a proof of another index", where=kind)
        leaf = leaf_hash(self.leaf_data(kind))
        return verify_tlog_proof(proof, leaf=leaf, log_key=log_key, cosigners=cosigners)


@dataclass(frozen=True, slots=True)
class GeneratedReceipt(JsonMessage, AccountMessage):
    """The half that may be shown: both entries, their places, and a signature.

    Attributes:
        origin: of the window's log.
        charge, answer: the entries. The answer's body has the digest of what was answered.
        issued: Unix milliseconds.
        answer_digest: of request, answer and private half, 32 bytes: see `GeneratedFile`.
    """

    KIND: ClassVar[str] = "generated-receipt"
    MEMBERS: ClassVar[str] = "answer answer_digest charge issued origin signature"
    LABEL: ClassVar[str] = "receipt"

    origin: str
    charge: LoggedEntry
    answer: LoggedEntry
    issued: int
    answer_digest: bytes

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        charge: LoggedEntry,
        answer: LoggedEntry,
        issued: int,
        answer_digest: bytes,
    ) -> "GeneratedReceipt":
        """Sign a receipt for two durable entries.

        Args:
            key: the provider's.
            origin, charge, answer, issued, answer_digest: the attributes.
        """
        return cls(origin, charge, answer, issued, answer_digest).signed(key)

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        entries = [
            value
            for entry in (self.charge, self.answer)
            for value in (entry.index, entry.salt, entry.body)
        ]
        return (self.origin, *entries, self.issued, self.answer_digest)

    @property
    def identity(self) -> bytes:
        """What makes it one receipt, 32 bytes: what is signed, whatever the signature."""
        return structure("generated-receipt", *self.signed_fields())

    @property
    def index(self) -> int:
        """The place of the query in the log: that of the charge."""
        return self.charge.index

    @property
    def pseudonym(self) -> bytes:
        """Whose receipt it is, 32 bytes."""
        return self.charged.pseudonym

    @property
    def window(self) -> str:
        """The window's name."""
        return self.charged.window

    @property
    def entries(self) -> tuple[tuple[str, LoggedEntry], tuple[str, LoggedEntry]]:
        """Both entries with their kinds, in the order of the log."""
        return (Charge.KIND, self.charge), (Generated.KIND, self.answer)

    @property
    def leaves(self) -> tuple[tuple[str, int, bytes], ...]:
        """What it says is in the log: kind, index and leaf data of both entries."""
        return tuple((kind, entry.index, entry.leaf_data(kind)) for kind, entry in self.entries)

    @property
    def proofs(self) -> tuple[str | None, ...]:
        """The text of the inclusion proof of each of `leaves`, where there is one."""
        return self.charge.proof, self.answer.proof

    def checkpoints(
        self, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> tuple[CosignedCheckpoint | None, ...]:
        """Return the checkpoint of each of `proofs`, checked; None where there is no proof.

        Raises:
            ReceiptRejected: another log's receipt, or as `LoggedEntry.verify_inclusion`.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: as there.
        """
        # The provider promised places in the log that its receipt names, and in no other.
        if self.origin != log_key.name:
            raise ReceiptRejected("of another log", where="receipt", expected=log_key.name)
        return tuple(
            None if entry.proof is None else entry.verify_inclusion(kind, log_key, cosigners)
            for kind, entry in self.entries
        )

    def with_proofs(self, charge: TlogProof | None, answer: TlogProof | None) -> "GeneratedReceipt":
        """Return the receipt with these inclusion proofs, which are not checked here."""
        entries = self.charge.with_proof(charge), self.answer.with_proof(answer)
        return replace(self, charge=entries[0], answer=entries[1])

    @property
    def charged(self) -> Charge:
        """The body of the charge entry."""
        return Charge.parse(self.charge.body)

    @property
    def answered(self) -> Generated:
        """The body of the answer entry."""
        return Generated.parse(self.answer.body)

    def _members(self) -> dict[str, Any]:
        return {
            "answer": self.answer.to_json(),
            "answer_digest": self.answer_digest.hex(),
            "charge": self.charge.to_json(),
            "issued": self.issued,
            "origin": self.origin,
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        receipt = cls(
            f.origin(),
            f.message("charge", LoggedEntry),
            f.message("answer", LoggedEntry),
            f.integer("issued", 0, MAX_TIME),
            f.hex("answer_digest", DIGEST_BYTES),
            signature=f.hex("signature", SIGNATURE_BYTES),
        )
        # Bodies that are none are refused here, and nowhere later. What they say of each other is
        # for whoever judges: the provider signed it.
        _ = receipt.charged, receipt.answered
        return receipt


@dataclass(frozen=True, slots=True)
class GeneratedPrivate(JsonMessage):
    """The half that opens the entries to their account; never a row, a position or a count.

    Attributes:
        openings: of the question, as of a record.
        salt_a: of the answer's digest, 32 bytes.
    """

    FORMAT: ClassVar[str] = "ragaudit/v1/generated/private"
    MEMBERS: ClassVar[str] = "embedding filter kind query salt_a salt_e salt_f salt_q salt_s sketch"

    openings: Openings
    salt_a: bytes = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {**self.openings.to_json(), "salt_a": self.salt_a.hex()}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(Openings.read(f), f.hex("salt_a", SALT_BYTES))


@dataclass(frozen=True, slots=True)
class GeneratedFile(JsonMessage):
    """Everything that an account keeps of one answer."""

    FORMAT: ClassVar[str] = "ragaudit/v1/generated/file"
    MEMBERS: ClassVar[str] = "answer private public request"
    LABEL: ClassVar[str] = "receipt file"

    request: GenerationRequest
    answer: AnyAnswer
    public: GeneratedReceipt
    private: GeneratedPrivate

    def _members(self) -> dict[str, Any]:
        return {
            "answer": self.answer.to_json(),
            "private": self.private.to_json(),
            "public": self.public.to_json(),
            "request": self.request.to_json(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            f.message("request", GenerationRequest),
            read_answer(f, "answer"),
            f.message("public", GeneratedReceipt),
            f.message("private", GeneratedPrivate),
        )

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        charge: LoggedEntry,
        answered: LoggedEntry,
        issued: int,
        request: GenerationRequest,
        answer: AnyAnswer,
        private: GeneratedPrivate,
    ) -> Self:
        """Return the file of two durable entries, signed part for part.

        Args:
            key: the provider's.
            origin: of the window's log.
            charge, answered: the entries.
            issued: Unix milliseconds.
            request, answer, private: the attributes.
        """
        public = GeneratedReceipt.issue(
            key, origin=origin, charge=charge, answer=answered, issued=issued,
            answer_digest=_digest(request, answer, private),
        )  # fmt: skip
        return cls(request, answer, public, private)

    def verify_answer_digest(self) -> None:
        """Check that the public half names exactly this request, answer and private half.

        Raises:
            ReceiptRejected: another answer was signed.
        """
        if _digest(self.request, self.answer, self.private) != self.public.answer_digest:
            raise ReceiptRejected("another answer was signed", where="answer_digest")

    def verify_openings(self) -> None:
        """Check that question and answer are those of the entries.

        Norm of the embedding, sketch, signature and inclusion are the caller's.

        Raises:
            ReceiptRejected: another question or answer than the entries have.
        """
        self.private.openings.verify(self.public.charged, self.request.retrieval)
        if self.answer.digest(self.private.salt_a) != self.public.answered.generated_digest:
            raise ReceiptRejected("does not open its digest", where="answer")

    def with_proofs(self, charge: TlogProof, answer: TlogProof) -> "GeneratedFile":
        """Return the file with the inclusion proofs of both entries, which are not checked here."""
        return replace(self, public=self.public.with_proofs(charge, answer))


def _digest(request: GenerationRequest, answer: AnyAnswer, private: GeneratedPrivate) -> bytes:
    """Return what the public half says of the parts, 32 bytes: as of a record (5.8)."""
    return digest_of((request.encode(), answer.encode(), private.encode()), private.salt_a)
