"""The verifier service as a process of its own, which a test may kill."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from forking import Forked, Forks
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.scenario.policy import small_terms_file
from ragaudit.ledger.messages.signed import SignedRequest
from ragaudit.verifier import keys, settings
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.database import Database, create_tables

COMMAND = "from ragaudit.verifier.command.cli import app; app()"
NAME = "regulator.example/cosigner"


def now() -> int:
    return time.time_ns() // 1_000_000


class RealClock:
    """The machine's clock, behind the interface of the tests' clock."""

    @property
    def now(self) -> int:
        return now()

    def at(self, seconds: int) -> None:
        """Nothing to move."""


class VerifierProcess:
    """A service on a free port of the loopback; the folder survives its processes."""

    def __init__(self, folder: Path, **listed: Any) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.path = folder / "verifier.yaml"
        self.log = folder / "log.txt"
        document = {
            "name": NAME,
            "data": "data",
            "secrets": "secrets",
            "terms": small_terms_file(folder).name,
            "listen": {"port": self.port},
            **listed,
        }
        self.path.write_text(json.dumps(document))  # JSON is YAML
        keys.create(folder / "secrets", NAME)
        self.settings = settings.load(self.path)
        settings.make_data_folder(self.settings)
        create_tables(self.settings.database_url)
        self.keys = keys.load(self.settings.secrets, NAME)
        self.url = f"http://127.0.0.1:{self.port}"
        self.prelude = ""
        self.environment: dict[str, str] = {}  # of the process, beside the usual
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.forks: Forks | None = None  # once `fork` was called

    def pin(self, provider: str, key: PublicKey) -> None:
        """Pin a provider's key, as `ragaudit verifier provider add` does."""
        database = Database(self.settings.database_url, now)
        providers.add(database, provider, key)
        database.close()

    def start(self) -> None:
        """Start it, with ``prelude`` (Python code) run before, and wait until it is ready."""
        self.launch()
        process = self.process
        assert process is not None
        with httpx.Client(base_url=self.url) as client:
            for _ in range(1200):
                assert process.poll() is None, self.log.read_text()
                try:
                    if client.get("/readyz").status_code == 200:
                        return
                except httpx.HTTPError:
                    time.sleep(0.1)
        raise AssertionError("the service does not start: " + self.log.read_text())

    def fails(self) -> str:
        """Start it, and wait until it ends by itself; all that it ever logged."""
        self.launch()
        assert self.process is not None and self.process.wait(60) != 0
        return self.log.read_text()

    def launch(self) -> None:
        """Start it, and do not wait."""
        script = f"{self.prelude}\n{COMMAND}"
        if self.forks is not None:
            self.process = self.forks.launch(script)
            return
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", script, *self._arguments],
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
            )

    @property
    def _arguments(self) -> list[str]:
        return ["serve", "--settings", str(self.path)]

    def fork(self) -> None:
        """From now on fork its processes; `forks` is to be closed."""
        variables = {**os.environ, **self.environment}
        modules = ["ragaudit.verifier.service.app"]
        self.forks = Forks(modules, self._arguments, variables, self.log)

    def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def limit_files(self, size: int = resource.RLIM_INFINITY) -> None:
        """Let the process write no file beyond ``size`` bytes, as on a full disk."""
        assert self.process is not None
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


class _Store:
    def __init__(self, database: Database) -> None:
        self.database = database


class ProcessScenario:
    """What `ServiceWindow` needs of a scenario, with the service in another process."""

    def __init__(self, process: VerifierProcess) -> None:
        self.process = process
        self.keys = process.keys
        self.clock = RealClock()
        self.client = httpx.Client(base_url=process.url, timeout=60)
        process.settings.data.mkdir(parents=True, exist_ok=True)
        self.service = _Store(Database(process.settings.database_url, now))
        self.provider = ""
        self.provider_key: Any = None
        self.ahead = 0  # milliseconds by which the service's clock was set

    def close(self) -> None:
        self.client.close()
        self.service.database.close()

    def headers(self, method: str, target: str, body: bytes) -> dict[str, str]:
        return SignedRequest.issue(
            self.provider_key,
            provider=self.provider,
            method=method,
            target=target,
            body=body,
            time=now() + self.ahead,
        ).encode()

    def send(self, method: str, target: str, body: bytes | dict[str, Any] = b"") -> httpx.Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers(method, target, data)
        return self.client.request(method, target, content=data, headers=headers)

    def add_checkpoint(self, body: bytes) -> httpx.Response:
        return self.client.post("/cosigner/add-checkpoint", content=body)
