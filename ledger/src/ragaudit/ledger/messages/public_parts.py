"""Public parts of receipts of either channel: what anybody may hand to a verifier (spec 8.3)."""

from collections.abc import Mapping
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.generated import GeneratedFile, GeneratedReceipt
from ragaudit.ledger.messages.kernel import MAX_TIME
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import (
    PublicReceipt,
    ReceiptFile,
    digest_of,
)

__all__ = [
    "PublicPart",
    "bound_receipt",
    "is_generated",
    "query_index",
    "query_name",
    "read_public_part",
    "unproven",
]

PublicPart = PublicReceipt | GeneratedReceipt
"""Of a record (5.8), or of a generated answer (11.10)."""

_SALTS: Final = {ReceiptFile.FORMAT: "salt_r", GeneratedFile.FORMAT: "salt_a"}
"""Which salt of its private part hides the answer in a file's digest."""


def read_public_part(value: Any, where: str = "") -> PublicPart:
    """Return the public part of a JSON value, of the channel that its format names.

    Args:
        value: the JSON value.
        where: of the value, for errors.

    Raises:
        MalformedRecord: a public part of neither channel; one that names no format is judged as
            that of a record. Nothing is verified.
    """
    named = value.get("format") if isinstance(value, dict) else None
    kind = GeneratedReceipt if named == GeneratedReceipt.FORMAT else PublicReceipt
    return kind.from_json(value, where)


def query_name(half: PublicPart) -> str:
    """Return what findings call the query of a receipt."""
    return f"{'record' if isinstance(half, PublicReceipt) else 'charge entry'} {half.index}"


def is_generated(value: Mapping[str, Any]) -> bool:
    """Return whether a file says that it holds a generated answer, or its public part alone.

    Args:
        value: the file's JSON.
    """
    return value.get("format") in (GeneratedFile.FORMAT, GeneratedReceipt.FORMAT)


def unproven(half: PublicPart) -> PublicPart:
    """Return a public part without its proofs, which nobody signed."""
    return half.with_proofs(*[None] * len(half.leaves))


def query_index(receipt_file: Mapping[str, Any]) -> int:
    """Return the place in the log that a file names: of its record, or of its charge entry.

    The rest of the file may have any form: a provider signs what it likes, and that is disputed.

    Args:
        receipt_file: JSON, as it was received.

    Raises:
        MalformedRecord: no public part, or none with an index.
    """
    entry = receipt_file.get("public")
    if is_generated(receipt_file) and isinstance(entry, Mapping):
        entry = entry.get("charge")
    index = entry.get("index") if isinstance(entry, Mapping) else None
    return Fields({"index": index}, "index", MalformedRecord, "public").integer(
        "index", 0, MAX_TIME
    )


def bound_receipt(document: Mapping[str, Any], policy: Policy) -> PublicPart:
    """Return the public part, without proofs, of a file that the provider's signature binds whole.

    The parts are taken as they are: an answer in a form that no honest provider gives is the
    provider's own when it signed its digest.

    Args:
        document: a receipt file, of a record or of a generated answer, as JSON value.
        policy: of the window whose receipt it must be.

    Raises:
        RagauditError: not a receipt file, not signed, or the digest names another answer.
    """
    match document:
        case {
            "format": str(form),
            "request": request,
            "answer": answer,
            "public": public,
            "private": {**private},
            **more,
            # A member beside these would be covered by no digest.
        } if form in _SALTS and isinstance(private.get(_SALTS[form]), str) and not more:
            kind = GeneratedReceipt if form == GeneratedFile.FORMAT else PublicReceipt
            receipt: PublicPart = kind.from_json(public, "public")
            if receipt.origin != policy.origin:
                raise ReceiptRejected("of another log", where="origin", expected=policy.origin)
            # Before the digest: anybody can make up parts that fit each other, and they accuse
            # nobody.
            receipt.verify(policy.keys.provider)
            salt = hex_decode(str(private[_SALTS[form]]), SALT_BYTES)
            parts = [canonical_json.dumps(part) for part in (request, answer, private)]
            if digest_of((parts[0], parts[1], parts[2]), salt) != receipt.answer_digest:
                raise ReceiptRejected("another answer was signed", where="answer_digest")
            # A proof is nobody's statement: whoever brings the file could have put any into it.
            return unproven(receipt)
    raise MalformedError("not a receipt file", where="receipt file", expected=ReceiptFile.FORMAT)
