"""Chroma's own server on a loopback port of its own, gone afterwards."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

import httpx

HOST = "127.0.0.1"


class ChromaServer:
    """A server with an empty database; made in a `with` statement."""

    def __init__(self) -> None:
        self._command = Path(sys.executable).parent / "chroma"
        assert self._command.is_file(), "chromadb is a dependency of the tests: make setup"
        self._root = Path(tempfile.mkdtemp(prefix="ragaudit-chroma-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> ChromaServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self._root, ignore_errors=True)

    def start(self) -> None:
        """Start it on a free port and wait until it answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            # Free now; another process may be faster, hence again with another.
            with socket.socket() as probe:
                probe.bind((HOST, 0))
                self.port = probe.getsockname()[1]
            settings = self._root / "server.yaml"
            settings.write_text(
                f'listen_address: "{HOST}"\nport: {self.port}\n'
                f'persist_path: "{self._root / "data"}"\nallow_reset: true\n'
            )
            with (self._root / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [self._command, "run", settings], stdout=log, stderr=log, cwd=self._root
                )
            if self._answers(deadline):
                return
        raise AssertionError("Chroma does not start: " + (self._root / "log").read_text())

    def stop(self) -> None:
        """Stop it; its data stays until the `with` statement ends."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(60)

    def _answers(self, deadline: float) -> bool:
        assert self._process is not None
        with httpx.Client(base_url=self.url, trust_env=False, timeout=10) as client:
            while self._process.poll() is None and time.monotonic() < deadline:
                try:
                    if client.get("/api/v2/heartbeat").is_success:
                        return True
                except httpx.HTTPError:
                    time.sleep(0.05)
        return False
