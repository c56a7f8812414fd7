"""A cluster of Ray on this machine, with real worker processes, for tests."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
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
        self._others: list[subprocess.Popen[bytes]] = []

    def join(self, cores: int = 2) -> subprocess.Popen[bytes]:
        """Start another node, which is a machine of its own to Ray; its process.

        Args:
            cores: that it lends.
        """
        # Two of one address are two nodes: each has its ports, sockets and workers.
        node = subprocess.Popen(
            [
                *(sys.executable, "-c", COMMAND, "start", "--block", f"--address={self.address}"),
                *("--node-ip-address=127.0.0.1", f"--num-cpus={cores}"),
                *("--disable-usage-stats", "--object-store-memory=80000000"),
            ],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._others.append(node)
        return node

    def _wait(self, port: int) -> None:
        until = time.monotonic() + 60
        while self._head.poll() is None and time.monotonic() < until:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError("Ray did not start")

    def workers(self) -> dict[int, int]:
        """The processes of this cluster that work at a task now, each with its node's raylet."""
        # While it works at a task, a worker has its name.
        return {pid: parent for pid, parent in self._children() if _line(pid)[:9] == b"ray::work"}

    def raylets(self, node: subprocess.Popen[bytes]) -> set[int]:
        """The process that a node's workers are children of."""
        return {parent for _, parent in self._children() if _parent(parent) == node.pid}

    def nodes(self) -> int:
        """How many nodes have processes that wait for work."""
        return len({parent for _, parent in self._children()})

    def _children(self) -> Iterator[tuple[int, int]]:
        """The processes of this cluster's raylets, each with its raylet."""
        session = str(self.session).encode()
        for process in Path("/proc").glob("[0-9]*"):
            pid = int(process.name)
            line = _line(parent := _parent(pid))
            if b"raylet" in line.split(b"\0")[0] and session in line:
                yield pid, parent

    def stop(self) -> None:
        """End every node, and with it all that it started."""
        for node in (*self._others, self._head):
            node.send_signal(signal.SIGTERM)
            try:
                node.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(node.pid, signal.SIGKILL)
                node.wait()


def _line(pid: int) -> bytes:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    try:
        return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
