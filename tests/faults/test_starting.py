"""Services and workers that start while their database server restarts wait for it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from cosigner_service import CosignerProcess
from databases import verifier_tables
from job_workers import COMMAND, Workers
from postgresql_server import Server
from prover_process import free_port
from ragaudit.encoding.commands import ExitCode
from verifier_process import VerifierProcess

pytestmark = pytest.mark.slow

PATIENCE = 60  # seconds


def test_all_wait_for_a_server_that_comes_back(
    tmp_path: Path, make_database: Callable[..., str], postgresql: Server
) -> None:
    for name in ("verifier", "cosigner"):
        (tmp_path / name).mkdir()
    verifier = VerifierProcess(
        tmp_path / "verifier", database=make_database("postgresql", verifier_tables)
    )
    cosigner = CosignerProcess(tmp_path / "cosigner", database=make_database("postgresql"))
    worker = Workers(tmp_path / "prover", make_database("postgresql"))
    port = free_port()
    worker.environment |= {
        "RAGAUDIT_PROVER__SERVER__PORT": str(port),
        "RAGAUDIT_PROVER__VERIFIER__ALLOW_UNPINNED": "true",
    }
    serve = [sys.executable, "-c", COMMAND, "serve", "--settings", str(worker.path)]
    log = (tmp_path / "prover.txt").open("ab")
    postgresql.stop()
    try:
        verifier.launch()
        cosigner.launch()
        worker.start()
        prover = subprocess.Popen(serve, env={**os.environ, **worker.environment}, stderr=log)
        processes = [verifier.process, cosigner.process, prover, *worker.processes]
        ends = time.monotonic() + PATIENCE
        logs = (verifier.log, cosigner.log, worker.log, tmp_path / "prover.txt")
        while not all("waiting at most 60 s" in each.read_text() for each in logs):
            assert all(each is not None and each.poll() is None for each in processes)
            assert time.monotonic() < ends
            time.sleep(0.2)
    finally:
        postgresql.start()
    try:
        urls = (verifier.url, cosigner.url, f"http://127.0.0.1:{port}")
        ends = time.monotonic() + PATIENCE
        while not all(ready(url) for url in urls):
            assert all(each is not None and each.poll() is None for each in processes)
            assert time.monotonic() < ends
            time.sleep(0.2)
        while worker.run("worker", "--status").returncode != ExitCode.DONE:
            assert time.monotonic() < ends, worker.log.read_text()
    finally:
        prover.kill()
        prover.wait()
        worker.stop()
        verifier.stop()
        cosigner.stop()
        log.close()


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", trust_env=False, timeout=1).is_success
    except httpx.HTTPError:
        return False
