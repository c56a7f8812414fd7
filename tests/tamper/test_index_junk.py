"""What index commitments could hold besides their due (docs/notes/soundness.md §6.2).

Every attempt is a whole proof for the reference verifier. What is accepted leaves the rows as they
are claimed to be; what would change them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import ragaudit.verifier.reference as reference
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement
from ragaudit.lab.attacks.forging import index_prover as prover
from ragaudit.lab.attacks.forging.index_prover import FIRST_COLUMN, Claim
from ragaudit.lab.attacks.forging.selection_prover import (
    Assignment,
    Index,
    commit_selection,
    four_squares,
    honest_assignment,
    prove_boundary,
    scores,
)
from ragaudit.verifier.reference.statement import Statement

pytestmark = pytest.mark.slow

CONTEXT = bytes(range(32))
BLINDINGS = [0xB0, 0xB1]
VECTORS = [[3, -4], [100, 60]]
ROWS = [[*v, *four_squares(127**2 - sum(x * x for x in v))] for v in VECTORS]
WIDTH = len(ROWS[0])

P_STAR = FIRST_COLUMN - 1
FIRST_MASK = FIRST_COLUMN + WIDTH  # R_0; a_(k,e) of variable k = 1.. is at 3(k - 1) + e
LAST_ROW_VARIABLE = FIRST_MASK + 3 * 9 + 1  # r_m, for the m = 10 variables of these few rows
HUGE = 10**19
SIGMA = 0x51


def accepted(claim: Claim, rows: list[list[int]] = ROWS) -> bool:
    """Whether both engines accept; they agree."""
    commitments, proof = prover.prove_index(reference, CONTEXT, rows, BLINDINGS, claim)
    place = (CONTEXT, len(rows), WIDTH - 4, commitments)
    decisions = []
    ways: tuple[tuple[Callable[[], None], type[Exception]], ...] = (
        (lambda: reference.verify_index(*place, proof), reference.ProofRejected),
        (lambda: core.verify_index(IndexStatement(*place), proof), core.ProofRejected),
    )
    for verify, refusal in ways:
        try:
            verify()
            decisions.append(True)
        except refusal:
            decisions.append(False)
    assert decisions[0] == decisions[1]
    return decisions[0]


HARMLESS = {
    "any vector in the mask row": {"C_m": {FIRST_COLUMN + j: HUGE + j for j in range(WIDTH)}},
    "P parts of two rows that cancel": {"C_0": {1: HUGE}, "C_1": {0: -HUGE}},
    "P parts of a row and the mask row that cancel": {
        "C_0": {P_STAR: HUGE},
        "C_m": {FIRST_COLUMN: SIGMA, 0: -HUGE},
    },
    "R parts of two rows that cancel": {
        # eq(r, 0) r_m = eq(r, 1) (1 - r_m)
        "C_0": {LAST_ROW_VARIABLE: HUGE},
        "C_1": {FIRST_MASK: -HUGE, LAST_ROW_VARIABLE: HUGE},
    },
}

REFUSED = {
    "G part of a column": {"Kap_3": {FIRST_COLUMN: 1}},
    "R part of a column": {"Kap_3": {FIRST_MASK: 1}},
    "P part of a row": {"C_0": {1: 1}},
    "mask of columns in a row": {"C_0": {P_STAR: 1}},
    "R part of a row": {"C_0": {FIRST_MASK: 1}},
    "P part of the mask row": {"C_m": {FIRST_COLUMN: SIGMA, 1: 1}},
    "P part of the mask polynomial": {"C_g": {1: 1}},
    "G part of the mask polynomial": {"C_g": {FIRST_COLUMN: 1}},
    "P part of a row, taken back in a column": {"C_0": {0: 1}, "Kap_0": {0: -1}},
}


def first_every_time(names: Iterable[str]) -> list[Any]:
    """The others at night: each takes the reference some seconds."""
    first, *others = names
    return [first, *(pytest.param(name, marks=pytest.mark.nightly) for name in others)]


@pytest.mark.parametrize("name", first_every_time(HARMLESS))
def test_what_changes_no_row_is_accepted(name: str) -> None:
    assert accepted(Claim(stray=HARMLESS[name]))


@pytest.mark.parametrize("name", first_every_time(REFUSED))
def test_what_no_challenge_cancels_is_refused(name: str) -> None:
    assert not accepted(Claim(stray=REFUSED[name]))


def test_an_offset_of_all_rows_is_refused() -> None:
    committed, claim = prover.offset_claim(ROWS, [HUGE, 0, -HUGE, 5, 0, 1])
    assert not accepted(claim, committed)


def test_an_offset_of_all_rows_in_the_mask_row_alone_is_refused() -> None:
    """The table as v2 reads it, with huge committed rows: their projections betray them."""
    committed, claim = prover.offset_claim(ROWS, [HUGE, 0, -HUGE, 5, 0, 1])
    assert not accepted(Claim(stray=claim.stray), committed)


def test_entries_moved_to_another_generator_are_refused() -> None:
    """There is none for masks; what follows G_(d+3) is R_0, which stands under theta squared."""
    committed, claim = prover.junk_claim(ROWS, [HUGE, -HUGE])
    assert not accepted(claim, committed)


def test_a_row_with_parts_on_other_lists_is_in_no_selection() -> None:
    """The index argument lets pass what cancels over the rows; no other basis contains it."""
    stray = HARMLESS["P parts of two rows that cancel"]
    commitments = prover.commit_field_rows(reference, ROWS, BLINDINGS, Claim(stray=stray))
    clean = prover.commit_field_rows(reference, ROWS, BLINDINGS)
    query, noise = [60, -20], [5, 0]
    for committed, passes in ((commitments, False), (clean, True)):
        index = Index(ROWS, BLINDINGS, committed)
        y = scores(index, query, noise)
        best = [int(y[1] > y[0])]
        selection = commit_selection(reference, best, 7)
        statement = Statement(
            CONTEXT, 2, committed, tuple(query), tuple(noise), 1, selection, range(2)
        )
        assignment: Assignment = honest_assignment(statement, y)
        proof = prove_boundary(reference, statement, index, assignment, 7)
        arguments = (CONTEXT, 2, committed, query, noise, 1, selection, proof)
        if passes:
            reference.verify_selection(*arguments)
        else:
            with pytest.raises(reference.ProofRejected, match="E1"):
                reference.verify_selection(*arguments)
