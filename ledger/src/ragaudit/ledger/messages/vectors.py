"""Vectors as bytes: embeddings and rows as 16 bits, vectors of requests as 32 (spec 5.8)."""

import struct
from collections.abc import Sequence
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.messages.kernel import Form


class Int16s(Form):
    """Base64 of 1..``longest`` integers of 16 bits, each of absolute value at most ``bound``."""

    def __init__(self, longest: int, bound: int) -> None:
        # The length is bounded before anything is decoded: it is the sender's choice.
        self._characters = 4 * -(-2 * longest // 3)
        schema = {"type": "string", "minLength": 1, "maxLength": self._characters}
        super().__init__(f"base64 of 1..{longest} i16", schema, vector_text)
        self._longest, self._bound = longest, bound

    def read(self, value: Any) -> tuple[int, ...]:
        if not isinstance(value, str) or not 0 < len(value) <= self._characters:
            raise MalformedError("not such a text", expected=self.words)
        data = b64_decode(value)
        if len(data) % 2 or len(data) > 2 * self._longest:
            raise MalformedError(f"{len(data)} bytes", expected=f"1..{self._longest} times i16")
        entries = struct.unpack(f"<{len(data) // 2}h", data)
        if not -self._bound <= min(entries) <= max(entries) <= self._bound:
            expected = f"-{self._bound}..{self._bound}"
            raise MalformedError("an entry out of range", expected=expected)
        return entries


def int16_bytes(vector: Sequence[int]) -> bytes:
    """Return integers in -2^15..2^15-1 as 16 bits each, little endian two's complement.

    Args:
        vector: an embedding or a row; these bytes are what its digest covers (spec 5.7, 5.8).
    """
    return struct.pack(f"<{len(vector)}h", *vector)


def vector_text(vector: Sequence[int]) -> str:
    """Return base64 of :func:`int16_bytes`, as JSON carries it; the inverse of `Fields.vector`."""
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
