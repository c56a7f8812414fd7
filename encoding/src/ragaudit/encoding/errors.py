"""Error roots of every member, and the families of errors that callers of both services get.

    RagauditError            anything raised on purpose by this project
    ├── MalformedError       bytes, text or a value that is not in the one accepted form
    │   ├── InvalidArgumentError   a Python argument out of its range; also a ValueError
    │   ├── MalformedRequest       a body, header, query or path of a call
    │   └── MalformedSettings      a settings file, or what overrides it
    ├── RejectedError        well-formed, but false: a check failed
    ├── UnsupportedError     an unknown version, kind or feature; never guessed at
    │   └── UnsupportedCoding      a body that would have to be unpacked
    ├── RefusedError         understood, and declined by a rule or a budget
    │   ├── NotAuthenticated       no key, token or signature, or one of nobody
    │   ├── NotFound               no such thing
    │   ├── MethodNotAllowed       there is such a thing, but it cannot do this
    │   ├── Conflict               against what was given before, or what holds now
    │   ├── TooLarge               more bytes than are read
    │   ├── TooEarly               not yet
    │   ├── TooMany                a cap or a rate is reached
    │   └── PeerRefused            another party declined what this needs of it
    ├── UnavailableError     something that this needs does not answer; nothing is lost, try again
    │   └── ClockStepped           the clock cannot be believed now
    └── InternalError        a fault of our own; its text is not shown to remote callers

Roots end in Error, the classes under them do not. A service declares a class of its own only where
it says more than the family. Messages must never contain secrets: they end up in logs and reports.
"""

from collections.abc import Mapping

from ragaudit.encoding.printable import one_line


class RagauditError(Exception):
    """An error with its three parts kept apart.

    Attributes:
        what: was wrong.
        where: a place, an argument or a member; may be empty.
        expected: what would be right; may be empty.
        retry_after: seconds after which the same may succeed; None if waiting does not help.
    """

    retry_after: float | None = None

    def __init__(self, what: str, *, where: str = "", expected: str = "") -> None:
        super().__init__(what, where, expected)
        self.what = what
        self.where = where
        self.expected = expected

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f" (expected {self.expected})" if self.expected else ""
        # What it repeats may be a stranger's: wherever it is shown, it is one line, and inert.
        return one_line(f"{place}{self.what}{remedy}")

    @property
    def family(self) -> "type[RagauditError]":
        """The class of this module that says how a caller is answered; usually a base class."""
        return type(self)

    @property
    def extension(self) -> Mapping[str, object]:
        """JSON members that a problem document has beside the usual ones (RFC 9457 §3.2)."""
        return {}

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's default would call __init__ with three positional arguments.
        return (_rebuild, (type(self), self.what, self.where, self.expected), self.__dict__)


def _rebuild(kind: type[RagauditError], what: str, where: str, expected: str) -> RagauditError:
    # Not __init__ of the class: those of TooEarly and others take arguments of their own.
    error = kind.__new__(kind)
    RagauditError.__init__(error, what, where=where, expected=expected)
    return error


class MalformedError(RagauditError):
    """The input is not in the one accepted form."""


class InvalidArgumentError(MalformedError, ValueError):
    """An argument of a Python function is out of its range; ``where`` is the argument's name.

    Raised by numerical code, whose callers expect a ValueError. MalformedError itself is not one:
    ``except ValueError`` around a parser must not swallow it.
    """


class MalformedRequest(MalformedError):
    """A body, header, query or path of a call is not in the accepted form."""


class MalformedSettings(MalformedError):
    """A settings file, an environment variable or a secret file is not usable."""


class RejectedError(RagauditError):
    """The input is well-formed and false; callers attach evidence where they have it."""


class UnsupportedError(RagauditError):
    """The input names a version, kind or feature that this code does not know."""


class UnsupportedCoding(UnsupportedError):
    """A body with a content coding, which is not unpacked: a small one could become huge."""


class RefusedError(RagauditError):
    """The request is understood and declined by a rule, a limit or a budget."""


class NotAuthenticated(RefusedError):
    """No key, token or signature, or one that belongs to nobody."""


class NotFound(RefusedError):
    """No window, item, account or path of this name."""


class MethodNotAllowed(RefusedError):
    """The path does not know this method."""


class Conflict(RefusedError):
    """It contradicts what was given before, or the state of what it is about."""


class TooLarge(RefusedError):
    """A body above its limit."""


class TooEarly(RefusedError):
    """The instant from which this is possible has not come."""

    def __init__(
        self, what: str, *, where: str = "", expected: str = "", retry_after: float = 1
    ) -> None:
        super().__init__(what, where=where, expected=expected)
        self.retry_after = retry_after


class TooMany(RefusedError):
    """A cap on what somebody may have, or a rate at which somebody may ask, is reached."""


class PeerRefused(RefusedError):
    """Another party declined what the request needs of it."""


class UnavailableError(RagauditError):
    """A service, database, file system or device does not answer; the same may succeed later."""

    retry_after = 1


class ClockStepped(UnavailableError):
    """The clock was set, or is behind a time that was given: there is no time to attest."""


class InternalError(RagauditError):
    """A fault of this software, not of its input."""
