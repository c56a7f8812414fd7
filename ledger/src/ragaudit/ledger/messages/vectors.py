"""Vectors as bytes: embeddings and rows as 16 bits, vectors of requests as 32 (spec 5.8)."""

import math
import struct
from collections.abc import Sequence
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.messages.kernel import Converted, Form


class Packed(Form):
    """Base64 of 1..``longest`` times ``size`` bytes, which are not looked into."""

    def __init__(self, longest: int, size: int, what: str) -> None:
        # The length is bounded before anything is decoded: it is the sender's choice.
        self._characters = 4 * -(-size * longest // 3)
        self._longest, self._size, self._what = longest, size, what
        described = f"base64 of 1..{longest} {what}"
        bounds = {"minLength": 1, "maxLength": self._characters}
        super().__init__("string", b64_encode, **bounds, description=described)

    def read(self, value: Any) -> bytes:
        if not isinstance(value, str) or not 0 < len(value) <= self._characters:
            raise MalformedError("not such a text", expected=str(self.schema["description"]))
        data = b64_decode(value)
        if len(data) % self._size or len(data) > self._size * self._longest:
            expected = f"1..{self._longest} times {self._what}"
            raise MalformedError(f"{len(data)} bytes", expected=expected)
        return data


def int16s(longest: int, bound: int) -> Form:
    """Return the form of 1..``longest`` integers of absolute value at most ``bound`` < 2^15."""

    def read(data: bytes) -> tuple[int, ...]:
        entries = struct.unpack(f"<{len(data) // 2}h", data)
        if not -bound <= min(entries) <= max(entries) <= bound:
            raise MalformedError("an entry out of range", expected=f"-{bound}..{bound}")
        return entries

    return Converted(Packed(longest, 2, "i16"), read, vector_text)


def _finite(data: bytes) -> bytes:
    # Neither has an order among other numbers, so none of the scores would have one.
    if not all(map(math.isfinite, float32_values(data))):
        raise MalformedError("an entry that is not finite", expected="numbers")
    return data


def float32s(longest: int) -> Form:
    """Return the form of 1..``longest`` finite IEEE numbers of 32 bits, kept as bytes."""
    return Converted(Packed(longest, 4, "f32"), _finite, b64_encode)


def int16_bytes(vector: Sequence[int]) -> bytes:
    """Return integers in -2^15..2^15-1 as 16 bits each, little endian two's complement.

    Args:
        vector: an embedding or a row; these bytes are what its digest covers (spec 5.7, 5.8).
    """
    return struct.pack(f"<{len(vector)}h", *vector)


def vector_text(vector: Sequence[int]) -> str:
    """Return base64 of :func:`int16_bytes`, as JSON carries it; the inverse of `int16s`."""
    return b64_encode(int16_bytes(vector))


def float32_bytes(values: Sequence[float]) -> bytes:
    """Return numbers as IEEE numbers of 32 bits, little endian: q of a request with a vector.

    Args:
        values: d numbers that 32 bits can hold; others are rounded to the nearest.

    Raises:
        OverflowError: one above the largest of 32 bits.
    """
    return struct.pack(f"<{len(values)}f", *values)


def float32_values(data: bytes) -> tuple[float, ...]:
    """Return the numbers of :func:`float32_bytes`, exactly.

    Args:
        data: 4 bytes for each.
    """
    return struct.unpack(f"<{len(data) // 4}f", data)
