"""Errors of the service, each with its HTTP status (docs/spec/08-services.md)."""

from typing import ClassVar

from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    RagauditError,
    RefusedError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)

_FAMILIES: tuple[tuple[type[RagauditError], int], ...] = (
    (MalformedError, 400),
    (RejectedError, 422),
    (UnsupportedError, 422),
    (RefusedError, 409),
    (UnavailableError, 503),
    (InternalError, 500),
)


class UnauthenticatedError(RefusedError):
    """No valid request signature or token."""

    status: ClassVar[int] = 401


class UnknownError(RefusedError):
    """No such window, item or path."""

    status: ClassVar[int] = 404


class MethodError(RefusedError):
    """The path does not know this method."""

    status: ClassVar[int] = 405


class ConflictError(RefusedError):
    """Against what was given before, or against the state of the window."""

    status: ClassVar[int] = 409


class AmbiguousError(ConflictError):
    """A window's name that several providers use, without the provider."""


class TooLateError(ConflictError):
    """The instant until which this was possible has passed."""


class TooLargeError(RefusedError):
    """A body above its limit."""

    status: ClassVar[int] = 413


class RefusedWindowError(RejectedError):
    """Checks 1 to 4 failed; the problem document carries the signed verdict."""

    status: ClassVar[int] = 422

    def __init__(self, what: str, verdict: dict[str, object]) -> None:
        super().__init__(what, expected="the checks of docs/spec/09-audit.md")
        self.verdict = verdict


class TooEarlyError(RefusedError):
    """The instant from which this is possible has not come."""

    status: ClassVar[int] = 425

    def __init__(self, what: str, *, retry_after: int, expected: str = "") -> None:
        super().__init__(what, expected=expected)
        self.retry_after = retry_after


class CapError(RefusedError):
    """A cap on what one window may hold."""

    status: ClassVar[int] = 429


class StorageError(UnavailableError):
    """Database, fence or disk cannot be used now; nothing of the request was kept."""


class ClockError(RefusedError):
    """The clock was set, or is behind a time that this service has already attested."""

    status: ClassVar[int] = 503


def status_of(error: RagauditError) -> int:
    """The HTTP status of an error: its own, or its family's."""
    own = getattr(error, "status", None)
    if isinstance(own, int):
        return own
    return next((status for family, status in _FAMILIES if isinstance(error, family)), 500)
