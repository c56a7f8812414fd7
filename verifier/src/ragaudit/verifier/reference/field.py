"""Scalars: the prime field of order l, and the polynomials eq (spec 4.1.1, 4.1.3)."""

from collections.abc import Iterable, Sequence

from .errors import MalformedProof

ORDER = 2**252 + 27742317777372353535851937790883648493
SCALAR_BYTES = 32


def le(value: int, size: int) -> bytes:
    """``value`` as ``size`` bytes, little endian, unsigned."""
    return value.to_bytes(size, "little")


def decode_scalar(data: bytes) -> int:
    """The scalar encoded by 32 bytes.

    Raises:
        MalformedProof: not 32 bytes, or not reduced modulo l.
    """
    value = int.from_bytes(data, "little")
    if len(data) != SCALAR_BYTES or value >= ORDER:
        raise MalformedProof("a scalar must be 32 bytes, little endian, below the group order")
    return value


def inverse(value: int) -> int:
    """1/value modulo l; ``value`` is not 0."""
    return pow(value, -1, ORDER)


def powers(base: int, count: int, start: int = 1) -> list[int]:
    """start, start·base, ..., start·base^(count-1)."""
    values = []
    for _ in range(count):
        values.append(start)
        start = start * base % ORDER
    return values


def dot(left: Iterable[int], right: Iterable[int]) -> int:
    """Inner product; both sides have the same length."""
    return sum(a * b for a, b in zip(left, right, strict=True)) % ORDER


def eq_table(point: Sequence[int]) -> list[int]:
    """eq(point, i) for 0 <= i < 2^m; coordinate 1 goes with the most significant bit of i."""
    table = [1]
    for r in point:
        table = [entry for t in table for entry in (t * (1 - r) % ORDER, t * r % ORDER)]
    return table


def variables_for(count: int) -> int:
    """ceil(log2(count)) for count >= 1: the variables of a table with ``count`` entries."""
    return (count - 1).bit_length()
