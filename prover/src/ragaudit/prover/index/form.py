"""What a window's policy makes of documents: digests, public columns, integer rows (spec 5.4)."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.metrics import COSINE, scaled
from ragaudit.circuits.statements import check_index_size
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import B
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.columns import (
    NO_COLUMNS,
    NULL_ROW,
    PublicColumn,
    columns_text,
    parse_text,
)
from ragaudit.ledger.messages.merkle_commitments import content_digest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.errors import MalformedDocument

# Entries of a unit vector differ by up to 2.4e-7 (Chroma, cosine): 0.001 units of B = 4095.
_MOVED_ONE_IN = 128
_ROUNDED = 0.75  # units by which an entry may be off before the row is quantised anew


@dataclass(frozen=True)
class IndexForm:
    """How an index of a window looks; the defaults are the simplest.

    Attributes:
        norm_bound: B.
        metric, largest_norm: of the policy.
        columns: that the policy declares.
        null_columns: what stands in a null row's leaf where others have columns.
        owned: whether rows have id keys.
    """

    norm_bound: int = B
    metric: str = "cosine"
    largest_norm: Decimal | None = None
    columns: tuple[PublicColumn, ...] = ()
    null_columns: str = NO_COLUMNS
    owned: bool = False

    @classmethod
    def of(cls, policy: Policy) -> "IndexForm":
        """Return the form of the indexes of a window."""
        terms = policy.retrieval
        norm = terms.largest_norm
        return cls(
            norm_bound=policy.norm_bound,
            metric=terms.metric,
            largest_norm=None if norm is None else Decimal(norm),
            columns=terms.public_columns,
            null_columns=NULL_ROW if policy.marks_null_rows else NO_COLUMNS,
            owned=policy.owners is not None,
        )

    def digest(self, document: Document) -> bytes:
        """Return the digest of what a document holds, 32 bytes."""
        return content_digest(document.content, document.attributes)

    def columns_of(self, document: Document) -> str:
        """Return the canonical text of a document's public columns.

        A declared name that its attributes lack, or hold as null, has no value.

        Raises:
            MalformedDocument: a value of another type than declared; ``where`` names the document.
        """
        if not self.columns or not document.attributes:
            return columns_text({}, ())
        where = f"document {document.id}"
        try:
            attributes = parse_text(document.attributes, where)
            values = {
                column.name: attributes[column.name]
                for column in self.columns
                if attributes.get(column.name) is not None
            }
            return columns_text(values, self.columns)
        except MalformedRecord as error:
            # Left out, its row would pass filters that it must not: whoever declared the column
            # must know.
            raise MalformedDocument(
                f"public column: {error.what}", where=f"{where}: {error.where}",
                expected=error.expected,
            ) from None  # fmt: skip

    def integers(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the integer rows of real vectors: int8[N, d] for B = 127, else int16[N, d].

        Args:
            vectors: real numbers [N, d].

        Raises:
            MalformedError: a vector that the metric has no row for; ``where`` names the row.
        """
        return scaled(vectors, self.metric, self.largest_norm, self.norm_bound)

    def same_vector(self, row: npt.NDArray[Any], vector: npt.NDArray[Any]) -> bool:
        """Return whether a stored vector still is the one of a committed row.

        A store may return a vector otherwise in the last bits than it did when it was committed
        to, which moves an entry or two by one unit.

        Args:
            row: integers [d], of norm at most B.
            vector: real numbers, as the store returns them now.
        """
        if len(vector) != len(row):
            return False
        # A hundredth of the time of `integers`, and nearly always enough.
        if self.metric == COSINE and _rounds_to(row.astype(np.float64), vector.astype(np.float64)):
            return True
        try:
            now = self.integers(vector[np.newaxis])[0]
        except MalformedError:
            return False
        moved = np.abs(now.astype(np.int32) - row)
        return int(moved.max()) <= 1 and int(moved.sum()) <= 2 + len(row) // _MOVED_ONE_IN


def _rounds_to(row: npt.NDArray[np.float64], vector: npt.NDArray[np.float64]) -> bool:
    """Return whether a vector, at the scale that fits best, is a row up to its rounding."""
    square = float(vector @ vector)
    if not 0 < square < np.inf:
        return False
    scale = float(row @ vector) / square
    # Half a unit is the row's own rounding, the rest that of the scale; -1 times a row is another.
    return scale > 0 and float(np.abs(scale * vector - row).max()) < _ROUNDED


def check_size(tenant: str, rows: int, dimension: int, norm_bound: int) -> None:
    """Check that an index is small enough to be proven, before hours go into it (spec 4.7.1).

    Args:
        tenant: names the index in an error.
        rows: N, documents and null rows.
        dimension: d.
        norm_bound: B of the policy.

    Raises:
        MalformedDocument: it is not, and every verifier would refuse the window (check 4).
    """
    try:
        check_index_size(rows, dimension, norm_bound**2)
    except MalformedError as error:
        raise MalformedDocument(
            error.what, where=f"tenant {tenant}", expected=error.expected
        ) from None
