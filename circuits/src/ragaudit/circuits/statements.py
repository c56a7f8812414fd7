"""The statements of the two arguments (docs/spec/04-arguments.md), as every party makes them.

`IndexStatement.of` and `SelectionStatement.of` are the only places where a statement is put
together: a prover proves what they return, and a verifier checks a proof against what they return.
The contexts in them bind a proof to its window, tenant and record (spec 5.4, 5.7).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.tagged import read_digest, read_optional_digest

__all__ = ["IndexStatement", "SelectionStatement", "StatedRecord", "check_index_size"]

_POINT_BYTES: Final = 32
# Above N² B² (d+4), or honest projections leave their 42 bits.
_PROJECTIONS: Final = 2**82


def check_index_size(rows: int, dimension: int, squared_norm: int) -> None:
    """Check that an index is small enough to be proven: N² B² (d+4) < 2^82 (spec 4.7.1).

    Args:
        rows: N.
        dimension: d.
        squared_norm: B².

    Raises:
        MalformedError: it is not.
    """
    if rows**2 * squared_norm * (dimension + 4) >= _PROJECTIONS:
        raise MalformedError(
            f"{rows} rows are too many for this bound", expected="N² B² (d+4) < 2^82"
        )


class StatedRecord(Protocol):
    """What a selection statement takes from a record."""

    @property
    def policy_digest(self) -> bytes:
        """Return C_policy, 32 bytes."""

    @property
    def window(self) -> str:
        """Return the window's name."""

    @property
    def tenant(self) -> str:
        """Return the tenant whose index is searched."""

    @property
    def version(self) -> int:
        """Return the version of that index."""

    @property
    def top_k(self) -> int:
        """Return K."""

    @property
    def selection_commitment(self) -> bytes | None:
        """Return B_sel, 32 bytes; None in a body that is only promised."""


@dataclass(frozen=True, slots=True)
class IndexStatement:
    """Each of N commitments holds an integer row of squared norm B² (spec 4.7.1).

    Attributes:
        context: 32 bytes.
        rows: N.
        dimension: d, without the four entries that complete a row.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.
        squared_norm: B².
    """

    context: bytes
    rows: int
    dimension: int
    commitments: bytes = field(repr=False)
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
        dimension: int,
        commitments: bytes,
        squared_norm: int = SQUARED_NORM,
    ) -> "IndexStatement":
        """Return the statement about C_idx[t, v].

        Args:
            policy_digest: C_policy, 32 bytes.
            window, tenant, version: as in the index commitment.
            index_root: its root, 32 bytes.
            dimension: d.
            commitments: C_0 || .. || C_(N-1), 32 N bytes.
            squared_norm: B² of the policy.

        Raises:
            MalformedError: a digest that is not 32 bytes.
        """
        context = structure(
            # All that the proof is about: it holds under no other window, tenant, version or root.
            "context/index",
            read_digest(policy_digest),
            window,
            tenant,
            version,
            read_digest(index_root),
        )
        rows = len(commitments) // _POINT_BYTES
        return cls(context, rows, dimension, commitments, squared_norm)


@dataclass(frozen=True, slots=True, eq=False)
class SelectionStatement:
    """B_sel holds what noise-then-select picks from the committed rows (spec 4.6.1).

    Attributes:
        context: 32 bytes.
        rows: N.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.
        query: e, int16[d].
        noise: z, int64[N].
        top_k: K.
        selection_commitment: B_sel, 32 bytes.
        allowed: distinct positions that pass the filter, in any order; None for all.
        squared_norm: B².
        keeps_ties: whether rows that tie with the K-th are all selected (spec 4.6.9).
    """

    context: bytes
    rows: int
    commitments: bytes = field(repr=False)
    query: npt.NDArray[np.int16] = field(repr=False)
    noise: npt.NDArray[np.int64] = field(repr=False)
    top_k: int
    selection_commitment: bytes
    allowed: Sequence[int] | None = None
    squared_norm: int = SQUARED_NORM
    keeps_ties: bool = False

    @classmethod
    def of(
        cls,
        record: StatedRecord,
        *,
        body: bytes,
        index_root: bytes,
        commitments: bytes,
        seed_root: bytes | None,
        activation_randomness: bytes | None,
        query: npt.NDArray[np.int16],
        noise: npt.NDArray[np.int64],
        allowed: Sequence[int] | None = None,
        squared_norm: int = SQUARED_NORM,
        keeps_ties: bool = False,
    ) -> "SelectionStatement":
        """Return the statement about a record; arrays are kept, not copied.

        Args:
            record: whose answer is proven.
            body: the record body.
            index_root: root of C_idx[t, v], 32 bytes.
            commitments: that index's C_0 || .. || C_(N-1), 32 N bytes.
            seed_root: root of C_seed of the record's epoch, 32 bytes; None or empty in a window
                without noise, which has none.
            activation_randomness: rnd_a, 32 bytes; None or empty in a window without noise.
            query: int16[d].
            noise: int64[N]; zeros in a window without noise.
            allowed: the positions that pass the record's filter; None for all.
            squared_norm: B² of the policy.
            keeps_ties: True in a window without noise, else False.

        Raises:
            MalformedError: a digest that is not 32 bytes.
        """
        context = structure(
            # With the body, the proof is of this record alone; with C_seed and rnd_a, of the noise
            # that the record had to have.
            "context/selection",
            read_digest(record.policy_digest),
            record.window,
            record.tenant,
            record.version,
            read_digest(index_root),
            read_optional_digest(seed_root or b""),
            read_optional_digest(activation_randomness or b""),
            body,
        )
        return cls(
            context=context,
            rows=len(commitments) // _POINT_BYTES,
            commitments=commitments,
            query=query,
            noise=noise,
            top_k=record.top_k,
            selection_commitment=record.selection_commitment or b"",
            allowed=allowed,
            squared_norm=squared_norm,
            keeps_ties=keeps_ties,
        )
