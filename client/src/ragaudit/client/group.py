"""Commitments and sketches for the receipt check, by the compiled core and by circuits."""

from collections.abc import Sequence

import numpy as np
from ragaudit import core
from ragaudit.circuits import sketch as sketches
from ragaudit.encoding.errors import MalformedError

__all__ = ["CoreOperations"]

SCALAR_BYTES = 32


class CoreOperations:
    """`ragaudit.ledger.messages.receipt_check.GroupOperations` over `ragaudit.core`."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to one completed row (docs/spec/04-arguments.md §4.1.5).

        Args:
            row: d + 4 integers in -128..127.
            blinding: a canonical scalar, 32 bytes.

        Raises:
            MalformedError: an entry out of range, or a blinding that is no canonical scalar.
        """
        if any(type(entry) is not int or not -128 <= entry <= 127 for entry in row):
            raise MalformedError("row entry out of range", expected="integers in -128..127")
        if len(blinding) != SCALAR_BYTES:
            raise MalformedError("blinding of a wrong length", expected=f"{SCALAR_BYTES} bytes")
        rows = np.array([row], dtype=np.int8)
        blindings = np.frombuffer(blinding, dtype=np.uint8).reshape(1, SCALAR_BYTES)
        try:
            return bytes(core.commit_rows(rows, blindings))
        except core.CoreError as error:
            raise MalformedError(str(error), where="row commitment") from error

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a set of positions (docs/spec/04-arguments.md §4.1.5).

        Args:
            positions: distinct rows of the corpus, from 0.
            blinding: a canonical scalar, 32 bytes.

        Raises:
            MalformedError: positions out of range or repeated, or not a canonical scalar.
        """
        try:
            return bytes(core.commit_selection(list(positions), blinding))
        except core.CoreError as error:
            raise MalformedError(str(error), where="selection commitment") from error

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of an embedding (docs/spec/02-integers.md §2.4).

        Args:
            query: 16-bit integers.
            seed: the policy's sketch seed.
            bits: length of the sketch.

        Raises:
            MalformedError: an entry out of range.
        """
        if any(type(entry) is not int or not -(2**15) <= entry < 2**15 for entry in query):
            raise MalformedError("embedding entry out of range", expected="16-bit integers")
        return sketches.sketch(np.array(query, dtype=np.int16), seed, bits)
