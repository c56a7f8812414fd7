"""A whole window of both services whose jobs are done by workers, killed in every kind of job."""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
from databases import prover_tables, verifier_tables
from generation_channel import WITHIN_TERMS, records, write_model
from prover_process import PLAIN, Setting, body_of
from ragaudit import core
from ragaudit.lab.demo.plan import measure_pace
from ragaudit.lab.generation.serving import MODEL
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.ledger.log.database import close_engine, open_engine
from ragaudit.prover import work as prover_work
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store import tables as prover_store
from ragaudit.prover.store.database import Store
from ragaudit.serving.jobs.opening import JobService, make_queue
from ragaudit.verifier import work as verifier_work
from ragaudit.verifier.engines import engine
from ragaudit.verifier.models import embedder_of, service_of
from ragaudit.verifier.recheck import recheck
from sqlalchemy import Engine, func, select
from verifier_process import VerifierProcess

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

QUESTIONS = 6
STALLED_SECONDS = 2
SMALL_CHUNKS = """
from ragaudit.prover import work as prover
from ragaudit.verifier import work as verifier
prover._BLOCK_ENTRIES, prover._RECORDS, prover._CHARGED_ROWS = 8000, 9, 128
verifier._RECORDS, verifier._PAIRS = 9, {"core": 90, "reference": 90}
"""
"""A prelude of the services: jobs of some seconds of a window that is small."""

LONG_JOBS = """
import time
from ragaudit.serving.jobs import runner
honest = runner.compute
def compute(*arguments):
    time.sleep(1)
    return honest(*arguments)
runner.compute = compute
"""
"""A prelude of the workers: a job takes so long that they can be killed in the middle of it."""


@dataclass
class Group:
    """The workers of one service.

    Attributes:
        name: of the command.
        settings: of the service.
        jobs: of the service.
        engine: of its database.
        log: what they print.
    """

    name: str
    settings: Path
    jobs: JobService
    engine: Engine
    log: Path

    def __post_init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        command = f"{LONG_JOBS}\nfrom ragaudit.{self.name}.command.cli import app; app()"
        for _ in range(2):
            with self.log.open("ab") as log:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", command, "worker", "--settings", str(self.settings)],
                        stdout=log,
                        stderr=log,
                    )
                )

    def kill(self, count: int | None = None) -> None:
        """Kill the workers that were started first, all of them if no number is said."""
        killed, self.processes = (
            self.processes[:count],
            self.processes[len(self.processes[:count]) :],
        )
        for process in killed:
            process.kill()
        for process in killed:
            process.wait()

    def at_work(self) -> dict[str, str]:
        """Kinds of jobs by keys that a worker has taken, and that have no result."""
        table = self.jobs.tables.job
        with self.engine.connect() as connection:
            rows = connection.execute(select(table.c.key, table.c.kind).where(table.c.taken > 0))
            return {row.key: row.kind for row in rows}

    def left(self) -> int:
        with self.engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(self.jobs.tables.job)) or 0


class Chaos(threading.Thread):
    """Kills all workers of a service at a random moment of one job of each kind, and starts new."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.group = group
        self.cut_off: Counter[str] = Counter()
        self.done = threading.Event()
        self._moments = random.Random(20_261_123)

    def run(self) -> None:
        while not self.done.wait(0.05):
            self._look()

    def _look(self) -> None:
        group = self.group
        found = {key for key, kind in group.at_work().items() if not self.cut_off[kind]}
        if not found:
            return
        group.start()  # others, who are ready later
        time.sleep(self._moments.uniform(0, 0.5))
        group.kill(2)
        # A job that ended before its worker did was not cut off.
        left = group.at_work()
        self.cut_off.update({left[key] for key in found & set(left)})

    def end(self) -> None:
        self.done.set()
        self.join()


@dataclass
class Scene:
    setting: Setting
    prover: Group
    verifier: Group
    auditor_token: str


@pytest.fixture
def scene(
    tmp_path: Path,
    make_database: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    model: Transformer,
    model_url: str,
) -> Iterator[Scene]:
    ours = make_database("postgresql", prover_tables)
    theirs = make_database("postgresql", verifier_tables)
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", ours)
    for service in ("PROVER", "VERIFIER"):
        jobs = f"RAGAUDIT_{service}__JOBS__"
        monkeypatch.setenv(f"{jobs}EXECUTOR", "procrastinate")
        monkeypatch.setenv(f"{jobs}STALLED_SECONDS", str(STALLED_SECONDS))
    (tmp_path / "verifier").mkdir()
    committed = write_model(tmp_path / "model", model)
    vocabulary = str(tmp_path / "model" / "vocabulary.json")
    verifier = VerifierProcess(
        tmp_path / "verifier",
        database=theirs,
        tick_seconds=0.2,
        generator={"url": model_url, "models": [MODEL], "vocabulary_file": vocabulary},
    )
    setting = Setting(tmp_path, verifier)
    setting.prover.environment = {"RAGAUDIT_PROVER__GENERATOR__URL": model_url, **committed}
    store = Store.open(ours)
    StoredDocuments(store).add("one", records())
    store.close()
    verifier.prelude = setting.prover.prelude = SMALL_CHUNKS
    made = [
        Group("prover", setting.made.settings, prover_work.JOBS, open_engine(ours), tmp_path / "p"),
        Group("verifier", verifier.path, verifier_work.JOBS, open_engine(theirs), tmp_path / "v"),
    ]
    make_queue(load_settings(setting.made.settings).jobs, prover_work.JOBS, ours)
    make_queue(verifier.settings.jobs, verifier_work.JOBS, theirs)
    token = (tmp_path / "verifier" / "secrets" / "auditor-token").read_text().strip()
    verifier.start()
    for group in made:
        group.start()
    ours_group, theirs_group = made
    yield Scene(setting, ours_group, theirs_group, token)
    setting.stop()
    for group in made:
        group.kill()
        close_engine(group.engine)


def confidential(scene: Scene, path: Path) -> Path:
    """The bundle of all evidence, as the auditor gets it."""
    answer = httpx.post(
        f"{scene.setting.verifier.url}/v1/windows/w1/bundle/confidential",
        json={"reader": "a test", "reason": "a second run"},
        headers={"Authorization": f"Bearer {scene.auditor_token}"},
        timeout=120,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    path.write_bytes(answer.content)
    return path


def check_commitments(scene: Scene) -> None:
    """What workers committed to is what one process commits to."""
    table = prover_store.index_version
    with scene.prover.engine.connect() as connection:
        (found,) = connection.execute(select(table)).all()
    blindings = np.frombuffer(found.blindings, dtype=np.uint8).reshape(-1, 32)
    rows = np.frombuffer(found.rows, dtype=np.int8).reshape(len(blindings), -1)
    assert core.commit_rows(rows, blindings) == found.commitments


def ask_everything(setting: Setting) -> None:
    """Questions that documents answer, and one of each account with a generated answer."""
    for account in PLAIN:
        for number in range(QUESTIONS):
            assert setting.post(account, "query", body_of(number)).status_code == 200
    question = {"query": "treatment of bazeli ?"}
    with ThreadPoolExecutor(len(PLAIN)) as pool:
        for answer in pool.map(lambda account: setting.post(account, "ask", question), PLAIN):
            assert answer.status_code == 200, answer.text


def test_workers_are_killed_in_every_kind_of_job(scene: Scene, tmp_path: Path) -> None:
    chaos = [Chaos(scene.prover), Chaos(scene.verifier)]
    for each in chaos:
        each.start()
    try:
        setting, pace = scene.setting, measure_pace()
        setting.open(
            opens_after_seconds=round(30 * pace),
            length_seconds=round(15 * pace),
            merge_delay_seconds=round(4 * pace),
            clock_skew_seconds=round(2 * pace),
            sampling_after_seconds=round(4 * pace) + round(2 * pace),
            privacy="gaussian",
            generation=WITHIN_TERMS,
        )
        ask_everything(setting)
        setting.prover.wait_for(lambda: setting.prover.state() == "archived", 600)
    finally:
        for each in chaos:
            each.end()
    assert {kind for each in chaos for kind in each.cut_off} == {
        *prover_work.KINDS,
        *verifier_work.KINDS,
    }
    check_commitments(scene)
    # In one process, with nobody killed.
    path, settings = confidential(scene, tmp_path / "bundle"), scene.verifier.settings
    second = recheck(
        path,
        engine=engine("core"),
        embedder=embedder_of(path, settings),
        generators=service_of(settings),
    )
    second.raise_for_differences()
    assert second.not_repeated == ()
    assert second.verdict.result == "PASS"
    assert second.proofs[0] == second.proofs[1] > 0
    assert (scene.prover.left(), scene.verifier.left()) == (0, 0)
