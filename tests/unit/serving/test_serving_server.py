"""What is refused before a service opens anything, and bodies above their limit."""

import logging
import socket
from pathlib import Path

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
