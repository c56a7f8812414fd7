"""Honest proofs are accepted, whatever the shape; anything else is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_honest_records_are_accepted(
    data: st.DataObject, make_index: Callable[..., Any], make_record: Callable[..., Any]
) -> None:
    count = data.draw(st.integers(2, 14), "N")
    index = make_index(count, data.draw(st.integers(1, 9), "d"), data.draw(st.integers(0, 9)))
    allowed = data.draw(
        st.none() | st.lists(st.integers(0, count - 1), unique=True).map(tuple), "allowed"
    )
    record = make_record(
        index,
        data.draw(st.integers(0, 99), "seed"),
        top_k=data.draw(st.integers(1, count - 1), "K"),
        spread=data.draw(st.sampled_from([0, 1, 10_000, 50_000, 10**9]), "spread"),
        allowed=allowed,
    )
    record.verify(record.prove())


@settings(max_examples=60, deadline=None)
@given(selected=st.sets(st.integers(0, 6)))
def test_only_the_right_selection_is_accepted(selected: set[int], record: Any) -> None:
    changed = type(record)(**{**vars(record), "selected": tuple(sorted(selected))})
    if changed.selected == record.selected:
        changed.verify(changed.prove())
    else:
        with pytest.raises(core.ProofRejected):
            changed.verify(changed.prove())


@settings(max_examples=80, deadline=None)
@given(position=st.integers(min_value=0), bit=st.integers(0, 7))
def test_no_changed_bit_is_accepted(position: int, bit: int, record: Any, proof: bytes) -> None:
    changed = bytearray(proof)
    changed[position % len(proof)] ^= 1 << bit
    with pytest.raises(core.ProofRejected):
        record.verify(bytes(changed))


@settings(max_examples=30, deadline=None)
@given(position=st.integers(min_value=0), bit=st.integers(0, 7))
def test_no_changed_bit_of_an_index_proof_is_accepted(
    position: int, bit: int, index: Any, index_proof: bytes
) -> None:
    changed = bytearray(index_proof)
    changed[position % len(index_proof)] ^= 1 << bit
    with pytest.raises(core.ProofRejected):
        core.verify_index(index.statement(), bytes(changed))


@pytest.mark.parametrize(("count", "dimension"), [(2, 1), (3, 8), (70, 3), (1025, 2)])
def test_honest_indexes_are_accepted(
    count: int, dimension: int, make_index: Callable[..., Any]
) -> None:
    index = make_index(count, dimension, seed=count)
    proof = core.prove_index(index.statement(), index.rows, index.blindings)
    core.verify_index(index.statement(), proof)


def test_long_integers_prove_the_same_index(index: Any) -> None:
    rows = index.rows.astype(np.int64)
    proof = core.prove_index(index.statement(), rows, index.blindings)
    core.verify_index(index.statement(), proof)


def test_a_row_of_norm_128_is_rejected() -> None:
    rows = core.complete_rows(np.array([[3, 4], [100, 5]], dtype=np.int8))
    rows[1] = [0, 0, 0, 0, 0, -128]
    blindings = core.random_scalars(2)
    commitments = core.commit_rows(rows, blindings)
    statement = IndexStatement(bytes(32), 2, 2, commitments)
    proof = core.prove_index(statement, rows, blindings)
    with pytest.raises(core.ProofRejected, match="equation does not hold"):
        core.verify_index(statement, proof)


@pytest.mark.parametrize("entry", [2**43, -(2**62), 2**63 - 1])
def test_a_row_beyond_any_projection_is_rejected(entry: int, index: Any) -> None:
    rows = index.rows.astype(np.int64)
    rows[2, 1] = entry
    proof = core.prove_index(index.statement(), rows, index.blindings)
    with pytest.raises(core.ProofRejected):
        core.verify_index(index.statement(), proof)


def test_trailing_and_missing_bytes_are_rejected(
    record: Any, proof: bytes, index: Any, index_proof: bytes
) -> None:
    for changed in (b"", proof[:-1], proof[:-32], proof + b"\0", proof + bytes(32)):
        with pytest.raises(core.ProofRejected, match=r"bytes, expected \d+"):
            record.verify(changed)
    for changed in (b"", index_proof[:-1], index_proof[:-32], index_proof + bytes(32)):
        with pytest.raises(core.ProofRejected, match=r"bytes, expected \d+"):
            core.verify_index(index.statement(), changed)


def test_a_proof_is_bound_to_its_statement(record: Any, proof: bytes) -> None:
    record.verify(proof)
    noise = record.noise.copy()
    noise[record.selected[0]] += 1
    query = record.query.copy()
    query[0] -= np.sign(query[0]) or 1
    changes: list[dict[str, Any]] = [
        {"context": bytes(32)},
        {"noise": noise},
        {"query": query},
        {"top_k": record.top_k + 1},
        {"allowed": tuple(range(record.index.count - 1))},
        {"squared_norm": core.SQUARED_NORM - 1},
        {"selection_commitment": core.commit_selection(record.selected, bytes(32))},
        {"commitments": record.index.commitments[32:] + record.index.commitments[:32]},
    ]
    for change in changes:
        with pytest.raises(core.ProofRejected):
            record.verify(proof, **change)


def test_the_order_of_a_filter_does_not_matter(index: Any, make_record: Callable[..., Any]) -> None:
    record = make_record(index, 5, allowed=(0, 2, 3, 6))
    proof = record.prove(allowed=(6, 2, 0, 3))
    record.verify(proof, allowed=[3, 6, 0, 2])


def test_two_proofs_of_one_record_share_no_element(record: Any) -> None:
    first, second = record.prove(), record.prove()
    assert all(first[i : i + 32] != second[i : i + 32] for i in range(0, len(first), 32))


def test_a_batch_names_the_rejected(record: Any, proof: bytes) -> None:
    good = record.proven(proof)
    bad = record.proven(bytes([proof[0] ^ 1]) + proof[1:])
    core.verify_selections([])
    core.verify_selections([good, record.proven(proof), good])
    with pytest.raises(core.ProofRejected, match=r"proof 1: .*; proof 3: ") as caught:
        core.verify_selections([good, bad, good, (replace(good[0], top_k=3), good[1])])
    assert caught.value.failed == [1, 3]


def test_commitments_are_homomorphic_in_the_blinding_only(index: Any) -> None:
    again = core.commit_rows(index.rows, index.blindings)
    assert again == index.commitments
    other = core.commit_rows(index.rows, core.random_scalars(index.count))
    assert all(other[i : i + 32] != again[i : i + 32] for i in range(0, len(again), 32))


def test_completed_rows_have_squared_norm_b2(index: Any) -> None:
    norms = (index.rows.astype(np.int64) ** 2).sum(axis=1)
    assert (norms == core.SQUARED_NORM).all()
    null = core.complete_rows(np.zeros((1, 3), dtype=np.int8))
    assert null.tolist() == [[0, 0, 0, 127, 0, 0, 0]]


def test_random_scalars_are_canonical_and_fresh() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    values = [int.from_bytes(row.tobytes(), "little") for row in core.random_scalars(200)]
    assert len(set(values)) == 200
    assert max(values) < order
    # P[all 200 below order / 2] = 2^-200.
    assert max(values) > order // 2
    assert core.random_scalars(0).shape == (0, 32)
