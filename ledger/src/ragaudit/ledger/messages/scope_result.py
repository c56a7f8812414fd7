"""The signed result of a scope test: an in-toto test-result (docs/spec 10.9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.dsse import STATEMENT_TYPE, Envelope
from ragaudit.ledger.messages.membership_result import PREDICATE_TYPE

__all__ = ["ScopeResult"]

DETAIL_MEMBER: Final = "https://ragaudit.dev/scope-test/v1"
SCOPE_TEST: Final = "retrieval_scope"

_OUTCOMES: Final = {
    "CLEAN": ("PASSED", "passedTests"),
    "INCOMPLETE": ("WARNED", "warnedTests"),
    "LEAK": ("FAILED", "failedTests"),
}


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """What a scope test found. Nothing of it enters an epsilon.

    Attributes:
        subjects: hexadecimal SHA-256 of the report and of what was tested, by name.
        target: hexadecimal SHA-256 of the file that says what was tested.
        result: CLEAN, INCOMPLETE or LEAK.
        detail: figures as texts, by name; none is called "result".
    """

    subjects: Mapping[str, str]
    target: str
    result: str
    detail: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.result not in _OUTCOMES:
            raise MalformedError(repr(self.result), where="result", expected=", ".join(_OUTCOMES))
        if not self.subjects:
            raise MalformedError("no subject", where="subject")
        for digest in (self.target, *self.subjects.values()):
            hex_decode(digest, 32)

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        outcome, listed = _OUTCOMES[self.result]
        tests: dict[str, list[str]] = {member: [] for _, member in _OUTCOMES.values()} | {
            listed: [SCOPE_TEST]
        }
        return {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": name, "digest": {"sha256": self.subjects[name]}}
                for name in sorted(self.subjects)
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                DETAIL_MEMBER: {**self.detail, "result": self.result},
                "configuration": [{"digest": {"sha256": self.target}}],
                "result": outcome,
                **tests,
            },
        }

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
        value = canonical_json.loads(opened.body)
        match value:
            case {
                "subject": list(subjects),
                "predicate": {
                    "configuration": [{"digest": {"sha256": str(target)}}],
                    **others,
                },
            }:
                detail = others.get(DETAIL_MEMBER)
                if isinstance(detail, dict) and all(isinstance(x, str) for x in detail.values()):
                    figures = dict(detail)
                    result = figures.pop("result", "")
                    found = cls(_subjects(subjects), target, result, figures)
                    # What is written again and is the same has no other member.
                    if found.to_json() == value:
                        return found
        raise MalformedError("not the result of a scope test", expected=PREDICATE_TYPE)


def _subjects(values: list[Any]) -> dict[str, str]:
    found = {}
    for value in values:
        match value:
            case {"name": str(name), "digest": {"sha256": str(digest)}}:
                found[name] = digest
            case _:
                raise MalformedError("no subject", where="subject")
    return found
