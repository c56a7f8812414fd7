"""The core and the reference code decide ties openings alike (docs/spec 4.6.10)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import ragaudit.core as core
import ragaudit.verifier.reference as reference
from for_each import for_each
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ragaudit.circuits.quantise import IntegerRows, row_type
from ragaudit.circuits.selection import scores, select
from ragaudit.ledger.messages.ties import TiesStatement, first_of
from reference_vectors import cases, ties_arguments


@dataclass(frozen=True)
class Answers:
    """An index of few different rows, a query, and what its prover knows."""

    rows: IntegerRows
    blindings: npt.NDArray[np.uint8]
    commitments: bytes
    query: npt.NDArray[np.int16]
    top_k: int

    @property
    def scores(self) -> list[int]:
        vectors: IntegerRows = np.ascontiguousarray(self.rows[:, :-4])
        found: list[int] = scores(vectors, self.query).tolist()
        return found

    @property
    def selected(self) -> tuple[int, ...]:
        return select(np.array(self.scores, dtype=np.int64), self.top_k, keep_ties=True)

    @property
    def first(self) -> tuple[int, ...]:
        return first_of({i: self.scores[i] for i in self.selected}, self.top_k)

    def statement(self, first: Sequence[int], withdrawn: Sequence[int]) -> TiesStatement:
        """What an answer claims that calls these rows the first."""
        score = self.scores
        return TiesStatement.of(
            SimpleNamespace(rows=len(score), top_k=self.top_k),
            body=b"body",
            index_root=bytes(32),
            query=self.query.tolist(),
            selected=self.selected,
            served={i: score[i] for i in first if i not in withdrawn},
            withdrawn={i: score[i] for i in withdrawn},
            commitments={i: self.commitments[32 * i : 32 * i + 32] for i in range(len(score))},
            squared_norm=127**2 if self.rows.dtype == np.int8 else 4095**2,
        )

    def prove(self, statement: TiesStatement) -> bytes:
        return core.prove_ties(statement, self.rows, self.blindings)


@st.composite
def answers(draw: st.DrawFn) -> Answers:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, dimension = draw(st.integers(2, 10)), draw(st.integers(1, 5))
    bound = draw(st.sampled_from([127, 4095]))
    reach = int(bound / dimension**0.5)
    kinds = rng.integers(-reach, reach, (draw(st.integers(1, 3)), dimension), endpoint=True)
    vectors: IntegerRows = kinds[rng.integers(0, len(kinds), count)].astype(row_type(bound))
    rows, blindings = core.complete_rows(vectors, bound**2), core.random_scalars(count)
    query = rng.integers(-reach, reach, dimension, endpoint=True).astype(np.int16)
    top_k = draw(st.integers(1, count - 1))
    found = Answers(rows, blindings, core.commit_rows(rows, blindings), query, top_k)
    assume(len(found.selected) > top_k)
    return found


def decisions(statement: Any, proof: bytes) -> tuple[bool, bool]:
    """(core accepts, reference accepts)."""
    found = []
    for verify, error in (
        (core.verify_ties, core.CoreError),
        (reference.verify_ties, reference.ProofRejected),
    ):
        try:
            verify(statement, proof)
            found.append(True)
        except error:
            found.append(False)
    return found[0], found[1]


@for_each("case", cases("ties"))
def test_the_vectors_are_decided_as_known(case: dict[str, Any]) -> None:
    expected = case["expect"] == "accept"
    assert decisions(*ties_arguments(case)) == (expected, expected)


@settings(max_examples=25, deadline=None)
@given(answers(), st.data())
def test_honest_answers_pass(found: Answers, data: st.DataObject) -> None:
    withdrawn = data.draw(st.sets(st.sampled_from(found.first)).map(sorted))
    statement = found.statement(found.first, withdrawn)
    proof = found.prove(statement)
    assert decisions(statement, proof) == (True, True)
    assert len(proof) == 32 * (2 * max(1, (found.rows.shape[1] - 1).bit_length()) + 3)


@settings(max_examples=25, deadline=None)
@given(answers(), st.data())
def test_answers_without_a_first_row_fail(found: Answers, data: st.DataObject) -> None:
    """Whichever row takes its place, and whichever rows are said to be withdrawn."""
    behind = sorted(set(found.selected) - set(found.first))
    left_out = data.draw(st.sampled_from(found.first), "left out")
    instead = data.draw(st.sampled_from(behind), "in its place")
    claimed = [instead if i == left_out else i for i in found.first]
    withdrawn = data.draw(st.sets(st.sampled_from(claimed)).map(sorted), "withdrawn")
    statement = found.statement(claimed, withdrawn)
    try:
        proof = found.prove(statement)
    except core.MalformedInput:  # the order alone refuses it
        proof = bytes(32 * (2 * max(1, (found.rows.shape[1] - 1).bit_length()) + 3))
    assert decisions(statement, proof) == (False, False)


@settings(max_examples=25, deadline=None)
@given(answers(), st.data())
def test_another_score_of_a_withdrawn_row_fails(found: Answers, data: st.DataObject) -> None:
    withdrawn = data.draw(st.sets(st.sampled_from(found.first), min_size=1).map(sorted))
    honest = found.statement(found.first, withdrawn)
    raised = data.draw(st.sampled_from(withdrawn))
    by = data.draw(st.sampled_from([-2, -1, 1, 2, 10_000]))
    changed = tuple((i, s + by if i == raised else s) for i, s in honest.withdrawn)
    statement = replace(honest, withdrawn=changed)
    try:
        proof = found.prove(statement)
    except core.MalformedInput:
        proof = found.prove(honest)
    assert decisions(statement, proof) == (False, False)


@settings(max_examples=20, deadline=None)
@given(answers(), st.data())
def test_changed_bytes_are_rejected_by_both(found: Answers, data: st.DataObject) -> None:
    statement = found.statement(found.first, ())
    proof = bytearray(found.prove(statement))
    proof[data.draw(st.integers(0, len(proof) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert decisions(statement, bytes(proof)) == (False, False)
