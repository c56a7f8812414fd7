"""Errors of a client.

RagauditError
├── MalformedError   WrongPin (the client was told another key or policy than the window has)
├── RefusedError     ProviderRefusal (a problem document of the provider or the verifier)
│                    └── BudgetExhausted (with the provider's signed refusal)
│                    StateConflict (registration, state directory or clock do not fit)
│                    CannotClaim (a nonce that is not revealed: no claim could follow it)
│                    LessThanDemanded (a window or an answer gives less than the caller demands)
├── RejectedError    AnswerRejected (an answer, promise or registration that is false)
├── UnavailableError ServiceUnreachable (no whole answer in time)
│                    └── PromiseUnanswered (a revealed nonce, and no answer)
└── InternalError    InvalidReply (not this API)
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    RefusedError,
    RejectedError,
    UnavailableError,
)
from ragaudit.encoding.problems import reason
from ragaudit.encoding.text import rfc3339

if TYPE_CHECKING:
    from ragaudit.client.results import SearchResult

__all__ = [
    "AnswerRejected",
    "BudgetExhausted",
    "CannotClaim",
    "InvalidReply",
    "LessThanDemanded",
    "PromiseUnanswered",
    "ProviderRefusal",
    "ServiceUnreachable",
    "StateConflict",
    "WrongPin",
]


class WrongPin(MalformedError):
    """The window is not the pinned one: a wrong pin, or a window of others.

    It accuses nobody, since nobody signed anything false; nothing is registered or asked.
    """


class ProviderRefusal(RefusedError):
    """A service answered with a problem document (RFC 9457).

    Attributes:
        status: HTTP status code.
        problem: the document, as sent.
        retry_after: seconds after which the service wants to be asked again, or None.
    """

    def __init__(
        self,
        status: int,
        problem: Mapping[str, Any],
        *,
        where: str = "",
        retry_after: float | None = None,
    ) -> None:
        said = reason(problem) or f"HTTP status {status}"
        super().__init__(f"{said} (HTTP {status})", where=where)
        self.status = status
        # A copy: evidence in it must not change in the hands of a caller.
        self.problem = dict(problem)
        self.retry_after = retry_after


class BudgetExhausted(ProviderRefusal):
    """The account has used its queries.

    Attributes:
        refusal: the provider's signed refusal of docs/spec 5.8, JSON; None if it sent none.
    """

    @property
    def refusal(self) -> Mapping[str, Any] | None:
        """Return the signed refusal of docs/spec 5.8, or None if the provider sent none."""
        refusal = self.problem.get("refusal")
        return refusal if isinstance(refusal, Mapping) else None


class StateConflict(RefusedError):
    """Registration, state directory or clock do not fit the call.

    Attributes:
        next_instant: Unix seconds from which the same call may succeed; None if no instant helps.
    """

    def __init__(
        self, what: str, *, where: str = "", expected: str = "", next_instant: int | None = None
    ) -> None:
        if next_instant is not None:
            what = f"{what}; next at {rfc3339(1000 * next_instant)}"
        super().__init__(what, where=where, expected=expected)
        self.next_instant = next_instant


class CannotClaim(RefusedError):
    """The nonce was not revealed: if the provider kept it, no claim could follow in time.

    The promise is void when it expires; ask again then.
    """


class LessThanDemanded(RefusedError):
    """The window, or an answer in it, gives less than the options of the client demand.

    Nothing false was signed: ask in another window, or demand less.

    Attributes:
        result: the answer, checked, if there is one; its receipt is kept like any other.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        result: "SearchResult[Any] | None" = None,
    ) -> None:
        super().__init__(what, where=where, expected=expected)
        self.result = result


class AnswerRejected(RejectedError):
    """The provider signed something false. Keep the evidence for a dispute.

    Attributes:
        evidence: file with the receipt or promise, as received, if one was written.
        received: the JSON value itself, or the text where it is none; a whole receipt file can be
            disputed.
        claimed: whether the verifier has the claim of the promise that this should have answered.
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
        # Set by `Asking` once the verifier has the claim.
        self.claimed = False


class ServiceUnreachable(UnavailableError):
    """No whole reply in time, in spite of retries.

    Attributes:
        sent: whether the request may have arrived; False only if no byte of it can have left.
    """

    def __init__(
        self, what: str, *, where: str = "", expected: str = "", sent: bool = True
    ) -> None:
        super().__init__(what, where=where, expected=expected)
        self.sent = sent


class InvalidReply(InternalError):
    """A reply that is not of this API: another program listens there, or a broken one."""


class PromiseUnanswered(ServiceUnreachable):
    """The nonce was revealed and no answer came.

    The promise is kept, and the next call retries it bit for bit.

    Attributes:
        claimed: whether the verifier has the claim; then the provider must log the query or fail
            the audit.
    """

    def __init__(self, what: str, *, claimed: bool, where: str = "") -> None:
        super().__init__(what, where=where)
        self.claimed = claimed
