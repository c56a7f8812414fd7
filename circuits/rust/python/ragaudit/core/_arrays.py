"""Checked conversion of arguments to what the compiled module takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit.core._core import MalformedInput

CONTEXT_BYTES = 32
SCALAR_BYTES = 32
POINT_BYTES = 32


Rows = npt.NDArray[np.int8 | np.int16]
"""Rows of integers: int8 where B = 127, int16 where B = 4095 (or any B with 4B² < 2^26)."""

ENTRIES: list[type[np.integer[Any]]] = [np.int8, np.int16]

Memory = npt.NDArray[np.uint8]
"""uint8[n]: the memory of an array, which is not copied."""


def array_bytes(
    value: npt.NDArray[Any], what: str, dtypes: Sequence[type[np.generic]], dimensions: int
) -> Memory:
    """Return the memory of a C-contiguous array of one of the dtypes, little endian.

    It is read while the call lasts and must not be written to meanwhile.

    Raises:
        MalformedInput: another type, dtype, dimension or layout; ``what`` names the argument.
    """
    if not isinstance(value, np.ndarray):
        raise MalformedInput(f"{what}: {type(value).__name__}, expected a NumPy array")
    if value.dtype not in [np.dtype(dtype) for dtype in dtypes]:
        names = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        raise MalformedInput(f"{what}: dtype {value.dtype}, expected {names}")
    if value.ndim != dimensions:
        raise MalformedInput(f"{what}: {value.ndim} dimensions, expected {dimensions}")
    # Refused, not copied: a copy of an index would go unnoticed and cost its memory twice.
    if not value.flags.c_contiguous:
        raise MalformedInput(f"{what}: not C-contiguous")
    return value.astype(value.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8)


def scalars_bytes(value: npt.NDArray[np.uint8], what: str, count: int) -> Memory:
    """Return the memory of uint8[count, 32].

    Raises:
        MalformedInput: another dtype or shape; ``what`` names the argument.
    """
    data = array_bytes(value, what, [np.uint8], 2)
    if value.shape != (count, SCALAR_BYTES):
        raise MalformedInput(f"{what}: shape {value.shape}, expected ({count}, {SCALAR_BYTES})")
    return data


def exact_bytes(value: bytes, what: str, length: int | None = None) -> bytes:
    """Return a bytes object, of exactly ``length`` unless that is None.

    Raises:
        MalformedInput: another type or length; ``what`` names the argument.
    """
    if not isinstance(value, bytes):
        raise MalformedInput(f"{what}: {type(value).__name__}, expected bytes")
    if length is not None and len(value) != length:
        raise MalformedInput(f"{what}: {len(value)} bytes, expected {length}")
    return value


def truth(value: bool, what: str) -> bool:
    """Return a bool.

    Raises:
        MalformedInput: another type; ``what`` names the argument.
    """
    if not isinstance(value, bool):
        raise MalformedInput(f"{what}: {type(value).__name__}, expected a bool")
    return value


def integer(value: int, what: str, bits: int = 64) -> int:
    """Return an integer in [0, 2^bits).

    Raises:
        MalformedInput: another type, or out of range; ``what`` names the argument.
    """
    # A bool is an int in Python, and never what was meant here.
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise MalformedInput(f"{what}: {type(value).__name__}, expected an integer")
    if not 0 <= value < 1 << bits:
        raise MalformedInput(f"{what}: {value}, expected 0 <= {what} < 2^{bits}")
    return int(value)


def positions(value: Sequence[int], what: str) -> list[int]:
    """Return a list of positions, each in [0, 2^64).

    Raises:
        MalformedInput: not a sequence of such integers; ``what`` names the argument.
    """
    # Bytes are a sequence of integers, too; as positions they are a mistake.
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise MalformedInput(f"{what}: {type(value).__name__}, expected a sequence of positions")
    return [integer(position, what) for position in value]


def signed(value: int, what: str, bits: int = 64) -> int:
    """Return an integer in [-2^(bits - 1), 2^(bits - 1)).

    Raises:
        MalformedInput: another type, or out of range; ``what`` names the argument.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise MalformedInput(f"{what}: {type(value).__name__}, expected an integer")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise MalformedInput(f"{what}: an integer of more than {bits} bits")
    return int(value)


def ranked(value: Sequence[tuple[int, int]], what: str) -> list[tuple[int, int]]:
    """Return a list of positions in [0, 2^64), each with its score of 64 bits.

    Raises:
        MalformedInput: not a sequence of such pairs; ``what`` names the argument.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise MalformedInput(f"{what}: {type(value).__name__}, expected a sequence of pairs")
    return [(integer(position, what), signed(score, what)) for position, score in value]
