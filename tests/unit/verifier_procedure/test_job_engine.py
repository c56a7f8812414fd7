"""Arguments checked as jobs: the same answers, and no fault of ours becomes the provider's."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from ragaudit.encoding.errors import InternalError, MalformedError, UnavailableError
from ragaudit.lab.bench.workload import Sizes, Workload
from ragaudit.ledger.log.database import close_engine, open_engine, write_transaction
from ragaudit.serving.jobs.arrays import MemoryArrays
from ragaudit.serving.jobs.in_process import InProcess
from ragaudit.serving.jobs.runner import Runner
from ragaudit.serving.jobs.table import JobTable
from ragaudit.verifier import work
from ragaudit.verifier.engines import ArgumentRejected, SelectionsRejected, engine
from ragaudit.verifier.service import tables
from ragaudit.verifier.work import KINDS, SELECTIONS, JobEngine

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
    from ragaudit import core

    statement = WORKLOAD.index_statement(WORKLOAD.commitments)
    proof = core.prove_index(statement, WORKLOAD.rows, WORKLOAD.blindings)
    judge = JobEngine(engine("core"), make_runner(), "w1")
    judge.verify_index(statement, proof)
    with pytest.raises(ArgumentRejected):
        judge.verify_index(replace(statement, context=bytes(32)), proof)


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
