"""A cosigner's folder, and a log that asks it, for tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.verifier.cosigner import settings as cosigner_settings
from ragaudit.verifier.cosigner.store import Store
from ragaudit.verifier.settings import make_data_folder

COMMAND = "from ragaudit.verifier.command.cosigner import app; app()"
NAME = "cosigner.example/one"
ORIGIN = "rag.example/ragaudit/w1"
LOG = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x41" * 32))


class Clock:
    """Unix milliseconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


class Log:
    """A growing log."""

    def __init__(self, size: int = 0, common: int = 2**30, key: SigningKey = LOG) -> None:
        self.key = key
        self.tree = MemoryTree()
        self.grow(size, common)

    def grow(self, count: int, common: int = 2**30) -> Log:
        for index in range(self.tree.size, self.tree.size + count):
            label = str(index) if index < common else f"fork {index}"
            self.tree.append(sha256(label.encode()).digest())
        return self

    def note(self, size: int | None = None, key: SigningKey | None = None) -> bytes:
        signer = key or self.key
        head = Checkpoint(signer.name, self.tree.head(size))
        return sign_checkpoint(head, signer).encode()

    def request(self, old: int, size: int | None = None) -> bytes:
        proof = self.tree.consistency_proof(old, size) if old else ()
        return AddCheckpointRequest(old, tuple(proof), self.note(size)).encode()

    @property
    def path(self) -> str:
        return f"/{sha256(self.key.name.encode()).hexdigest()}/checkpoint"


def make_settings(folder: Path, **members: Any) -> Path:
    """A settings file and fresh keys."""
    cosigner_settings.create_keys(folder / "secrets", NAME)
    path = folder / "cosigner.yaml"
    document = {"name": NAME, "data": "data", "secrets": "secrets", **members}
    path.write_text(json.dumps(document))  # JSON is YAML
    return path


def take_up(settings: cosigner_settings.Settings, *logs: SigningKey) -> None:
    """Add logs, as `ragaudit cosigner log add` does."""
    make_data_folder(settings)
    store = Store(settings.database_url, lambda: 0)
    for log in logs or (LOG,):
        store.add(log.verifier_key)
    store.close()


class CosignerProcess:
    """A cosigner on a free port of the loopback; the folder survives its processes."""

    def __init__(self, folder: Path, *logs: SigningKey, **members: Any) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        folder.mkdir(parents=True, exist_ok=True)
        self.path = make_settings(folder, listen={"port": self.port}, **members)
        self.log = folder / "log.txt"
        self.settings = cosigner_settings.load(self.path)
        self.keys = cosigner_settings.load_keys(self.settings)
        self.url = f"http://127.0.0.1:{self.port}"
        self.prelude = ""
        self.process: subprocess.Popen[bytes] | None = None
        take_up(self.settings, *logs)

    def fails(self) -> str:
        """Start it, and wait until it ends by itself; all that it ever logged."""
        self.launch()
        assert self.process is not None and self.process.wait(60) != 0
        return self.log.read_text()

    def launch(self) -> None:
        """Start it, and do not wait."""
        script = f"{self.prelude}\n{COMMAND}"
        command = [sys.executable, "-c", script, "serve", "--settings", str(self.path)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def start(self) -> None:
        """Start it, with ``prelude`` (Python code) run before."""
        self.launch()
        assert self.process is not None
        with httpx.Client(base_url=self.url) as client:
            for _ in range(1200):
                assert self.process.poll() is None, self.log.read_text()
                try:
                    if client.get("/readyz").status_code == 200:
                        return
                except httpx.HTTPError:
                    time.sleep(0.1)
        raise AssertionError("the service does not start: " + self.log.read_text())

    def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
