"""Signed in-toto test-results: of membership, of scope, of an owner (docs/spec 10.9, 10.11).

A verdict refers to them by digest, no more. An extension is named by a URI as in-toto's parsing
rules want it.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.entries import MAX_VERSION
from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.identifiers import check_tenant, check_window
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.kernel import (
    MAX_TIME,
    Choice,
    Count,
    Digest,
    KeyInHex,
    Message,
    WindowName,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed import STATEMENT_TYPE, Envelope, in_toto

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


MEMBERSHIP_DETAIL: Final = "https://ragaudit.dev/membership-test/v1"
"""An extension, named by a URI as in-toto's parsing rules want it."""

_MEMBERSHIP_OUTCOMES: Final = {"PASS": "passed", "INCONCLUSIVE": "warned", "FAIL": "failed"}
_RESULT_OF: Final = (("failed", "FAILED"), ("warned", "WARNED"), ("passed", "PASSED"))
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
        if self.verdict not in _MEMBERSHIP_OUTCOMES:
            raise MalformedError(
                repr(self.verdict), where="verdict", expected=", ".join(_MEMBERSHIP_OUTCOMES)
            )
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
        tests[_MEMBERSHIP_OUTCOMES[self.verdict]].append(AUC_TEST)
        tests["failed" if self.claim_refuted else "passed"] += self._claim_tests
        return in_toto(
            PREDICATE_TYPE,
            self.subjects,
            {
                MEMBERSHIP_DETAIL: {"verdict": self.verdict, **self.detail},
                "configuration": [{"digest": {"sha256": self.plan}}],
                "result": next(result for outcome, result in _RESULT_OF if tests[outcome]),
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
                detail = others.get(MEMBERSHIP_DETAIL)
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


SCOPE_DETAIL: Final = "https://ragaudit.dev/scope-test/v1"
SCOPE_TEST: Final = "retrieval_scope"

_SCOPE_OUTCOMES: Final = {
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
        if self.result not in _SCOPE_OUTCOMES:
            raise MalformedError(
                repr(self.result), where="result", expected=", ".join(_SCOPE_OUTCOMES)
            )
        check_subjects(self.subjects, self.target)

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        outcome, listed = _SCOPE_OUTCOMES[self.result]
        tests: dict[str, list[str]] = {member: [] for _, member in _SCOPE_OUTCOMES.values()} | {
            listed: [SCOPE_TEST]
        }
        return in_toto(
            PREDICATE_TYPE,
            self.subjects,
            {
                SCOPE_DETAIL: {**self.detail, "result": self.result},
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
                detail = others.get(SCOPE_DETAIL)
                if isinstance(detail, dict) and all(isinstance(x, str) for x in detail.values()):
                    figures = dict(detail)
                    result = figures.pop("result", "")
                    found = cls(read_subjects(subjects), target, result, figures)
                    # What is written again and is the same has no other member.
                    if found.to_json() == value:
                        return found
        raise MalformedError("not the result of a scope test", expected=PREDICATE_TYPE)


OWNER_DETAIL: Final = "https://ragaudit.dev/owner-audit/v1"
_OWNER_TESTS: Final = ("committed_rows", "owned_documents")


class OwnedDocuments(Message):
    """What was found of the owner's documents.

    Attributes:
        documents: how many the owner has.
        compared: how many of them were compared with the index.
        vectors: of those, how many were found as given, their vectors too.
        missing: of those, how many are not in it, or have a null row there.
        different: of those, how many are there with another text, vector or column.
    """

    documents: Count
    compared: Count
    vectors: Count
    missing: Count
    different: Count

    @property
    def outcome(self) -> str:
        """``failed``, ``warned`` if nothing was found and not all was compared, ``passed``."""
        if self.missing or self.different:
            return "failed"
        return "warned" if self.vectors < self.documents else "passed"

    def _check(self) -> None:
        of_them = self.vectors + self.missing + self.different
        if self.compared > self.documents or of_them > self.compared:
            expected = "parts of the whole"
            raise MalformedError("counts that do not fit", where="compared", expected=expected)


class CommittedRows(Message):
    """What was found of the rows of the index.

    Attributes:
        rows: how many the index has, null rows among them.
        compared: how many positions were compared.
        unknown: of those, how many hold a document that is not the owner's.
        gone: of those, how many are null rows.
    """

    rows: Count
    compared: Count
    unknown: Count
    gone: Count

    @property
    def outcome(self) -> str:
        """As of `OwnedDocuments`."""
        if self.unknown:
            return "failed"
        return "warned" if self.compared < self.rows else "passed"

    def _check(self) -> None:
        if self.compared > self.rows or self.unknown + self.gone > self.compared:
            expected = "parts of the whole"
            raise MalformedError("counts that do not fit", where="compared", expected=expected)


@dataclass(frozen=True, slots=True)
class OwnerResult(SignedResult):
    """What the owner of a tenant's documents found in an index. It is no part of a verdict.

    Attributes:
        policy: hexadecimal SHA-256 of the item `public/policy.json` of the window.
        origin: of the window's log.
        version: of the index that was compared.
        time: Unix milliseconds.
    """

    policy: str
    origin: str
    tenant: str
    version: int
    time: int
    owned: OwnedDocuments
    committed: CommittedRows

    @property
    def result(self) -> str:
        """FAILED, WARNED (nothing found in a sample) or PASSED."""
        found = {self.owned.outcome, self.committed.outcome}
        return next(result for outcome, result in _RESULT_OF if outcome in found)

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        outcomes = dict(
            zip(_OWNER_TESTS, (self.committed.outcome, self.owned.outcome), strict=True)
        )
        detail = {
            "origin": self.origin,
            "tenant": self.tenant,
            "version": self.version,
            "time": self.time,
            "owned": self.owned.to_json(),
            "committed": self.committed.to_json(),
        }
        return in_toto(
            PREDICATE_TYPE,
            {POLICY: self.policy},
            {
                OWNER_DETAIL: detail,
                "configuration": [],
                "result": self.result,
                **{
                    f"{each}Tests": [name for name in _OWNER_TESTS if outcomes[name] == each]
                    for each, _ in _RESULT_OF
                },
            },
        )

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the result in ``data``, canonical JSON of `to_json`; MalformedError."""
        value = canonical_json.loads(data)
        match value:
            case {"subject": list(subjects), "predicate": {**predicate}}:
                found = cls._of(read_subjects(subjects), predicate.get(OWNER_DETAIL))
                # What is written again and is the same has no other member.
                if found.to_json() == value:
                    return found
        raise MalformedError("not the result of an owner's audit", expected=PREDICATE_TYPE)

    @classmethod
    def _of(cls, subjects: dict[str, str], detail: Any) -> Self:
        names = "origin tenant version time owned committed"
        f = Fields(detail, names, MalformedError, OWNER_DETAIL)
        policy = subjects.get(POLICY, "")
        check_subjects(subjects, policy)
        return cls(
            policy=policy,
            origin=f.origin(),
            tenant=check_tenant(f.text("tenant", 1, 64)),
            version=f.integer("version", 1, MAX_VERSION),
            time=f.integer("time", 0, MAX_TIME),
            owned=f.message("owned", OwnedDocuments),
            committed=f.message("committed", CommittedRows),
        )

    @classmethod
    def verified(cls, envelope: bytes, policy: Policy, tenant: str) -> Self:
        """Return the result in ``envelope``, signed by the owner whom the policy names.

        Args:
            envelope: bytes from anywhere.
            policy: of the window; no key is taken from anywhere else.
            tenant: whose owner it must be.

        Raises:
            UnsupportedError: the policy names no key of this owner.
            MalformedError: not an envelope or a result in its one accepted form.
            EnvelopeRejected: signed by another key, or not at all.
            RejectedError: of another window or tenant.
        """
        key = policy.tenants.get(tenant)
        if key is None:
            raise UnsupportedError(
                "the policy names no key of the owner", where=f"tenant {tenant}",
                expected="an owner_key",
            )  # fmt: skip
        found = cls.verify(envelope, key)
        digest = hashlib.sha256(policy.canonical).hexdigest()
        if (found.policy, found.origin, found.tenant) != (digest, policy.origin, tenant):
            raise RejectedError("the result of another window or tenant", where="owner's result")
        return found


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
