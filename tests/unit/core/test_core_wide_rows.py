"""Rows of 16 bits: what B = 4095 needs, from completion to proofs."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ragaudit import core
from ragaudit.circuits.selection import select
from ragaudit.circuits.statements import IndexStatement, SelectionStatement

BOUND = 4095
CONTEXT = bytes(range(32))


def index(vectors: npt.NDArray[np.int16]) -> tuple[Any, Any, IndexStatement]:
    rows, blindings = core.complete_rows(vectors, BOUND**2), core.random_scalars(len(vectors))
    commitments = core.commit_rows(rows, blindings)
    count, dimension = vectors.shape
    return rows, blindings, IndexStatement(CONTEXT, count, dimension, commitments, BOUND**2)


def vectors(count: int, dimension: int, seed: int) -> npt.NDArray[np.int16]:
    reach = int(BOUND / dimension**0.5)
    random = np.random.default_rng(seed)
    return random.integers(-reach, reach, (count, dimension), endpoint=True).astype(np.int16)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.int16, st.tuples(st.integers(1, 9), st.integers(1, 9)),
                  elements=st.integers(-1365, 1365)))  # fmt: skip
def test_rows_are_completed_to_the_norm(rows: npt.NDArray[np.int16]) -> None:
    completed = core.complete_rows(rows, BOUND**2)
    assert completed.dtype == np.int16 and np.array_equal(completed[:, :-4], rows)
    wide = completed.astype(np.int64)
    assert (np.einsum("ij,ij->i", wide, wide) == BOUND**2).all()


def test_a_null_row_is_completed_by_b() -> None:
    null = core.complete_rows(np.zeros((1, 2), dtype=np.int16), BOUND**2)
    assert null.tolist() == [[0, 0, BOUND, 0, 0, 0]]


def test_narrow_rows_are_the_same_rows_in_16_bits() -> None:
    narrow = np.random.default_rng(0).integers(-40, 40, (6, 9)).astype(np.int8)
    rows, blindings = core.complete_rows(narrow), core.random_scalars(6)
    wide = rows.astype(np.int16)
    assert np.array_equal(core.complete_rows(narrow.astype(np.int16), 127**2), wide)
    commitments = core.commit_rows(rows, blindings)
    assert core.commit_rows(wide, blindings) == commitments
    statement = IndexStatement(CONTEXT, 6, 9, commitments)
    for each in (rows, wide):
        core.verify_index(statement, core.prove_index(statement, each, blindings))


@pytest.mark.parametrize(("count", "dimension"), [(2, 1), (3, 384), (40, 8), (1030, 2), (2, 3072)])
def test_honest_indexes_are_accepted(count: int, dimension: int) -> None:
    rows, blindings, statement = index(vectors(count, dimension, count))
    proof = core.prove_index(statement, rows, blindings)
    core.verify_index(statement, proof)
    with pytest.raises(core.ProofRejected):
        core.verify_index(statement, proof[:-32] + bytes(32))


@pytest.mark.parametrize("row", [[4094, 0, 0, 0, 0], [4095, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
def test_rows_of_another_norm_are_rejected(row: list[int]) -> None:
    rows, blindings = np.array([row], dtype=np.int16), core.random_scalars(1)
    commitments = core.commit_rows(rows, blindings)
    statement = IndexStatement(CONTEXT, 1, 1, commitments, BOUND**2)
    with pytest.raises(core.ProofRejected):
        core.verify_index(statement, core.prove_index(statement, rows, blindings))


def test_rows_that_no_bound_allows_are_malformed() -> None:
    rows, blindings = np.full((1, 5), 2**15 - 1, dtype=np.int16), core.random_scalars(1)
    statement = IndexStatement(CONTEXT, 1, 1, core.commit_rows(rows, blindings), BOUND**2)
    with pytest.raises(core.MalformedInput, match="too long to be completed"):
        core.prove_index(statement, rows, blindings)


def test_too_many_rows_are_refused() -> None:
    """N² B² (d + 4) < 2^82: at d = 3072, 9,682,393 rows and no more."""
    for count, allowed in ((9_682_393, True), (9_682_394, False)):
        statement = IndexStatement(CONTEXT, count, 3072, b"", BOUND**2)
        match = "commitments: 0 bytes" if allowed else "< 2\\^82"
        with pytest.raises(core.ProofRejected, match=match):
            core.verify_index(statement, b"")


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.integers(1, 9), st.integers(0, 99), st.booleans(), st.booleans())
def test_selections_of_wide_rows(
    count: int, dimension: int, seed: int, keeps_ties: bool, equal: bool
) -> None:
    chosen = vectors(count, dimension, seed)
    if equal:
        chosen[: count // 2] = chosen[-1]
    rows, blindings, stated = index(chosen)
    query = vectors(1, dimension, seed + 1)[0]
    noise = np.zeros(count, dtype=np.int64)
    scores = core.Scorer(chosen).scores(query)
    top_k = 1 + seed % (count - 1)
    right = select(scores, top_k, keep_ties=keeps_ties)
    blinding = core.random_scalars(1).tobytes()
    for selected in (
        right,
        tuple(sorted(set(right) ^ {0})),
        tuple(sorted(set(right) ^ {count - 1})),
    ):
        statement = SelectionStatement(
            CONTEXT, count, stated.commitments, query, noise, top_k,
            core.commit_selection(selected, blinding), None, BOUND**2, keeps_ties,
        )  # fmt: skip
        proof = core.prove_selection(statement, rows, blindings, selected, blinding)
        if selected == right:
            core.verify_selection(statement, proof)
        else:
            with pytest.raises(core.ProofRejected):
                core.verify_selection(statement, proof)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.tuples(st.integers(0, 40), st.integers(1, 64)))
def test_scores_of_wide_rows(data: st.DataObject, shape: tuple[int, int]) -> None:
    reach = int(BOUND / shape[1] ** 0.5)
    entries = st.integers(-reach, reach)
    rows = data.draw(hnp.arrays(np.int16, shape, elements=entries))
    query = data.draw(hnp.arrays(np.int16, shape[1], elements=entries))
    expected = rows.astype(np.int64) @ query.astype(np.int64)
    assert np.array_equal(core.Scorer(rows).scores(query), expected)


def test_scores_of_the_longest_rows() -> None:
    row = np.zeros(3072, dtype=np.int16)
    row[17] = BOUND
    rows = np.stack([row, -row])
    assert core.Scorer(rows).scores(row).tolist() == [BOUND**2, -(BOUND**2)]
    with pytest.raises(core.MalformedInput, match="row 1: squared norm of 2\\^24 or more"):
        core.Scorer(np.array([[0, 1], [4096, 0]], dtype=np.int16))
    with pytest.raises(core.MalformedInput, match="too large for exact scores"):
        core.Scorer(rows).scores(np.full(3072, 74, dtype=np.int16))
