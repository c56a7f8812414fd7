"""Vectors as bytes: embeddings and rows as 16 bits, vectors of requests as 32 (spec 5.8)."""

import struct
from collections.abc import Sequence

from ragaudit.encoding.text import b64_encode


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
