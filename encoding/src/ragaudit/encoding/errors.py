"""Error roots of every member.

    RagauditError            anything raised on purpose by this project
    ├── MalformedError       bytes, text or a value that is not in the one accepted form
    │   └── InvalidArgumentError   a Python argument out of its range; also a ValueError
    ├── RejectedError        well-formed, but false: a check failed
    ├── UnsupportedError     an unknown version, kind or feature; never guessed at
    ├── RefusedError         understood, and declined by a rule or a budget
    ├── UnavailableError     something that this needs does not answer; nothing is lost, try again
    └── InternalError        a fault of our own; its text is not shown to remote callers

Messages must never contain secrets: they end up in logs and reports.
"""


class RagauditError(Exception):
    """An error with its three parts kept apart.

    Attributes:
        what: was wrong.
        where: a place, an argument or a member; may be empty.
        expected: what would be right; may be empty.
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "") -> None:
        super().__init__(what, where, expected)
        self.what = what
        self.where = where
        self.expected = expected

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f" (expected {self.expected})" if self.expected else ""
        return f"{place}{self.what}{remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's default would call __init__ with three positional arguments.
        return (_rebuild, (type(self), self.what, self.where, self.expected), self.__dict__)


def _rebuild(kind: type[RagauditError], what: str, where: str, expected: str) -> RagauditError:
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


class RejectedError(RagauditError):
    """The input is well-formed and false; callers attach evidence where they have it."""


class UnsupportedError(RagauditError):
    """The input names a version, kind or feature that this code does not know."""


class RefusedError(RagauditError):
    """The request is understood and declined by a rule, a limit or a budget."""


class UnavailableError(RagauditError):
    """A service, database, file system or device does not answer; the same may succeed later."""


class InternalError(RagauditError):
    """A fault of this software, not of its input."""
