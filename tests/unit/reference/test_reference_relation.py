"""The relation has exactly one solution, the specified selection; commitments from openings."""

from __future__ import annotations

import random
from itertools import product

import pytest
import ragaudit.verifier.reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.lab.attacks.forging import selection_prover as prover
from ragaudit.verifier.reference.commitments import commit_row, commit_selection
from ragaudit.verifier.reference.field import ORDER, le, powers
from ragaudit.verifier.reference.generators import generator
from ragaudit.verifier.reference.ristretto import add, decode, encode, negate
from ragaudit.verifier.reference.selection import summand
from ragaudit.verifier.reference.statement import Statement

CHALLENGE = random.Random(0).randrange(ORDER)


def holds(statement: Statement, b: int, b3: int, b4: int, Y: int) -> bool:
    """Whether the constraints hold on one row, with the only bits that could satisfy the last."""
    value = Y if b else -1 - Y
    bits = statement.distance_bits
    if not 0 <= value < 2**bits:
        return False
    u = [value >> k & 1 for k in range(bits)]
    alpha = powers(CHALLENGE, bits + 8)
    return summand(alpha, 1, 0, b, b3, b4, u, Y, statement.ties) == 0


def solutions(statement: Statement, y: list[int]) -> set[tuple[int, ...]]:
    """Every b over U that some threshold, b3 and b4 complete."""
    remaining = statement.top_k - len(statement.F)
    found = set()
    # The sum of b3 is 1, and where b3 is 1 the threshold is the score, or the next integer.
    above, sign = (0, -1) if statement.ties else (1, 1)
    for tau in {y[i] + above for i in statement.U}:
        options = [
            [
                (b, b3, b4)
                for b, b3, b4 in product((0, 1), repeat=3)
                if holds(statement, b, b3, b4, y[i] - tau)
            ]
            for i in statement.U
        ]
        for rows in product(*options):
            counted = sum(b + sign * b4 for b, _, b4 in rows)
            if sum(b3 for _, b3, _ in rows) == 1 and counted == remaining:
                found.add(tuple(b for b, _, _ in rows))
    return found


@pytest.mark.parametrize("norm", [127**2, 4095**2])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_exactly_the_specified_selection_satisfies_the_relation(
    seed: int, ties: bool, norm: int
) -> None:
    rng = random.Random(seed)
    scores = [-norm, -1, 0, 1, norm]
    noises = [k * norm + offset for k in (-5, -3, -2, -1, 0, 1, 2, 3, 5) for offset in (-1, 0, 1)]
    for _ in range(200):
        N = rng.randint(2, 5)
        noise = [0] * N if ties and rng.random() < 0.3 else [rng.choice(noises) for _ in range(N)]
        y = [z + rng.choice(scores) for z in noise]
        allowed = sorted(rng.sample(range(N), rng.randint(2, N)))
        top_k = rng.randint(1, len(allowed) - 1)
        statement = Statement(
            context=bytes(32),
            rows=N,
            commitments=bytes(32 * N),
            query=(0,),
            noise=tuple(noise),
            top_k=top_k,
            selection=bytes(32),
            allowed=allowed,
            squared_norm=norm,
            ties=ties,
        )
        falling = sorted((y[i] for i in allowed), reverse=True)
        lowest = falling[top_k - 1] if ties else falling[top_k] + 1
        selected = {i for i in allowed if y[i] >= lowest}
        assert set(statement.F) <= selected <= set(statement.F) | set(statement.U)
        expected = tuple(int(i in selected) for i in statement.U)
        assert solutions(statement, y) == {expected}
        f, u = len(statement.F), len(statement.U)
        assert f <= top_k - ties and u >= 1 and f + u >= top_k + (not ties)


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
