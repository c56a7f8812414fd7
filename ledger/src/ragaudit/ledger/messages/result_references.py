"""What a verdict says of test results that others signed: by digest, no more (docs/spec 10.11)."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.dsse import STATEMENT_TYPE, Envelope
from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.ledger.messages.identifiers import check_window
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.kernel import Choice, Digest, KeyInHex, Message, WindowName
from ragaudit.ledger.messages.signed_results import PREDICATE_TYPE, read_subjects

__all__ = [
    "MAX_REFERENCES",
    "MAX_RESULT_BYTES",
    "OtherResult",
    "References",
    "ResultReference",
    "match",
    "references_of",
]

MAX_REFERENCES: Final = 16
"""Of one verdict: each is a line that a reader must be told to keep apart from it."""

MAX_RESULT_BYTES: Final = 2**15
"""Of an envelope: digests and figures; the answers that it was found from are not in it."""

_RESULTS: Final = ("PASSED", "WARNED", "FAILED")


class OtherResult(RejectedError):
    """A test result of another window, or another one than the verdict refers to."""


class ResultReference(Message, where="test result"):
    """A reference to a signed in-toto test-result about the audited window.

    Attributes:
        name: of the result among those of one verdict; of the grammar of windows' names.
        predicate_type: of its statement.
        digest: SHA-256 of its envelope, 32 bytes.
        key: under which its signature was verified.
    """

    name: WindowName
    predicate_type: Annotated[str, Choice(PREDICATE_TYPE)]
    digest: Digest
    key: KeyInHex

    @classmethod
    def of(cls, name: str, envelope: bytes, public: PublicKey, policy: bytes) -> Self:
        """Return the reference to a result, which is verified first.

        Args:
            name: to be given to it.
            envelope: bytes from anywhere.
            public: the tester's key, from the caller.
            policy: the item `public/policy.json` of the audited window.

        Raises:
            MalformedError: not an envelope or a test-result, too long, or not a name.
            EnvelopeRejected: signed by another key, or not at all.
            OtherResult: about another window, or about none.
        """
        if len(envelope) > MAX_RESULT_BYTES:
            raise MalformedError("too long", where=name, expected=f"{MAX_RESULT_BYTES} bytes")
        opened = Envelope.parse(envelope)
        opened.verify(public)
        kind, subjects = _statement(opened.body)
        if subjects.get(POLICY) != hashlib.sha256(policy).hexdigest():
            raise OtherResult(
                "a test result of another window, or of none", where=check_window(name),
                expected=f"the subject {POLICY} of this window",
            )  # fmt: skip
        return cls(check_window(name), kind, hashlib.sha256(envelope).digest(), public)

    def check(self, envelope: bytes, policy: bytes) -> None:
        """Check that this reference is to a result.

        Args:
            envelope: bytes from anywhere.
            policy: the item `public/policy.json` of the audited window.

        Raises:
            MalformedError, EnvelopeRejected: as of `of`.
            OtherResult: another document, about another window, or of another type.
        """
        # First: of a document that is another one, no more is to be said.
        if hashlib.sha256(envelope).digest() != self.digest:
            raise OtherResult("another document", where=self.name, expected=self.digest.hex())
        if ResultReference.of(self.name, envelope, self.key, policy) != self:
            raise OtherResult("of another type", where=self.name, expected=self.predicate_type)


@dataclass(frozen=True, slots=True)
class References(EvidenceList[ResultReference]):
    """`public/test-results.json`: by rising name, at least one, MAX_REFERENCES at most."""

    @staticmethod
    def read(value: Any) -> ResultReference:
        return ResultReference.from_json(value)

    def __post_init__(self) -> None:
        names = [each.name for each in self.messages]
        if not 1 <= len(names) <= MAX_REFERENCES or names != sorted(set(names)):
            raise MalformedError(
                "not by rising name", where="test results", expected=f"1..{MAX_REFERENCES} of them"
            )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the member `test_results` of a predicate."""
        return [each.to_json() for each in self.messages]

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        """Return the references of a predicate's member; MalformedError for anything else."""
        return cls(tuple(map(cls.read, value)))


def references_of(member: References | None) -> tuple[ResultReference, ...]:
    """Return the references of a verdict; none where it has no such member."""
    return () if member is None else member.messages


def match(references: References | None, files: Iterable[bytes]) -> Mapping[str, bytes]:
    """Return files by the names of the references that they are.

    Args:
        references: of a verdict, None if it has none.
        files: envelopes, of which each must be one that a reference names by digest.

    Raises:
        OtherResult: one is not.
    """
    known = {each.digest: each.name for each in references_of(references)}
    found = {}
    for file in files:
        digest = hashlib.sha256(file).digest()
        if digest not in known:
            raise OtherResult(
                "not a test result that the verdict refers to", where=f"SHA-256 {digest.hex()}",
                expected=", ".join(map(bytes.hex, known)) or "none: it refers to no test result",
            )  # fmt: skip
        found[known[digest]] = file
    return found


def _statement(body: bytes) -> tuple[str, dict[str, str]]:
    """(predicateType, subjects) of a test-result; MalformedError for anything else."""
    match canonical_json.loads(body):
        case {
            "_type": str(statement),
            "subject": list(subjects),
            "predicateType": str(kind),
            "predicate": {"configuration": list(), "result": str(result)},
            **more,
        } if not more and statement == STATEMENT_TYPE and kind == PREDICATE_TYPE:
            if result in _RESULTS:
                return kind, read_subjects(subjects)
    raise MalformedError("not an in-toto test-result", expected=PREDICATE_TYPE)
