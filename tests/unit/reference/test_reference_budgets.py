"""Budgets of rows: the budget and the charge argument (docs/spec/04-arguments.md §4.10)."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from ragaudit.verifier import reference
from ragaudit.verifier.reference import ChargeEntry
from ragaudit.verifier.reference.charge import summand
from ragaudit.verifier.reference.field import ORDER

VECTORS = Path(__file__).parents[2] / "vectors"
BUDGET, CHARGE = (
    {case["name"]: case for case in json.loads((VECTORS / f"{name}.json").read_bytes())["cases"]}
    for name in ("budget", "charge")
)
Case = dict[str, Any]


def verify_budget(case: Case) -> None:
    reference.verify_budget(
        bytes.fromhex(case["context"]),
        case["N"],
        case["M"],
        [bytes.fromhex(point) for point in case["B"]],
        bytes.fromhex(case["proof"]),
        case["B2"],
    )


def verify_charge(case: Case) -> None:
    entries = [
        ChargeEntry(
            bytes.fromhex(entry["context"]),
            entry["e"],
            entry["tau"],
            entry["allowed"],
            bytes.fromhex(entry["S"]),
            bytes.fromhex(entry["B"]),
        )
        for entry in case["entries"]
    ]
    rows = b"".join(bytes.fromhex(point) for point in case["C"])
    reference.verify_charge(case["M"], rows, entries, bytes.fromhex(case["proof"]), case["B2"])


ALL = [(verify_budget, case) for case in BUDGET.values()]
ALL += [(verify_charge, case) for case in CHARGE.values()]


@pytest.mark.parametrize(("verify", "case"), ALL, ids=[case["name"] for _, case in ALL])
def test_vector(verify: Any, case: Case) -> None:
    if case["expect"] == "accept":
        verify(case)
    else:
        with pytest.raises(reference.ProofRejected):
            verify(case)


@pytest.mark.parametrize(
    ("name", "equation"),
    [
        ("sum-unproven", "of the sums"), ("subset", "of the sums"), ("entry-two", "E1"),
        ("M-plus-one", "E1"), ("W-not-bits", "E1"), ("last-column", "E1"),
    ],
)  # fmt: skip
def test_a_false_budget_fails_at_its_own_equation(name: str, equation: str) -> None:
    with pytest.raises(reference.ProofRejected, match=f"equation {equation}"):
        verify_budget(BUDGET[name])


@pytest.mark.parametrize(
    ("verify", "case"),
    [(verify_budget, BUDGET["honest-2-N3-R2-M2"]), (verify_charge, CHARGE["honest-T1-N1-M1"])],
)
def test_every_element_of_a_proof_counts(verify: Any, case: Case) -> None:
    """Each exchanged for another element of its kind, and for the one beside it."""
    proof = bytes.fromhex(case["proof"])
    elements = [proof[i : i + 32] for i in range(0, len(proof), 32)]
    sample = range(len(elements)) if verify is verify_budget else range(0, len(elements), 5)
    for place in sample:
        other = elements[place - 1]
        for changed in (other, bytes(32)):
            if changed == elements[place]:
                continue
            forged = b"".join([*elements[:place], changed, *elements[place + 1 :]])
            with pytest.raises(reference.ProofRejected):
                verify({**case, "proof": forged.hex()})


BUDGET_CHANGES: list[Case] = [
    {"context": "00" * 31}, {"N": 0}, {"N": 2**32}, {"M": 0}, {"M": 2**16 + 1}, {"B": []},
    {"B2": 0}, {"B2": 2**24}, {"B": ["ff" * 32, "00" * 32]}, {"B": ["00" * 31, "00" * 32]},
]  # fmt: skip


@pytest.mark.parametrize("change", BUDGET_CHANGES, ids=str)
def test_a_budget_out_of_range_is_refused(change: Case) -> None:
    with pytest.raises((reference.InvalidStatement, reference.MalformedProof)):
        verify_budget({**BUDGET["honest-2-N3-R2-M2"], **change})


CHARGE_CHANGES: list[Case] = [
    {"M": 0}, {"M": 2**16 + 1}, {"B2": 0}, {"B2": 2**24}, {"C": []}, {"entries": []},
]  # fmt: skip
ENTRY_CHANGES: list[Case] = [
    {"context": "00" * 33}, {"e": []}, {"e": [1, 2]}, {"e": [127, 1, 0]}, {"tau": -1},
    {"tau": 16130}, {"allowed": [7]}, {"allowed": [-1]}, {"allowed": [1, 1]}, {"allowed": [2, 1]},
    {"S": "00" * 31}, {"B": "ff" * 32},
]  # fmt: skip


@pytest.mark.parametrize("change", CHARGE_CHANGES, ids=str)
def test_a_charge_out_of_range_is_refused(change: Case) -> None:
    with pytest.raises(reference.InvalidStatement):
        verify_charge({**CHARGE["honest-T1-N7-M3"], **change})


@pytest.mark.parametrize("change", ENTRY_CHANGES, ids=str)
def test_an_entry_out_of_range_is_refused(change: Case) -> None:
    honest = CHARGE["honest-T2-N4-M2"]
    last = {**honest["entries"][-1], **change}
    with pytest.raises((reference.InvalidStatement, reference.MalformedProof)):
        verify_charge({**honest, "entries": [*honest["entries"][:-1], last]})


@pytest.mark.parametrize("seed", range(20))
def test_the_polynomial_is_zero_for_right_charges_only(seed: int) -> None:
    """Every (score, uses, charge) of small size, at one place, against the definition."""
    rng = random.Random(seed)
    squared, uses = 5, rng.randrange(1, 4)
    width = (2 * squared).bit_length()
    alpha = [rng.randrange(ORDER) for _ in range(width + 3)]
    tau, score = rng.randrange(squared + 1), rng.randint(-squared, squared)
    allowed, before = rng.random() < 0.7, rng.randrange(uses + 1)
    right = int(allowed and score > tau and before < uses)
    exhausted = int(score > tau and before == uses)
    for charge in (0, 1):
        if before + charge > uses:
            continue  # excluded by the budget argument
        for h in (0, 1):
            distance = score - tau - 1 if charge + h else tau - score
            bits = [distance >> k & 1 if distance >= 0 else 0 for k in range(width)]
            values = [charge, before, h, *bits]
            value = summand(alpha, uses, int(allowed), 1, values, (score - tau) % ORDER)
            if value == 0:
                assert charge == right
    bits = [(score - tau - 1 if right + exhausted else tau - score) >> k & 1 for k in range(width)]
    honest = [right, before, exhausted, *bits] if allowed else [0, before, 0, *[0] * width]
    assert summand(alpha, uses, int(allowed), 1, honest, (score - tau) % ORDER) == 0
