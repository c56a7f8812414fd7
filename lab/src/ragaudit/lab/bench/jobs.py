"""What workers over a queue lose against one process, on the same cores and the same work.

The work is a window's: the rows are committed to, and R records proven. One process has the
compiled core use every core; each worker has one thread, so that together they have at least as
many as there are cores.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ragaudit import core
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.errors import InternalError, UnavailableError
from ragaudit.lab.bench.harness import Measurement, Notify, summarise
from ragaudit.lab.bench.workload import Workload
from ragaudit.ledger.log.database import close_engine, open_engine
from ragaudit.prover.command.set_up import set_up
from ragaudit.prover.store.database import Store
from ragaudit.prover.work import (
    JOBS,
    ProvenIndex,
    WindowWork,
    WitnessedSelection,
    chunk_records,
)
from ragaudit.serving.jobs.opening import JobSettings, make_queue, open_queue, open_runner
from ragaudit.serving.jobs.runner import Runner

ONE: Final = "one process"
_START_SECONDS: Final = 120.0


@dataclass(frozen=True)
class JobSizes:
    """The sizes of the work.

    Attributes:
        rows: N.
        dimension: d.
        records: R.
        workers: processes of one thread each.
    """

    rows: int
    dimension: int
    records: int
    workers: int


@dataclass(frozen=True)
class _Done:
    """What came of the work: C_0 .. C_(N-1), and an argument for each statement."""

    commitments: bytes
    proven: list[tuple[SelectionStatement, bytes]]


def jobs(
    sizes: JobSizes, work: Workload, database: str, runs: int, notify: Notify
) -> list[Measurement]:
    """Measure the work in one process and over a queue, in turns.

    Args:
        sizes: of the work; `work` has as many rows.
        work: rows and questions.
        database: URL of an empty PostgreSQL database.
        runs: of each.
        notify: told what is being done.

    Raises:
        UnsupportedError: the database is no PostgreSQL, or procrastinate is missing.
        UnavailableError: the workers do not start.
        InternalError: the bytes differ, or an argument does not hold.
    """
    index = ProvenIndex(work.rows, work.blindings, work.commitments)
    wanted = []
    for number in range(sizes.records):
        notify("asking", number, sizes.records)
        question = work.question(number)
        wanted.append(
            WitnessedSelection(work.statement(question), question.selected, question.blinding)
        )
    step = chunk_records(sizes.rows)
    seconds: dict[str, list[float]] = {}
    over_queue = f"{sizes.workers} workers over a queue"
    with TemporaryDirectory() as temporary, _workers(sizes, database, Path(temporary)) as runners:
        for run in range(-1, runs):
            for name, runner in zip((ONE, over_queue), runners, strict=True):
                notify(f"{name}, run {run + 1}", 0, 0)
                # The first run warms up: each worker derives generators for itself.
                asked = wanted if run >= 0 else wanted[: 2 * sizes.workers * step]
                took, done = _timed(partial(_do, runner, f"{name} {run}", index, asked))
                _demand_same(work, done)
                if run >= 0:
                    seconds.setdefault(name, []).append(took)
    one, several = (summarise(name, seconds[name]) for name in (ONE, over_queue))
    lost = 1000 * (1 - one.median / several.median)
    return [one, several.beside(one, details={"lost per mille": lost})]


def _do(
    runner: Runner, window: str, index: ProvenIndex, wanted: Sequence[WitnessedSelection]
) -> _Done:
    window_work = WindowWork(runner, window)
    commitments = window_work.commit_rows(index.rows, index.blindings)
    step = chunk_records(len(index.rows))
    parts = [wanted[at : at + step] for at in range(0, len(wanted), step)]
    made = [window_work.selections(index, part, f"from {at}") for at, part in enumerate(parts)]
    proofs = dict(window_work.proofs(made))
    proven = [
        (each.statement, proof)
        for job, part in zip(made, parts, strict=True)
        for each, proof in zip(part, proofs[job], strict=True)
    ]
    runner.withdraw(window)
    return _Done(commitments, proven)


def _timed(action: Callable[[], _Done]) -> tuple[float, _Done]:
    start = time.perf_counter()
    done = action()
    return time.perf_counter() - start, done


def _demand_same(work: Workload, done: _Done) -> None:
    if done.commitments != work.commitments:
        raise InternalError("jobs commit to other rows than this process does")
    core.verify_selections(done.proven)


@contextmanager
def _workers(sizes: JobSizes, database: str, folder: Path) -> Iterator[tuple[Runner, Runner]]:
    """Yield the runner of one process and that of workers, who are alive."""
    settings = JobSettings(executor="procrastinate", folder=folder / "arrays")
    made = set_up(folder / "prover", provider="bench.example", verifier="http://127.0.0.1:1")
    Store.migrate(database)
    make_queue(settings, JOBS, database)
    environment = {
        **os.environ,
        "RAGAUDIT_PROVER__STORE__URL": database,
        "RAGAUDIT_PROVER__JOBS__EXECUTOR": settings.executor,
        "RAGAUDIT_PROVER__JOBS__FOLDER": str(settings.folder),
    }
    command = [sys.executable, "-m", "ragaudit.cli", "prover", "worker", "--threads", "1"]
    engine = open_engine(database)
    one = open_runner(JobSettings(), JOBS, engine)
    several = open_runner(settings, JOBS, engine)
    processes = [
        subprocess.Popen(  # noqa: S603 - our own command line
            [*command, "--settings", str(made.settings)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(sizes.workers)
    ]
    try:
        _wait(settings, database, sizes.workers)
        yield one, several
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        one.close()
        several.close()
        close_engine(engine)


def _wait(settings: JobSettings, database: str, workers: int) -> None:
    until = time.monotonic() + _START_SECONDS
    with open_queue(settings, JOBS, database) as queue:
        while queue.state().workers < workers:
            if time.monotonic() > until:
                raise UnavailableError("the workers did not start", where="--workers")
            time.sleep(0.2)
