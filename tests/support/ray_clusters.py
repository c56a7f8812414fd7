"""A cluster of Ray on this machine, with real worker processes, for tests."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

COMMAND = "from ray.scripts.scripts import main; main()"


class RayCluster:
    """A head with some cores.

    Args:
        folder: for its token and what it prints.
        token: whether it asks for one.
        cores: that it lends.
    """

    def __init__(self, folder: Path, token: bool = True, cores: int = 2) -> None:
        folder.mkdir(exist_ok=True)
        self.token_file = folder / "token"
        self.token_file.write_text(secrets.token_hex(32))
        self.token_file.chmod(0o600)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        # Short: names of sockets are, and Ray's are deep in it.
        self.session = Path(mkdtemp(prefix="ray-"))
        self.environment = {
            **{name: value for name, value in os.environ.items() if "RAGAUDIT" not in name},
            "RAY_AUTH_MODE": "token" if token else "disabled",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
        }
        with (folder / "ray.txt").open("wb") as log:
            self._head = subprocess.Popen(
                [
                    *(sys.executable, "-c", COMMAND, "start", "--head", "--block"),
                    *("--node-ip-address=127.0.0.1", f"--port={port}", f"--num-cpus={cores}"),
                    *("--include-dashboard=false", "--disable-usage-stats"),
                    *("--object-store-memory=80000000", f"--temp-dir={self.session}"),
                ],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait(port)

    def _wait(self, port: int) -> None:
        until = time.monotonic() + 60
        while self._head.poll() is None and time.monotonic() < until:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError("Ray did not start")

    def workers(self) -> list[int]:
        """The processes of this cluster that work at a task now."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes()
                parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
                raylet = (Path("/proc") / parent / "cmdline").read_bytes()
            except OSError:
                continue
            # While it works at a task, a worker has its name.
            if line.startswith(b"ray::work") and str(self.session).encode() in raylet:
                found.append(int(process.name))
        return found

    def stop(self) -> None:
        """End the head, and with it all that it started."""
        self._head.send_signal(signal.SIGTERM)
        try:
            self._head.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._head.pid, signal.SIGKILL)
            self._head.wait()
