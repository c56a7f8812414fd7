"""What a client complains about.

RagauditError
├── RefusedError     ProviderRefusal (a problem document of the provider or the verifier)
│                    └── BudgetExhausted (with the provider's signed refusal)
│                    StateConflict (the state directory does not fit the account)
├── RejectedError    AnswerRejected (an answer, promise or registration that is false)
├── UnavailableError ServiceUnreachable (no answer in time)
│                    └── PromiseUnanswered (a revealed nonce, and no answer)
└── InternalError    InvalidReply (not this API)
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import (
    InternalError,
    RefusedError,
    RejectedError,
    UnavailableError,
)

__all__ = [
    "AnswerRejected",
    "BudgetExhausted",
    "InvalidReply",
    "PromiseUnanswered",
    "ProviderRefusal",
    "ServiceUnreachable",
    "StateConflict",
]


class ProviderRefusal(RefusedError):
    """A service answered with a problem document (RFC 9457).

    Attributes:
        status: HTTP status code.
        problem: the document, as sent.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], *, where: str = "") -> None:
        title = problem.get("detail") or problem.get("title") or f"HTTP status {status}"
        super().__init__(f"{title} (HTTP {status})", where=where)
        self.status = status
        self.problem = dict(problem)


class BudgetExhausted(ProviderRefusal):
    """The account has used its queries; ``refusal`` is the provider's signed word for it."""

    @property
    def refusal(self) -> Mapping[str, Any] | None:
        """The signed refusal of docs/spec 5.8, or None if the provider sent none."""
        refusal = self.problem.get("refusal")
        return refusal if isinstance(refusal, Mapping) else None


class StateConflict(RefusedError):
    """The state directory belongs to another registration, is in use, or was restored."""


class AnswerRejected(RejectedError):
    """What the provider signed is false. Keep the evidence: it is worth a dispute.

    Attributes:
        evidence: file with the receipt or promise, as received, if one was written.
        received: the JSON value itself; a whole receipt file can be disputed.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        evidence: Path | None = None,
        received: Any = None,
    ) -> None:
        super().__init__(what, where=where, expected=expected)
        self.evidence = evidence
        self.received = received


class ServiceUnreachable(UnavailableError):
    """No reply, in spite of retries."""


class InvalidReply(InternalError):
    """A reply that is not of this API: another program, or a broken one, listens there."""


class PromiseUnanswered(ServiceUnreachable):
    """The nonce was revealed and no answer came.

    The promise is kept: the next call retries it bit for bit, and the verifier has the claim
    if ``claimed``, so that the provider must log it or fail the audit.
    """

    def __init__(self, what: str, *, claimed: bool, where: str = "") -> None:
        super().__init__(what, where=where)
        self.claimed = claimed
