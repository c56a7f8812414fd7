"""What signed in-toto test-results have in common, whatever was tested (docs/spec 10.9)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.dsse import STATEMENT_TYPE, Envelope

__all__ = ["PREDICATE_TYPE", "SignedResult", "check_subjects", "read_subjects", "statement"]

PREDICATE_TYPE: Final = "https://in-toto.io/attestation/test-result/v0.1"


class SignedResult(ABC):
    """A result that whoever made the test signs: an in-toto Statement in a DSSE envelope."""

    __slots__ = ()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""

    @classmethod
    @abstractmethod
    def parse(cls, data: bytes) -> Self:
        """Return the result in ``data``, canonical JSON of `to_json`.

        Raises:
            MalformedError: anything else.
        """

    def issue(self, key: PrivateKey) -> bytes:
        """Return the statement in a DSSE envelope.

        Args:
            key: of whoever made the test.
        """
        return Envelope.seal(canonical_json.dumps(self.to_json()), key)

    @classmethod
    def verify(cls, envelope: bytes, public: PublicKey) -> Self:
        """Return the result in ``envelope``, signed by ``public``.

        Args:
            envelope: bytes from anywhere.
            public: of whoever made the test, from the caller.

        Raises:
            MalformedError: not an envelope or a result in its one accepted form.
            EnvelopeRejected: signed by another key, or not at all.
        """
        opened = Envelope.parse(envelope)
        opened.verify(public)
        return cls.parse(opened.body)


def statement(subjects: Mapping[str, str], predicate: Mapping[str, Any]) -> dict[str, Any]:
    """Return an in-toto Statement about subjects: hexadecimal SHA-256 by name."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }


def check_subjects(subjects: Mapping[str, str], *others: str) -> None:
    """Check that there is a subject, and that digests are hexadecimal SHA-256; MalformedError."""
    if not subjects:
        raise MalformedError("no subject", where="subject")
    for digest in (*others, *subjects.values()):
        hex_decode(digest, 32)


def read_subjects(values: list[Any]) -> dict[str, str]:
    """Return hexadecimal SHA-256 by name of a statement's subjects.

    Raises:
        MalformedError: one has another form or digest, or a name comes twice.
    """
    found: dict[str, str] = {}
    for value in values:
        match value:
            case {"name": str(name), "digest": {"sha256": str(digest)}} if name not in found:
                hex_decode(digest, 32)
                found[name] = digest
            case _:
                raise MalformedError("no subject, or one twice", where="subject")
    return found
