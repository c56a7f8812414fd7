"""Workers of a prover's queue as processes of their own, which a test may kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ragaudit.prover.command.set_up import set_up
from ragaudit.prover.settings import Settings, load_settings
from ragaudit.prover.store import tables
from ragaudit.prover.work import JOBS
from ragaudit.serving.jobs.opening import open_runner
from ragaudit.serving.jobs.runner import Runner
from sqlalchemy import Engine, select

COMMAND = "from ragaudit.prover.command.cli import app; app()"
STALLED_SECONDS = 3


class Workers:
    """A prover's database with a queue, and workers on it.

    Args:
        folder: for settings and arrays.
        url: of an empty PostgreSQL database.
    """

    def __init__(self, folder: Path, url: str) -> None:
        made = set_up(folder / "prover", provider="p.example", verifier="http://127.0.0.1:1")
        self.path = made.settings
        self.environment = {
            **os.environ,
            "RAGAUDIT_PROVER__STORE__URL": url,
            "RAGAUDIT_PROVER__JOBS__EXECUTOR": "procrastinate",
            "RAGAUDIT_PROVER__JOBS__FOLDER": str(folder / "arrays"),
            "RAGAUDIT_PROVER__JOBS__STALLED_SECONDS": str(STALLED_SECONDS),
        }
        self.log = folder / "workers.txt"
        self.processes: list[subprocess.Popen[bytes]] = []
        assert self.run("migrate").returncode == 0

    def settings(self) -> Settings:
        """The settings as the workers read them."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            return load_settings(self.path)
        finally:
            os.environ.clear()
            os.environ.update(before)

    def runner(self, engine: Engine) -> Runner:
        """What a service would have its jobs done with."""
        return open_runner(self.settings().jobs, JOBS, engine)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        """Run a command of the prover with these settings."""
        command = [sys.executable, "-c", COMMAND, *arguments, "--settings", str(self.path)]
        return subprocess.run(command, env=self.environment, capture_output=True, check=False)

    def start(self, count: int = 1) -> None:
        """Start so many workers."""
        for _ in range(count):
            with self.log.open("ab") as log:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", COMMAND, "worker", "--settings", str(self.path)],
                        env=self.environment,
                        stdout=log,
                        stderr=log,
                    )
                )

    def stop(self, how: int = signal.SIGKILL) -> list[int]:
        """Send every worker a signal and wait; their exit codes."""
        for process in self.processes:
            process.send_signal(how)
        codes = [process.wait() for process in self.processes]
        self.processes.clear()
        return codes


def kill_at_work(workers: Workers, engine: Engine, kind: str, deaths: int) -> None:
    """Kill all workers in the middle of jobs of a kind, ``deaths`` times, and start new ones.

    Raises:
        AssertionError: no job of this kind was begun, or each was done before its worker died.
    """
    table = tables.jobs.job
    for death in range(1, deaths + 1):
        until = time.monotonic() + 120
        begun: list[str] = []
        while not begun and time.monotonic() < until:
            with engine.connect() as connection:
                query = select(table.c.key).where(table.c.kind == kind, table.c.taken >= death)
                begun = list(connection.scalars(query))
        workers.stop()
        with engine.connect() as connection:
            left = connection.scalars(select(table.c.key).where(table.c.key.in_(begun))).all()
        assert left, f"no {kind} was cut off"
        workers.start(2)
