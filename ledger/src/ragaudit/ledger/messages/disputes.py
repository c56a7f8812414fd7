"""What an account signs with its dispute key, and what an arbiter signs (docs/spec 5.10).

The provider made every receipt file and can sign any of them again, so none of them shows who
brings it. What counts as an account's carries the signature of the key in its registration.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, TypeAlias

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.kernel import Count, Digest, Integer, Message, Milliseconds, Origin
from ragaudit.ledger.messages.receipts import GeneratedFile, file_class, query_index
from ragaudit.ledger.messages.signed import AccountMessage

STEPS = 10  # of docs/spec 5.9; those of a generated answer (11.10) are fewer
Step: TypeAlias = Annotated[int, Integer(0, STEPS)]


class RegistrationStatement(AccountMessage, kind="registration-statement", where="statement"):
    """An account says that a registration, with its nonce chain, is its own.

    Attributes:
        origin: of the window's log.
        pseudonym: of the account.
        anchor: of its nonce chain (5.6); None for a plain account.
    """

    # The anchor is signed too: where the provider made the chain itself and registered it for an
    # account, no statement is about it, and the records count as plain (9.5).
    origin: Origin
    pseudonym: Digest
    anchor: Digest | None


class HolderStatement(AccountMessage, kind="holder-statement", where="holder"):
    """An account says that it submits these receipts, or these refusals, itself.

    The provider signed all of them and can submit any: what the account signs for is kept first.

    Attributes:
        origin: of the window's log.
        pseudonym: of the account.
        digest: of what goes with the statement.
    """

    origin: Origin
    pseudonym: Digest
    # Of the documents: a copied statement would let the provider present others as the account's,
    # and fill its share with them (8.8).
    digest: Digest

    @classmethod
    def issue(
        cls, key: PrivateKey, *, origin: str, pseudonym: bytes, documents: Sequence[Any]
    ) -> Self:
        """Sign for documents.

        Args:
            key: the account's dispute key.
            origin: of the window's log.
            pseudonym: of the account, 32 bytes.
            documents: JSON values in the order in which they are submitted.
        """
        return cls(origin, pseudonym, documents_digest(documents)).signed(key)

    def verify_documents(self, documents: Sequence[Any]) -> None:
        """Check that it is about these documents, in this order.

        Args:
            documents: JSON values, as they were submitted.

        Raises:
            ReceiptRejected: it is about others: somebody copied a statement to them.
        """
        if self.digest != documents_digest(documents):
            raise ReceiptRejected("signed for other documents", where="holder/digest")


class Dispute(AccountMessage, kind="dispute"):
    """An account says, before the sample is drawn, that one of its answers is false.

    It names the receipt file by digest only: whether the verifier may see the file depends on a
    draw that nobody knows yet.

    Attributes:
        origin: of the window's log.
        pseudonym: of the account.
        index: leaf index of the record, or of the charge entry.
        answer_digest: of the receipt's public part.
        file_digest: of the receipt file.
    """

    origin: Origin
    pseudonym: Digest
    index: Count
    # The answer digest leaves out index, salt and body, which the provider can sign again for
    # another place; the file's digest covers them.
    answer_digest: Digest
    file_digest: Digest

    @classmethod
    def issue(cls, key: PrivateKey, *, pseudonym: bytes, receipt_file: Mapping[str, Any]) -> Self:
        """Sign a dispute about a receipt file.

        Args:
            key: the account's dispute key.
            pseudonym: of the account, 32 bytes.
            receipt_file: as JSON value, whatever else is wrong with it.

        Raises:
            MalformedRecord: no public part to name: index, origin or answer digest are missing.
        """
        origin, index, answer = _named(receipt_file)
        return cls(origin, pseudonym, index, answer, file_digest(receipt_file)).signed(key)

    @property
    def identity(self) -> bytes:
        """What makes two disputes the same one, whoever signed how often: 32 bytes."""
        # Without the signature: an Ed25519 signer can sign one message in many ways, and each would
        # take up room (8.8).
        return structure("dispute", *self.signed_fields())


class Finding(AccountMessage, kind="finding"):
    """What the arbiter says of a receipt file: it names no row and no position.

    Attributes:
        origin: of the window's log.
        index: leaf index of the record, or of the charge entry.
        answer_digest: of the receipt's public part.
        file_digest: of the receipt file.
        step: of docs/spec 5.9, or 11.10, that fails; 0: none does, the dispute is dismissed.
        time: by the arbiter's clock.
    """

    # The file by digest and the place by index, but no row: the verifier takes findings about
    # sampled records, whose noise it has, and must not learn which rows they hold (8.9).
    origin: Origin
    index: Count
    answer_digest: Digest
    file_digest: Digest
    step: Step
    time: Milliseconds

    @property
    def upheld(self) -> bool:
        """Whether the provider signed something false."""
        return self.step > 0


class DisputeStatus(Message, where="dispute status"):
    """What became of the disputes about a record: the verifier's reply, which it does not sign.

    Attributes:
        sampled: whether the record was sampled, so that the verifier must not see the file.
        step: of docs/spec 5.9, or 11.10, that fails; 0: none does; None: not judged yet.
    """

    sampled: bool
    step: Step | None


def documents_digest(documents: Sequence[Any]) -> bytes:
    """Return the digest of what one request submits, 32 bytes (docs/spec 5.10).

    Args:
        documents: JSON values in their order.
    """
    # As they are submitted, a proof included: what is held is what the account chose to show.
    return structure("submission", *(canonical_json.dumps(document) for document in documents))


def file_digest(receipt_file: Mapping[str, Any]) -> bytes:
    """Return the digest of a receipt file without its inclusion proofs, 32 bytes.

    The proof is nobody's statement and arrives later; everything else is taken as it is, whether
    or not it has the form that an honest provider gives it.

    Args:
        receipt_file: a JSON value.
    """
    public = receipt_file.get("public")
    # An account may dispute before a proof exists and show the file afterwards: one digest has to
    # fit both.
    if isinstance(public, Mapping):
        if file_class(receipt_file) is GeneratedFile:
            public = {
                name: {**part, "proof": None} if isinstance(part, Mapping) else part
                for name, part in public.items()
            }
        else:
            public = {**public, "proof": None}
    return structure("receipt/file", canonical_json.dumps({**receipt_file, "public": public}))


def _named(receipt_file: Mapping[str, Any]) -> tuple[str, int, bytes]:
    """Return origin, index and answer digest of the public part, whatever else is in it."""
    public = receipt_file.get("public")
    if not isinstance(public, dict):
        raise MalformedRecord("no public part", where="receipt file")
    # All its members are expected: a file may be disputed because of a member that nobody knows.
    f = Fields(public, " ".join(public), MalformedRecord, "public")
    for name in ("origin", "answer_digest"):
        if name not in public:
            raise MalformedRecord("missing member", where=f"public.{name}")
    return f.origin(), query_index(receipt_file), f.hex("answer_digest", 32)
