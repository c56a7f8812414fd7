"""The relation of the selection argument has exactly one solution: the specified selection.

No cryptography: the constraints of spec 4.6.5, as the verifier evaluates them, are tried on every
assignment of b, b3, b4 and every threshold, for scores and noise around all the edges.
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from ragaudit.verifier.reference.field import ORDER, powers
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
