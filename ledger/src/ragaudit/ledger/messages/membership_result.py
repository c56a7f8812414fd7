"""The signed result of a membership test: an in-toto test-result (docs/spec 10.9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.dsse import STATEMENT_TYPE, Envelope

__all__ = ["PREDICATE_TYPE", "MembershipResult"]

PREDICATE_TYPE: Final = "https://in-toto.io/attestation/test-result/v0.1"
DETAIL_MEMBER: Final = "https://ragaudit.dev/membership-test/v1"
"""An extension, named by a URI as in-toto's parsing rules want it."""

_OUTCOMES: Final = {"PASS": "passed", "INCONCLUSIVE": "warned", "FAIL": "failed"}
_RESULTS: Final = (("failed", "FAILED"), ("warned", "WARNED"), ("passed", "PASSED"))
AUC_TEST: Final = "membership_auc"
CLAIM_TEST: Final = "claimed_epsilon"


@dataclass(frozen=True, slots=True)
class MembershipResult:
    """What a membership test found. It says nothing of epsilon beyond a refuted claim.

    Attributes:
        subjects: hexadecimal SHA-256 of what it was found from, by name: the exchanges and others.
        plan: hexadecimal SHA-256 of what was declared beforehand.
        verdict: PASS, FAIL or INCONCLUSIVE.
        claim_refuted: None if no claim was tested.
        detail: figures as texts, by name.
    """

    subjects: Mapping[str, str]
    plan: str
    verdict: str
    claim_refuted: bool | None
    detail: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.verdict not in _OUTCOMES:
            raise MalformedError(repr(self.verdict), where="verdict", expected=", ".join(_OUTCOMES))
        if not self.subjects:
            raise MalformedError("no subject", where="subject")
        for digest in (self.plan, *self.subjects.values()):
            hex_decode(digest, 32)

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        tests: dict[str, list[str]] = {"passed": [], "warned": [], "failed": []}
        tests[_OUTCOMES[self.verdict]].append(AUC_TEST)
        if self.claim_refuted is not None:
            tests["failed" if self.claim_refuted else "passed"].append(CLAIM_TEST)
        return {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": name, "digest": {"sha256": self.subjects[name]}}
                for name in sorted(self.subjects)
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                DETAIL_MEMBER: {"verdict": self.verdict, **self.detail},
                "configuration": [{"digest": {"sha256": self.plan}}],
                "result": next(result for outcome, result in _RESULTS if tests[outcome]),
                **{f"{outcome}Tests": names for outcome, names in tests.items()},
            },
        }

    def issue(self, key: PrivateKey) -> bytes:
        """Return the statement in a DSSE envelope.

        Args:
            key: of whoever made the test.
        """
        return Envelope.seal(canonical_json.dumps(self.to_json()), key)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the result in ``data``, canonical JSON of `to_json`.

        Raises:
            MalformedError: anything else.
        """
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
                    refuted = True if CLAIM_TEST in failed else None
                    found = cls(
                        _subjects(subjects),
                        plan,
                        figures.pop("verdict", ""),
                        False if CLAIM_TEST in passed else refuted,
                        figures,
                    )
                    # What is written again and is the same has no other member.
                    if found.to_json() == value:
                        return found
        raise MalformedError("not the result of a membership test", expected=PREDICATE_TYPE)

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


def _subjects(values: list[Any]) -> dict[str, str]:
    found = {}
    for value in values:
        match value:
            case {"name": str(name), "digest": {"sha256": str(digest)}}:
                found[name] = digest
            case _:
                raise MalformedError("no subject", where="subject")
    return found
