"""Services of the demonstration: awaited, reported with their log, ended."""

import os
import sys
import time
from pathlib import Path

import pytest
from ragaudit.lab.demo.processes import ServiceFailed, ServiceProcess, free_port

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def start(tmp_path: Path, program: str) -> ServiceProcess:
    port = free_port()
    return ServiceProcess(
        "toy",
        [sys.executable, "-c", program, str(port)],
        url=f"http://127.0.0.1:{port}",
        log=tmp_path / "toy.log",
    )


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_ready_then_ended(tmp_path: Path) -> None:
    with start(tmp_path, SERVER) as service:
        service.wait_ready(20)
        service.check_alive()
        assert alive(service.pid)
    assert not alive(service.pid)


def test_an_error_inside_the_block_ends_the_process(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), start(tmp_path, SERVER) as service:
        raise KeyboardInterrupt
    assert not alive(service.pid)


def test_a_service_that_ends_shows_its_log(tmp_path: Path) -> None:
    with (
        start(tmp_path, "import sys; sys.exit('the disk is on fire')") as service,
        pytest.raises(ServiceFailed, match="the disk is on fire"),
    ):
        service.wait_ready(20)


def test_a_service_that_is_never_ready_is_reported(tmp_path: Path) -> None:
    with (
        start(tmp_path, "import time; print('busy', flush=True); time.sleep(60)") as service,
        pytest.raises(ServiceFailed, match="not ready"),
    ):
        service.wait_ready(1)


def test_a_deaf_process_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragaudit.lab.demo.processes._GRACE_SECONDS", 0.2)
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('deaf', flush=True); time.sleep(60)"
    )
    with start(tmp_path, program) as service:
        while "deaf" not in service.tail():
            time.sleep(0.05)
    assert not alive(service.pid)
