"""Random-hyperplane sketches of query embeddings (docs/spec/02-integers.md §2.4)."""

from functools import lru_cache
from hashlib import shake_256

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import enc

__all__ = ["hyperplanes", "sketch", "sketches"]

SEED_BYTES = 32


def sketch(query: npt.NDArray[np.int16], seed: bytes, bits: int) -> bytes:
    """Return the sketch of an integer embedding; bit k is 1 iff ``<h_k, e> >= 0``.

    Args:
        query: int16[d], 1 <= d <= 4096.
        seed: 32 bytes of the policy.
        bits: a multiple of 8 from 64 to 512.

    Returns:
        bits / 8 bytes; bit k is bit ``k & 7`` of byte ``k >> 3``.

    Raises:
        MalformedError: any argument outside its range.
    """
    if query.ndim != 1:
        raise MalformedError("query has a wrong type or shape", expected="int16[d]")
    return bytes(sketches(query[np.newaxis], seed, bits)[0])


def sketches(queries: npt.NDArray[np.int16], seed: bytes, bits: int) -> npt.NDArray[np.uint8]:
    """Return the sketches of many embeddings, uint8[n, bits/8].

    Args:
        queries: int16[n, d], 1 <= d <= 4096.
        seed, bits: as of `sketch`.

    Raises:
        MalformedError: any argument outside its range.
    """
    if (
        queries.dtype != np.int16
        or queries.ndim != 2
        or not 1 <= queries.shape[1] <= LIMITS.dimension
    ):
        raise MalformedError("query has a wrong type or shape", expected="int16[d]")
    if not LIMITS.sketch_bits_min <= bits <= LIMITS.sketch_bits_max or bits % 8:
        raise MalformedError(f"{bits} sketch bits", expected="a multiple of 8 from 64 to 512")
    if len(seed) != SEED_BYTES:
        raise MalformedError("sketch seed has a wrong length", expected=f"{SEED_BYTES} bytes")
    # Sums of at most 4096 numbers of 16 bits: exact in doubles, and BLAS has no integers.
    products = queries.astype(np.float64) @ hyperplanes(seed, bits, queries.shape[1]).T
    return np.packbits(products >= 0, axis=1, bitorder="little")


# A window's queries all have the policy's seed: its vectors are hashed once.
@lru_cache(maxsize=8)
def hyperplanes(seed: bytes, bits: int, dimension: int) -> npt.NDArray[np.float64]:
    """Return the vectors h_k, float64[bits, d] of -1 and +1, read-only.

    Args:
        seed: 32 bytes of the policy.
        bits: of a sketch.
        dimension: d.
    """
    length = (dimension + 7) // 8
    stream = b"".join(
        shake_256(enc("ragaudit/v1/sketch", seed, k)).digest(length) for k in range(bits)
    )
    octets = np.frombuffer(stream, dtype=np.uint8).reshape(bits, length)
    ones = np.unpackbits(octets, axis=1, bitorder="little")[:, :dimension]
    signs = 2 * ones.astype(np.float64) - 1
    signs.setflags(write=False)
    return signs
