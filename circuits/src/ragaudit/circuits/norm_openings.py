"""The norm of one committed row, shown without the row (docs/spec 4.7.7).

A row (X, w) has |X|² + |w|² = B². What w is, is shown by rows of the same norm whose commitments
anybody makes from the row's: C_i less a commitment to a public t. If both have squared norm B²,
then 2 <row, t> = |t|²: t = 2v e_k says that entry k is v, and t = v (e_k + e_j) that entry j is 0.
One index argument over these rows shows it, and with it |X|² = B² - |w|².
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.statements import IndexStatement
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import decode, enc, read_int

SQUARES: Final = 4
"""Entries behind the d of a row, which complete its norm (spec 2.6)."""

_TAG: Final = "ragaudit/v1/index/proofs"
_FIELDS: Final = 5 + SQUARES


@dataclass(frozen=True, slots=True)
class NormOpening:
    """What a provider says of one row, and the argument for it.

    Attributes:
        position: of the row, from 0.
        anchor: k, an entry of the completed row that is not 0.
        value: of that entry.
        squares: w, the four entries that complete the row.
        proof: index argument over the rows of `shifts`.
    """

    position: int
    anchor: int
    value: int
    squares: tuple[int, ...]
    proof: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, rows: npt.NDArray[np.integer]) -> "NormOpening":
        """Return what there is to say of the row with the largest norm, without its argument.

        Args:
            rows: integers [N, d+4], completed.
        """
        squares = rows[:, -SQUARES:].astype(np.int64)
        position = int(np.argmin((squares * squares).sum(axis=1)))
        row = rows[position].astype(np.int64)
        # One of w, unless they are all 0: then an entry of the row itself is told.
        first = len(row) - SQUARES
        shown = np.flatnonzero(row[first:])
        anchor = first + int(shown[0]) if len(shown) else int(np.flatnonzero(row)[0])
        return cls(position, anchor, int(row[anchor]), tuple(row[first:].tolist()))

    def shifts(self, dimension: int, squared_norm: int) -> list[list[int]]:
        """Return the vectors t, each of d + 4 integers.

        Args:
            dimension: d.
            squared_norm: B².

        Raises:
            MalformedError: an entry that no row has, or an anchor that is 0 or not what w says.
        """
        width = dimension + SQUARES
        entries = (self.value, *self.squares)
        longest = max(entry * entry for entry in entries) > squared_norm
        if longest or not self.value or not 0 <= self.anchor < width:
            raise MalformedError("no entries of a row", where="norm opening")
        own = self.anchor - dimension
        if own >= 0 and self.squares[own] != self.value:
            raise MalformedError("two values of one entry", where="norm opening")
        found = [_vector(width, {self.anchor: 2 * self.value})]
        for place, entry in enumerate(self.squares):
            if place != own:
                at = dimension + place
                both = {self.anchor: self.value, at: self.value}
                found.append(_vector(width, {at: 2 * entry} if entry else both))
        return found

    def statement(self, index: IndexStatement, commitments: bytes) -> IndexStatement:
        """Return the statement of `proof`.

        Args:
            index: that of the whole index.
            commitments: those of the row less each of `shifts`, 32 bytes each.
        """
        said = (self.position, self.anchor, self.value, *self.squares)
        context = structure("context/norm", index.context, *said)
        rows = len(commitments) // 32
        return IndexStatement(context, rows, index.dimension, commitments, index.squared_norm)

    def squared_length(self, squared_norm: int) -> int:
        """Return |X|² of the row.

        Args:
            squared_norm: B².
        """
        return squared_norm - sum(entry * entry for entry in self.squares)

    def beside(self, proof: bytes) -> bytes:
        """Return the proof of an index that has this opening.

        Args:
            proof: pi_idx.
        """
        return enc(_TAG, proof, self.position, self.anchor, self.value, *self.squares, self.proof)


def split_proof(proof: bytes) -> tuple[bytes, NormOpening]:
    """Return pi_idx and the norm opening of an index's proof, the inverse of `beside`.

    Args:
        proof: as a provider sent it.

    Raises:
        MalformedError: any other bytes.
    """
    first, *numbers, last = decode(_TAG, proof, _FIELDS)
    position, anchor, value, *squares = map(read_int, numbers)
    return first, NormOpening(position, anchor, value, tuple(squares), last)


def _vector(width: int, entries: dict[int, int]) -> list[int]:
    found = [0] * width
    for place, entry in entries.items():
        found[place] = entry
    return found


def shifted(row: Sequence[int], shifts: Sequence[Sequence[int]]) -> npt.NDArray[np.int16]:
    """Return the row less each vector, int16[n, d+4]: what the argument is made of.

    Args:
        row: completed, d + 4 integers.
        shifts: of its opening.
    """
    moved: npt.NDArray[np.int16] = np.subtract(row, shifts).astype(np.int16)
    return moved
