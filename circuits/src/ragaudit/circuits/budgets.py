"""Statements about charge entries (docs/spec/04-arguments.md §4.10, §4.11), for every party.

`BudgetStatement.of` and `ChargeEntry.of` are the only places where contexts are put together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.tagged import read_digest, read_optional_digest

__all__ = ["BudgetStatement", "ChargeEntry", "ChargeStatement"]


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


@dataclass(frozen=True, slots=True, eq=False)
class ChargeEntry:
    """What is public of one charge entry (spec 4.11).

    Attributes:
        context: 32 bytes.
        query: e, int16[d].
        threshold: tau; a row is relevant above it.
        allowed: positions that pass the filter, rising; None for all.
        charged_before: S, the sum of the tenant's B with a smaller log index, 32 bytes.
        charge: B, 32 bytes.
    """

    context: bytes
    query: npt.NDArray[np.int16] = field(repr=False)
    threshold: int
    allowed: Sequence[int] | None
    charged_before: bytes
    charge: bytes

    @classmethod
    def of(
        cls,
        *,
        policy_digest: bytes,
        window: str,
        tenant: str,
        version: int,
        index_root: bytes,
        seed_root: bytes | None,
        activation_randomness: bytes | None,
        body: bytes,
        log_index: int,
        query: npt.NDArray[np.int16],
        threshold: int,
        allowed: Sequence[int] | None,
        charged_before: bytes,
        charge: bytes,
    ) -> "ChargeEntry":
        """Return what a statement says of a charge entry.

        Args:
            policy_digest: C_policy, 32 bytes.
            window, tenant, version: as in the entry.
            index_root: root of C_idx[t, v], 32 bytes.
            seed_root: root of C_seed of the entry's epoch, 32 bytes; None or empty without one.
            activation_randomness: rnd_a, 32 bytes; None or empty without one.
            body: the entry's, as it is logged.
            log_index: the entry's place in the log.
            query, threshold, allowed, charged_before, charge: as the attributes.

        Raises:
            MalformedError: a digest that is not 32 bytes.
        """
        context = structure(
            "context/charge",
            read_digest(policy_digest),
            window,
            tenant,
            version,
            read_digest(index_root),
            read_optional_digest(seed_root or b""),
            read_optional_digest(activation_randomness or b""),
            body,
            log_index,
        )
        return cls(context, query, threshold, allowed, charged_before, charge)


@dataclass(frozen=True, slots=True, eq=False)
class ChargeStatement:
    """Each entry of a group charges exactly the live relevant rows (spec 4.11).

    Attributes:
        uses: M.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.
        entries: in log order, of one tenant, version and window.
        squared_norm: B².
    """

    uses: int
    commitments: bytes = field(repr=False)
    entries: tuple[ChargeEntry, ...]
    squared_norm: int = SQUARED_NORM
