"""Receipts (docs/spec/05-records.md §5.8): the public part, the private part, their binding.

The public part says: this record stands at this place of this log, and this is the digest of what
I gave out. The private part opens the record to its account. `receipt_check` runs all checks.
"""

from dataclasses import field, replace
from typing import Annotated, Any, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data, structure
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, CosignerPolicy
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, leaf_hash
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES
from ragaudit.ledger.messages.kernel import (
    MAX_TIME,
    UNSIGNED,
    Digest,
    Hex,
    Integer,
    Message,
    Milliseconds,
    Origin,
    Text,
)
from ragaudit.ledger.messages.private_receipts import (
    PrivateReceipt,
    ServedRow,
)
from ragaudit.ledger.messages.requests import (
    Answer,
    Request,
)
from ragaudit.ledger.messages.signed import AccountMessage

__all__ = [
    "PrivateReceipt",
    "PublicReceipt",
    "ReceiptFile",
    "ServedRow",
    "answer_digest",
    "digest_of",
]


class PublicReceipt(AccountMessage, kind="receipt"):
    """The half that may be shown: record, place in the log, digest of the answer, signature.

    Attributes:
        origin: of the window's log.
        index: of the record's entry in it.
        salt: of the entry.
        body: of the entry, a record's.
        issued: when it was signed.
        answer_digest: of request, answer and private part.
        proof: text of the .tlog-proof. It is added later and is not signed: it proves itself.
    """

    origin: Origin
    index: Annotated[int, Integer(0, min(MAX_TREE_SIZE, MAX_TIME))]
    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)] = field(repr=False)
    issued: Milliseconds
    answer_digest: Digest
    proof: Annotated[Annotated[str, Text(1, MAX_PROOF_BYTES)] | None, UNSIGNED] = None

    @property
    def identity(self) -> bytes:
        """What makes it one receipt, 32 bytes: what is signed, whatever the signature."""
        return structure("receipt", *self.signed_fields())

    @property
    def pseudonym(self) -> bytes:
        """Whose receipt it is, 32 bytes."""
        return self.record.pseudonym

    @property
    def window(self) -> str:
        """The window's name."""
        return self.record.window

    @property
    def record(self) -> Record:
        """The record of the body; MalformedRecord if it is none."""
        return Record.parse(self.body)

    @property
    def leaf_data(self) -> bytes:
        """The 32 bytes that stand in the log at `index`."""
        return leaf_data(self.salt, Record.KIND, self.body)

    @property
    def leaves(self) -> tuple[tuple[str, int, bytes], ...]:
        """What it says is in the log: kind, index and leaf data of its one entry."""
        return ((Record.KIND, self.index, self.leaf_data),)

    @property
    def proofs(self) -> tuple[str | None, ...]:
        """The text of the inclusion proof of each of `leaves`, where there is one."""
        return (self.proof,)

    def with_proof(self, proof: TlogProof | None) -> "PublicReceipt":
        """Return the receipt with its inclusion proof, which is not checked here, or without one.

        Args:
            proof: of the log entry at `index`, under a cosigned checkpoint.
        """
        return replace(self, proof=None if proof is None else proof.encode().decode())

    def with_proofs(self, proof: TlogProof | None) -> "PublicReceipt":
        """Return as `with_proof`: of each of `leaves`, which is one."""
        return self.with_proof(proof)

    def _check(self) -> None:
        _ = self.record  # refused here, where the message is malformed, and nowhere later

    def checkpoints(
        self, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> tuple[CosignedCheckpoint | None, ...]:
        """Return the checkpoint of each of `proofs`, checked; None where there is no proof.

        Raises:
            ReceiptRejected, MalformedNote, MalformedProof, NoteRejected, ProofRejected: as
                `verify_inclusion`.
        """
        return (None if self.proof is None else self.verify_inclusion(log_key, cosigners),)

    def verify_inclusion(
        self, log_key: VerifierKey, cosigners: CosignerPolicy
    ) -> CosignedCheckpoint:
        """Return the cosigned checkpoint of the log under which the record is leaf `index`.

        Args:
            log_key: of the policy.
            cosigners: whose signatures the checkpoint must have. The log's own is not enough: it
                could sign another tree for each account.

        Raises:
            ReceiptRejected: no proof yet, of another index, or another log's receipt.
            MalformedNote, MalformedProof, NoteRejected, ProofRejected: the proof itself.
        """
        # The provider promised a place in the log that its receipt names, and in no other.
        if self.origin != log_key.name:
            raise ReceiptRejected("of another log", where="receipt", expected=log_key.name)
        if self.proof is None:
            raise ReceiptRejected("the inclusion proof is outstanding", where="receipt")
        proof = TlogProof.parse(self.proof.encode())
        # A true proof of another place does not keep what this receipt promises.
        if proof.index != self.index:
            raise ReceiptRejected("a proof of another index", where="receipt")
        leaf = leaf_hash(self.leaf_data)
        return verify_tlog_proof(proof, leaf=leaf, log_key=log_key, cosigners=cosigners)


class ReceiptFile(Message, kind="receipt/file", where="receipt file"):
    """Everything an account keeps of one query."""

    request: Request
    answer: Answer
    public: PublicReceipt
    private: PrivateReceipt
    # Not an argument: a file with another part has none, and encodes what it is made of.
    _halves: tuple[bytes, bytes, bytes] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @classmethod
    def of_encoded(
        cls,
        request: Request,
        answer: Answer,
        public: PublicReceipt,
        private: PrivateReceipt,
        halves: tuple[bytes, bytes, bytes],
    ) -> Self:
        """Return the file of parts that were encoded for their digest: they are most of it.

        Args:
            halves: what `encode` returned of request, answer and private part.
        """
        file = cls(request, answer, public, private)
        object.__setattr__(file, "_halves", halves)  # frozen for everybody else
        return file

    def to_json(self) -> dict[str, Any]:
        """Return the file as a JSON object."""
        shown = super().to_json()
        shown.pop("_halves", None)
        return shown

    def encode(self) -> bytes:
        """Return the file in canonical JSON."""
        if self._halves is None:
            return canonical_json.dumps(self.to_json())
        request, answer, private = self._halves
        return canonical_json.join(
            {
                "format": canonical_json.dumps(self.FORMAT),
                "request": request,
                "answer": answer,
                "public": self.public.encode(),
                "private": private,
            }
        )

    def verify_answer_digest(self) -> None:
        """Check that the public part names exactly this request, answer and private part.

        Raises:
            ReceiptRejected: another answer was signed.
        """
        digest = answer_digest(self.request, self.answer, self.private)
        if digest != self.public.answer_digest:
            raise ReceiptRejected("another answer was signed", where="answer_digest")


def answer_digest(request: Request, answer: Answer, private: PrivateReceipt) -> bytes:
    """Return what the public part says of the answer, 32 bytes (docs/spec/05-records.md §5.8).

    Args:
        request, answer, private: of one receipt file; salt_r of the private part hides them.
    """
    # In canonical bytes: whoever keeps the parts as JSON values can still repeat the digest.
    return digest_of((request.encode(), answer.encode(), private.encode()), private.salt_r)


def digest_of(halves: tuple[bytes, bytes, bytes], salt: bytes) -> bytes:
    """Return `answer_digest` of parts that are encoded.

    Args:
        halves: canonical bytes of request, answer and private part.
        salt: of the private part, 32 bytes: salt_r, of a generated answer salt_a.
    """
    return structure("answer", salt, *halves)
