"""Engines of the procedure: which is used, and one that splits its work into jobs."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit import core
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.lab.bench.generation import Charges, GenerationSizes
from ragaudit.lab.bench.workload import Sizes, Workload
from ragaudit.ledger.log.database import close_engine, open_engine, write_transaction
from ragaudit.serving.jobs.job import JobTable, MemoryArrays
from ragaudit.serving.jobs.runner import InProcess, Runner
from ragaudit.verifier import engines, work
from ragaudit.verifier.engines import (
    ArgumentRejected,
    ChargesRejected,
    CoreEngine,
    Engine,
    ProvenSelection,
    ReferenceEngine,
    SelectionsRejected,
    engine,
)
from ragaudit.verifier.service import tables
from ragaudit.verifier.work import KINDS, SELECTIONS, JobEngine

BOTH: list[Engine] = [CoreEngine(), ReferenceEngine()]
L = 2**252 + 27742317777372353535851937790883648493
scalars = st.integers(0, L - 1).map(lambda x: x.to_bytes(32, "little"))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-127, 127), min_size=5, max_size=9), scalars)
def test_rows_commit_alike(row: list[int], blinding: bytes) -> None:
    made = {engine.commit_row(row, blinding) for engine in BOTH}
    assert len(made) == 1


@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, 2**32 - 1), max_size=6), scalars)
def test_selections_commit_alike(positions: set[int], blinding: bytes) -> None:
    made = {engine.commit_selection(sorted(positions), blinding) for engine in BOTH}
    assert len(made) == 1


@pytest.mark.parametrize("engine", BOTH)
def test_openings_outside_their_range_are_rejected(engine: engines.Engine) -> None:
    too_large = L.to_bytes(32, "little")
    for call in (
        lambda: engine.commit_row([1, 2, 3, 4, 5], too_large),
        lambda: engine.commit_row([1, 2, 3, 4, 5], b"short"),
        lambda: engine.commit_selection([1], too_large),
        lambda: engine.commit_selection([1, 1], bytes(32)),
        lambda: engine.commit_selection([-1], bytes(32)),
        lambda: engine.commit_selection([2**32], bytes(32)),
    ):
        with pytest.raises(ArgumentRejected):
            call()  # type: ignore[no-untyped-call]


def test_noise_and_sketches_are_alike() -> None:
    for sigma in ("0.001", "4"):
        drawn = [engine.sample_noise(sigma, b"k" * 32, 20) for engine in BOTH]
        assert np.array_equal(drawn[0], drawn[1])
        assert drawn[0].dtype == drawn[1].dtype == np.int64
    sketches = {engine.sketch([1, -2, 3], b"s" * 32, 64) for engine in BOTH}
    assert len(sketches) == 1


def proven(count: int) -> list[ProvenSelection]:
    generator = random.Random(5)
    vectors = np.array(
        [[generator.randrange(-40, 40) for _ in range(4)] for _ in range(6)], dtype=np.int8
    )
    rows = core.complete_rows(vectors)
    blindings = np.frombuffer(
        b"".join(generator.randbytes(31) + b"\0" for _ in range(6)), dtype=np.uint8
    ).reshape(6, 32)
    commitments = core.commit_rows(rows, blindings)
    made = []
    for number in range(count):
        query = np.array([30, number, -5, 2], dtype=np.int16)
        noise = np.array([generator.randrange(-50_000, 50_000) for _ in range(6)], dtype=np.int64)
        noised = vectors.astype(np.int64) @ query.astype(np.int64) + noise
        selected = sorted(int(i) for i in np.argsort(noised)[-2:])
        blinding = generator.randbytes(31) + b"\0"
        statement = SelectionStatement(
            context=generator.randbytes(32), rows=6, commitments=commitments, query=query,
            noise=noise, top_k=2, selection_commitment=core.commit_selection(selected, blinding),
        )  # fmt: skip
        proof = core.prove_selection(statement, rows, blindings, selected, blinding)
        made.append((statement, proof))
    return made


@pytest.mark.parametrize("engine", BOTH)
def test_a_batch_names_its_bad_members(engine: engines.Engine) -> None:
    good = proven(4)
    engine.verify_selections(good)
    engine.verify_selections([])
    swapped = [good[0], good[2], good[1], good[3]]
    bad = [(statement, proof) for (statement, _), (_, proof) in zip(good, swapped, strict=True)]
    with pytest.raises(SelectionsRejected) as caught:
        engine.verify_selections(bad)
    assert caught.value.failed == (1, 2)


def test_a_statement_that_is_no_statement_rejects_itself_only() -> None:
    good = proven(3)
    malformed = replace(good[1][0], selection_commitment=b"")
    for each in BOTH:
        with pytest.raises(SelectionsRejected) as caught:
            each.verify_selections([good[0], (malformed, good[1][1]), good[2]])
        assert caught.value.failed == (1,)


@pytest.mark.parametrize("change", [{"squared_norm": 16128}, {"keeps_ties": True}])
def test_a_selection_of_another_norm_or_argument_is_rejected(change: dict[str, Any]) -> None:
    statement, proof = proven(1)[0]
    for each in (ReferenceEngine(), engines.engine("core")):
        with pytest.raises(SelectionsRejected):
            each.verify_selections([(replace(statement, **change), proof)])


def test_engines_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engines.engine("core").name == "core"
    assert engines.engine("reference").name == "reference"
    assert engines.fastest_engine().name == "core"
    with pytest.raises(UnsupportedError, match="no engine"):
        engines.engine("fast")
    monkeypatch.setitem(sys.modules, "ragaudit.core", None)
    engines.engine.cache_clear()
    assert engines.fastest_engine().name == "reference"
    with pytest.raises(UnsupportedError, match="not installed"):
        engines.engine("core")
    engines.engine.cache_clear()


WORKLOAD, OTHER = (
    Workload(Sizes(rows=40, dimension=16, top_k=3, sigma="2"), seed=n) for n in (1, 2)
)


@pytest.fixture
def make_runner(tmp_path: Any) -> Iterator[Callable[..., Runner]]:
    database = open_engine(f"sqlite:///{tmp_path}/jobs.db")
    with write_transaction(database) as connection:
        tables.metadata.create_all(connection)
    table = JobTable(database, tables.jobs)

    def make(**kinds: Any) -> Runner:
        arrays = MemoryArrays()
        return Runner(table, arrays, InProcess(table, arrays, {**KINDS, **kinds}))

    yield make
    close_engine(database)


def test_selections_are_judged_as_by_the_engine(
    make_runner: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_RECORDS", 2)
    proven = [WORKLOAD.proven(WORKLOAD.question(number)) for number in range(5)]
    proven += [OTHER.proven(OTHER.question(number)) for number in range(2)]
    judge = JobEngine(engine("core"), make_runner(), "w1")
    judge.verify_selections(proven)
    flipped = [(one, proof[:40] + bytes([proof[40] ^ 1]) + proof[41:]) for one, proof in proven]
    bad = [*proven[:3], flipped[3], proven[4], proven[5], flipped[6]]
    with pytest.raises(SelectionsRejected) as error:
        judge.verify_selections(bad)
    assert error.value.failed == (3, 6)
    # Of another index, and with a filter, which a task must carry.
    allowed = [(replace(proven[0][0], allowed=[0, 1, 2, 3]), proven[0][1])]
    for verify in (judge.verify_selections, engine("core").verify_selections):
        with pytest.raises(SelectionsRejected):
            verify(allowed)


def test_an_index_argument_is_judged_as_by_the_engine(
    make_runner: Callable[..., Runner],
) -> None:
    statement = WORKLOAD.index_statement(WORKLOAD.commitments)
    proof = core.prove_index(statement, WORKLOAD.rows, WORKLOAD.blindings)
    judge = JobEngine(engine("core"), make_runner(), "w1")
    judge.verify_index(statement, proof)
    with pytest.raises(ArgumentRejected):
        judge.verify_index(replace(statement, context=bytes(32)), proof)


SIZES = GenerationSizes(rows=20, dimension=3, records=6, charged=4, uses=2, group=3)


def test_a_budget_argument_is_judged_as_by_the_engine(make_runner: Callable[..., Runner]) -> None:
    statement, charged, blindings = Charges(SIZES).budget
    proof = core.prove_budget(statement, charged, blindings)
    judge = JobEngine(engine("core"), make_runner(), "w1")
    judge.verify_budget(statement, proof)
    # Another number of uses was proven, and another log.
    for other in (replace(statement, uses=1), replace(statement, context=bytes([1]) * 32)):
        with pytest.raises(ArgumentRejected):
            judge.verify_budget(other, proof)


@pytest.mark.parametrize("name", ["core", "reference"])
def test_charges_are_judged_as_by_the_engine(
    make_runner: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    mine, others = Charges(SIZES), Charges(replace(SIZES, rows=24))
    jobs: list[bytes] = []

    def noted(*arguments: Any) -> bytes:
        jobs.append(arguments[0])
        return KINDS[work.CHARGES](*arguments)

    # Two groups of three entries each over 20 rows.
    monkeypatch.setattr(work, "_CHARGED_ROWS", 2 * 3 * 20)
    proven = [(mine.group[0], mine.prove_group()) for _ in range(3)]
    proven.append((others.group[0], others.prove_group()))
    judge = JobEngine(engine(name), make_runner(**{work.CHARGES: noted}), "w1")
    judge.verify_charges(proven)
    assert len(jobs) == 3
    strict = replace(proven[1][0], uses=3)
    bad = [proven[0], (strict, proven[1][1]), (proven[2][0], b""), proven[3]]
    found = []
    for verify in (judge.verify_charges, engine(name).verify_charges):
        with pytest.raises(ChargesRejected) as error:
            verify(bad)
        found.append(error.value.reasons)
    assert found[0] == found[1]
    assert list(found[0]) == [1, 2] and all(found[0].values())


def test_a_job_that_fails_is_no_finding(make_runner: Callable[..., Runner]) -> None:
    def refused(*_: Any) -> bytes:
        raise MalformedError("this worker reads other bytes")

    runner = make_runner(**{SELECTIONS: refused})
    judge = JobEngine(engine("core"), runner, "w1")
    with pytest.raises(InternalError, match="reads other bytes"):
        judge.verify_selections([WORKLOAD.proven(WORKLOAD.question())])
    runner.stop()
    with pytest.raises(InternalError, match="shutting down"):
        judge.verify_selections([WORKLOAD.proven(WORKLOAD.question(1))])


def test_an_outage_is_waited_for(
    make_runner: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_AGAIN_SECONDS", 0)
    outages = [UnavailableError("no disk")] * 3

    def late(*arguments: Any) -> bytes:
        if outages:
            raise outages.pop()
        return KINDS[SELECTIONS](*arguments)

    judge = JobEngine(engine("core"), make_runner(**{SELECTIONS: late}), "w1")
    judge.verify_selections([WORKLOAD.proven(WORKLOAD.question())])
    assert not outages


@pytest.mark.parametrize("name", ["core", "reference"])
def test_a_coalition_is_found_by_parts_as_by_the_engine(
    make_runner: Callable[..., Runner], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rng = np.random.default_rng(4)
    centres = rng.integers(0, 256, (60, 16), dtype=np.uint8)
    given: dict[str, Any] = {
        "accounts": rng.integers(0, 150, 400),
        "times": np.sort(rng.integers(0, 10**5, 400)),
        "anchored": rng.integers(0, 2, 400).astype(np.uint8),
        "sketches": centres[rng.integers(0, 60, 400)] ^ (rng.random((400, 16)) < 0.2),
    }
    near: dict[str, Any] = {"tau": 5000, "life": 20_000, "threshold": 3}
    expected = engine(name).link_accounts(**given, **near)
    assert 1 < len(np.unique(expected)) < 150
    done: list[str] = []

    def noted(*arguments: Any) -> bytes:
        done.append(arguments[1])
        return KINDS[work.COALITION](*arguments)

    judge = JobEngine(engine(name), make_runner(**{work.COALITION: noted}), "w1")
    assert np.array_equal(judge.link_accounts(**given, **near), expected) and not done
    monkeypatch.setattr(work, "_PAIRS", {name: 5000})
    shares: list[float] = []
    found = judge.link_accounts(**given, **near, progress=shares.append)
    # The same components, whatever each is called.
    assert len(np.unique(np.stack([found, expected]), axis=1).T) == len(np.unique(expected))
    assert len(np.unique(found)) == len(np.unique(expected))
    assert len(done) > 3 and shares == sorted(shares)
    # What is done stays until the audit is over.
    before = len(done)
    judge.link_accounts(**given, **near)
    assert len(done) == before
