"""core and the reference verifier are two verifiers of one specification: same decisions always."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import ragaudit.core as core
import ragaudit.verifier.reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.circuits import noise as circuits_noise
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.statements import IndexStatement, SelectionStatement
from ragaudit.lab.attacks.forging.index_prover import commit_field_rows
from ragaudit.verifier.reference import ristretto
from ragaudit.verifier.reference.generators import generator
from ragaudit.verifier.reference.noise import build_sampler
from ragaudit.verifier.reference.ristretto import encode
from reference_vectors import (
    cases,
    index_arguments,
    index_forgeries,
    read,
    selection_arguments,
    selection_options,
)

LISTS = ["H", "Q", "G", "A", "sel/A*", "sel/M", "sel/R", "idx/P", "idx/P*", "idx/M", "idx/R"]
SELECTION_FILES = (
    "selection",
    "selection_edge",
    "selection_noncanonical",
    "selection_b4095",
    "selection_ties",
)
SELECTION = [case for name in SELECTION_FILES for case in cases(name)]


@dataclass(frozen=True)
class Case:
    """Everything that a verification of a selection takes."""

    context: bytes
    commitments: bytes
    query: tuple[int, ...]
    noise: tuple[int, ...]
    top_k: int
    selection: bytes
    proof: bytes
    allowed: tuple[int, ...] | None
    squared_norm: int = 127**2
    ties: bool = False

    @property
    def rows(self) -> int:
        return len(self.noise)

    @property
    def statement(self) -> SelectionStatement:
        return SelectionStatement(
            context=self.context,
            rows=self.rows,
            commitments=self.commitments,
            query=np.array(self.query, dtype=np.int16),
            noise=np.array(self.noise, dtype=np.int64),
            top_k=self.top_k,
            selection_commitment=self.selection,
            allowed=self.allowed,
            squared_norm=self.squared_norm,
            keeps_ties=self.ties,
        )


def core_accepts(case: Case, rows: int | None = None) -> bool:
    try:
        statement = case.statement
        if rows is not None:
            statement = replace(statement, rows=rows)
        core.verify_selection(statement, case.proof)
    except core.CoreError:
        return False
    return True


def reference_accepts(case: Case, rows: int | None = None) -> bool:
    try:
        reference.verify_selection(
            case.context,
            case.rows if rows is None else rows,
            case.commitments,
            case.query,
            case.noise,
            case.top_k,
            case.selection,
            case.proof,
            case.allowed,
            case.squared_norm,
            case.ties,
        )
    except reference.ProofRejected:
        return False
    return True


@dataclass(frozen=True)
class Record:
    """A record with its secrets."""

    rows: npt.NDArray[np.int8]
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
    reach = int((127**2 / d) ** 0.5)
    vectors = rng.integers(-reach, reach, (N, d), endpoint=True).astype(np.int8)
    if draw(st.booleans()):  # equal rows, so ties
        vectors[:] = vectors[0]
    query = rng.integers(-reach, reach, d, endpoint=True)
    spread = draw(st.sampled_from([0, 1, 5_000, 40_000, 200_000, 2**62]))
    noise = rng.integers(-spread, spread, N, endpoint=True)
    allowed = draw(st.none() | st.sets(st.integers(0, N - 1)).map(lambda s: tuple(sorted(s))))
    rows, blindings = core.complete_rows(vectors), core.random_scalars(N)
    case = Case(
        context=rng.bytes(32),
        commitments=core.commit_rows(rows, blindings),
        query=tuple(int(v) for v in query),
        noise=tuple(int(v) for v in noise),
        top_k=draw(st.integers(1, 8)),
        selection=b"",
        proof=b"",
        allowed=allowed,
        ties=draw(st.booleans()),
    )
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


@pytest.mark.parametrize("vector", SELECTION, ids=lambda v: v["name"])
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


def decoded_by(encoding: bytes) -> tuple[bool, bool]:
    """Whether (core, reference) decode 32 bytes as a point."""
    zero = np.zeros((1, 32), dtype=np.uint8)
    decisions = []
    for decode, error in (
        (lambda: core.reblind_rows(encoding, zero, zero), core.MalformedInput),
        (lambda: ristretto.encode(ristretto.decode(encoding)), reference.MalformedProof),
    ):
        try:
            assert decode() == encoding  # type: ignore[no-untyped-call]
            decisions.append(True)
        except error:
            decisions.append(False)
    return decisions[0], decisions[1]


def test_points_are_decoded_alike() -> None:
    """The encodings of RFC 9496, and every other spelling of the valid ones."""
    p = ristretto.P
    for valid in map(bytes.fromhex, read("rfc9496")["multiples"]):
        assert decoded_by(valid) == (True, True)
        s = int.from_bytes(valid, "little")
        for other in {s + 2**255, p - s, p - s + 2**255, s + p} - {s}:
            if other < 2**256:
                assert decoded_by(other.to_bytes(32, "little")) == (False, False), hex(other)
    for refused in read("rfc9496")["refused"].values():
        for encoding in map(bytes.fromhex, refused):
            assert decoded_by(encoding) == (False, False), encoding.hex()


def index_decisions(
    context: bytes,
    rows: int,
    dimension: int,
    commitments: bytes,
    proof: bytes,
    squared_norm: int = 127**2,
) -> tuple[bool, bool]:
    """(core accepts, reference accepts)."""
    statement = IndexStatement(context, rows, dimension, commitments, squared_norm)
    decisions = []
    stated = (context, rows, dimension, commitments)
    ways: tuple[tuple[Callable[[], None], type[Exception]], ...] = (
        (lambda: core.verify_index(statement, proof), core.CoreError),
        (
            lambda: reference.verify_index(*stated, proof, squared_norm),
            reference.ProofRejected,
        ),
    )
    for verify, error in ways:
        try:
            verify()
            decisions.append(True)
        except error:
            decisions.append(False)
    return decisions[0], decisions[1]


@pytest.mark.parametrize(
    "vector",
    [*cases("index_v2"), *cases("index_noncanonical"), *index_forgeries()],
    ids=lambda v: v["name"],
)
def test_core_decides_the_index_vectors(vector: dict[str, Any]) -> None:
    expected = vector["expect"] == "accept"
    assert index_decisions(*index_arguments(vector)) == (expected, expected)


@settings(max_examples=2, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32), st.data())
def test_indexes_are_decided_alike(N: int, d: int, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    reach = int((127**2 / d) ** 0.5)
    rows = core.complete_rows(rng.integers(-reach, reach, (N, d), endpoint=True).astype(np.int8))
    blindings = core.random_scalars(N)
    commitments = core.commit_rows(rows, blindings)
    context = rng.bytes(32)
    proof = core.prove_index(IndexStatement(context, N, d, commitments), rows, blindings)
    assert index_decisions(context, N, d, commitments, proof) == (True, True)
    changed = bytearray(proof)
    changed[data.draw(st.integers(0, len(proof) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for arguments in (
        (context, N, d, commitments, bytes(changed)),
        (context, N, d + 1, commitments, proof),
        (context, N + 1, d, commitments, proof),
        (bytes(32), N, d, commitments, proof),
        (context, N, d, commitments, proof[:-32]),
        (context, N, d, commitments, proof + bytes(32)),
    ):
        assert index_decisions(*arguments) == (False, False)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [927, 928, 1023, 1024])
def test_large_indexes_are_decided_alike(rows: int) -> None:
    """R = 927 range rows; one more variable from 1024 rows on."""
    vectors = np.random.default_rng(rows).integers(-90, 91, (rows, 1)).astype(np.int8)
    completed, blindings = core.complete_rows(vectors), core.random_scalars(rows)
    commitments = core.commit_rows(completed, blindings)
    statement = IndexStatement(bytes(32), rows, 1, commitments)
    proof = core.prove_index(statement, completed, blindings)
    assert index_decisions(bytes(32), rows, 1, commitments, proof) == (True, True)
    changed = proof[:-32] + bytes(32)
    assert index_decisions(bytes(32), rows, 1, commitments, changed) == (False, False)


@pytest.mark.parametrize("row", [[1270, 0, 0, 0, 0], [126, 0, 0, 0, 0], [2**44, 1, 0, 0, 0]])
def test_rows_of_another_norm_are_rejected_by_both(row: list[int]) -> None:
    rows = np.array([row], dtype=np.int64)
    blindings = core.random_scalars(1)
    blinding = int.from_bytes(bytes(blindings[0]), "little")
    commitments = commit_field_rows(reference, [row], [blinding])
    proof = core.prove_index(IndexStatement(bytes(32), 1, 1, commitments), rows, blindings)
    assert index_decisions(bytes(32), 1, 1, commitments, proof) == (False, False)


def test_dimension_zero_is_refused_by_both() -> None:
    """Rows that are nothing but their completion, honestly proven: spec 4.1.2 asks for d >= 1."""
    rows = np.array([[127, 0, 0, 0], [0, 127, 0, 0]], dtype=np.int8)
    blindings = core.random_scalars(2)
    commitments = core.commit_rows(rows, blindings)
    try:
        proof = core.prove_index(IndexStatement(bytes(32), 2, 0, commitments), rows, blindings)
    except core.CoreError:
        proof = bytes(2848)
    assert index_decisions(bytes(32), 2, 0, commitments, proof) == (False, False)
    case = Case(bytes(32), commitments, (), (5, 0), 1, bytes(32), bytes(1984), None)
    assert not core_accepts(case)
    assert not reference_accepts(case)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(LISTS), st.integers(0, 2**40))
def test_generators_agree(name: str, index: int) -> None:
    index = 0 if name in {"H", "Q", "sel/A*", "idx/P*"} else index
    assert core.generator(name, index) == encode(generator(name, index))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["0.001", "0.0317", "0.0318", "0.25", "1", "10", "50", "30000000"]),
    st.binary(min_size=32, max_size=32),
    st.integers(0, 200),
)
def test_noise_agrees_in_all_three(sigma: str, key: bytes, count: int) -> None:
    expected = reference.sample_noise(sigma, key, count)
    sampler = build_sampler(sigma)
    thresholds = b"".join(value.to_bytes(16, "little") for value in sampler.thresholds)
    sampled = core.sample_noise(thresholds, sampler.factor, sampler.levels, key, count)
    assert sampled.tolist() == expected
    table = circuits_noise.table(circuits_noise.NoiseParameters.for_sigma(sigma))
    assert circuits_noise.sample_noise(table, key, count).tolist() == expected
