"""Every rule of the selection's verification matters: without it, an attack gets through.

Dropping a rule widens what is accepted, so the attack itself is run: a proof of a false selection
that the mutant accepts and the verifier refuses.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import pytest
import ragaudit.verifier.reference as reference
import reference_mutants as mutants
from ragaudit.lab.attacks.forging import selection_prover as prover
from ragaudit.lab.attacks.forging.moves import modules
from ragaudit.lab.attacks.forging.selection_prover import Assignment
from ragaudit.verifier.reference.statement import Statement
from reference_mutants import Mutant

CONTEXT = bytes(range(32))
TOP_K = 3
BLINDING = 0xB11D


@dataclass
class World:
    """Six committed rows in three dimensions, a query and noise; scores are distinct."""

    index: prover.Index
    query: list[int]
    noise: list[int]
    ranked: list[int] = field(init=False)  # positions by falling noisy score

    def __post_init__(self) -> None:
        y = self.scores
        assert len(set(y)) == len(y)
        self.ranked = sorted(range(len(y)), key=lambda i: -y[i])

    @property
    def scores(self) -> list[int]:
        return prover.scores(self.index, self.query, self.noise)

    def statement(self, positions: list[int], context: bytes = CONTEXT) -> Statement:
        """The claim that the committed set ``positions`` is the selection."""
        return Statement(
            context=context,
            rows=len(self.noise),
            commitments=self.index.commitments,
            query=tuple(self.query),
            noise=tuple(self.noise),
            top_k=TOP_K,
            selection=prover.commit_selection(reference, positions, BLINDING),
            allowed=range(len(self.noise)),
        )

    def threshold_above(self, rank: int) -> int:
        """tau for which exactly the ``rank`` highest scores are at or above it."""
        return self.scores[self.ranked[rank]] + 1

    def column(self, positions: list[int]) -> list[int]:
        """0/1 over all rows (here U holds every row)."""
        return [int(i in positions) for i in range(len(self.noise))]


@pytest.fixture
def world() -> World:
    rng = random.Random(20)
    rows = [[rng.randint(-60, 60) for _ in range(3)] for _ in range(6)]
    index = prover.commit_rows(reference, rows)
    return World(
        index, [rng.randint(-60, 60) for _ in range(3)], [rng.randint(-900, 900) for _ in rows]
    )


def verify(package: Any, statement: Statement, proof: bytes) -> None:
    package.verify_selection(
        statement.context,
        statement.rows,
        statement.commitments,
        statement.query,
        statement.noise,
        statement.top_k,
        statement.selection,
        proof,
    )


def check_attack(
    package: ModuleType, world: World, statement: Statement, assignment: Assignment
) -> None:
    """The mutant accepts the false statement; the verifier accepts neither this nor its own try."""
    proof = prover.prove_boundary(package, statement, world.index, assignment, BLINDING)
    verify(package, statement, proof)
    own = prover.prove_boundary(reference, statement, world.index, assignment, BLINDING)
    for attempt in (proof, own):
        with pytest.raises(reference.ProofRejected):
            verify(reference, statement, attempt)


def test_the_honest_prover_is_accepted(world: World) -> None:
    statement = world.statement(world.ranked[:TOP_K])
    honest = prover.honest_assignment(statement, world.scores)
    assert list(statement.U) == list(range(6))
    verify(
        reference,
        statement,
        prover.prove_boundary(reference, statement, world.index, honest, BLINDING),
    )


def test_without_theta_each_row_gets_its_own_threshold(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    lowest = world.ranked[-TOP_K:]
    scores = world.scores
    # The scores in reverse order, reached by components of C_t on the generators of positions.
    pretended = dict(zip(world.ranked, (scores[i] for i in reversed(world.ranked)), strict=True))
    assignment = Assignment(
        b=world.column(lowest),
        b3=world.column([world.ranked[-TOP_K - 1]]),
        b4=world.column([]),
        tau=pretended[world.ranked[-TOP_K - 1]] + 1,
        shift=[pretended[i] - scores[i] for i in range(6)],
    )
    check_attack(load(mutants.THETA), world, world.statement(lowest), assignment)


def test_without_e2_the_mask_of_b_carries_another_selection(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    lowest = world.ranked[-TOP_K:]
    statement = world.statement(lowest)
    honest = prover.honest_assignment(statement, world.scores)
    committed = world.column(lowest)
    moved = [b - a for a, b in zip(committed, honest.b, strict=True)]
    check_attack(load(mutants.E2), world, statement, replace(honest, moved=moved))


def test_without_the_subtraction_of_f_a_certain_row_is_left_out(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    world.noise[world.ranked[2]] += 5 * 127**2
    world.__post_init__()
    certain, *rest = world.ranked[:TOP_K]
    statement = world.statement(rest)
    assert list(statement.F) == [certain]
    honest = prover.honest_assignment(statement, world.scores)
    check_attack(load(mutants.CERTAIN), world, statement, honest)


def test_without_c19_one_row_is_boundary_and_filling_at_once(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    edge = world.column([world.ranked[TOP_K - 1]])
    short = world.ranked[: TOP_K - 1]
    assignment = Assignment(world.column(short), edge, edge, world.threshold_above(TOP_K - 1))
    check_attack(load(mutants.C19), world, world.statement(short), assignment)


def test_without_c20_filling_rows_need_not_be_tied(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    short = world.ranked[:1]
    assignment = Assignment(
        b=world.column(short),
        b3=world.column(world.ranked[-1:]),
        b4=world.column(world.ranked[-3:-1]),
        tau=world.threshold_above(1),
    )
    check_attack(load(mutants.C20), world, world.statement(short), assignment)


def test_without_c21_any_set_of_the_right_size_passes(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    lowest = world.ranked[-TOP_K:]
    edge = world.ranked[0]
    assignment = Assignment(
        b=world.column(lowest),
        b3=world.column([edge]),
        b4=world.column([]),
        tau=world.scores[edge] + 1,
    )
    check_attack(load(mutants.C21), world, world.statement(lowest), assignment)


def test_without_the_sum_of_b3_the_boundary_row_is_dropped(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    short = world.ranked[: TOP_K - 1]
    assignment = Assignment(
        b=world.column(short),
        b3=world.column([]),
        b4=world.column([world.ranked[TOP_K - 1]]),
        tau=world.threshold_above(TOP_K - 1),
    )
    check_attack(load(mutants.SUM_B3), world, world.statement(short), assignment)


@pytest.mark.parametrize("size", [1, 5])
def test_without_the_sum_of_b_and_b4_any_size_passes(
    world: World, load: Callable[[Mutant], ModuleType], size: int
) -> None:
    chosen = world.ranked[:size]
    assignment = Assignment(
        b=world.column(chosen),
        b3=world.column([world.ranked[size]]),
        b4=world.column([]),
        tau=world.threshold_above(size),
    )
    check_attack(load(mutants.SUM_B), world, world.statement(chosen), assignment)


def test_with_the_mask_row_in_chi_masks_pay_for_missing_rows(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    chosen = world.ranked[:1]
    assignment = Assignment(
        b=world.column(chosen),
        b3=world.column([]),
        b4=world.column([]),
        tau=world.threshold_above(1),
        masks={"b": 7, "b3": 1, "b4": TOP_K - 1 - 7},
    )
    check_attack(load(mutants.CHI_MASK), world, world.statement(chosen), assignment)


def test_without_the_context_a_proof_moves_to_another_record(
    world: World, load: Callable[[Mutant], ModuleType]
) -> None:
    mutant = load(mutants.CONTEXT)
    statement = world.statement(world.ranked[:TOP_K])
    elsewhere = replace(statement, context=bytes(32))
    honest = prover.honest_assignment(statement, world.scores)
    proof = prover.prove_boundary(mutant, statement, world.index, honest, BLINDING)
    verify(mutant, elsewhere, proof)
    proof = prover.prove_boundary(reference, statement, world.index, honest, BLINDING)
    verify(reference, statement, proof)
    with pytest.raises(reference.ProofRejected):
        verify(reference, elsewhere, proof)


def test_a_vector_added_to_every_score_changes_no_selection(world: World) -> None:
    """C_t stands beside the rows without a weight of its own, and what it adds is tau's to take."""
    lift = [10**19, -7, 10**17, 0, 5, 0, 0]
    lifted = sum(h * e for h, e in zip(lift, world.query, strict=False))
    statement = world.statement(world.ranked[:TOP_K])
    honest = prover.honest_assignment(statement, world.scores)
    same = replace(honest, lift=lift, tau=honest.tau + lifted)
    verify(
        reference,
        statement,
        prover.prove_boundary(reference, statement, world.index, same, BLINDING),
    )
    wrong = world.statement([*world.ranked[: TOP_K - 1], world.ranked[TOP_K]])
    forged = replace(same, b=world.column([*world.ranked[: TOP_K - 1], world.ranked[TOP_K]]))
    for given in (same, forged, replace(forged, tau=honest.tau)):
        proof = prover.prove_boundary(reference, wrong, world.index, given, BLINDING)
        with pytest.raises(reference.ProofRejected):
            verify(reference, wrong, proof)


def test_without_the_norm_of_e_the_query_outgrows_u(
    load: Callable[[Mutant], ModuleType],
) -> None:
    # One row points along a query that is longer than B, all others against it. Its noise alone
    # would exclude it, so U leaves it out, yet its score is the highest.
    rows = [[-73, -73, -73], *([72, 72, 60 + i] for i in range(5))]
    world = World(prover.commit_rows(reference, rows), [-130] * 3, [-32_300, 0, 1, 2, 3, 4])
    assert world.ranked[0] == 0
    others = world.ranked[1 : TOP_K + 1]
    mutant = load(mutants.NORM)
    arguments = {
        "context": CONTEXT,
        "rows": 6,
        "commitments": world.index.commitments,
        "query": tuple(world.query),
        "noise": tuple(world.noise),
        "top_k": TOP_K,
        "selection": prover.commit_selection(reference, others, BLINDING),
        "allowed": range(6),
    }
    statement = modules(mutant).selection.Statement(**arguments)
    assert statement.U == (1, 2, 3, 4, 5)
    scores = world.scores
    scores[0] = -(2**40)  # what the statement believes of a row outside U
    honest = prover.honest_assignment(statement, scores)
    proof = prover.prove_boundary(mutant, statement, world.index, honest, BLINDING)
    verify(mutant, statement, proof)
    with pytest.raises(reference.InvalidStatement, match="longer than B"):
        Statement(**arguments)  # type: ignore[arg-type]
