"""Charges that are not the due ones, and the rules of the charge argument that keep them out.

For each rule: a false charge that a verifier without it accepts; the reference verifier and the
core refuse that proof, and the best one that is made for themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import ragaudit.core as core
import ragaudit.verifier.reference as reference
import reference_mutants as mutants
from ragaudit.circuits.budgets import ChargeEntry, ChargeStatement
from ragaudit.lab.attacks.forging.charge_prover import Charge, prove_charge, stating
from ragaudit.lab.attacks.forging.selection_prover import four_squares
from reference_mutants import Mutant

pytestmark = pytest.mark.slow

Load = Callable[[Mutant], ModuleType]
Proven = tuple[bytes, Any, bytes]

# Scores 20 and 10 with tau = 15: row 0 is relevant, row 1 is not.
ROWS = [[value, *four_squares(127**2 - value**2)] for value in (2, 1)]
LIVE: dict[str, Any] = {
    "rows": ROWS, "query": [10], "threshold": 15, "uses": 1, "before": [0, 0],
}  # fmt: skip
DUE, NONE, OTHER, BOTH = [1, 0], [0, 0], [0, 1], [1, 1]


def accepts(package: Any, uses: int, proven: Proven, context: bytes | None = None) -> bool:
    commitments, public, proof = proven
    entry = package.ChargeEntry(*public)
    if context is not None:
        entry = entry._replace(context=context)
    try:
        package.verify_charge(uses, commitments, [entry], proof)
    except Exception as error:
        assert type(error).__name__ == "ProofRejected"
        return False
    return True


def core_accepts(uses: int, proven: Proven, context: bytes | None = None) -> bool:
    commitments, public, proof = proven
    query = np.array(public.query, dtype=np.int16)
    entry = ChargeEntry(
        context or public.context, query, public.threshold, public.allowed,
        public.charged_before, public.charge,
    )  # fmt: skip
    try:
        core.verify_charges(ChargeStatement(uses, commitments, (entry,)), proof)
    except core.ProofRejected:
        return False
    return True


def both_refuse(uses: int, proven: Proven, context: bytes | None = None) -> None:
    assert not accepts(reference, uses, proven, context)
    assert not core_accepts(uses, proven, context)


def check_attack(load: Load, mutant: Mutant, charge: Charge) -> None:
    package = load(mutant)
    proven = prove_charge(package, charge)
    assert accepts(package, charge.uses, proven)
    both_refuse(charge.uses, proven)
    both_refuse(charge.uses, prove_charge(reference, charge))


@pytest.mark.parametrize(
    "charge",
    [
        stating(**LIVE, charge=DUE, exhausted=NONE),
        stating(**LIVE, charge=NONE, exhausted=NONE, allowed=[1]),
        stating(**{**LIVE, "before": [1, 1]}, charge=NONE, exhausted=DUE),
    ],
)
def test_the_honest_prover_is_accepted(charge: Charge) -> None:
    proven = prove_charge(reference, charge)
    assert accepts(reference, charge.uses, proven)
    assert core_accepts(charge.uses, proven)


@pytest.mark.parametrize("charge", [NONE, BOTH, OTHER])
def test_without_bits_a_distance_may_be_negative(charge: list[int], load: Load) -> None:
    check_attack(load, mutants.CHARGE_BITS, stating(**LIVE, charge=charge, exhausted=NONE))


@pytest.mark.parametrize("k", [0, 7, 14])
def test_every_bit_is_one(k: int, load: Load) -> None:
    """All but u_k are bits, and u_k makes up for a false charge."""
    false = stating(**LIVE, charge=BOTH, exhausted=NONE)
    wanted = 10 - 15 - 1
    distance = [0] * len(false.distances[1])
    distance[k] = wanted * pow(2**k, -1, reference.field.ORDER)
    charge = replace(false, distances=[false.distances[0], distance])
    mutant = Mutant(
        f"charge_bit_{k}",
        (("charge.py", "[u_k * u_k - u_k for u_k in u]",
          f"[(u_k * u_k - u_k) * (k != {k}) for k, u_k in enumerate(u)]"),),
    )  # fmt: skip
    check_attack(load, mutant, charge)


@pytest.mark.parametrize("charge", [NONE, BOTH, OTHER])
def test_without_distances_any_row_is_charged(charge: list[int], load: Load) -> None:
    false = stating(**LIVE, charge=charge, exhausted=NONE)
    nothing = [[0] * len(distance) for distance in false.distances]
    check_attack(load, mutants.CHARGE_DISTANCE, replace(false, distances=nothing))


def test_unless_exhaustion_is_proven_a_live_row_is_left_out(load: Load) -> None:
    check_attack(load, mutants.CHARGE_EXHAUSTED, stating(**LIVE, charge=NONE, exhausted=DUE))


def test_a_row_that_the_filter_drops_is_not_charged(load: Load) -> None:
    false = stating(**LIVE, charge=DUE, exhausted=NONE, allowed=[1])
    check_attack(load, mutants.CHARGE_OUTSIDE, false)


@pytest.mark.parametrize(("shift", "charge"), [(10, BOTH), (-10, NONE)])
def test_a_mask_row_of_weight_one_shifts_the_scores(
    shift: int, charge: list[int], load: Load
) -> None:
    # chg/M stands after A_0, A_1 and G_0 to G_4.
    false = stating(**LIVE, charge=charge, exhausted=NONE, shift=shift)
    hidden = replace(false, stray={"C_m": {7: shift}}, masked=False)
    check_attack(load, mutants.CHARGE_MASK_ROW, hidden)


def test_without_theta_a_charge_hides_among_the_rows(load: Load) -> None:
    false = stating(**LIVE, charge=DUE, exhausted=NONE)
    hidden = replace(false, charge=[0, -1], claimed={"b": DUE}, stray={"B": {7: 1}})
    check_attack(load, mutants.BUDGET_THETA, hidden)


def test_without_gamma_one_column_makes_up_for_another(load: Load) -> None:
    false = stating(**LIVE, charge=DUE, exhausted=NONE)
    hidden = replace(false, charge=NONE, exhausted=DUE, claimed={"b": DUE, "h": NONE})
    check_attack(load, mutants.BUDGET_GAMMA, hidden)


def test_without_its_context_a_proof_is_one_for_every_entry(load: Load) -> None:
    package = load(mutants.CHARGE_CONTEXT)
    charge = stating(**LIVE, charge=DUE, exhausted=NONE)
    proven = prove_charge(package, charge)
    other = bytes(32)
    assert accepts(package, 1, proven, other)
    both_refuse(1, proven, other)
    both_refuse(1, prove_charge(reference, charge), other)


@pytest.mark.parametrize(
    "name",
    [
        *("B", "C_0"),
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("S", "h", "u_3", "mask b", "mask u_0", "C_m", "C_g")
        ),
    ],
)
def test_junk_in_a_commitment_makes_no_false_charge_true(name: str) -> None:
    """Places of A, G, chg/M and chg/R; another A-part of B, S or a column is another table."""
    places = (7, 8, 10) if name[0] in "BShu" else (0, 1, 7, 8, 10)
    for place, charge in product(places, (NONE, BOTH)):
        false = stating(**LIVE, charge=charge, exhausted=NONE)
        claimed = {"b": DUE, **{f"u_{k}": bits for k, bits in enumerate(_due_bits())}}
        for stated in (false, replace(false, claimed=claimed)):
            both_refuse(1, prove_charge(reference, replace(stated, stray={name: {place: 1}})))


def _due_bits() -> list[list[int]]:
    due = stating(**LIVE, charge=DUE, exhausted=NONE)
    return [list(column) for column in zip(*due.distances, strict=True)]
