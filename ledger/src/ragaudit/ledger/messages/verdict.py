"""The signed verdict: an in-toto Statement in a DSSE envelope (docs/spec/10-verdict.md §10.3)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.claims import (
    EXCEEDED,
    FAIL,
    PASS,
    REFUSED,
    RESULTS,
    Claims,
    Status,
)
from ragaudit.ledger.messages.dsse import (
    PAYLOAD_TYPE,
    STATEMENT_TYPE,
    Envelope,
    EnvelopeRejected,
    key_id,
    pae,
)
from ragaudit.ledger.messages.items import check_name
from ragaudit.ledger.messages.predicate import (
    WORTHLESS,
    Json,
    MalformedVerdict,
    Predicate,
    SignedCheck,
    decoded,
)

__all__ = [
    "EXCEEDED",
    "FAIL",
    "PASS",
    "PAYLOAD_TYPE",
    "REFUSED",
    "RESULTS",
    "WORTHLESS",
    "Claims",
    "MalformedVerdict",
    "Predicate",
    "SignedCheck",
    "Status",
    "Verdict",
    "VerdictRejected",
    "key_id",
    "pae",
    "sign_statement",
    "statement",
]

PREDICATE_TYPE: Final = "https://ragaudit.dev/verdict/v1"


class VerdictRejected(RejectedError):
    """The envelope is not signed by the expected key."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict whose signature was verified: there is no other way to have one.

    Attributes:
        subjects: hexadecimal SHA-256 of each evidence item, by name.
        predicate: what it states.
        key: the public key that the signature verified under.
        digest: hexadecimal SHA-256 of the envelope: what names this verdict elsewhere.
    """

    subjects: Mapping[str, str]
    predicate: Predicate
    key: PublicKey
    digest: str

    @property
    def result(self) -> str:
        """One of RESULTS."""
        return self.predicate.result

    @staticmethod
    def issue(key: PrivateKey, subjects: Mapping[str, str], predicate: Predicate) -> bytes:
        """Return the signed verdict, a DSSE envelope in canonical JSON.

        Args:
            key: the verdict key.
            subjects: hexadecimal SHA-256 of everything that the procedure saw, by name.
            predicate: what is stated.

        Raises:
            MalformedVerdict: not what a reader would accept.
        """
        return sign_statement(statement(subjects, predicate.to_json()), key)

    @classmethod
    def verify(cls, envelope: bytes, public: PublicKey) -> Self:
        """Return the verdict in ``envelope``, signed by ``public``.

        Args:
            envelope: bytes from anywhere.
            public: the expected key, from the caller; the envelope's ``keyid`` must be its, and
                decides nothing.

        Raises:
            MalformedVerdict: not an envelope, statement or predicate in its one accepted form.
            VerdictRejected: signed by another key, or not at all.
        """
        opened = _envelope(envelope)
        try:
            opened.verify(public)
        except EnvelopeRejected as error:
            raise VerdictRejected(error.what, where=error.where, expected=error.expected) from error
        subjects, predicate = _read_statement(_loads(opened.body, "payload"))
        return cls(subjects, predicate, public, hashlib.sha256(envelope).hexdigest())

    @staticmethod
    def unverified(envelope: bytes) -> Predicate:
        """Return what an envelope says, whoever signed it: to show, never to rely on.

        Raises:
            MalformedVerdict: as `verify`.
        """
        return _read_statement(_loads(_envelope(envelope).body, "payload"))[1]


def statement(subjects: Mapping[str, str], predicate: Json) -> dict[str, Any]:
    """Return the in-toto Statement v1 over evidence items, a JSON object.

    Args:
        subjects: hexadecimal SHA-256 of the items, by name.
        predicate: of `Predicate.to_json`.
    """
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }


def sign_statement(value: Json, key: PrivateKey) -> bytes:
    """Return the DSSE envelope of a statement, canonical JSON.

    Args:
        value: of :func:`statement`.
        key: the verdict key.

    Raises:
        MalformedVerdict: the statement is not one that a reader would accept.
    """
    # A verifier never signs what nobody could verify.
    _read_statement(value)
    return Envelope.seal(canonical_json.dumps(value), key)


def _envelope(data: bytes) -> Envelope:
    return decoded(lambda: Envelope.parse(data), "envelope")


def _read_statement(value: object) -> tuple[dict[str, str], Predicate]:
    """(subjects, predicate) of a statement; MalformedVerdict for anything else."""
    match value:
        case {
            "_type": str(kind),
            "subject": list(subjects),
            "predicateType": str(predicate_type),
            "predicate": dict(verdict_predicate),
            **more,
        } if not more:
            if (kind, predicate_type) != (STATEMENT_TYPE, PREDICATE_TYPE):
                raise MalformedVerdict("another statement or predicate type")
            return read_subjects(subjects), Predicate.from_json(verdict_predicate)
    raise MalformedVerdict("not an in-toto Statement", expected=STATEMENT_TYPE)


def read_subjects(subjects: list[object]) -> dict[str, str]:
    """Return the subjects of a statement: hexadecimal SHA-256 by the name of the evidence item.

    Raises:
        MalformedVerdict: not evidence items with one SHA-256 each, by rising name.
    """
    found: dict[str, str] = {}
    last = ""
    for subject in subjects:
        match subject:
            case {"name": str(name), "digest": {"sha256": str(digest), **other}, **more} if not (
                other or more
            ):
                _check_subject(name, digest)
                # One order, no repetitions: one set of items has one statement.
                if name <= last:
                    raise MalformedVerdict("subjects repeat or are out of order", where=name)
                found[name], last = digest, name
            case _:
                raise MalformedVerdict("not a subject", expected="name and sha256 digest")
    return found


def _check_subject(name: str, digest: str) -> None:
    decoded(lambda: check_name(name), "subject")
    decoded(lambda: hex_decode(digest, 32), "subject digest")


def _loads(data: bytes, where: str) -> object:
    return decoded(lambda: canonical_json.loads(data), where)
