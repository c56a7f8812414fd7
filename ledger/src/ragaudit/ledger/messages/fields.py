"""How messages are read: JSON objects, their members, fields of log entries (docs/spec 1.4, 5.7).

A reader demands one exact shape: whatever else it let pass, two parties could read differently.
"""

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import KEY_BYTES, PublicKey
from ragaudit.encoding.text import b64_decode, hex_decode
from ragaudit.ledger.errors import MalformedNote, MalformedRecord
from ragaudit.ledger.log.notes import MAX_NAME_BYTES, check_name
from ragaudit.ledger.messages.kernel import Message

MAX_BODY_BYTES = 4096
"""Of a registration or record in an entry, receipt or promise; they have less than 1 kB."""

T = TypeVar("T")
P = ParamSpec("P")


class JsonMessage(Message, ABC):
    """A message whose members are read and written by hand.

    Attributes:
        FORMAT: value of the member ``format``; empty: the message has none.
        MEMBERS: names of the other members, spaces between.
        LABEL: what errors call bytes that are not canonical JSON; empty: `WHERE`.
    """

    MEMBERS: ClassVar[str]
    LABEL: ClassVar[str] = ""

    @abstractmethod
    def _members(self) -> dict[str, Any]:
        """Return the members as JSON values."""

    @classmethod
    @abstractmethod
    def _read(cls, f: "Fields") -> Self:
        """Return the message with these members; MalformedError."""

    def to_json(self) -> dict[str, Any]:
        """Return the message as a JSON object."""
        shown = {"format": self.FORMAT, **self._members()} if self.FORMAT else self._members()
        signature = getattr(self, "signature", None)
        return shown if signature is None else {**shown, "signature": signature.hex()}

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the message in ``data``, the strict inverse of `encode`."""
        try:
            value = canonical_json.loads(data)
        except MalformedError as error:
            where = cls.LABEL or error.where
            raise MalformedRecord(error.what, where=where, expected=error.expected) from error
        return cls.from_json(value)

    @classmethod
    def read(cls, value: Any) -> Self:
        """Return the message of a JSON value that lies within another; as `from_json`."""
        members = cls.members_of(value)
        f = Fields(value, f"format {members}" if cls.FORMAT else members, MalformedRecord)
        if cls.FORMAT:
            f.constant("format", cls.FORMAT)
        return cls._read(f)

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names that a value of this kind must have: `MEMBERS`, unless some come and go.

        Args:
            value: JSON of any kind, of which nothing is known.
        """
        return cls.MEMBERS


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
        *,
        optional: str = "",
    ) -> None:
        """Check that ``value`` is an object with exactly the members ``names``.

        Args:
            names: of the members, spaces between.
            error: what every reader raises.
            where: the object's place, for errors.
            optional: more members, which are null where they are left out.

        Raises:
            error: not an object, or a member is missing or unknown.
        """
        self._error = error
        self.where = where
        if not isinstance(value, dict):
            raise error("not an object", where=where)
        value = dict.fromkeys(optional.split()) | value
        expected = set(names.split() + optional.split())
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

    def optional(
        self, read: Callable[Concatenate[str, P], T], name: str, *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Return None for null, and anything else as ``read(name, ..)`` reads it.

        Args:
            read: a reader of this object.
            name: of the member.
            args, kwargs: of the reader, after the name.
        """
        return None if self._value[name] is None else read(name, *args, **kwargs)

    def message(self, name: str, kind: type[M]) -> M:
        """Return the message of ``kind`` that a member holds."""
        return kind.from_json(self._value[name], self.path(name))

    def messages(self, name: str, kind: type[M], low: int, high: int) -> tuple[M, ...]:
        """Return the messages of ``kind`` in a list of ``low``..``high``."""
        items = self.objects(name, low, high)
        return tuple(kind.from_json(item, where) for where, item in items)

    def constant(self, name: str, expected: object) -> None:
        """Demand exactly ``expected`` (a text, number, null or an object of such)."""
        value = self._value[name]
        # 1 == True in Python: without the types, true would pass for 1.
        if type(value) is not type(expected) or value != expected:
            raise self.error(name, "another value", expected=repr(expected))

    def boolean(self, name: str) -> bool:
        """Return true or false."""
        value = self._value[name]
        if not isinstance(value, bool):
            raise self.error(name, "not a boolean", expected="true or false")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """Return an integer in ``low``..``high``."""
        return self._integer(name, self._value[name], low, high)

    def text(self, name: str, low: int, high: int) -> str:
        """Return a text of ``low``..``high`` bytes of UTF-8."""
        return self._text(name, self._value[name], low, high)

    def texts(self, name: str, count: int, longest: int) -> tuple[str, ...]:
        """Return a list of at most ``count`` texts of at most ``longest`` bytes of UTF-8."""
        return tuple(self._text(name, item, 0, longest) for item in self._list(name, 0, count))

    def _text(self, name: str, value: Any, low: int, high: int) -> str:
        # Lone surrogates, which a lenient JSON reader lets in, make it no text at all.
        data = value.encode(errors="replace") if isinstance(value, str) else b""
        if not isinstance(value, str) or data != value.encode(errors="surrogatepass"):
            raise self.error(name, "not a text", expected="Unicode text")
        if not low <= len(data) <= high:
            raise self.error(name, "text of another length", expected=f"{low}..{high} bytes")
        return value

    def choice(self, name: str, *choices: str) -> str:
        """Return a text that is one of ``choices``."""
        value = self._value[name]
        if not isinstance(value, str) or value not in choices:
            raise self.error(name, "not a known value", expected=" or ".join(choices))
        return value

    def hex(self, name: str, length: int | None = None, *, limit: int = 0) -> bytes:
        """Return the bytes of lower-case hexadecimal.

        Args:
            name: of the member.
            length: the exact number of bytes.
            limit: without a length, the most bytes.
        """
        return self._hex(name, self._value[name], length, limit)

    def public_key(self, name: str) -> PublicKey:
        """Return an Ed25519 key, in lower-case hexadecimal."""
        data = self.hex(name, KEY_BYTES)
        try:
            # Keys of small order are refused here: under them signatures verify that nobody made.
            return PublicKey.from_raw(data)
        except MalformedError as error:
            raise self.error(name, error.what, error.expected) from error

    def origin(self) -> str:
        """Return the member ``origin``, the name of a log."""
        origin = self.text("origin", 1, MAX_NAME_BYTES)
        try:
            # An origin is the first line of a checkpoint: one with a newline in it would forge the
            # rest.
            check_name(origin)
        except MalformedNote as error:
            raise self.error("origin", error.what, error.expected) from error
        return origin

    def object(self, name: str) -> dict[str, Any]:
        """Return a JSON object, whatever it holds."""
        value = self._value[name]
        if not isinstance(value, dict):
            raise self.error(name, "not an object")
        return value

    def objects(self, name: str, low: int, high: int) -> Iterator[tuple[str, Any]]:
        """Return the items of a list of ``low``..``high``, each with its path, unread."""
        for number, item in enumerate(self._list(name, low, high)):
            yield f"{self.path(name)}[{number}]", item

    def integers(self, name: str, count: tuple[int, int], low: int, high: int) -> tuple[int, ...]:
        """Return a list of integers in ``low``..``high``.

        Args:
            name: of the member.
            count: least and largest number of items.
            low, high: of each item.
        """
        items = self._list(name, *count)
        return tuple(self._integer(name, item, low, high) for item in items)

    def vector(self, name: str, longest: int, bound: int) -> tuple[int, ...]:
        """Return 1..``longest`` integers, each of absolute value at most ``bound`` < 2^15.

        They travel in base64 of 16 bits each, see `vectors.int16_bytes`.
        """
        data = self._entries(name, longest, 2, "i16")
        entries = struct.unpack(f"<{len(data) // 2}h", data)
        if not -bound <= min(entries) <= max(entries) <= bound:
            raise self.error(name, "an entry out of range", expected=f"-{bound}..{bound}")
        return entries

    def floats(self, name: str, longest: int) -> bytes:
        """Return 1..``longest`` finite IEEE numbers of 32 bits, little endian, as bytes.

        They travel in base64; see `vectors.float32_values`.
        """
        data = self._entries(name, longest, 4, "f32")
        # Neither has an order among other numbers, so none of the scores would have one.
        if not all(map(math.isfinite, struct.unpack(f"<{len(data) // 4}f", data))):
            raise self.error(name, "an entry that is not finite", expected="numbers")
        return data

    def proof(self, name: str, longest: int) -> bytes:
        """Return 1..``longest`` times 32 bytes of a proof, which travel in base64; unread."""
        return self._entries(name, longest, 32, "32 bytes")

    def hexes(self, name: str, high: int, length: int) -> tuple[bytes, ...]:
        """Return a list of at most ``high`` byte strings of ``length`` bytes."""
        return tuple(self._hex(name, item, length, 0) for item in self._list(name, 0, high))

    def _entries(self, name: str, longest: int, size: int, kind: str) -> bytes:
        text = self._value[name]
        # The length is bounded before anything is decoded: it is the sender's choice.
        if not isinstance(text, str) or not 0 < len(text) <= 4 * -(-size * longest // 3):
            raise self.error(name, "not such a text", expected=f"base64 of 1..{longest} {kind}")
        try:
            data = b64_decode(text)
        except MalformedError as error:
            raise self.error(name, error.what, error.expected) from error
        if len(data) % size or len(data) > size * longest:
            raise self.error(name, f"{len(data)} bytes", expected=f"1..{longest} times {kind}")
        return data

    def _list(self, name: str, low: int, high: int) -> list[Any]:
        value = self._value[name]
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise self.error(name, "not such a list", expected=f"{low}..{high} items")
        return value

    def _integer(self, name: str, value: Any, low: int, high: int) -> int:
        # type() and not isinstance(): true is an int to Python, not to JSON.
        if type(value) is not int or not low <= value <= high:
            raise self.error(name, "not such an integer", expected=f"{low}..{high}")
        return value

    def _hex(self, name: str, value: Any, length: int | None, limit: int) -> bytes:
        if not isinstance(value, str):
            raise self.error(name, "not hexadecimal", expected="text")
        try:
            data = hex_decode(value, length)
        except MalformedError as error:
            raise self.error(name, error.what, error.expected) from error
        if length is None and len(data) > limit:
            raise self.error(name, "too long", expected=f"at most {limit} bytes")
        return data
