"""Rows that are no short integer vectors, and the rules of the index argument that keep them out.

For each: the prover runs the argument on the rows; a verifier without the rule accepts, the
reference verifier refuses that proof and also the best proof made for itself.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import ragaudit.verifier.reference as reference
import reference_mutants as mutants
from ragaudit.lab.attacks.forging import index_prover as prover
from ragaudit.lab.attacks.forging.index_prover import Claim
from ragaudit.lab.attacks.forging.selection_prover import four_squares
from ragaudit.verifier.reference.field import ORDER, inverse
from reference_mutants import Mutant

pytestmark = pytest.mark.slow

CONTEXT = bytes(range(32))
BLINDING = 0x1D3A
SQUARED_NORM = 127**2


def verify(package: Any, width: int, commitments: bytes, proof: bytes) -> None:
    package.verify_index(CONTEXT, len(commitments) // 32, width - 4, commitments, proof)


def check_attack(mutant: Mutant, folder: Path, row: list[int], adapted: Claim) -> None:
    package: ModuleType = mutant.load(folder)
    commitments, proof = prover.prove_index(reference, CONTEXT, [row], [BLINDING], adapted)
    verify(package, len(row), commitments, proof)
    own = prover.prove_index(reference, CONTEXT, [row], [BLINDING])[1]
    for attempt in (proof, own):
        with pytest.raises(reference.ProofRejected):
            verify(reference, len(row), commitments, attempt)


def dot(left: list[int], right: list[int]) -> int:
    return sum(x * y for x, y in zip(left, right, strict=True)) % ORDER


def scale(rng: random.Random, vector: list[int]) -> list[int]:
    factor = rng.randrange(ORDER)
    return [factor * v for v in vector]


def square_root(value: int) -> int | None:
    """A root modulo the group order, which is 5 modulo 8; None for a non-residue."""
    root = pow(value, (ORDER + 3) // 8, ORDER)
    for candidate in (root, root * pow(2, (ORDER - 1) // 4, ORDER) % ORDER):
        if candidate * candidate % ORDER == value % ORDER:
            return candidate
    return None


def of_norm_b(a: list[int], b: list[int]) -> list[int] | None:
    """A point of the line a + s b whose squared norm is B² modulo the order."""
    aa, ab, bb = dot(a, a), dot(a, b), dot(b, b)
    root = square_root((ab * ab - bb * (aa - SQUARED_NORM)) % ORDER)
    if root is None:
        return None
    s = (root - ab) * inverse(bb % ORDER)
    return [(x + s * y) % ORDER for x, y in zip(a, b, strict=True)]


def wrapped(span: list[list[int]], rng: random.Random) -> list[int]:
    """A combination of ``span`` with squared norm B² modulo the order and huge entries."""
    while True:
        a, b = (
            [sum(column) % ORDER for column in zip(*scaled, strict=True)]
            for scaled in ([scale(rng, vector) for vector in span] for _ in range(2))
        )
        row = of_norm_b(a, b)
        if row is not None:
            assert dot(row, row) == SQUARED_NORM
            assert min(min(v, ORDER - v) for v in row) > 2**43
            return row


def kernel(equations: list[list[int]], width: int) -> list[list[int]]:
    """A basis of the solutions of the homogeneous equations modulo the order."""
    rows = [list(row) for row in equations]
    pivots: list[int] = []
    for column in range(width):
        at = len(pivots)
        found = next((i for i in range(at, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        factor = inverse(rows[at][column])
        rows[at] = [v * factor % ORDER for v in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[column]:
                head = row[column]
                rows[i] = [(v - head * p) % ORDER for v, p in zip(row, rows[at], strict=True)]
        pivots.append(column)
    basis = []
    for free in sorted(set(range(width)) - set(pivots)):
        solution = [0] * width
        solution[free] = 1
        for row, pivot in zip(rows, pivots, strict=False):
            solution[pivot] = -row[free] % ORDER
        basis.append(solution)
    return basis


def test_an_honest_row_is_accepted() -> None:
    vector = [3, -4, 100, 60]
    row = [*vector, *four_squares(SQUARED_NORM - sum(v * v for v in vector))]
    commitments, proof = prover.prove_index(reference, CONTEXT, [row], [BLINDING])
    verify(reference, len(row), commitments, proof)


def test_without_the_norm_a_row_is_ten_times_too_long(tmp_path: Path) -> None:
    check_attack(mutants.INDEX_NORM, tmp_path, [1270, 0, 0, 0, 0, 0], Claim(dropped=14))


def test_without_the_projections_a_row_wraps_around(tmp_path: Path) -> None:
    unit = [[int(i == j) for j in range(6)] for i in range(6)]
    row = wrapped(unit, random.Random(4))
    check_attack(mutants.INDEX_RANGE, tmp_path, row, Claim(dropped=15))


def test_projections_known_beforehand_are_avoided(tmp_path: Path) -> None:
    width = 200
    _, projections = prover.begin(reference, CONTEXT, 1, width, b"", early=True)
    equations = [v for u, v in projections if u[0]]
    span = kernel(equations, width)
    assert len(span) >= 2
    row = wrapped(span, random.Random(5))
    assert all(dot(row, v) == 0 for v in equations)
    check_attack(mutants.INDEX_PROJECTIONS, tmp_path, row, Claim(early_projections=True))
