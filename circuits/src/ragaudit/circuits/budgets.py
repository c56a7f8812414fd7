"""Statements about charge entries (docs/spec/04-arguments.md §4.10), as every party makes them.

`BudgetStatement.of` is the only place where one is put together.
"""

from dataclasses import dataclass, field

from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.tagged import read_digest

__all__ = ["BudgetStatement"]


@dataclass(frozen=True, slots=True)
class BudgetStatement:
    """No row is charged more than M times by a tenant's charge entries (spec 4.10).

    Attributes:
        context: 32 bytes.
        rows: N.
        uses: M.
        charges: B_0 || .. || B_(R-1), 32 R bytes: of all charge entries, in log order.
        squared_norm: B².
    """

    context: bytes
    rows: int
    uses: int
    charges: bytes = field(repr=False)
    squared_norm: int = SQUARED_NORM

    @classmethod
    def of(
        cls,
        *,
        policy_digest: bytes,
        window: str,
        tenant: str,
        version: int,
        index_root: bytes,
        log_root: bytes,
        rows: int,
        uses: int,
        charges: bytes,
        squared_norm: int = SQUARED_NORM,
    ) -> "BudgetStatement":
        """Return the statement about all charge entries of a tenant and window.

        Args:
            policy_digest: C_policy, 32 bytes.
            window, tenant, version: as in the charge entries.
            index_root: root of C_idx[t, v], 32 bytes.
            log_root: root of the window's final log, 32 bytes: no entry is left out.
            rows: N of that index.
            uses: M of the policy.
            charges: B_0 || .. || B_(R-1), 32 R bytes, in log order.
            squared_norm: B² of the policy.

        Raises:
            MalformedError: a digest that is not 32 bytes.
        """
        context = structure(
            "context/budget",
            read_digest(policy_digest),
            window,
            tenant,
            version,
            read_digest(index_root),
            read_digest(log_root),
        )
        return cls(context, rows, uses, charges, squared_norm)
