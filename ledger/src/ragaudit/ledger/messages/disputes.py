"""What an account signs with its dispute key, and what an arbiter signs (docs/spec 5.10).

The provider made every receipt file and can sign any of them again, so none of them shows who
brings it. What counts as an account's carries the signature of the key in its registration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES, structure
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey, sign
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.identifiers import PSEUDONYM_BYTES
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.receipts import check_signature, read_origin
from ragaudit.ledger.messages.records import MAX_TIME

STATEMENT_FORMAT = "ragaudit/v1/registration-statement"
DISPUTE_FORMAT = "ragaudit/v1/dispute"
HOLDER_FORMAT = "ragaudit/v1/holder-statement"
FINDING_FORMAT = "ragaudit/v1/finding"
STEPS = 10  # of docs/spec 5.9


@dataclass(frozen=True, slots=True)
class RegistrationStatement:
    """An account says that a registration, with its nonce chain, is its own."""

    origin: str
    pseudonym: bytes
    anchor: bytes | None
    signature: bytes = field(repr=False)

    @classmethod
    def issue(
        cls, key: PrivateKey, *, origin: str, pseudonym: bytes, anchor: bytes | None
    ) -> "RegistrationStatement":
        """Sign a statement with the account's dispute key; ``anchor`` None for a plain account."""
        signature = sign(key, "registration-statement", origin, pseudonym, anchor)
        return cls(origin, pseudonym, anchor, signature)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": STATEMENT_FORMAT,
            "origin": self.origin,
            "pseudonym": self.pseudonym.hex(),
            "anchor": None if self.anchor is None else self.anchor.hex(),
            "signature": self.signature.hex(),
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any, where: str = "statement") -> "RegistrationStatement":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        f = Fields(value, "format origin pseudonym anchor signature", MalformedRecord, where)
        f.constant("format", STATEMENT_FORMAT)
        return cls(
            read_origin(f),
            f.hex("pseudonym", PSEUDONYM_BYTES),
            None if f.raw("anchor") is None else f.hex("anchor", DIGEST_BYTES),
            f.hex("signature", SIGNATURE_BYTES),
        )

    def verify_signature(self, dispute_key: PublicKey) -> None:
        """Check the signature of the registration's dispute key; ReceiptRejected."""
        fields = (self.origin, self.pseudonym, self.anchor)
        check_signature(dispute_key, self.signature, "registration-statement", *fields)


@dataclass(frozen=True, slots=True)
class HolderStatement:
    """An account says that it submits these receipts, or these refusals, itself.

    The provider signed all of them and can submit any: what the account signs for is kept first.

    Attributes:
        digest: `documents_digest` of what goes with the statement.
    """

    origin: str
    pseudonym: bytes
    digest: bytes
    signature: bytes = field(repr=False)

    @classmethod
    def issue(
        cls, key: PrivateKey, *, origin: str, pseudonym: bytes, documents: Sequence[Any]
    ) -> "HolderStatement":
        """Sign for documents, JSON values in their order, with the account's dispute key."""
        fields = (origin, pseudonym, documents_digest(documents))
        return cls(*fields, signature=sign(key, "holder-statement", *fields))

    def to_json(self) -> dict[str, Any]:
        return {
            "format": HOLDER_FORMAT,
            "origin": self.origin,
            "pseudonym": self.pseudonym.hex(),
            "digest": self.digest.hex(),
            "signature": self.signature.hex(),
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any, where: str = "holder") -> "HolderStatement":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        f = Fields(value, "format origin pseudonym digest signature", MalformedRecord, where)
        f.constant("format", HOLDER_FORMAT)
        return cls(
            read_origin(f),
            f.hex("pseudonym", PSEUDONYM_BYTES),
            f.hex("digest", DIGEST_BYTES),
            f.hex("signature", SIGNATURE_BYTES),
        )

    def verify_signature(self, dispute_key: PublicKey) -> None:
        """Check the signature of the registration's dispute key; ReceiptRejected."""
        fields = (self.origin, self.pseudonym, self.digest)
        check_signature(dispute_key, self.signature, "holder-statement", *fields)

    def verify_documents(self, documents: Sequence[Any]) -> None:
        """Check that it is about these documents, in this order; ReceiptRejected."""
        if self.digest != documents_digest(documents):
            raise ReceiptRejected("signed for other documents", where="holder/digest")


@dataclass(frozen=True, slots=True)
class Dispute:
    """An account says, before the sample is drawn, that one of its answers is false.

    It names the receipt file by digest only: whether the verifier may see the file depends on a
    draw that nobody knows yet.

    Attributes:
        index: leaf index of the record.
        answer_digest: of the receipt's public half.
        file_digest: `file_digest` of the receipt file.
    """

    origin: str
    pseudonym: bytes
    index: int
    answer_digest: bytes
    file_digest: bytes
    signature: bytes = field(repr=False)

    @classmethod
    def issue(
        cls, key: PrivateKey, *, pseudonym: bytes, receipt_file: Mapping[str, Any]
    ) -> "Dispute":
        """Sign a dispute about a receipt file, as JSON value, with the account's dispute key.

        Raises:
            MalformedRecord: no public half to name: index, origin or answer digest are missing.
        """
        origin, index, answer = _named(receipt_file)
        fields = (origin, pseudonym, index, answer, file_digest(receipt_file))
        return cls(*fields, signature=sign(key, "dispute", *fields))

    @property
    def identity(self) -> bytes:
        """What makes two disputes the same one, whoever signed how often: 32 bytes."""
        return structure("dispute", *self._fields)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": DISPUTE_FORMAT,
            "origin": self.origin,
            "pseudonym": self.pseudonym.hex(),
            "index": self.index,
            "answer_digest": self.answer_digest.hex(),
            "file_digest": self.file_digest.hex(),
            "signature": self.signature.hex(),
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any, where: str = "dispute") -> "Dispute":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        names = "format origin pseudonym index answer_digest file_digest signature"
        f = Fields(value, names, MalformedRecord, where)
        f.constant("format", DISPUTE_FORMAT)
        return cls(
            read_origin(f),
            f.hex("pseudonym", PSEUDONYM_BYTES),
            f.integer("index", 0, MAX_TIME),
            f.hex("answer_digest", DIGEST_BYTES),
            f.hex("file_digest", DIGEST_BYTES),
            f.hex("signature", SIGNATURE_BYTES),
        )

    def verify_signature(self, dispute_key: PublicKey) -> None:
        """Check the signature of the registration's dispute key; ReceiptRejected."""
        check_signature(dispute_key, self.signature, "dispute", *self._fields)

    @property
    def _fields(self) -> tuple[str, bytes, int, bytes, bytes]:
        return (self.origin, self.pseudonym, self.index, self.answer_digest, self.file_digest)


@dataclass(frozen=True, slots=True)
class Finding:
    """What the arbiter says of a receipt file: it names no row and no position.

    Attributes:
        step: the step of docs/spec 5.9 that fails; 0: none does, the dispute is dismissed.
        time: the arbiter's clock, Unix milliseconds.
    """

    origin: str
    index: int
    answer_digest: bytes
    file_digest: bytes
    step: int
    time: int
    signature: bytes = field(repr=False)

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        index: int,
        answer_digest: bytes,
        file_digest: bytes,
        step: int,
        time: int,
    ) -> "Finding":
        """Sign a finding with the arbiter's key."""
        fields = (origin, index, answer_digest, file_digest, step, time)
        return cls(*fields, signature=sign(key, "finding", *fields))

    @property
    def upheld(self) -> bool:
        """Whether the provider signed something false."""
        return self.step > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FINDING_FORMAT,
            "origin": self.origin,
            "index": self.index,
            "answer_digest": self.answer_digest.hex(),
            "file_digest": self.file_digest.hex(),
            "step": self.step,
            "time": self.time,
            "signature": self.signature.hex(),
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any, where: str = "finding") -> "Finding":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        names = "format origin index answer_digest file_digest step time signature"
        f = Fields(value, names, MalformedRecord, where)
        f.constant("format", FINDING_FORMAT)
        return cls(
            read_origin(f),
            f.integer("index", 0, MAX_TIME),
            f.hex("answer_digest", DIGEST_BYTES),
            f.hex("file_digest", DIGEST_BYTES),
            f.integer("step", 0, STEPS),
            f.integer("time", 0, MAX_TIME),
            f.hex("signature", SIGNATURE_BYTES),
        )

    def verify_signature(self, arbiter: PublicKey) -> None:
        """Check the arbiter's signature; ReceiptRejected."""
        fields = (self.origin, self.index, self.answer_digest, self.file_digest)
        check_signature(arbiter, self.signature, "finding", *fields, self.step, self.time)


@dataclass(frozen=True, slots=True)
class DisputeStatus:
    """What became of the disputes about a record: the verifier's reply, which it does not sign.

    Attributes:
        sampled: whether the record was sampled, so that the verifier must not see the file.
        step: the step of docs/spec 5.9 that fails; 0: none does; None: not judged yet.
    """

    sampled: bool
    step: int | None

    def to_json(self) -> dict[str, bool | int | None]:
        """Return the status as a JSON object."""
        return {"sampled": self.sampled, "step": self.step}

    @classmethod
    def from_json(cls, value: Any) -> "DisputeStatus":
        """Return the status of a JSON value, the strict inverse of `to_json`; MalformedRecord."""
        f = Fields(value, "sampled step", MalformedRecord, "dispute status")
        step = None if f.raw("step") is None else f.integer("step", 0, STEPS)
        return cls(f.boolean("sampled"), step)


def documents_digest(documents: Sequence[Any]) -> bytes:
    """Digest of JSON values in their order: what one request submits (docs/spec 5.10)."""
    return structure("submission", *(canonical_json.dumps(each) for each in documents))


def file_digest(receipt_file: Mapping[str, Any]) -> bytes:
    """Digest of a receipt file, a JSON value, without its inclusion proof.

    The proof is nobody's statement and arrives later; everything else is taken as it is, whether
    or not it has the form that an honest provider gives it.
    """
    public = receipt_file.get("public")
    kept = {**public, "proof": None} if isinstance(public, Mapping) else public
    return structure("receipt/file", canonical_json.dumps({**receipt_file, "public": kept}))


def _named(receipt_file: Mapping[str, Any]) -> tuple[str, int, bytes]:
    """(origin, index, answer digest) of the public half, whatever else is in it."""
    public = receipt_file.get("public")
    if not isinstance(public, dict):
        raise MalformedRecord("no public half", where="receipt file")
    f = Fields(public, " ".join(public), MalformedRecord, "public")
    for name in ("origin", "index", "answer_digest"):
        if name not in public:
            raise MalformedRecord("missing member", where=f"public.{name}")
    return (
        read_origin(f),
        f.integer("index", 0, MAX_TIME),
        f.hex("answer_digest", DIGEST_BYTES),
    )
