"""The signed result of an owner's audit: an in-toto test-result (docs/spec 5.16, 10.9)."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.ledger.messages.documents import MAX_VERSION
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.identifiers import check_tenant
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.kernel import MAX_TIME, Count, Message
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed_results import (
    PREDICATE_TYPE,
    SignedResult,
    check_subjects,
    read_subjects,
    statement,
)

__all__ = ["CommittedRows", "OwnedDocuments", "OwnerResult"]

DETAIL_MEMBER: Final = "https://ragaudit.dev/owner-audit/v1"
_TESTS: Final = ("committed_rows", "owned_documents")
_OUTCOMES: Final = (("failed", "FAILED"), ("warned", "WARNED"), ("passed", "PASSED"))


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
        return next(result for outcome, result in _OUTCOMES if outcome in found)

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        outcomes = dict(zip(_TESTS, (self.committed.outcome, self.owned.outcome), strict=True))
        detail = {
            "origin": self.origin,
            "tenant": self.tenant,
            "version": self.version,
            "time": self.time,
            "owned": self.owned.to_json(),
            "committed": self.committed.to_json(),
        }
        return statement(
            {POLICY: self.policy},
            {
                DETAIL_MEMBER: detail,
                "configuration": [],
                "result": self.result,
                **{
                    f"{each}Tests": [name for name in _TESTS if outcomes[name] == each]
                    for each, _ in _OUTCOMES
                },
            },
        )

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the result in ``data``, canonical JSON of `to_json`; MalformedError."""
        value = canonical_json.loads(data)
        match value:
            case {"subject": list(subjects), "predicate": {**predicate}}:
                found = cls._of(read_subjects(subjects), predicate.get(DETAIL_MEMBER))
                # What is written again and is the same has no other member.
                if found.to_json() == value:
                    return found
        raise MalformedError("not the result of an owner's audit", expected=PREDICATE_TYPE)

    @classmethod
    def _of(cls, subjects: dict[str, str], detail: Any) -> Self:
        names = "origin tenant version time owned committed"
        f = Fields(detail, names, MalformedError, DETAIL_MEMBER)
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
        key = None if policy.owners is None else policy.owners.key(tenant)
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
