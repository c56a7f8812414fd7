"""What checks of receipts and proofs need of the compiled core (docs/spec/04-arguments.md)."""

from collections.abc import Sequence

import numpy as np
from ragaudit import core
from ragaudit.circuits.vector_operations import VectorOperations
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.ties import TiesStatement

__all__ = ["CoreOperations"]

SCALAR_BYTES = 32
POINT_BYTES = 32


class CoreOperations(VectorOperations):
    """`ragaudit.ledger.messages.receipt_check.GroupOperations` over `ragaudit.core`."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to one completed row (docs/spec/04-arguments.md §4.1.5).

        Args:
            row: d + 4 integers of 16 bits.
            blinding: a canonical scalar, 32 bytes.

        Raises:
            MalformedError: an entry out of range, or a blinding that is no canonical scalar.
        """
        [made] = self.commit_rows([row], [blinding])
        return made

    def commit_rows(
        self, rows: Sequence[Sequence[int]], blindings: Sequence[bytes]
    ) -> Sequence[bytes]:
        """Return the commitments to completed rows, 32 bytes each, as `commit_row`.

        Args:
            rows: at least one, each of d + 4 integers of 16 bits.
            blindings: canonical scalars, 32 bytes each, as many as rows.

        Raises:
            MalformedError: as `commit_row`.
        """
        entries = np.array(rows)
        # In 16 bits 40000 would wrap to -25536, and the core commit to another row.
        if entries.dtype.kind != "i" or entries.min() < -(2**15) or entries.max() >= 2**15:
            raise MalformedError("row entry out of range", expected="integers of 16 bits")
        if any(len(blinding) != SCALAR_BYTES for blinding in blindings):
            raise MalformedError("blinding of a wrong length", expected=f"{SCALAR_BYTES} bytes")
        scalars = np.frombuffer(b"".join(blindings), dtype=np.uint8).reshape(-1, SCALAR_BYTES)
        try:
            made = bytes(core.commit_rows(entries.astype(np.int16), scalars))
        except core.CoreError as error:
            raise MalformedError(str(error), where="row commitment") from error
        return [made[at : at + POINT_BYTES] for at in range(0, len(made), POINT_BYTES)]

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

    def verify_ties(self, statement: TiesStatement, proof: bytes) -> None:
        """Check a ties opening: the answer holds the first rows of T (docs/spec 4.6.10).

        Args:
            statement: T, scores and commitments have been checked before.
            proof: as the provider sent it.

        Raises:
            ReceiptRejected: it does not establish the statement.
        """
        try:
            core.verify_ties(statement, proof)
        except core.CoreError as error:
            raise ReceiptRejected(str(error), where="ties opening") from error
