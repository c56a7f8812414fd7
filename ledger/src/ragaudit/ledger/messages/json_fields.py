"""Reading JSON objects of one exact shape: named members, types and ranges, nothing more."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import KEY_BYTES, PublicKey
from ragaudit.encoding.text import b64_decode, b64_encode, hex_decode

__all__ = ["Fields", "int16_bytes", "vector_text"]


def int16_bytes(vector: Sequence[int]) -> bytes:
    """``vector`` as 16-bit integers, little endian two's complement."""
    return struct.pack(f"<{len(vector)}h", *vector)


def vector_text(vector: Sequence[int]) -> str:
    """Base64 of :func:`int16_bytes`: how JSON carries a vector, the inverse of `Fields.vector`."""
    return b64_encode(int16_bytes(vector))


class Fields:
    """The members of a JSON object, each read once with its type and range.

    Every reader raises the given error class, naming the member's path.
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
        """Check that ``value`` is an object with exactly the members ``names`` (spaces between).

        Args:
            optional: more members, which are null where they are left out.

        Raises:
            error: not an object, or a member is missing or unknown.
        """
        self._error = error
        self._where = where
        if not isinstance(value, dict):
            raise error("not an object", where=where)
        value = dict.fromkeys(optional.split()) | value
        expected = set(names.split() + optional.split())
        for problem, members in (
            ("missing", expected - set(value)),
            ("unknown", set(value) - expected),
        ):
            if members:
                raise error(f"{problem} member", where=self.path(min(members)[:64]))
        self._value: dict[str, Any] = value

    def path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name

    def error(self, name: str, what: str, expected: str = "") -> MalformedError:
        """The error to raise for member ``name``."""
        return self._error(what, where=self.path(name), expected=expected)

    def raw(self, name: str) -> Any:
        return self._value[name]

    def constant(self, name: str, expected: object) -> None:
        """Demand exactly ``expected`` (a text, number, null or an object of such)."""
        value = self._value[name]
        if type(value) is not type(expected) or value != expected:
            raise self.error(name, "another value", expected=repr(expected))

    def boolean(self, name: str) -> bool:
        value = self._value[name]
        if not isinstance(value, bool):
            raise self.error(name, "not a boolean", expected="true or false")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        return self._integer(name, self._value[name], low, high)

    def text(self, name: str, low: int, high: int) -> str:
        """A text of ``low``..``high`` bytes of UTF-8."""
        value = self._value[name]
        # Lone surrogates, which a lenient JSON reader lets in, make it no text at all.
        data = value.encode(errors="replace") if isinstance(value, str) else b""
        if not isinstance(value, str) or data != value.encode(errors="surrogatepass"):
            raise self.error(name, "not a text", expected="Unicode text")
        if not low <= len(data) <= high:
            raise self.error(name, "text of another length", expected=f"{low}..{high} bytes")
        return value

    def choice(self, name: str, *choices: str) -> str:
        value = self._value[name]
        if not isinstance(value, str) or value not in choices:
            raise self.error(name, "not a known value", expected=" or ".join(choices))
        return value

    def hex(self, name: str, length: int | None = None, *, limit: int = 0) -> bytes:
        """Lower-case hexadecimal: exactly ``length`` bytes, or at most ``limit``."""
        return self._hex(name, self._value[name], length, limit)

    def public_key(self, name: str) -> PublicKey:
        """An Ed25519 key in lower-case hexadecimal."""
        data = self.hex(name, KEY_BYTES)
        try:
            return PublicKey.from_raw(data)
        except MalformedError as error:
            raise self.error(name, error.what, error.expected) from error

    def object(self, name: str) -> dict[str, Any]:
        """A JSON object, whatever it holds."""
        value = self._value[name]
        if not isinstance(value, dict):
            raise self.error(name, "not an object")
        return value

    def objects(self, name: str, low: int, high: int) -> Iterator[tuple[str, Any]]:
        """The items of a list of ``low``..``high``, each with its path."""
        for number, item in enumerate(self._list(name, low, high)):
            yield f"{self.path(name)}[{number}]", item

    def integers(self, name: str, count: tuple[int, int], low: int, high: int) -> tuple[int, ...]:
        return tuple(self._integer(name, each, low, high) for each in self._list(name, *count))

    def vector(self, name: str, longest: int, bound: int) -> tuple[int, ...]:
        """Base64 of 1..``longest`` 16-bit integers, each of absolute value at most ``bound``."""
        text = self._value[name]
        if not isinstance(text, str) or not 0 < len(text) <= 4 * -(-2 * longest // 3):
            raise self.error(name, "not such a text", expected=f"base64 of 1..{longest} i16")
        try:
            data = b64_decode(text)
        except MalformedError as error:
            raise self.error(name, error.what, error.expected) from error
        if len(data) % 2 or len(data) > 2 * longest:
            raise self.error(name, f"{len(data)} bytes", expected=f"1..{longest} times i16")
        entries = struct.unpack(f"<{len(data) // 2}h", data)
        if not -bound <= min(entries) <= max(entries) <= bound:
            raise self.error(name, "an entry out of range", expected=f"-{bound}..{bound}")
        return entries

    def hexes(self, name: str, high: int, length: int) -> tuple[bytes, ...]:
        """A list of at most ``high`` byte strings of ``length`` bytes."""
        return tuple(self._hex(name, each, length, 0) for each in self._list(name, 0, high))

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
