"""Rows that are charged too often, and the rules of the budget argument that keep them out.

For each rule: a false budget that a verifier without it accepts; the reference verifier and the
core refuse that proof, and the best one that is made for themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import pytest
import ragaudit.core as core
import ragaudit.verifier.reference as reference
import reference_mutants as mutants
from ragaudit.circuits.budgets import BudgetStatement
from ragaudit.lab.attacks.forging.charge_prover import Budget, honest, prove_budget
from reference_mutants import Mutant

pytestmark = pytest.mark.slow

Load = Callable[[Mutant], ModuleType]


def accepts(package: Any, budget: Budget, charges: list[bytes], proof: bytes) -> bool:
    try:
        package.verify_budget(budget.context, budget.rows, budget.uses, charges, proof)
    except Exception as error:
        assert type(error).__name__ in ("ProofRejected", "InvalidStatement")
        return False
    return True


def core_accepts(budget: Budget, charges: list[bytes], proof: bytes) -> bool:
    try:
        core.verify_budget(
            BudgetStatement(budget.context, budget.rows, budget.uses, b"".join(charges)), proof
        )
    except core.ProofRejected:
        return False
    return True


def both_refuse(budget: Budget, charges: list[bytes], proof: bytes) -> None:
    assert not accepts(reference, budget, charges, proof)
    assert not core_accepts(budget, charges, proof)


def check_attack(load: Load, mutant: Mutant, budget: Budget) -> None:
    package = load(mutant)
    charges, proof = prove_budget(package, budget)
    assert accepts(package, budget, charges, proof)
    both_refuse(budget, charges, proof)
    both_refuse(budget, *prove_budget(reference, budget))


def test_the_honest_prover_is_accepted() -> None:
    budget = honest(3, 2, [[1, 0, 1], [0, 0, 1]])
    charges, proof = prove_budget(reference, budget)
    assert accepts(reference, budget, charges, proof)
    assert core_accepts(budget, charges, proof)


@pytest.mark.parametrize(
    ("charges", "vectors"),
    [
        ([[2, 0]], [[1, 0], [1, 0]]),  # a charge of 2
        ([[1, 0], [1, 0], [1, 0], [-1, 0]], [[1, 0], [1, 0]]),  # one that gives budget back
        ([[1, 0], [1, 0], [1, 1]], [[2, 1], [1, 0]]),  # three uses, M = 2
    ],
)
def test_without_bits_a_row_is_charged_too_often(
    charges: list[list[int]], vectors: list[list[int]], load: Load
) -> None:
    check_attack(load, mutants.BUDGET_BITS, Budget(2, 2, charges, vectors))


def test_without_the_sums_the_vectors_are_of_other_charges(load: Load) -> None:
    check_attack(load, mutants.BUDGET_SUMS, Budget(2, 1, [[1, 0], [1, 0]], [[1, 0]]))


def test_unless_the_vectors_are_bits_the_last_one_takes_every_use(load: Load) -> None:
    check_attack(load, mutants.BUDGET_VECTORS, Budget(2, 1, [[1, 0], [1, 1]], [[2, 1]]))


# Every row of the table is claimed to be one less than it is in column 0.
SHIFTED = Budget(
    2, 1, [[1, 0], [1, 0]], [[2, 0]], claimed=[[0, 0], [0, 0], [1, 0]], elsewhere=(-1,)
)


def test_a_mask_row_of_weight_one_shifts_every_charge(load: Load) -> None:
    budget = replace(SHIFTED, stray={"C_m": {0: -1}}, masked=False)
    check_attack(load, mutants.BUDGET_MASK_ROW, budget)


def test_without_gamma_the_mask_polynomial_shifts_every_charge(load: Load) -> None:
    check_attack(load, mutants.BUDGET_GAMMA, replace(SHIFTED, stray={"C_g": {0: -1}}))


def test_without_theta_a_charge_hides_in_the_mask(load: Load) -> None:
    # bud/R_0 has the number N = 2, and its form is 1 in every column.
    stray = {"B_0": {2: -1}, "W_0": {2: -1}}
    check_attack(
        load,
        mutants.BUDGET_THETA,
        Budget(2, 1, [[2, 1]], [[2, 1]], claimed=[[1, 0], [1, 0]], stray=stray),
    )


def test_without_its_context_a_proof_is_one_for_every_window(load: Load) -> None:
    package = load(mutants.BUDGET_CONTEXT)
    budget = honest(2, 1, [[1, 0]])
    charges, proof = prove_budget(package, budget)
    other = replace(budget, context=bytes(32))
    assert accepts(package, other, charges, proof)
    both_refuse(other, charges, proof)
    both_refuse(other, *prove_budget(reference, budget))


@pytest.mark.parametrize(
    ("name", "place"),
    # Another A-part of a B or W is no junk but another budget.
    [*product(("B_0", "B_1", "W_0"), (2, 5)), *product(("C_m", "C_g"), (0, 1, 2, 5))],
)
def test_junk_in_a_commitment_makes_no_false_budget_true(name: str, place: int) -> None:
    """Two uses of row 0 with M = 1, stated as they are or as one."""
    false = Budget(2, 1, [[1, 0], [1, 0]], [[1, 0]])
    for claimed, junk in product((None, [[1, 0], [0, 0], [1, 0]]), (1, -1)):
        budget = replace(false, claimed=claimed, stray={name: {place: junk}})
        both_refuse(budget, *prove_budget(reference, budget))


def test_exactly_the_right_small_budgets_are_accepted() -> None:
    """Two entries and one vector over one row, each entry -1 to 2."""
    accepted = set()
    for first, second, vector in product(range(-1, 3), repeat=3):
        budget = Budget(1, 1, [[first], [second]], [[vector]])
        charges, proof = prove_budget(reference, budget)
        decided = {accepts(reference, budget, charges, proof), core_accepts(budget, charges, proof)}
        assert len(decided) == 1
        if decided == {True}:
            accepted.add((first, second, vector))
    assert accepted == {(0, 0, 0), (0, 1, 1), (1, 0, 1)}
