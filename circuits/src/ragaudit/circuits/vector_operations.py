"""What a receipt's check needs of vectors: integers and sketches, of plain Python sequences."""

from collections.abc import Sequence

import numpy as np
from ragaudit.circuits import quantise as quantising
from ragaudit.circuits import sketch as sketches
from ragaudit.encoding.errors import MalformedError

__all__ = ["VectorOperations"]


class VectorOperations:
    """A part of `ragaudit.ledger.messages.receipt_check.GroupOperations`, without a group."""

    def quantise(self, vector: Sequence[float], norm_bound: int) -> tuple[int, ...]:
        """Return the integer vector of real numbers (docs/spec/02-integers.md §2.1).

        Args:
            vector: d numbers.
            norm_bound: B of the policy.

        Raises:
            MalformedError: NaN, infinity, or all zero.
        """
        values = np.array(vector, dtype=np.float64)
        return tuple(quantising.quantise(values, norm_bound).tolist())

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of an embedding (docs/spec/02-integers.md §2.4), bits / 8 bytes.

        Args:
            query: 16-bit integers.
            seed: the policy's sketch seed, 32 bytes.
            bits: length of the sketch, a multiple of 8.

        Raises:
            MalformedError: an entry out of range.
        """
        # Here too: a wrapped entry has another sketch than the one that was logged.
        if any(type(entry) is not int or not -(2**15) <= entry < 2**15 for entry in query):
            raise MalformedError("embedding entry out of range", expected="16-bit integers")
        return sketches.sketch(np.array(query, dtype=np.int16), seed, bits)
