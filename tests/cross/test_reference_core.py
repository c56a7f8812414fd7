"""The core and the reference code decide selections alike, honest or changed."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import ragaudit.core as core
from both_verifiers import Case, core_accepts, reference_accepts
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.circuits.quantise import IntegerRows, row_type
from ragaudit.circuits.selection import scores, select
from reference_vectors import cases, selection_arguments, selection_options

SELECTION_FILES = (
    "selection",
    "selection_edge",
    "selection_noncanonical",
    "selection_b4095",
    "selection_ties",
)
SELECTION = [case for name in SELECTION_FILES for case in cases(name)]


@dataclass(frozen=True)
class Record:
    """A record with its secrets."""

    rows: IntegerRows
    blindings: npt.NDArray[np.uint8]
    selection_blinding: bytes
    case: Case  # with an empty proof

    @property
    def selected(self) -> tuple[int, ...]:
        query = np.array(self.case.query, dtype=np.int16)
        y = scores(self.rows[:, :-4], query) + np.array(self.case.noise, dtype=np.int64)
        return select(y, self.case.top_k, self.case.allowed, keep_ties=self.case.ties)

    def prove(self, selected: tuple[int, ...]) -> Case:
        """The case that claims ``selected``, true or not, with core's proof."""
        selection = core.commit_selection(selected, self.selection_blinding)
        case = replace(self.case, selection=selection)
        proof = core.prove_selection(
            case.statement, self.rows, self.blindings, selected, self.selection_blinding
        )
        return replace(case, proof=proof)


@st.composite
def records(draw: st.DrawFn) -> Record:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    N, d = draw(st.integers(1, 24)), draw(st.integers(1, 12))
    bound = draw(st.sampled_from([127, 127, 4095]))
    reach = int((bound**2 / d) ** 0.5)
    integers = rng.integers(-reach, reach, (N, d), endpoint=True)
    vectors: IntegerRows = integers.astype(row_type(bound))
    if draw(st.booleans()):  # equal rows, so ties
        vectors[:] = vectors[0]
    query = rng.integers(-reach, reach, d, endpoint=True)
    spread = draw(st.sampled_from([0, 1, 5_000, 40_000, 200_000, 40_000_000, 2**62]))
    noise = rng.integers(-spread, spread, N, endpoint=True)
    allowed = draw(st.none() | st.sets(st.integers(0, N - 1)).map(lambda s: tuple(sorted(s))))
    rows, blindings = core.complete_rows(vectors, bound**2), core.random_scalars(N)
    case = Case(
        context=rng.bytes(32), commitments=core.commit_rows(rows, blindings),
        query=tuple(int(v) for v in query), noise=tuple(int(v) for v in noise),
        top_k=draw(st.integers(1, 8)), selection=b"", proof=b"", allowed=allowed,
        squared_norm=bound**2, ties=draw(st.booleans()),
    )  # fmt: skip
    return Record(rows, blindings, bytes(core.random_scalars(1)[0]), case)


@settings(max_examples=25, deadline=None)
@given(records())
def test_honest_selections_are_accepted_by_both(record: Record) -> None:
    case = record.prove(record.selected)
    assert core_accepts(case)
    assert reference_accepts(case)


def sized_record(rows: int, top_k: int, dimension: int) -> Record:
    """A record whose rows are all uncertain."""
    rng = np.random.default_rng(1000 * rows + dimension)
    reach = int((127**2 / dimension) ** 0.5)
    vectors = rng.integers(-reach, reach, (rows, dimension), endpoint=True).astype(np.int8)
    completed, blindings = core.complete_rows(vectors), core.random_scalars(rows)
    case = Case(
        context=rng.bytes(32),
        commitments=core.commit_rows(completed, blindings),
        query=tuple(rng.integers(-reach, reach, dimension, endpoint=True).tolist()),
        noise=tuple(rng.integers(-8000, 8000, rows, endpoint=True).tolist()),
        top_k=top_k,
        selection=b"",
        proof=b"",
        allowed=None,
    )
    return Record(completed, blindings, bytes(core.random_scalars(1)[0]), case)


# N = 2, N = K + 1, about powers of two (m changes at u = 2^k), the largest real dimensions.
LIMITS = [(2, 1, 1), (5, 4, 2), (7, 2, 3), (8, 2, 3), (9, 8, 1), (15, 3, 2), (16, 3, 257)]
SLOW_LIMITS = [(17, 3, 255), (31, 3, 256), (32, 3, 384), (33, 32, 2), (64, 5, 3), (127, 9, 2)]


@pytest.mark.parametrize(
    ("rows", "top_k", "dimension"),
    [*LIMITS, *(pytest.param(*limit, marks=pytest.mark.slow) for limit in SLOW_LIMITS)],
)
def test_sizes_at_their_limits_are_decided_alike(rows: int, top_k: int, dimension: int) -> None:
    record = sized_record(rows, top_k, dimension)
    right = record.selected
    honest = record.prove(right)
    assert core_accepts(honest)
    assert reference_accepts(honest)
    other = record.prove(tuple(sorted(set(right) ^ {0, rows - 1})))
    last = record.prove(tuple(range(rows - len(right) - 1, rows)))
    for wrong in (other, last, replace(honest, proof=last.proof)):
        assert not core_accepts(wrong)
        assert not reference_accepts(wrong)


@settings(max_examples=25, deadline=None)
@given(records(), st.data())
def test_another_set_is_rejected_by_both(record: Record, data: st.DataObject) -> None:
    wrong = data.draw(
        st.sets(st.integers(0, record.case.rows - 1), max_size=9).map(lambda s: tuple(sorted(s)))
    )
    if wrong == record.selected:
        return
    case = record.prove(wrong)
    assert not core_accepts(case)
    assert not reference_accepts(case)


@settings(max_examples=25, deadline=None)
@given(records(), st.data())
def test_changed_bytes_are_rejected_by_both(record: Record, data: st.DataObject) -> None:
    case = record.prove(record.selected)
    proof = bytearray(case.proof)
    kind = data.draw(st.sampled_from(["bit", "element", "cut", "extend", "swap"]))
    element = 32 * data.draw(st.integers(0, len(proof) // 32 - 1))
    if kind == "bit":
        proof[data.draw(st.integers(0, len(proof) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "element":
        proof[element : element + 32] = data.draw(st.binary(min_size=32, max_size=32))
    elif kind == "cut":
        del proof[data.draw(st.integers(0, len(proof) - 1)) :]
    elif kind == "extend":
        proof += data.draw(st.binary(min_size=1, max_size=64))
    else:
        proof[:32], proof[element : element + 32] = proof[element : element + 32], proof[:32]
    changed = replace(case, proof=bytes(proof))
    if changed != case:
        assert not core_accepts(changed)
        assert not reference_accepts(changed)


@settings(max_examples=40, deadline=None)
@given(records(), st.data())
def test_changed_statements_are_decided_alike(record: Record, data: st.DataObject) -> None:
    """Not always a rejection: noise may move far from the boundary without any effect."""
    case = record.prove(record.selected)
    i = data.draw(st.integers(0, case.rows - 1))
    j = data.draw(st.integers(0, len(case.query) - 1))
    noise, query, rows = list(case.noise), list(case.query), case.rows
    noise[i] += data.draw(st.sampled_from([-(2**20), -1, 1, 2 * 127**2, 2**20]))
    query[j] += data.draw(st.sampled_from([-1, 1, 300]))
    commitment = case.commitments[32 * i : 32 * i + 32]
    everyone = tuple(range(rows))
    changes: list[dict[str, Any]] = [
        {"noise": tuple(noise)},
        {"query": tuple(query)},
        {"query": (*case.query, 0)},
        {"top_k": case.top_k + 1},
        {"top_k": case.top_k - 1},
        {"top_k": 2**32},
        {"context": bytes(32)},
        {"context": case.context[1:]},
        {"commitments": commitment * rows},
        {"commitments": case.commitments[32:]},
        {"commitments": case.commitments[:-1] + bytes([case.commitments[-1] | 0x80])},
        {"selection": commitment},
        {"selection": bytes(32)},
        {"selection": b"\1" + bytes(31)},
        {"allowed": everyone},
        {"allowed": everyone[:-1]},
        {"allowed": (*everyone, 0)},
        {"allowed": (*everyone, rows)},
        {"allowed": None if case.allowed is None else case.allowed[::-1]},
        {"allowed": ()},
        {"ties": not case.ties},
        {"squared_norm": 127**2 + 1},
        {"squared_norm": 4095**2},
        {"squared_norm": 0},
        {"squared_norm": 2**24},
    ]
    changed = replace(case, **data.draw(st.sampled_from(changes)))
    assert core_accepts(changed) == reference_accepts(changed)
    more_rows = data.draw(st.sampled_from([0, rows - 1, rows + 1]))
    assert not core_accepts(case, more_rows)
    assert not reference_accepts(case, more_rows)


@for_each("vector", SELECTION)
def test_core_decides_the_selection_vectors(vector: dict[str, Any]) -> None:
    context, _, commitments, query, noise, top_k, selection, proof, allowed = selection_arguments(
        vector
    )
    passed = None if allowed is None else tuple(allowed)
    case = Case(
        context,
        commitments,
        tuple(query),
        tuple(noise),
        top_k,
        selection,
        proof,
        passed,
        **selection_options(vector),
    )
    assert core_accepts(case) == reference_accepts(case) == (vector["expect"] == "accept")
