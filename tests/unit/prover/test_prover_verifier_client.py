"""The way to the verifier: what stands in between is told apart, what comes back is bounded."""

import gzip
import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import ragaudit.http
from own_authority import own_authority
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.encoding.signing import PrivateKey
from ragaudit.prover.errors import VerifierMessageRejected, VerifierRefused, VerifierUnreachable
from ragaudit.prover.verifier import connection
from ragaudit.prover.verifier.client import VerifierClient

Handler = http.server.BaseHTTPRequestHandler


@contextmanager
def server(
    answer: Callable[[Handler], None], context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Serve ``answer`` to every request on a free port; yields the URL."""

    class Answering(Handler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    listening.daemon_threads = True
    if context is not None:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
    thread.start()
    try:
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def send(handler: Handler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def client(url: str, **options: object) -> VerifierClient:
    return VerifierClient(
        url,
        provider="provider.example",
        key=PrivateKey.generate(),
        timeout=float(options.pop("timeout", 20.0)),  # type: ignore[arg-type]
        clock=lambda: time.time_ns() // 10**6,
        **options,  # type: ignore[arg-type]
    )


VERDICT = dumps({"payload": "x"})


def fetch(url: str, **options: object) -> bytes | None:
    made = client(url, **options)
    try:
        return made.verdict("w1")
    finally:
        made.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate that only its own file vouches for."""
    return own_authority(tmp_path_factory.mktemp("ca"))


def test_a_private_authority(authority: tuple[Path, ssl.SSLContext]) -> None:
    file, context = authority
    with server(lambda handler: send(handler, VERDICT), context) as url:
        assert fetch(url, authorities=file) == VERDICT
        with pytest.raises(VerifierUnreachable, match="certificate is not trusted") as caught:
            fetch(url)
        assert caught.value.where.startswith(url)


def test_authorities_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(MalformedSettings, match="PEM"):
        client("https://127.0.0.1", authorities=tmp_path / "none.pem")


def test_a_proxy() -> None:
    asked: list[str] = []

    def forward(handler: Handler) -> None:
        asked.append(handler.path)
        send(handler, VERDICT)

    with server(forward) as proxy:
        assert fetch("http://regulator.invalid:8742", proxy=proxy) == VERDICT
    assert asked == [
        "http://regulator.invalid:8742/v1/windows/w1/verdict?provider=provider.example"
    ]
    with pytest.raises(VerifierUnreachable, match="proxy to the verifier cannot be reached"):
        fetch("http://regulator.invalid:8742", proxy="http://127.0.0.1:1")


def test_what_stands_in_between_is_told_apart() -> None:
    with pytest.raises(VerifierUnreachable, match="connection refused") as caught:
        fetch("http://127.0.0.1:1")
    assert (
        caught.value.where == "http://127.0.0.1:1/v1/windows/w1/verdict?provider=provider.example"
    )
    with pytest.raises(VerifierUnreachable, match="name of the verifier"):
        fetch("http://regulator.invalid")
    with server(lambda handler: send(handler, b"", 302, Location="https://x")) as url:
        with pytest.raises(VerifierUnreachable, match="redirects"):
            fetch(url)
        with pytest.raises(VerifierUnreachable, match="no TLS"):
            fetch(url.replace("http:", "https:"))
    with (
        server(lambda handler: time.sleep(3)) as url,
        pytest.raises(VerifierUnreachable, match="no answer from the verifier in time"),
    ):
        fetch(url, timeout=0.5)
    with (
        server(lambda handler: send(handler, b"", 503)) as url,
        pytest.raises(VerifierUnreachable, match="answered 503"),
    ):
        fetch(url)
    with (
        server(lambda handler: send(handler, b"<html>", 403)) as url,
        pytest.raises(VerifierRefused, match="answered 403: no reason given"),
    ):
        fetch(url)


def test_a_packed_answer_is_not_unpacked() -> None:
    accepted: list[str] = []

    def pack(handler: Handler) -> None:
        accepted.append(handler.headers["Accept-Encoding"])
        send(handler, gzip.compress(bytes(10**6)), Content_Encoding="gzip")

    with server(pack) as url, pytest.raises(VerifierMessageRejected, match="packed"):
        fetch(url)
    assert accepted == ["identity"]


def test_an_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_ANSWER_BYTES", 10_000)
    sent = 0

    def pour(handler: Handler) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                sent += handler.wfile.write(bytes(65_536))
        except OSError:
            pass

    with server(pour) as url, pytest.raises(VerifierMessageRejected, match="too long"):
        fetch(url)


def test_a_drip_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragaudit.http, "ANSWER_TIMEOUTS", 0)
    with (
        server(lambda handler: send(handler, VERDICT)) as url,
        pytest.raises(VerifierUnreachable, match="in time"),
    ):
        fetch(url)


@pytest.mark.parametrize("body", [b'{"time":1,"time":2}', b"[1.5]", b"no JSON", b"\xff"])
def test_an_answer_has_one_meaning(body: bytes) -> None:
    with server(lambda handler: send(handler, body)) as url:
        made = client(url)
        with pytest.raises(VerifierMessageRejected):
            made.keys()
        made.close()
