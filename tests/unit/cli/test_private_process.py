"""Commands and services write no core dump, and nobody else of their user reads their memory."""

import subprocess
import sys
from pathlib import Path

import pytest

# Root reads everything: /proc says by a file's owner who else may. Everything is loaded before.
PRELUDE = """
import ctypes, encodings.idna, os, resource, sys
import ragaudit.cli.main as main
from ragaudit.serving import server
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
if os.geteuid() == 0:
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as before, which the change of user ended
def hold(*_):
    print("here", flush=True)
    sys.stdin.read()
    sys.exit()
"""
PROGRAMS = {
    "command": "main.app = hold\nmain.run()",
    "service": "server.run(hold, host='127.0.0.1', port=0)",
    "measurement": "sys.argv = ['ragaudit', 'bench']\nmain.app = hold\nmain.run()",
    "another program": "hold()",
}


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="this system has no /proc")
def test_no_core_and_no_attachment() -> None:
    for name, script in PROGRAMS.items():
        with subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == b"here\n", name
            proc = Path(f"/proc/{process.pid}")
            lines = (proc / "limits").read_text().splitlines()
            core = next(line for line in lines if line.startswith("Max core file size")).split()
            owner = (proc / "mem").stat().st_uid
            process.stdin.close()
        private = name in {"command", "service"}
        assert (owner == 0) is private, name
        assert not private or core[4:6] == ["0", "0"], name
