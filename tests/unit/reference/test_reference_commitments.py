"""Recomputing commitments from openings."""

from __future__ import annotations

import pytest
import ragaudit.verifier.reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.lab.attacks.forging import selection_prover as prover
from ragaudit.verifier.reference.commitments import commit_row, commit_selection
from ragaudit.verifier.reference.field import ORDER, le
from ragaudit.verifier.reference.generators import generator
from ragaudit.verifier.reference.ristretto import add, decode, encode, negate

blindings = st.integers(0, ORDER - 1)


def test_rows_agree_with_the_provers_commitments() -> None:
    index = prover.commit_rows(reference, [[1, -2, 3], [0, 0, 0], [-126, 5, 7]])
    for i, (row, blinding) in enumerate(zip(index.completed, index.blindings, strict=True)):
        assert commit_row(row, le(blinding, 32)) == index.commitments[32 * i : 32 * (i + 1)]


def test_a_unit_row_is_a_generator() -> None:
    assert commit_row([0, 1, 0, 0, 0], bytes(32)) == encode(generator("G", 1))
    assert commit_row([0], le(1, 32)) == encode(generator("H"))


@settings(max_examples=10, deadline=None)
@given(st.sets(st.integers(0, 2**32 - 1), max_size=5), blindings)
def test_selections_agree_with_the_provers_commitments(positions: set[int], blinding: int) -> None:
    expected = prover.commit_selection(reference, sorted(positions), blinding)
    assert commit_selection(sorted(positions, reverse=True), le(blinding, 32)) == expected


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=5), blindings, blindings)
def test_rows_are_linear(row: list[int], a: int, b: int) -> None:
    opposite = commit_row([-value for value in row], le(b, 32))
    total = add(decode(commit_row(row, le(a, 32))), decode(opposite))
    rest = decode(commit_row([0], le((a + b) % ORDER, 32)))
    assert encode(add(total, negate(rest))) == bytes(32)


@pytest.mark.parametrize("positions", [[1, 1], [-1], [2**32]])
def test_positions_are_checked(positions: list[int]) -> None:
    with pytest.raises(reference.InvalidStatement):
        commit_selection(positions, bytes(32))


@pytest.mark.parametrize("blinding", [b"", bytes(31), bytes(33), le(ORDER, 32)])
def test_blindings_are_canonical(blinding: bytes) -> None:
    with pytest.raises(reference.MalformedProof):
        commit_row([1], blinding)
    with pytest.raises(reference.MalformedProof):
        commit_selection([1], blinding)


def test_an_empty_row_is_refused() -> None:
    with pytest.raises(reference.InvalidStatement):
        commit_row([], bytes(32))
