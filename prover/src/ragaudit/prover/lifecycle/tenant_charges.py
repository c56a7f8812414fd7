"""All charge entries of a tenant and window, as the budget argument is about them."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from ragaudit.prover.window.charges import charges_of
from ragaudit.prover.work import ChargedRows
from sqlalchemy import Connection

__all__ = ["TenantCharges"]


@dataclass(frozen=True, slots=True)
class TenantCharges:
    """The charge entries of a tenant, one or more, in the log's order.

    Packed: an entry takes some 130 bytes and four for each row that it charges.

    Attributes:
        version: of the index that they charge.
        positions: int64[R], in the log, rising.
        points: B_0 || .. || B_(R-1), 32 R bytes; empty where nothing is charged to rows.
        charged: what they charge.
    """

    version: int
    positions: npt.NDArray[np.int64] = field(repr=False)
    points: bytes = field(repr=False)
    charged: ChargedRows = field(repr=False)

    @classmethod
    def read(cls, connection: Connection, window: str, tenant: str) -> "TenantCharges | None":
        """Return the charge entries as stored, None if there are none.

        Args:
            connection: reads the prover's database.
            window, tenant: by name.
        """
        version = None
        positions, ends = array("q"), array("q")
        points, rows, blindings = bytearray(), bytearray(), bytearray()
        for each in charges_of(connection, window, tenant):
            version = each.body.version
            positions.append(each.position)
            points += each.body.charge or b""
            rows += each.rows.astype("<u4").tobytes()
            ends.append(len(rows) // 4)
            blindings += each.blinding
        if version is None:
            return None
        charged = ChargedRows.of(rows, np.frombuffer(ends, np.int64), blindings)
        return cls(version, np.frombuffer(positions, np.int64), bytes(points), charged)

    def numbers(self, positions: Sequence[int]) -> list[int]:
        """Return n_t of those entries that stand at some positions of the log, rising."""
        return np.flatnonzero(np.isin(self.positions, np.array(positions, np.int64))).tolist()
