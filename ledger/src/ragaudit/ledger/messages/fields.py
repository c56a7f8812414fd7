"""How messages are read: JSON objects, their members, fields of log entries (docs/spec 1.4, 5.7).

A reader demands one exact shape: whatever else it let pass, two parties could read differently.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.kernel import (
    ANYTHING,
    FAULTS,
    ORIGIN,
    Form,
    Hex,
    Integer,
    Items,
    Message,
    Nested,
    Text,
    joined,
)

MAX_BODY_BYTES = 4096
"""Of a registration or record in an entry, receipt or promise; they have less than 1 kB."""

T = TypeVar("T")
P = ParamSpec("P")
M = TypeVar("M", bound=Message)


class Fields:
    """The members of a JSON object, each read once with its type and range.

    Every reader takes the name of a member; bounds are included. It raises the given error class,
    naming the member's path.

    Attributes:
        where: the object's place, for errors.
    """

    def __init__(
        self,
        value: Any,
        names: str,
        error: type[MalformedError],
        where: str = "",
    ) -> None:
        """Check that ``value`` is an object with exactly the members ``names``.

        Args:
            names: of the members, spaces between.
            error: what every reader raises.
            where: the object's place, for errors.

        Raises:
            error: not an object, or a member is missing or unknown.
        """
        self._error = error
        self.where = where
        if not isinstance(value, dict):
            raise error("not an object", where=where)
        expected = set(names.split())
        # An unknown member is refused, not skipped: it would travel under somebody's signature
        # with a meaning that this reader does not know.
        for problem, members in (
            ("missing", expected - set(value)),
            ("unknown", set(value) - expected),
        ):
            if members:
                # Cut, because an unknown name is the sender's text and ends up in a log line.
                raise error(f"{problem} member", where=self.path(min(members)[:64]))
        self._value: dict[str, Any] = value

    @property
    def value(self) -> Mapping[str, Any]:
        """The members, unread: to tell versions of a message apart, and for nothing else."""
        return self._value

    def path(self, name: str) -> str:
        """Return the path of a member, for errors and for readers of what it holds."""
        return f"{self.where}.{name}" if self.where else name

    def error(self, name: str, what: str, expected: str = "") -> MalformedError:
        """Return the error to raise for member ``name``.

        Args:
            name: of the member, which the error's ``where`` names by its path.
            what: is wrong.
            expected: what would be right.
        """
        return self._error(what, where=self.path(name), expected=expected)

    def raw(self, name: str) -> Any:
        """Return a member as it is."""
        return self._value[name]

    def message(self, name: str, kind: type[M]) -> M:
        """Return the message of ``kind`` that a member holds."""
        found: M = self.read(name, Nested(kind))
        return found

    def integer(self, name: str, low: int, high: int) -> int:
        """Return an integer in ``low``..``high``."""
        found: int = self.read(name, Integer(low, high))
        return found

    def text(self, name: str, low: int, high: int) -> str:
        """Return a text of ``low``..``high`` bytes of UTF-8."""
        found: str = self.read(name, Text(low, high))
        return found

    def hex(self, name: str, length: int) -> bytes:
        """Return ``length`` bytes of lower-case hexadecimal."""
        found: bytes = self.read(name, Hex(length))
        return found

    def origin(self) -> str:
        """Return the member ``origin``, the name of a log."""
        found: str = self.read("origin", ORIGIN)
        return found

    def objects(self, name: str, low: int, high: int) -> Iterator[tuple[str, Any]]:
        """Return the items of a list of ``low``..``high``, each with its path, unread."""
        for number, item in enumerate(self.read(name, Items(low, high, ANYTHING))):
            yield f"{self.path(name)}[{number}]", item

    def integers(self, name: str, count: tuple[int, int], low: int, high: int) -> tuple[int, ...]:
        """Return a list of integers in ``low``..``high``.

        Args:
            name: of the member.
            count: least and largest number of items.
            low, high: of each item.
        """
        found: tuple[int, ...] = self.read(name, Items(*count, Integer(low, high)))
        return found

    def read(self, name: str, form: Form) -> Any:
        """Return a member as its form reads it."""
        try:
            return form.read(self._value[name])
        except FAULTS as error:
            error.where = self.path(joined(name, error.where))
            if type(error) is MalformedError:
                raise self._error(error.what, where=error.where, expected=error.expected) from error
            raise
