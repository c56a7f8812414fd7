"""The relation of the selection argument has exactly one solution: the specified selection.

No cryptography: the constraints of spec 4.6.5, as the verifier evaluates them, are tried on every
assignment of b, b3, b4 and every threshold, for scores and noise around all the edges.
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from ragaudit.verifier.reference.field import ORDER, powers
from ragaudit.verifier.reference.selection import BITS, summand
from ragaudit.verifier.reference.statement import SQUARED_NORM, Statement

NORM = SQUARED_NORM
SCORES = [-NORM, -1, 0, 1, NORM]
NOISE = [k * NORM + offset for k in (-5, -3, -2, -1, 0, 1, 2, 3, 5) for offset in (-1, 0, 1)]
ALPHA = powers(random.Random(0).randrange(ORDER), 24)


def holds(b: int, b3: int, b4: int, Y: int) -> bool:
    """Whether the constraints hold on one row, with the only bits that could satisfy c_21."""
    value = Y if b else -1 - Y
    if not 0 <= value < 2**BITS:
        return False
    bits = [value >> k & 1 for k in range(BITS)]
    return summand(ALPHA, 1, 0, b, b3, b4, bits, Y) == 0


def solutions(statement: Statement, y: list[int]) -> set[tuple[int, ...]]:
    """Every b over U that some threshold, b3 and b4 complete."""
    remaining = statement.top_k - len(statement.F)
    found = set()
    # The sum of b3 is 1, and where b3 is 1 the threshold is the score plus 1.
    for tau in {y[i] + 1 for i in statement.U}:
        options = [
            [row for row in product((0, 1), repeat=3) if holds(*row, y[i] - tau)]  # type: ignore[call-arg]
            for i in statement.U
        ]
        for rows in product(*options):
            total = sum(ALPHA[22] * b3 + ALPHA[23] * (b + b4) for b, b3, b4 in rows)
            if total % ORDER == (ALPHA[22] + ALPHA[23] * remaining) % ORDER:
                found.add(tuple(b for b, _, _ in rows))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_exactly_the_specified_selection_satisfies_the_relation(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        N = rng.randint(2, 5)
        noise = [rng.choice(NOISE) for _ in range(N)]
        y = [z + rng.choice(SCORES) for z in noise]
        allowed = sorted(rng.sample(range(N), rng.randint(2, N)))
        top_k = rng.randint(1, len(allowed) - 1)
        statement = Statement(
            bytes(32), N, bytes(32 * N), (0,), tuple(noise), top_k, bytes(32), allowed
        )
        boundary = sorted((y[i] for i in allowed), reverse=True)[top_k]
        selected = {i for i in allowed if y[i] > boundary}
        assert set(statement.F) <= selected <= set(statement.F) | set(statement.U)
        expected = tuple(int(i in selected) for i in statement.U)
        assert solutions(statement, y) == {expected}
        assert len(statement.F) <= top_k < len(statement.F) + len(statement.U)
