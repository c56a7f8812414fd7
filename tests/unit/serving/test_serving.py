"""What a service refuses before it opens anything, and hostile peers, who are cut off."""

import logging
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.serving import log_lines, server
from ragaudit.serving.bodies import BodyLimit
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient


def never() -> Starlette:
    raise AssertionError("the service was opened")


def test_a_taken_address_is_named_before_anything_is_opened() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"127.0.0.1:{port}: .*address already in use"):
            server.run(never, host="127.0.0.1", port=port)


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(UnavailableError, match="cannot listen"):
        server.run(never, host="256.256.256.256", port=0)


def test_an_unknown_log_level_is_named() -> None:
    with pytest.raises(MalformedError, match="debug, info, warning, error"):
        server.run(never, host="127.0.0.1", port=0, log_level="loud")


def test_tls_files_are_looked_at_first(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text("no key")
    with pytest.raises(MalformedError, match="half"):
        server.run(never, host="127.0.0.1", port=0, key=file)
    with pytest.raises(MalformedError, match="no such file"):
        server.run(never, host="127.0.0.1", port=0, key=file, certificate=tmp_path / "none")
    with pytest.raises(MalformedError, match="not a certificate"):
        server.run(never, host="127.0.0.1", port=0, key=file, certificate=file)


def test_a_record_is_one_line() -> None:
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "two\nlines", None, None)
    assert log_lines.LineFormatter().format(record).endswith("INFO x: two | lines")


async def _length(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
def api() -> TestClient:
    app = Starlette(routes=[Route("/", _length, methods=["POST"])])
    app.add_middleware(BodyLimit, limit=100)
    return TestClient(app)


@pytest.mark.parametrize(("size", "status"), [(0, 200), (100, 200), (101, 413), (10**6, 413)])
def test_a_body_is_read_up_to_its_limit(api: TestClient, size: int, status: int) -> None:
    for content in (b"x" * size, iter([b"x" * size])):  # announced, or in chunks
        answer = api.post("/", content=content)
        assert answer.status_code == status
        if status == 413:
            problem = answer.json()
            assert problem["type"] == "urn:ragaudit:problem:too-large"
            assert problem["expected"] == "at most 100 bytes"


PROGRAM = """
import resource, sys
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from ragaudit.serving import server
from ragaudit.serving.server import ConnectionLimits

async def echo(request: Request):
    return PlainTextResponse(str(len(await request.body())))

async def large(request: Request):
    async def parts():
        for _ in range(4096):
            yield b"x" * 65536
    return StreamingResponse(parts())

async def fault(request: Request):
    raise KeyError("a secret")

routes = [Route("/echo", echo, methods=["GET", "POST"]), Route("/large", large),
          Route("/fault", fault)]
limits = ConnectionLimits(connections=20, head_seconds=1, idle_seconds=5, body_seconds=1,
                          body_rate=10**9, write_seconds=1, stop_seconds=2)
if number := int(sys.argv[3]):
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))
if sys.argv[2] == "patient":
    limits = ConnectionLimits(connections=20, head_seconds=600, body_seconds=600, stop_seconds=600)
server.run(lambda: Starlette(routes=routes), host="127.0.0.1", port=int(sys.argv[1]), limits=limits)
"""
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ [a-z._]+: .+")
PATIENCE = 60.0


class Service:
    """The program above, its log in a file."""

    def __init__(self, folder: Path, mode: str, descriptors: int = 0) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.log = folder / "log"

        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(self.port), mode, str(descriptors)], stderr=log
            )
        until = time.monotonic() + PATIENCE
        while not self.alive():
            assert self.process.poll() is None and time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def alive(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/echo", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def connect(self, data: bytes = b"") -> socket.socket:
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        peer.sendall(data)
        return peer

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def running(folder: Path, mode: str, descriptors: int = 0) -> Iterator[Service]:
    made = Service(folder, mode, descriptors)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("strict"), "strict") as made:
        yield made


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose deadlines are too far away to help."""
    with running(tmp_path_factory.mktemp("patient"), "patient") as made:
        yield made


def ended(peer: socket.socket) -> bool:
    """Whether the service closes the connection, within the patience of the socket."""
    try:
        while peer.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


HALF_HEAD = b"GET /echo HTTP/1.1\r\nHost: x\r\n"
HALF_BODY = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"
WHOLE = b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("data", [b"", HALF_HEAD, HALF_BODY, WHOLE + HALF_HEAD, WHOLE])
def test_who_does_not_go_on_is_cut_off(service: Service, data: bytes) -> None:
    with service.connect(data) as peer:
        assert ended(peer)
    assert service.alive()


def test_a_reader_that_does_not_read_is_cut_off(service: Service) -> None:
    with service.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n") as peer:
        time.sleep(3)  # its buffers fill; then nothing moves for longer than write_seconds
        received = 0
        try:
            while data := peer.recv(2**20):
                received += len(data)
        except ConnectionResetError:
            pass
    assert received < 4096 * 65536


@pytest.mark.parametrize("data", [b"", HALF_HEAD, HALF_BODY])
def test_half_open_connections_shut_nobody_out(patient: Service, data: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(60):  # three times as many as it holds, with no deadline in sight
            stack.enter_context(patient.connect(data))
        for _ in range(5):
            assert patient.alive()


@pytest.mark.parametrize("data", [b"", HALF_HEAD, HALF_BODY])
def test_it_stops_while_half_a_request_is_held(tmp_path: Path, data: bytes) -> None:
    with running(tmp_path, "patient") as made, made.connect(data):
        assert made.alive()
        assert made.stop() == 0


def test_hanging_up_is_nothing_to_write_home_about(service: Service) -> None:
    before = service.log.read_text()
    for data in (HALF_HEAD, HALF_BODY, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"):
        for _ in range(10):
            service.connect(data).close()
    assert service.alive()
    assert service.log.read_text() == before


def test_without_descriptors_the_log_stays_small(tmp_path: Path) -> None:
    with running(tmp_path, "patient", descriptors=48) as made:
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(made.connect(HALF_HEAD))
            time.sleep(1)
            assert len(made.log.read_text().splitlines()) < 20
        assert made.stop() == 0


def test_every_line_of_the_log_has_its_time_and_no_secret(tmp_path: Path) -> None:
    with running(tmp_path, "strict") as made:
        httpx.get(f"http://127.0.0.1:{made.port}/fault")
        made.connect(b"no HTTP at all\r\n\r\n").close()
        assert made.stop() == 0
        text = made.log.read_text()
    assert "KeyError at <string>:" in text and "a secret" not in text
    assert all(LINE.fullmatch(line) for line in text.splitlines()), text
