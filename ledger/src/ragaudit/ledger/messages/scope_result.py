"""The signed result of a scope test: an in-toto test-result (docs/spec 10.9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.signed_results import (
    PREDICATE_TYPE,
    SignedResult,
    check_subjects,
    read_subjects,
    statement,
)

__all__ = ["ScopeResult"]

DETAIL_MEMBER: Final = "https://ragaudit.dev/scope-test/v1"
SCOPE_TEST: Final = "retrieval_scope"

_OUTCOMES: Final = {
    "CLEAN": ("PASSED", "passedTests"),
    "INCOMPLETE": ("WARNED", "warnedTests"),
    "LEAK": ("FAILED", "failedTests"),
}


@dataclass(frozen=True, slots=True)
class ScopeResult(SignedResult):
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
        check_subjects(self.subjects, self.target)

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        outcome, listed = _OUTCOMES[self.result]
        tests: dict[str, list[str]] = {member: [] for _, member in _OUTCOMES.values()} | {
            listed: [SCOPE_TEST]
        }
        return statement(
            self.subjects,
            {
                DETAIL_MEMBER: {**self.detail, "result": self.result},
                "configuration": [{"digest": {"sha256": self.target}}],
                "result": outcome,
                **tests,
            },
        )

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the result in ``data``, canonical JSON of `to_json`; MalformedError."""
        value = canonical_json.loads(data)
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
                    found = cls(read_subjects(subjects), target, result, figures)
                    # What is written again and is the same has no other member.
                    if found.to_json() == value:
                        return found
        raise MalformedError("not the result of a scope test", expected=PREDICATE_TYPE)
