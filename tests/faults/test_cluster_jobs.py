"""A prover's jobs on a cluster of Ray: the same results, whoever dies, and nothing told to it."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ragaudit import core
from ragaudit.encoding.errors import UnavailableError
from ragaudit.lab.bench.workload import Sizes, Workload
from ragaudit.ledger.log.database import close_engine, open_engine, write_transaction
from ragaudit.prover import work
from ragaudit.prover.store import tables
from ragaudit.prover.work import JOBS, ProvenIndex, WindowWork, WitnessedSelection
from ragaudit.serving.jobs import cluster as cluster_executor
from ragaudit.serving.jobs.cluster import Cluster
from ragaudit.serving.jobs.job import JobFailed, JobsWithdrawn
from ragaudit.serving.jobs.opening import check_jobs, open_runner
from ragaudit.serving.jobs.runner import Runner
from ragaudit.serving.jobs.settings import JobSettings
from sqlalchemy import Engine, func, select

pytest.importorskip("ray")
from ray_clusters import RayCluster

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

SIZES = Sizes(rows=6000, dimension=128, top_k=5, sigma="2")
RECORDS = 8


@dataclass
class Scene:
    """A prover's database and its runner on a cluster."""

    settings: JobSettings
    engine: Engine
    runner: Runner

    @property
    def executor(self) -> Cluster:
        found = self.runner._executor
        assert isinstance(found, Cluster)
        return found

    def driver(self) -> int:
        """The process between."""
        driver = self.executor._driver
        assert driver is not None
        return driver._process.pid

    def count(self, table: str) -> int:
        with self.engine.connect() as connection:
            query = select(func.count()).select_from(getattr(tables.jobs, table))
            return connection.scalar(query) or 0


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload(SIZES)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    made = RayCluster(tmp_path_factory.mktemp("ray"))
    yield made
    made.stop()


@pytest.fixture
def scene(tmp_path: Path, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    # The environment is where a service may have its database from.
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", f"sqlite:///{tmp_path}/s3cret.db")
    settings = JobSettings(
        executor="ray",
        folder=tmp_path / "arrays",
        ray_address=cluster.address,
        ray_token_file=cluster.token_file,
        ray_cores=1,
    )
    engine = open_engine(f"sqlite:///{tmp_path}/s3cret.db")
    with write_transaction(engine) as connection:
        tables.metadata.create_all(connection)
    made = Scene(settings, engine, open_runner(settings, JOBS, engine))
    yield made
    made.runner.close()
    close_engine(engine)


def wait_for(found: Callable[[], object]) -> None:
    until = time.monotonic() + 120
    while not found():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_window_is_proven_as_by_one_process(
    scene: Scene, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_BLOCK_ENTRIES", workload.rows.size // 3)
    window = WindowWork(scene.runner, "w1")
    assert window.commit_rows(workload.rows, workload.blindings) == core.commit_rows(
        workload.rows, workload.blindings
    )
    assert scene.count("result") == 3
    index = ProvenIndex(workload.rows, workload.blindings, workload.commitments)
    questions = [workload.question(number) for number in range(RECORDS)]
    wanted = [
        WitnessedSelection(workload.statement(each), each.selected, each.blinding)
        for each in questions
    ]
    # Arguments are drawn: of each the first one stays, and holds.
    statement = workload.index_statement(workload.commitments)
    core.verify_index(statement, window.prove_index(statement, workload.rows, workload.blindings))
    jobs = [window.selections(index, wanted[at : at + 2], "two") for at in range(0, RECORDS, 2)]
    found = dict(window.proofs(jobs))
    proofs = [proof for job in jobs for proof in found[job]]
    core.verify_selections(list(zip([each.statement for each in wanted], proofs, strict=True)))
    assert dict(window.proofs(jobs)) == found
    assert scene.count("job") == 0


def test_a_worker_and_the_process_between_are_killed(
    scene: Scene, cluster: RayCluster, workload: Workload
) -> None:
    found: list[bytes] = []
    window = WindowWork(scene.runner, "w1")
    waiting = threading.Thread(
        target=lambda: found.append(window.commit_rows(workload.rows, workload.blindings))
    )
    waiting.start()
    wait_for(cluster.workers)
    before = cluster.workers()
    for worker in before:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: set(cluster.workers()) - set(before))
    os.kill(scene.driver(), signal.SIGKILL)
    waiting.join()
    assert found == [core.commit_rows(workload.rows, workload.blindings)]
    # Nothing of what was killed is left to work.
    wait_for(lambda: not cluster.workers())


def test_a_job_that_no_worker_survives_is_given_up(
    scene: Scene, cluster: RayCluster, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_executor, "MAX_TAKEN", 1)
    failed: list[str] = []

    def wait() -> None:
        with pytest.raises(JobFailed) as error:
            WindowWork(scene.runner, "w1").commit_rows(workload.rows, workload.blindings)
        failed.append(str(error.value))

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_for(cluster.workers)
    for worker in cluster.workers():
        os.kill(worker, signal.SIGKILL)
    waiting.join()
    assert "row commitments cannot be done: 1 workers ended" in failed[0]


def test_two_nodes_share_the_work_until_one_of_them_dies(
    scene: Scene, tmp_path: Path, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_BLOCK_ENTRIES", workload.rows.size // 4)
    two = RayCluster(tmp_path / "two", cores=1)
    second = two.join(cores=1)
    settings = scene.settings.model_copy(
        update={"ray_address": two.address, "ray_token_file": two.token_file}
    )
    runner, done = open_runner(settings, JOBS, scene.engine), threading.Event()
    found: list[bytes] = []

    def commit() -> None:
        while not done.is_set():
            window = WindowWork(runner, f"w{len(found)}")
            found.append(window.commit_rows(workload.rows, workload.blindings))

    def refused(cores: int) -> str:
        try:
            asked = settings.model_copy(update={"ray_cores": cores})
            check_jobs(asked, JOBS, str(scene.engine.url))
        except UnavailableError as error:
            return str(error)
        return ""

    waiting = threading.Thread(target=commit)
    try:
        waiting.start()
        wait_for(lambda: {*two.workers().values()} & two.raylets(second))
        # Both have two cores together, which no job can use.
        assert "no node has 2 cores" in refused(2) and not refused(1)
        (killed,) = two.raylets(second)
        os.kill(killed, signal.SIGKILL)
        before = len(found)
        wait_for(lambda: len(found) > before + 1)
    finally:
        done.set()
        waiting.join()
        runner.close()
        two.stop()
    assert set(found) == {core.commit_rows(workload.rows, workload.blindings)}


def test_inputs_that_do_not_allow_it_are_reported(scene: Scene, workload: Workload) -> None:
    blindings = workload.blindings.copy()
    blindings[0] = 255  # no canonical scalar
    with pytest.raises(JobFailed, match="row commitments cannot be done: MalformedInput"):
        WindowWork(scene.runner, "w1").commit_rows(workload.rows, blindings)


def test_what_is_withdrawn_is_worked_at_no_more(
    scene: Scene, cluster: RayCluster, workload: Workload
) -> None:
    def withdraw(_share: float) -> None:
        if cluster.workers():
            scene.runner.withdraw("w1")

    with pytest.raises(JobsWithdrawn):
        WindowWork(scene.runner, "w1").commit_rows(workload.rows, workload.blindings, withdraw)
    wait_for(lambda: not cluster.workers())
    assert (scene.count("job"), scene.count("result")) == (0, 0)


def test_neither_cluster_nor_process_between_know_the_database(
    scene: Scene, cluster: RayCluster, workload: Workload
) -> None:
    seen: list[bytes] = []

    def look(_share: float) -> None:
        for process in [scene.driver(), *cluster.workers()] if scene.executor._driver else []:
            for name in ("environ", "cmdline", "maps"):
                seen.append((Path("/proc") / str(process) / name).read_bytes())

    WindowWork(scene.runner, "w1").commit_rows(workload.rows, workload.blindings, look)
    seen += [path.read_bytes() for path in cluster.session.rglob("*") if path.is_file()]
    found = b"".join(seen)
    assert str(scene.settings.folder).encode() in found  # this looks in the right place
    assert b"s3cret" not in found and b"RAGAUDIT_PROVER" not in found
    assert cluster.token_file.read_bytes() not in found


class TestRefusals:
    """Clusters that are not worked with."""

    def refused(self, scene: Scene, **changes: object) -> str:
        settings = scene.settings.model_copy(update=changes)
        with pytest.raises(UnavailableError) as error:
            check_jobs(settings, JOBS, str(scene.engine.url))
        assert str(changes.get("ray_address", "ray_address")) in str(error.value) or (
            "ray_cores" in changes
        )
        return str(error.value)

    def test_another_token(self, scene: Scene, tmp_path: Path) -> None:
        check_jobs(scene.settings, JOBS, str(scene.engine.url))
        wrong = tmp_path / "wrong"
        wrong.write_text("00" * 32)
        wrong.chmod(0o600)
        assert "refuses the token" in self.refused(scene, ray_token_file=wrong)

    def test_a_cluster_that_lets_everybody_in(self, scene: Scene, tmp_path: Path) -> None:
        other = RayCluster(tmp_path / "other", token=False)
        try:
            # With its token, which such a cluster does not look at.
            changes = {"ray_address": other.address, "ray_token_file": other.token_file}
            assert "answers without a token" in self.refused(scene, **changes)
        finally:
            other.stop()

    def test_no_cluster(self, scene: Scene) -> None:
        assert "no answer" in self.refused(scene, ray_address="127.0.0.1:1")

    def test_nodes_that_are_too_small(self, scene: Scene) -> None:
        assert "no node has 3 cores" in self.refused(scene, ray_cores=3)
