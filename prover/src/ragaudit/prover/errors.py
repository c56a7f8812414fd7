"""What the prover refuses, where it says more than the families of encoding.errors.

    RagauditError
    ├── MalformedError       MalformedDocument, MalformedQuery
    ├── RejectedError        ChallengeRejected, VerifierMessageRejected
    ├── RefusedError         WrongState, ClocksDiffer, IndexInUse, QueryRefused, KeyChanged,
    │   │                    UnpinnedVerifier, NotPinned, WindowUnusable, LogOpen, NotServed
    │   ├── NotFound         UnknownTenant, UnknownAccount, UnknownWindow, UnknownRecord
    │   ├── Conflict         PromisePending, ChargeVoided, AccountAnchored
    │   ├── TooMany          TooManyRequests
    │   └── PeerRefused      VerifierRefused
    └── UnavailableError     VerifierUnreachable, NoWindowOpen, VersionMoved, NotLeading
        └── BackendUnavailable   BackendMoved

Under which status an error is answered is said once, in `ragaudit.serving.problems`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from ragaudit.encoding.errors import (
    Conflict,
    MalformedError,
    NotFound,
    PeerRefused,
    RagauditError,
    RefusedError,
    RejectedError,
    TooMany,
    UnavailableError,
)


class MalformedDocument(MalformedError):
    """A document, file or corpus that cannot be ingested."""


class MalformedQuery(MalformedError):
    """A query, K or filter outside what the policy and the index allow."""


class TooManyRequests(TooMany):
    """A caller over its rate, with a full queue, or that waited too long: ask again later."""

    retry_after = 1


class UnknownTenant(NotFound):
    """No tenant of this name."""


class UnknownAccount(NotFound):
    """No account of this name."""


class UnknownWindow(NotFound):
    """No window of this name."""


class UnknownRecord(NotFound):
    """No entry at this index of the window's log."""


class NotServed(RefusedError):
    """A path, member or right that an application's key does not have here, on purpose."""


class WrongState(RefusedError):
    """The window is not in a state that allows this, or the transition does not exist."""


class LogOpen(RefusedError):
    """What only a closed log says was asked of one that goes on.

    Attributes:
        retry_after: seconds until it may be closed.
    """

    def __init__(self, what: str, *, where: str, expected: str, retry_after: int) -> None:
        super().__init__(what, where=where, expected=expected)
        self.retry_after = retry_after


class ClocksDiffer(RefusedError):
    """Our clock and the verifier's are further apart than the policy tolerates."""


class IndexInUse(RefusedError):
    """The documents of a tenant cannot change while a window has committed to them."""


class QueryRefused(RefusedError):
    """A query declined with a signed refusal (docs/spec/05-records.md §5.8).

    Attributes:
        refusal: the signed refusal as JSON.
        retry_after: seconds after which the same query may succeed; None if waiting does not help.
    """

    _FAMILIES: ClassVar[Mapping[str, type[RagauditError]]] = {
        "budget": TooMany,
        "closed": Conflict,
        "unavailable": UnavailableError,
    }

    def __init__(
        self,
        what: str,
        *,
        refusal: dict[str, Any],
        where: str = "",
        expected: str = "",
        retry_after: int | None = None,
    ) -> None:
        super().__init__(what, where=where, expected=expected)
        self.refusal = refusal
        self.retry_after = retry_after

    @property
    def reason(self) -> str:
        """``budget``, ``closed`` or ``unavailable``."""
        return str(self.refusal["reason"])

    @property
    def family(self) -> type[RagauditError]:
        """What the reason amounts to for the caller."""
        return self._FAMILIES[self.reason]

    @property
    def extension(self) -> Mapping[str, object]:
        """The signed refusal, which is evidence for the account."""
        return {"refusal": self.refusal}


class PromisePending(Conflict):
    """The counter has an unanswered promise for another request.

    Attributes:
        promise: that promise, so that the client can finish it.
        retry_after: seconds until it is superseded.
    """

    def __init__(
        self, what: str, *, promise: dict[str, Any], retry_after: int, expected: str = ""
    ) -> None:
        super().__init__(what, where="counter", expected=expected)
        self.promise = promise
        self.retry_after = retry_after

    @property
    def extension(self) -> Mapping[str, object]:
        """The pending promise."""
        return {"promise": self.promise}


class ChargeVoided(Conflict):
    """The charge of this counter has no answer and gets none: the next counter is due.

    Attributes:
        voided: the charge and its void, proven to be in the log.
    """

    def __init__(self, what: str, *, voided: dict[str, Any], expected: str = "") -> None:
        super().__init__(what, where="counter", expected=expected)
        self.voided = voided

    @property
    def extension(self) -> Mapping[str, object]:
        """The proofs, without which an account does not go on."""
        return {"voided": self.voided}


class AccountAnchored(Conflict):
    """An anchored account was asked to take an answer without a promise."""


class ChallengeRejected(RejectedError):
    """The verifier's challenge is not what the log, the chain and the policy determine."""


class VerifierMessageRejected(RejectedError):
    """A message of the verifier is not signed by its key or contradicts an earlier one."""


class VerifierRefused(PeerRefused):
    """The verifier declined a request.

    Attributes:
        status: its HTTP status.
        document: its problem document, as far as it could be read.
        content: the first bytes of the answer as sent.
    """

    def __init__(
        self, what: str, *, status: int, document: dict[str, Any], content: bytes = b""
    ) -> None:
        super().__init__(what, where="verifier")
        self.status = status
        self.document = document
        self.content = content


class KeyChanged(RefusedError):
    """A key file is not the one that an unfinished window has committed to."""


class UnpinnedVerifier(RefusedError):
    """The settings do not say which keys the verifier must show."""


class NotPinned(RefusedError):
    """The verifier does not know this provider, or knows another key of it."""


class VerifierUnreachable(UnavailableError):
    """The verifier could not be reached, or answered with a server error; try again."""


class BackendUnavailable(UnavailableError):
    """The backend cannot deliver the documents that the window committed to."""


class BackendMoved(BackendUnavailable):
    """The documents changed while they were read: try again."""


class NoWindowOpen(UnavailableError):
    """No open window serves the account's tenant: nothing can be asked now.

    Attributes:
        retry_after: seconds until the next window starts, a guess where there is none yet.
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "", retry_after: int) -> None:
        super().__init__(what, where=where, expected=expected)
        self.retry_after = retry_after


class NotLeading(UnavailableError):
    """What only one of several processes does was asked of another one, or of none."""

    retry_after = 1


class VersionMoved(UnavailableError):
    """The version of the index that is in force changed during a query: ask again."""

    retry_after = 1


class WindowUnusable(RefusedError):
    """The database is behind the fence or the cosigner: this window never answers again."""

    @property
    def family(self) -> type[RagauditError]:
        """For the caller it is an outage, though no waiting ends it."""
        return UnavailableError
