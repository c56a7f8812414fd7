"""The statements of the two arguments (docs/spec/04-arguments.md), as every party makes them.

`IndexStatement.of` and `SelectionStatement.of` are the only places where a statement is put
together: a prover proves what they return, and a verifier checks a proof against what they return.
The contexts in them bind a proof to its window, tenant and record (spec 5.4, 5.7). Statements have
bytes for whoever proves or verifies them elsewhere, and an index shows the norm of one row (4.7.7).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry, ChargeStatement
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.tagged import decode, enc, read_digest, read_int, read_optional_digest

__all__ = [
    "SQUARES",
    "IndexStatement",
    "NormOpening",
    "SelectionStatement",
    "StatedRecord",
    "budget_bytes",
    "charge_bytes",
    "check_index_size",
    "read_budget",
    "read_charge",
    "read_selection",
    "read_several",
    "selection_bytes",
    "several",
    "shifted",
    "split_proof",
]

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


_TAG: Final = "selection statement"
_SEVERAL: Final = "several"
_BUDGET: Final = "budget statement"
_CHARGE: Final = "charge statement"
_ENTRY: Final = "charge entry"
_PART: Final = 2**15
_NOISE: Final = (np.dtype("<i4"), np.dtype("<i8"))
_POSITIONS: Final = np.dtype("<u4")


def selection_bytes(statement: SelectionStatement) -> bytes:
    """Return everything that a statement says but for the commitments."""
    noise = np.ascontiguousarray(statement.noise)
    small = _NOISE[0]
    limits = np.iinfo(small)
    # Of nearly every policy: half the bytes.
    fits = not noise.size or (noise.min() >= limits.min and noise.max() <= limits.max)
    kind = small if fits else _NOISE[1]
    allowed = statement.allowed
    return enc(
        _TAG,
        statement.context,
        statement.query.astype("<i2").tobytes(),
        kind.itemsize,
        noise.astype(kind).tobytes(),
        statement.top_k,
        statement.selection_commitment,
        int(allowed is not None),
        np.array([] if allowed is None else allowed, dtype=_POSITIONS).tobytes(),
        statement.squared_norm,
        int(statement.keeps_ties),
    )


def read_selection(data: bytes, commitments: bytes) -> SelectionStatement:
    """Return the statement of `selection_bytes` about the commitments of an index.

    Args:
        data: as `selection_bytes` returned it.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.

    Raises:
        MalformedError: other bytes.
    """
    context, query, size, noise, top_k, selection, filtered, allowed, squared, keeps = decode(
        _TAG, data, 10
    )
    kinds = {kind.itemsize: kind for kind in _NOISE}
    if (width := read_int(size)) not in kinds:
        raise MalformedError("entries of another size", where="noise", expected="4 or 8 bytes")
    return SelectionStatement(
        context=context,
        rows=len(commitments) // 32,
        commitments=commitments,
        query=np.frombuffer(query, dtype="<i2").astype(np.int16),
        noise=np.frombuffer(noise, dtype=kinds[width]).astype(np.int64),
        top_k=read_int(top_k),
        selection_commitment=selection,
        allowed=np.frombuffer(allowed, dtype=_POSITIONS).tolist() if read_int(filtered) else None,
        squared_norm=read_int(squared),
        keeps_ties=bool(read_int(keeps)),
    )


def budget_bytes(statement: BudgetStatement) -> bytes:
    """Return everything that a statement says."""
    return enc(
        _BUDGET,
        statement.context,
        statement.rows,
        statement.uses,
        statement.charges,
        statement.squared_norm,
    )


def read_budget(data: bytes) -> BudgetStatement:
    """Return the statement of `budget_bytes`; MalformedError for other bytes."""
    context, rows, uses, charges, squared = decode(_BUDGET, data, 5)
    return BudgetStatement(context, read_int(rows), read_int(uses), charges, read_int(squared))


def charge_bytes(statement: ChargeStatement) -> bytes:
    """Return everything that a statement says but for the commitments."""
    entries = [
        enc(
            _ENTRY,
            entry.context,
            entry.query.astype("<i2").tobytes(),
            entry.threshold,
            int(entry.allowed is not None),
            np.array([] if entry.allowed is None else entry.allowed, dtype=_POSITIONS).tobytes(),
            entry.charged_before,
            entry.charge,
        )
        for entry in statement.entries
    ]
    # A group may have one entry more than one field can hold.
    halves = [several(entries[start : start + _PART]) for start in range(0, len(entries), _PART)]
    return enc(_CHARGE, statement.uses, statement.squared_norm, several(halves))


def read_charge(data: bytes, commitments: bytes) -> ChargeStatement:
    """Return the statement of `charge_bytes` about the commitments of an index.

    Args:
        data: as `charge_bytes` returned it.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.

    Raises:
        MalformedError: other bytes.
    """
    uses, squared, entries = decode(_CHARGE, data, 3)
    parts = (read_several(part) for part in read_several(entries))
    read = tuple(_read_entry(entry) for part in parts for entry in part)
    return ChargeStatement(read_int(uses), commitments, read, read_int(squared))


def _read_entry(data: bytes) -> ChargeEntry:
    context, query, threshold, filtered, allowed, before, charge = decode(_ENTRY, data, 7)
    return ChargeEntry(
        context,
        np.frombuffer(query, dtype="<i2").astype(np.int16),
        read_int(threshold),
        np.frombuffer(allowed, dtype=_POSITIONS).tolist() if read_int(filtered) else None,
        before,
        charge,
    )


def several(parts: Sequence[bytes]) -> bytes:
    """Return byte strings as one, which `read_several` takes apart.

    Args:
        parts: at most 65,535.
    """
    return enc(_SEVERAL, *parts)


def read_several(data: bytes) -> tuple[bytes, ...]:
    """Return the byte strings of `several`.

    Raises:
        MalformedError: other bytes.
    """
    at = len(enc(_SEVERAL)) - 2
    return decode(_SEVERAL, data, int.from_bytes(data[at : at + 2], "little"))


SQUARES: Final = 4
"""Entries behind the d of a row, which complete its norm (spec 2.6)."""

_PROOFS_TAG: Final = "ragaudit/v1/index/proofs"
_PROOFS_FIELDS: Final = 5 + SQUARES


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
        return enc(
            _PROOFS_TAG, proof, self.position, self.anchor, self.value, *self.squares, self.proof
        )


def split_proof(proof: bytes) -> tuple[bytes, NormOpening]:
    """Return pi_idx and the norm opening of an index's proof, the inverse of `beside`.

    Args:
        proof: as a provider sent it.

    Raises:
        MalformedError: any other bytes.
    """
    first, *numbers, last = decode(_PROOFS_TAG, proof, _PROOFS_FIELDS)
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
