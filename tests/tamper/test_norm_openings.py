"""The norm of one committed row is shown without the row (docs/spec 4.7.7), by either engine."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from judged_windows import judged
from procedure_cases import use_cached_table
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement, NormOpening, shifted, split_proof
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.lab.attacks.cheats.index import InnerProducts
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.indexes import check_norm, verify_argument

use_cached_table()


def test_an_honest_window_of_inner_products_passes() -> None:
    window = InnerProducts()
    items = window.items()
    assert judged(window, items).result == "PASS"
    for index in window.indices.values():
        commitment, rows = index.commitment, index.rows[:, :-4].astype(np.int64)
        _, opening = split_proof(commitment.proof)
        longest = int((rows * rows).sum(axis=1).max())
        assert opening.squared_length(window.policy.squared_norm) == longest
        least = Fraction(window.policy.squared_norm, longest)  # the square of the ratio
        check_norm(commitment, window.policy, least)
        with pytest.raises(RejectedError, match="longest row"):
            check_norm(commitment, window.policy, Fraction(99, 100))
    commitment = window.indices["acme"].commitment
    for name in ("core", "reference"):
        verify_argument(commitment, window.policy, engine(name))


def made(row: list[int]) -> tuple[IndexStatement, NormOpening, list[list[int]], bytes]:
    """An index of one row, what is said of it, and its blinding."""
    squared = sum(entry * entry for entry in row)
    rows = np.array([row], dtype=np.int16)
    blinding = np.frombuffer(core.random_scalars(1).tobytes(), dtype=np.uint8).reshape(1, 32)
    statement = IndexStatement(
        bytes(32), 1, len(row) - 4, core.commit_rows(rows, blinding), squared
    )
    opening = NormOpening.of(rows)
    return statement, opening, opening.shifts(len(row) - 4, squared), blinding.tobytes()


@pytest.mark.parametrize(
    "row",
    [
        [3, -5, 0, 7, 1, 0, 2, -6],
        [3, -5, 0, 7, 0, 0, 0, 1],
        [0, -5, 0, 0, 0, 0, 0, 0],  # as long as can be: an entry of the row itself is told
        [0, 0, 0, 0, 9, 0, 0, 0],
        [1, 2, 3, 4, 5, 6, 7, 8],
    ],
)
def test_every_shape_of_a_row_is_shown(row: list[int]) -> None:
    statement, opening, shifts, blinding = made(row)
    squared = statement.squared_norm
    assert opening.squared_length(squared) == sum(entry * entry for entry in row[:4])
    moved = shifted(row, shifts)
    # The rows of the argument have the norm of the row, and are the row less each vector.
    assert {int(sum(int(e) ** 2 for e in each)) for each in moved} == {squared}
    same = np.repeat(np.frombuffer(blinding, dtype=np.uint8).reshape(1, 32), len(moved), axis=0)
    commitments = core.commit_rows(moved, same)
    by = engine("core")
    for place, vector in enumerate(shifts):
        own = statement.commitments
        away = by.commit_row([-entry for entry in vector], bytes(32))
        assert by.running_sums(own + away + own, [2]) == [commitments[32 * place :][:32]]
    about = opening.statement(statement, commitments)
    proof = core.prove_index(about, moved, same)
    engine("core").verify_index(about, proof)
    # Whatever else is said of w has other commitments, or another context.
    for other in (
        replace(opening, position=1),
        replace(opening, squares=tuple(-each for each in opening.squares)),
    ):
        if other != opening:
            with pytest.raises(RagauditError):
                engine("core").verify_index(other.statement(statement, commitments), proof)


def test_what_no_row_has_is_refused() -> None:
    _, opening, _, _ = made([3, -5, 0, 7, 1, 0, 2, -6])
    for lie in (
        {"value": 0, "squares": (0, 0, 0, 0)},
        {"value": 2},
        {"value": 128, "squares": (128, 0, 0, 0)},
        {"anchor": -1},
        {"anchor": 8},
    ):
        with pytest.raises(MalformedError, match="norm opening"):
            replace(opening, **lie).shifts(4, 127**2)
    for proof in (b"", b"proof", opening.beside(b"x")[:-1], opening.beside(b"x") + b"x"):
        with pytest.raises(MalformedError):
            split_proof(proof)
    assert split_proof(opening.beside(b"x")) == (b"x", opening)


def test_a_proof_without_an_opening_is_none() -> None:
    window = InnerProducts()
    window.open()
    held = window.indices["acme"].commitment
    bare, opening = split_proof(held.proof)
    beyond = replace(opening, position=held.rows)
    for proof, said in ((bare, "index/proofs"), (beyond.beside(bare), "the norm of row")):
        forged = IndexCommitment.parse(replace(held, proof=proof).encode())
        with pytest.raises(RagauditError, match=said):
            verify_argument(forged, window.policy, engine("core"))
