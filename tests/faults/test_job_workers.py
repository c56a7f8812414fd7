"""Workers killed in the middle of every kind of job: nothing is lost, and nothing differs."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from job_workers import Workers, kill_at_work
from ragaudit import core
from ragaudit.encoding.errors import UnavailableError
from ragaudit.lab.bench.workload import Sizes, Workload
from ragaudit.ledger.log.database import close_engine, open_engine
from ragaudit.prover import work
from ragaudit.prover.work import ProvenIndex, WindowWork, WitnessedSelection
from ragaudit.serving.jobs.job import JobFailed, JobsWithdrawn
from sqlalchemy import Engine, text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SIZES = Sizes(rows=6000, dimension=128, top_k=5, sigma="2")
RECORDS = 40


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload(SIZES)


@pytest.fixture
def workers(tmp_path: Path, make_database: Callable[..., str]) -> Iterator[Workers]:
    made = Workers(tmp_path, make_database("postgresql"))
    yield made
    made.stop()


@pytest.fixture
def engine(workers: Workers) -> Iterator[Engine]:
    opened = open_engine(workers.settings().store.url)
    yield opened
    close_engine(opened)


def while_killed(workers: Workers, engine: Engine, kind: str, wait: Callable[[], None]) -> None:
    """Wait for jobs while workers are killed in the middle of them."""
    failed: list[BaseException] = []

    def kill() -> None:
        try:
            kill_at_work(workers, engine, kind, deaths=2)
        except BaseException as error:
            failed.append(error)

    workers.start(2)
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        wait()
    finally:
        thread.join()
    assert not failed, failed


def test_rows_are_committed_to_as_by_one_process(
    workers: Workers, engine: Engine, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_BLOCK_ENTRIES", workload.rows.size // 3)
    window = WindowWork(workers.runner(engine), "w1")
    found: list[bytes] = []
    while_killed(
        workers,
        engine,
        work.ROWS,
        lambda: found.append(window.commit_rows(workload.rows, workload.blindings)),
    )
    assert found == [core.commit_rows(workload.rows, workload.blindings)]


def test_an_index_argument_holds(workers: Workers, engine: Engine, workload: Workload) -> None:
    statement = workload.index_statement(workload.commitments)
    window = WindowWork(workers.runner(engine), "w1")
    found: list[bytes] = []
    while_killed(
        workers,
        engine,
        work.INDEX,
        lambda: found.append(window.prove_index(statement, workload.rows, workload.blindings)),
    )
    core.verify_index(statement, found[0])


def test_selection_arguments_hold_each_once(
    workers: Workers, engine: Engine, workload: Workload
) -> None:
    index = ProvenIndex(workload.rows, workload.blindings, workload.commitments)
    questions = [workload.question(number) for number in range(RECORDS)]
    wanted = [
        WitnessedSelection(workload.statement(each), each.selected, each.blinding)
        for each in questions
    ]
    window = WindowWork(workers.runner(engine), "w1")
    half = RECORDS // 2
    jobs = [window.selections(index, part, "records") for part in (wanted[:half], wanted[half:])]
    found: dict[str, tuple[bytes, ...]] = {}

    def wait() -> None:
        for job, proofs in window.proofs(jobs):
            assert job.key not in found
            found[job.key] = proofs

    while_killed(workers, engine, work.SELECTIONS, wait)
    proofs = [proof for job in jobs for proof in found[job.key]]
    core.verify_selections(list(zip([each.statement for each in wanted], proofs, strict=True)))
    # What was stored first is what everybody gets from then on.
    assert dict(window.proofs(jobs)) == {job: found[job.key] for job in jobs}
    with engine.connect() as connection:
        # The queue and the table of jobs have nothing left; no task stays behind.
        assert connection.scalar(text("SELECT count(*) FROM prover_job")) == 0
        assert connection.scalar(text("SELECT count(*) FROM prover_job_result")) == len(jobs)


def test_a_worker_whose_heartbeat_is_late_does_no_harm(
    workers: Workers, engine: Engine, workload: Workload
) -> None:
    """It counts as dead and lives: two do its job, one result stays, and it goes on working."""
    runner = workers.runner(engine)
    found: list[bytes] = []
    waiting = threading.Thread(
        target=lambda: found.append(
            WindowWork(runner, "w1").commit_rows(workload.rows, workload.blindings)
        )
    )
    waiting.start()
    workers.start()
    late = workers.processes[0]
    wait_until_taken(engine, 1)
    late.send_signal(signal.SIGSTOP)
    workers.start()
    # The other one is given the job only because the first one counts as dead.
    wait_until_taken(engine, 2)
    late.send_signal(signal.SIGCONT)
    waiting.join()
    assert found == [core.commit_rows(workload.rows, workload.blindings)]
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM prover_job_result")) == 1
    other = workers.processes.pop()
    other.kill()
    other.wait()
    again = WindowWork(runner, "w2").commit_rows(workload.rows, workload.blindings)
    assert again == found[0] and late.poll() is None


def wait_until_taken(engine: Engine, times: int) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with engine.connect() as connection:
            if (connection.scalar(text("SELECT max(taken) FROM prover_job")) or 0) >= times:
                return
        time.sleep(0.02)
    raise AssertionError(f"no job was taken {times} times")


def test_a_job_that_cannot_be_done_is_reported_not_repeated(
    workers: Workers, engine: Engine, workload: Workload
) -> None:
    workers.start()
    window = WindowWork(workers.runner(engine), "w1")
    blindings = workload.blindings.copy()
    blindings[0] = 255  # no canonical scalar
    with pytest.raises(JobFailed, match="row commitments cannot be done: MalformedInput"):
        window.commit_rows(workload.rows, blindings)


def test_workers_stop_at_a_window_that_is_withdrawn(
    workers: Workers, engine: Engine, workload: Workload
) -> None:
    runner = workers.runner(engine)
    workers.start()

    def withdraw() -> None:
        wait_until_taken(engine, 1)
        runner.withdraw("w1")

    withdrawing = threading.Thread(target=withdraw)
    withdrawing.start()
    with pytest.raises(JobsWithdrawn):
        WindowWork(runner, "w1").commit_rows(workload.rows, workload.blindings)
    withdrawing.join()
    # Drained: it ends with the code of a command that did what it was told.
    assert workers.stop(signal.SIGTERM) == [0]
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM prover_job_result")) == 0


def test_a_queue_that_was_lost_is_filled_again(
    workers: Workers, engine: Engine, workload: Workload
) -> None:
    window = WindowWork(workers.runner(engine), "w1")
    found: list[bytes] = []
    waiting = threading.Thread(
        target=lambda: found.append(window.commit_rows(workload.rows, workload.blindings))
    )
    waiting.start()
    state = workers.run("worker", "--status", "--json")
    assert (state.returncode, state.stdout.split()) == (1, b'{"workers": 0, "jobs": 1}'.split())
    with engine.begin() as connection:
        # Its triggers look for their tables where the queue's own connections do.
        connection.execute(text("SET LOCAL search_path TO ragaudit_prover"))
        connection.execute(text("DELETE FROM procrastinate_jobs"))
    workers.start()
    waiting.join()
    assert found == [core.commit_rows(workload.rows, workload.blindings)]
    assert workers.run("worker", "--status").returncode == 0


def test_what_the_queue_holds_is_keys(workers: Workers, engine: Engine, workload: Workload) -> None:
    window = WindowWork(workers.runner(engine), "w1")

    def wait() -> None:
        with pytest.raises(JobsWithdrawn):
            window.commit_rows(workload.rows, workload.blindings)

    stopped = threading.Thread(target=wait)
    stopped.start()
    queued: list[str] = []
    while not queued:
        time.sleep(0.1)
        with engine.connect() as connection:
            queued = list(
                connection.scalars(text("SELECT j::text FROM ragaudit_prover.procrastinate_jobs j"))
            )
    with engine.connect() as connection:
        (key,) = connection.scalars(text("SELECT key FROM prover_job"))
    assert len(queued) == 1 and key in queued[0] and len(queued[0]) < 400
    workers.runner(engine).withdraw("w1")
    stopped.join()


def test_without_the_queues_tables_a_worker_says_what_helps(
    workers: Workers, engine: Engine, workload: Workload
) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA ragaudit_prover CASCADE"))
    ended = workers.run("worker")
    assert ended.returncode not in (0, 1) and b"migrate" in ended.stderr
    with pytest.raises(UnavailableError, match="migrate"):
        WindowWork(workers.runner(engine), "w1").commit_rows(workload.rows, workload.blindings)
