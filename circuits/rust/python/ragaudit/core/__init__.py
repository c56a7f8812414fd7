"""Compiled proof core: commitments, arguments (docs/spec/04-arguments.md), noise, coalitions.

The statements, messages and encodings are those of the specification of the arguments; the
sampler's are docs/spec/03-noise.md. Verification raises or returns None. Secrets never appear in
a message. Every function releases the interpreter lock while it computes, uses all cores, and
can be interrupted by Ctrl-C. The worker threads do not survive os.fork: start processes by spawn.

Errors:
    MalformedInput: the caller broke the contract (type, shape, range, encoding of its own data).
    ProofRejected: the statement's public conditions do not hold or the proof does not prove it.
    Cancelled: the progress callback returned False.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import overload

import numpy as np
import numpy.typing as npt
from ragaudit.core import _core
from ragaudit.core._arrays import (
    ENTRIES,
    SCALAR_BYTES,
    Rows,
    array_bytes,
    exact_bytes,
    integer,
    positions,
    scalars_bytes,
)
from ragaudit.core._budgets import (
    BudgetStatement,
    ChargeEntry,
    ChargeStatement,
    prove_budget,
    prove_charges,
    running_sums,
    verify_budget,
    verify_charges,
)
from ragaudit.core._coalition import link_accounts
from ragaudit.core._core import (
    KNOWN_POSITIONS,
    SQUARED_NORM,
    Cancelled,
    CoreError,
    MalformedInput,
    ProofRejected,
)
from ragaudit.core._statements import (
    CheckedIndex,
    CheckedSelection,
    CheckedTies,
    IndexStatement,
    SelectionStatement,
    TiesStatement,
)

__all__ = [
    "KNOWN_POSITIONS",
    "SQUARED_NORM",
    "BudgetStatement",
    "Cancelled",
    "ChargeEntry",
    "ChargeStatement",
    "CoreError",
    "IndexStatement",
    "MalformedInput",
    "Progress",
    "ProofRejected",
    "Scorer",
    "SelectionStatement",
    "TiesStatement",
    "commit_marked",
    "commit_rows",
    "commit_selection",
    "complete_rows",
    "generator",
    "link_accounts",
    "position_encodings",
    "prove_budget",
    "prove_charges",
    "prove_index",
    "prove_selection",
    "prove_ties",
    "quantise",
    "random_scalars",
    "reblind_rows",
    "running_sums",
    "sample_noise",
    "scores_of",
    "transcript_trace",
    "use_positions",
    "verify_budget",
    "verify_charges",
    "verify_index",
    "verify_selection",
    "verify_selections",
    "verify_ties",
]

Progress = Callable[[float], bool | None]
"""Called with the done share in [0, 1] from time to time; returning False cancels."""

Scalars = npt.NDArray[np.uint8]

COMPLETION = 4
"""Entries that complete a row to squared norm exactly B²."""


def generator(list: str, index: int) -> bytes:  # noqa: A002 - the specification's word
    """Return gen(list, index) of docs/spec/04-arguments.md, 32 bytes.

    Args:
        list: a name of §4.2 there.
        index: 0 <= index < 2^64.

    Raises:
        MalformedInput: no such list or index.
    """
    return _core.generator(list, integer(index, "index"))


def position_encodings(count: int = KNOWN_POSITIONS) -> bytes:
    """Return the encodings of A_0 .. A_(count - 1), 32 bytes each.

    Args:
        count: below 2^32; each costs 20 microseconds of CPU time.
    """
    return _core.position_encodings(integer(count, "count", 32))


def use_positions(encodings: bytes) -> None:
    """Decode A_0 .. A_(2^20 - 1) from these bytes from now on, instead of deriving each.

    They are constants: the digest of the right bytes is compiled in. They stay in memory, 32 MiB.

    Raises:
        MalformedInput: any other bytes.
    """
    _core.use_positions(exact_bytes(encodings, "encodings"))


def transcript_trace(
    argument: str, operations: Sequence[tuple[str, str, bytes, int]]
) -> list[tuple[bytes, bytes]]:
    """Return the states of a transcript through steps (operation, tag, message, count).

    Args:
        argument: whose transcript it is.
        operations: "absorb" (uses message), "scalar" and "bits" (uses count).

    Returns:
        For the start and after each step, the 64-byte state and the challenge: a scalar's 32 bytes,
        or ceil(count/8) bytes of packed bits.
    """
    return _core.transcript_trace(argument, operations)


def random_scalars(count: int) -> Scalars:
    """Return uint8[count, 32]: uniform canonical scalars from operating-system entropy."""
    data = _core.random_scalars(integer(count, "count", 32))
    # An array over bytes would be read-only; hence the copy, here and below.
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, SCALAR_BYTES).copy()


@overload
def complete_rows(
    vectors: npt.NDArray[np.int8], squared_norm: int = SQUARED_NORM
) -> npt.NDArray[np.int8]: ...


@overload
def complete_rows(vectors: Rows, squared_norm: int = SQUARED_NORM) -> Rows: ...


def complete_rows(vectors: Rows, squared_norm: int = SQUARED_NORM) -> Rows:
    """Return the rows with four squares appended, so that each squared norm is B².

    Args:
        vectors: int8[N, d] for B <= 127, or int16[N, d], d >= 1.
        squared_norm: B² of the policy, 1 <= 4B² < 2^26.

    Returns:
        [N, d + 4] of the same type.

    Raises:
        MalformedInput: a squared norm exceeds B², the type does not hold B, or d = 0.
    """
    data = array_bytes(vectors, "vectors", ENTRIES, 2)
    count, dimension = vectors.shape
    largest = integer(squared_norm, "squared_norm", 32)
    rows = _core.complete_rows(data, vectors.dtype.itemsize, dimension, largest)
    little: npt.DTypeLike = vectors.dtype.newbyteorder("<")
    completed: Rows = np.frombuffer(rows, dtype=little).astype(vectors.dtype)
    return completed.reshape(count, dimension + COMPLETION)


def commit_rows(rows: Rows, blindings: Scalars, *, progress: Progress | None = None) -> bytes:
    """Return C_i = sum_j rows[i, j] G_j + blinding_i H, 32 bytes each.

    Args:
        rows: int8[N, d + 4] or int16[N, d + 4]; any entries, no norm is checked.
        blindings: uint8[N, 32], canonical scalars.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type or shape, or a scalar that is not canonical.
        Cancelled: ``progress`` returned False.
    """
    data = array_bytes(rows, "rows", ENTRIES, 2)
    secret = scalars_bytes(blindings, "blindings", rows.shape[0])
    return _core.commit_rows(data, rows.dtype.itemsize, rows.shape[1], secret, progress)


def reblind_rows(
    commitments: bytes, old: Scalars, new: Scalars, *, progress: Progress | None = None
) -> bytes:
    """Return C_i + (new_i - old_i) H: the same rows under new blindings, without committing anew.

    Args:
        commitments: 32 N bytes.
        old, new: uint8[N, 32], canonical scalars: present and future blindings.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type or shape, or bytes that are not canonical.
        Cancelled: ``progress`` returned False.
    """
    count = len(exact_bytes(commitments, "commitments")) // SCALAR_BYTES
    before, after = scalars_bytes(old, "old", count), scalars_bytes(new, "new", count)
    return _core.reblind_rows(commitments, before, after, progress)


def prove_index(
    statement: IndexStatement,
    rows: Rows | npt.NDArray[np.int64],
    blindings: Scalars,
    *,
    progress: Progress | None = None,
) -> bytes:
    """Return an index proof: every committed row is an integer vector of squared norm B².

    Runs on any rows; a proof for rows of another norm, or other than the committed ones, is
    rejected. int64 rows are slower and use more memory.

    Args:
        statement: about the commitments to these rows.
        rows: int8[N, d + 4], int16 (norms of at most 4095), or int64; N >= 1.
        blindings: uint8[N, 32], canonical scalars.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type, shape or range.
        Cancelled: ``progress`` returned False.
    """
    checked = CheckedIndex.of(statement)
    data = array_bytes(rows, "rows", [*ENTRIES, np.int64], 2)
    shape = (checked.rows, checked.dimension + COMPLETION)
    if rows.shape != shape:
        raise MalformedInput(f"rows: shape {rows.shape}, expected {shape}")
    secret = scalars_bytes(blindings, "blindings", checked.rows)
    return _core.prove_index(checked, data, rows.dtype.itemsize, secret, progress)


def verify_index(
    statement: IndexStatement, proof: bytes, *, progress: Progress | None = None
) -> None:
    """Check an index proof ("index/v2").

    Raises:
        MalformedInput: another type or length.
        ProofRejected: the statement's public conditions do not hold, or the proof is not valid.
        Cancelled: ``progress`` returned False.
    """
    _core.verify_index(CheckedIndex.of(statement), exact_bytes(proof, "proof"), progress)


def commit_selection(selected: Sequence[int], blinding: bytes) -> bytes:
    """Return B_sel = sum of A_i over the selected positions + blinding H, 32 bytes.

    Args:
        selected: distinct positions below 2^32, in any order.
        blinding: a canonical scalar, 32 bytes.

    Raises:
        MalformedInput: a position twice or out of range, or a scalar that is not canonical.
    """
    secret = exact_bytes(blinding, "blinding", SCALAR_BYTES)
    return _core.commit_selection(positions(selected, "selected"), secret)


def prove_selection(
    statement: SelectionStatement,
    rows: Rows,
    blindings: Scalars,
    selected: Sequence[int],
    selection_blinding: bytes,
    *,
    progress: Progress | None = None,
) -> bytes:
    """Return a selection proof: `selected` is { i allowed : y_i > y_(K+1) }.

    Here y_i = <query, X_i> + noise_i; where the statement keeps ties, the set is
    { i allowed : y_i >= y_(K) } (docs/spec 4.6.9). Runs on any `selected`; if it is not that set
    (or not all allowed rows when at most K are allowed), or not what the statement's B_sel holds,
    the proof is rejected.

    Args:
        statement: about the commitments to these rows and to this selection.
        rows, blindings: of the index, as in :func:`prove_index`; int8 or int16 rows.
        selected: distinct positions below N.
        selection_blinding: canonical scalar of B_sel, 32 bytes.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type, shape or range.
        Cancelled: ``progress`` returned False.
    """
    checked = CheckedSelection.of(statement)
    data = array_bytes(rows, "rows", ENTRIES, 2)
    return _core.prove_selection(
        checked,
        (data, rows.dtype.itemsize),
        scalars_bytes(blindings, "blindings", rows.shape[0]),
        positions(selected, "selected"),
        exact_bytes(selection_blinding, "selection_blinding", SCALAR_BYTES),
        progress,
    )


def verify_selection(statement: SelectionStatement, proof: bytes) -> None:
    """Check a selection proof over N commitments whose index proof was accepted.

    Raises:
        MalformedInput: another type or length.
        ProofRejected: the statement's public conditions do not hold, or the proof is not valid.
    """
    _core.verify_selection(CheckedSelection.of(statement), exact_bytes(proof, "proof"))


def verify_selections(
    proven: Sequence[tuple[SelectionStatement, bytes]], *, progress: Progress | None = None
) -> None:
    """Check many selection proofs by one random linear combination, on all cores.

    Args:
        proven: statements, each with its proof.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type or length.
        ProofRejected: its `failed` holds the rising indices of the rejected proofs.
        Cancelled: ``progress`` returned False.
    """
    checked = [
        (CheckedSelection.of(statement), exact_bytes(proof, "proof")) for statement, proof in proven
    ]
    _core.verify_selections(checked, progress)


def prove_ties(
    statement: TiesStatement,
    rows: Rows,
    blindings: Scalars,
    *,
    progress: Progress | None = None,
) -> bytes:
    """Return a ties opening: the answer holds the first rows of T (docs/spec 4.6.10).

    Runs on any rows; unless they have the scores that the statement says, and are those of its
    commitments, the proof is rejected.

    Args:
        statement: about an answer of which T has more than K rows.
        rows, blindings: of the whole index, as in :func:`prove_selection`; only those of the
            withdrawn rows and the others are read.
        progress: see `Progress`.

    Raises:
        MalformedInput: another type, shape or range, or an order that V would refuse.
        Cancelled: ``progress`` returned False.
    """
    checked = CheckedTies.of(statement)
    array_bytes(rows, "rows", ENTRIES, 2)
    scalars_bytes(blindings, "blindings", rows.shape[0])
    opened = checked.unserved()
    if opened and opened[-1] >= rows.shape[0]:
        raise MalformedInput(f"rows: {rows.shape[0]}, expected one at position {opened[-1]}")
    data = array_bytes(rows[opened], "rows", ENTRIES, 2)
    secret = scalars_bytes(blindings[opened], "blindings", len(opened))
    return _core.prove_ties(checked, data, rows.dtype.itemsize, secret, progress)


def verify_ties(statement: TiesStatement, proof: bytes) -> None:
    """Check a ties opening over commitments whose index proof was accepted.

    Raises:
        MalformedInput: another type or length.
        ProofRejected: the statement's public conditions do not hold, or the proof is not valid.
    """
    _core.verify_ties(CheckedTies.of(statement), exact_bytes(proof, "proof"))


def sample_noise(
    thresholds: bytes, factor: int, levels: int, key: bytes, count: int
) -> npt.NDArray[np.int64]:
    """Return int64[count]: discrete Gaussian noise under `key` (docs/spec/03-noise.md §3.4).

    Args:
        thresholds: the table's 2w thresholds, 16 bytes little endian each, rising.
        factor: K of the convolution.
        levels: L, 0 for a direct table.
        key: 32 bytes.
        count: at most 2^38 bytes of key stream, 16 (L + 1) per sample.

    Raises:
        MalformedInput: another type, length or range.
    """
    sampler = _sampler(
        exact_bytes(thresholds, "thresholds"),
        integer(factor, "factor"),
        integer(levels, "levels", 32),
    )
    data = sampler.sample(exact_bytes(key, "key", 32), integer(count, "count"))
    return np.frombuffer(data, dtype="<i8").astype(np.int64, copy=False)


class Scorer:
    """Exact scores of all rows of an index, whose vectors it keeps, and the best of them.

    The same as `scores` and `select` of ragaudit.circuits.selection, many times as fast. Questions
    that come together read the rows once.
    """

    def __init__(self, vectors: Rows) -> None:
        """Copy the vectors, int8[N, d] or int16[N, d]; beside int16 rows four bytes a row are kept.

        Raises:
            MalformedInput: another type or shape, or an int16 row of squared norm 2^24 or more.
        """
        data = array_bytes(vectors, "vectors", ENTRIES, 2)
        self._count, self._width = vectors.shape
        # A copy: the caller may write to its array between two queries.
        self._rows = _core.ScoredRows(data, vectors.dtype.itemsize, self._width)

    def scores(self, query: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
        """Return int64[N]: the inner products of all rows with the query.

        Args:
            query: int16[d]; for int8 rows with 128 sum |e_j| < 2^31 (norm at most 127 and d <= 4096
                give less than 2^20), for int16 rows with a squared norm below 2^24.

        Raises:
            MalformedInput: another type, length or size.
        """
        data = array_bytes(query, "query", [np.int16], 1)
        self._check_width(len(query))
        return self._rows.scores(data)

    def scores_many(self, queries: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
        """Return int64[Q, N]: the inner products of all rows with each query.

        Args:
            queries: int16[Q, d], each as in `scores`.

        Raises:
            MalformedInput: another type, shape or size.
        """
        data = array_bytes(queries, "queries", [np.int16], 2)
        self._check_width(queries.shape[1])
        return self._rows.scores(data).reshape(len(queries), self._count)

    def select_exactly(
        self,
        queries: npt.NDArray[np.int16],
        top_k: Sequence[int],
        allowed: Sequence[npt.NDArray[np.int64] | None] | None = None,
    ) -> list[npt.NDArray[np.int64]]:
        """Return for each query T without noise: int64, positions, rising, ties kept (spec 4.6.9).

        How many rows are scored follows from N and K, but where too many are about as near as the
        K-th: then all are (docs/notes/zero-knowledge.md §5).

        Args:
            queries: int16[Q, d], each as in `scores`.
            top_k: K >= 1 of each query.
            allowed: the rows that pass the filter of each query, int64, rising positions; None for
                all.

        Raises:
            MalformedInput: another type, shape or size, K < 1, positions that do not rise or are
                out of range.
        """
        data = array_bytes(queries, "queries", [np.int16], 2)
        self._check_width(queries.shape[1])
        filters = [None] * len(queries) if allowed is None else allowed
        if not len(queries) == len(top_k) == len(filters):
            raise MalformedInput(f"top_k, allowed: expected one for each of {len(queries)} queries")
        for each in filters:
            if each is not None:
                array_bytes(each, "allowed", [np.int64], 1)
        return self._rows.best(data, [integer(each, "top_k", 32) for each in top_k], filters)

    def _check_width(self, width: int) -> None:
        if width != self._width:
            raise MalformedInput(f"query: {width} entries, expected {self._width}")


def scores_of(
    rows: npt.NDArray[np.int8], positions: npt.NDArray[np.int64], query: npt.NDArray[np.int16]
) -> npt.NDArray[np.int64]:
    """Return int64: the inner products of some rows with the query, in the order of ``positions``.

    Args:
        rows: int8[N, w], w >= d: the first d entries of a row count.
        positions: int64, of rows; each may occur several times.
        query: int16[d] with 128 sum |e_j| < 2^31.

    Raises:
        MalformedInput: another type, shape or size, or a position out of range.
    """
    data = array_bytes(rows, "rows", [np.int8], 2)
    array_bytes(positions, "positions", [np.int64], 1)
    return _core.scores_of(
        data, rows.shape[1], positions, array_bytes(query, "query", [np.int16], 1)
    )


def quantise(vector: npt.NDArray[np.float64], norm_bound: int) -> npt.NDArray[np.int16]:
    """Return int16[d]: the integers of a vector, of norm at most B (docs/spec/02-integers.md §2.1).

    The same as ragaudit.circuits.quantise, several times as fast. The interpreter lock is held.

    Args:
        vector: float64[d], finite and not all zero, 1 <= d <= 4096.
        norm_bound: B, from 1 and below 2^15.

    Raises:
        MalformedInput: another type, length or number.
    """
    data = array_bytes(vector, "vector", [np.float64], 1)
    integers = np.frombuffer(_core.quantise(data, integer(norm_bound, "norm_bound", 15)), "<i2")
    return integers.astype(np.int16)


@lru_cache(maxsize=16)
def _sampler(thresholds: bytes, factor: int, levels: int) -> _core.NoiseSampler:
    """Return the sampler of a table, which is public; making one takes longer than a short draw."""
    return _core.NoiseSampler(thresholds, factor, levels)


def commit_marked(marks: npt.NDArray[np.bool_], blinding: bytes) -> bytes:
    """Return the sum of A_i over the marked rows + blinding H, 32 bytes, as `commit_selection`.

    It takes a time that depends on the number of rows only, and not on that of marks. The first
    call for so many rows takes seconds, and keeps at most 57 MB of tables.

    Args:
        marks: bool[N], whether a row is one of them, N <= 2^32.
        blinding: a canonical scalar, 32 bytes.

    Raises:
        MalformedInput: another type or shape, or a scalar that is not canonical.
    """
    secret = exact_bytes(blinding, "blinding", 32)
    return _core.commit_marked(array_bytes(marks, "marks", [np.bool_], 1).tobytes(), secret)
