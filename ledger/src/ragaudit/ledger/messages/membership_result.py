"""The signed result of a membership test: an in-toto test-result (docs/spec 10.9)."""

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

__all__ = ["MembershipResult"]

DETAIL_MEMBER: Final = "https://ragaudit.dev/membership-test/v1"
"""An extension, named by a URI as in-toto's parsing rules want it."""

_OUTCOMES: Final = {"PASS": "passed", "INCONCLUSIVE": "warned", "FAIL": "failed"}
_RESULTS: Final = (("failed", "FAILED"), ("warned", "WARNED"), ("passed", "PASSED"))
AUC_TEST: Final = "membership_auc"
CLAIM_TESTS: Final = ("claimed_epsilon", "claimed_mu")
"""Named as the figure that states the claim, of which one alone is tested."""


@dataclass(frozen=True, slots=True)
class MembershipResult(SignedResult):
    """What a membership test found. It says nothing of epsilon beyond a refuted claim.

    Attributes:
        subjects: hexadecimal SHA-256 of what it was found from, by name: the exchanges and others.
        plan: hexadecimal SHA-256 of what was declared beforehand.
        verdict: PASS, FAIL or INCONCLUSIVE.
        claim_refuted: None if no claim was tested.
        detail: figures as texts, by name; of a claim that was tested, what it claims.
    """

    subjects: Mapping[str, str]
    plan: str
    verdict: str
    claim_refuted: bool | None
    detail: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.verdict not in _OUTCOMES:
            raise MalformedError(repr(self.verdict), where="verdict", expected=", ".join(_OUTCOMES))
        if len(self._claim_tests) != (self.claim_refuted is not None):
            raise MalformedError(
                "a claim that is not tested, or more than one", where="detail",
                expected=f"one of {', '.join(CLAIM_TESTS)} if a claim is tested, else none",
            )  # fmt: skip
        check_subjects(self.subjects, self.plan)

    @property
    def _claim_tests(self) -> list[str]:
        return [name for name in CLAIM_TESTS if name in self.detail]

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        tests: dict[str, list[str]] = {"passed": [], "warned": [], "failed": []}
        tests[_OUTCOMES[self.verdict]].append(AUC_TEST)
        tests["failed" if self.claim_refuted else "passed"] += self._claim_tests
        return statement(
            self.subjects,
            {
                DETAIL_MEMBER: {"verdict": self.verdict, **self.detail},
                "configuration": [{"digest": {"sha256": self.plan}}],
                "result": next(result for outcome, result in _RESULTS if tests[outcome]),
                **{f"{outcome}Tests": names for outcome, names in tests.items()},
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
                    "configuration": [{"digest": {"sha256": str(plan)}}],
                    "failedTests": list(failed),
                    "passedTests": list(passed),
                    **others,
                },
            }:
                detail = others.get(DETAIL_MEMBER)
                if isinstance(detail, dict) and all(isinstance(x, str) for x in detail.values()):
                    figures = dict(detail)
                    refuted = True if any(name in failed for name in CLAIM_TESTS) else None
                    found = cls(
                        read_subjects(subjects),
                        plan,
                        figures.pop("verdict", ""),
                        False if any(name in passed for name in CLAIM_TESTS) else refuted,
                        figures,
                    )
                    # What is written again and is the same has no other member.
                    if found.to_json() == value:
                        return found
        raise MalformedError("not the result of a membership test", expected=PREDICATE_TYPE)
