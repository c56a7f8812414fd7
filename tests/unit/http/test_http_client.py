"""Calls to servers: bounded, sent once, on connections that are renewed when they are gone."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from own_authority import own_authority
from ragaudit import http as module
from ragaudit.http import ANSWER_TIMEOUTS, AsyncHttpClient, HttpClient, LongAnswer, PackedAnswer
from ragaudit.prover.backends.chroma import StoreHttp
from ragaudit.prover.errors import BackendUnavailable
from raw_server import raw_server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


class Script:
    """A server that answers each request with the next of some bytes; None hangs up instead.

    Attributes:
        connections: accepted so far.
        requests: heads and bodies, as they arrived.
    """

    def __init__(
        self,
        *answers: bytes | Callable[[socket.socket], None] | None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self.connections = 0
        self.requests: list[bytes] = []
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with suppress(OSError):
            peer = self._tls.wrap_socket(peer, server_side=True) if self._tls else peer
        with peer, suppress(OSError):
            while data := peer.recv(65536):
                while b"\r\n\r\n" not in data or not _whole(data):
                    data += peer.recv(65536)
                self.requests.append(data)
                answer = self._answers.pop(0)
                if answer is None:
                    return
                if callable(answer):
                    answer(peer)
                else:
                    peer.sendall(answer)


def _whole(data: bytes) -> bool:
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if b"content-length" in line
    ]
    return len(body) >= sum(lengths)


@contextmanager
def talking(
    *answers: Any, timeout: float = 5.0, most: int = 1000
) -> Iterator[tuple[Script, HttpClient]]:
    script = Script(*answers)
    wire = HttpClient(f"{script.url}/base/", timeout=timeout, most=most)
    try:
        yield script, wire
    finally:
        wire.close()
        script.close()


def ask(
    http: HttpClient, method: str, path: str, content: bytes | None, headers: dict[str, str]
) -> tuple[int, bytes]:
    answer = http.request(method, path, content=content, headers=headers)
    return answer.status_code, answer.content


def test_a_connection_is_used_again_and_the_request_is_as_it_was_given() -> None:
    with talking(OK, OK) as (script, wire):
        assert ask(wire, "GET", "/a%20b", None, {}) == (200, b"[]")
        assert ask(wire, "POST", "/x", b"body", {"Authorization": "secret"}) == (200, b"[]")
    assert script.connections == 1
    first, second = script.requests
    assert first.startswith(b"GET /base/a%20b HTTP/1.1\r\n") and first.endswith(b"\r\n\r\n")
    assert b"accept-encoding: identity\r\n" in first.lower()
    assert second.endswith(b"\r\n\r\nbody") and b"Authorization: secret\r\n" in second


def test_a_chunked_answer_is_read_and_its_connection_kept() -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    with talking(chunked, OK) as (script, wire):
        assert ask(wire, "GET", "/", None, {}) == (200, b"abcde")
        assert ask(wire, "GET", "/", None, {}) == (200, b"[]")
    assert script.connections == 1


def test_two_requests_at_once_have_a_connection_each() -> None:
    both = threading.Barrier(2)

    def together(peer: socket.socket) -> None:
        both.wait(10)
        peer.sendall(OK)

    with talking(together, together) as (script, wire):
        threads = [threading.Thread(target=wire.request, args=("GET", "/")) for _ in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert script.connections == 2 and len(script.requests) == 2


def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    closed = threading.Event()

    def once(peer: socket.socket) -> None:
        peer.sendall(OK)
        peer.close()
        closed.set()

    with talking(once, OK) as (script, wire):
        ask(wire, "GET", "/", None, {})
        closed.wait(10)
        assert ask(wire, "POST", "/write", b"x", {}) == (200, b"[]")
    assert script.connections == 2


def test_a_request_is_sent_once_whatever_becomes_of_its_answer() -> None:
    with talking(OK, None, OK) as (script, wire):
        ask(wire, "GET", "/", None, {})
        with pytest.raises(httpx.RemoteProtocolError):
            ask(wire, "POST", "/write", b"once", {})
        # What was sent may have been done: it is not sent twice.
        assert [b"once" in request for request in script.requests] == [False, True]
        assert ask(wire, "GET", "/", None, {}) == (200, b"[]")
    assert script.connections == 2


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n"


@pytest.mark.parametrize("parts", [[OK + OK], [OK, OK], [CHUNKED + OK], [CHUNKED, OK]])
def test_an_answer_that_nobody_asked_for_is_not_the_next_ones(parts: list[bytes]) -> None:
    sent = threading.Event()

    def surplus(peer: socket.socket) -> None:
        for part in parts:
            peer.sendall(part)
        sent.set()

    own = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown"
    with talking(surplus, own) as (_, wire):
        ask(wire, "GET", "/", None, {})
        sent.wait(10)
        assert ask(wire, "GET", "/", None, {}) == (200, b"own")


def test_an_idle_connection_is_given_up_before_the_server_closes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LIMITS", httpx.Limits(keepalive_expiry=0.0))
    with talking(OK, OK) as (script, wire):
        ask(wire, "GET", "/", None, {})
        ask(wire, "GET", "/", None, {})
    assert script.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: br\r\n\r\nxxxxx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: GZIP\r\n\r\nxxxxx",
    ],
)
def test_a_packed_answer_is_not_unpacked(answer: bytes) -> None:
    with talking(answer, OK) as (script, wire):
        with pytest.raises(PackedAnswer):
            ask(wire, "GET", "/", None, {})
        # Its body was not read: nothing of it may be taken for the next answer.
        assert ask(wire, "GET", "/", None, {}) == (200, b"[]")
    assert script.connections == 2


@pytest.mark.parametrize("length", [b"Content-Length: 100000", b"Connection: close"])
def test_a_longer_answer_than_memory_allows_is_cut(length: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n"
    with talking(head + b"x" * 100_000, OK) as (script, wire):
        with pytest.raises(LongAnswer):
            ask(wire, "GET", "/", None, {})
        assert ask(wire, "GET", "/", None, {}) == (200, b"[]")
    assert script.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"no HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 2**15 + b"\r\n",
    ],
)
def test_an_answer_that_is_cut_short_or_no_http_is_none(answer: bytes) -> None:
    def then_hang_up(peer: socket.socket) -> None:
        peer.sendall(answer)
        peer.shutdown(socket.SHUT_RDWR)

    with talking(then_hang_up) as (_, wire), pytest.raises(httpx.HTTPError):
        ask(wire, "GET", "/", None, {})


def test_silence_and_drips_are_cut_off() -> None:
    done = threading.Event()

    def silence(_peer: socket.socket) -> None:
        done.wait(10)

    def drip(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
        with suppress(OSError):
            while not done.wait(0.02):
                peer.sendall(b"x")

    def drip_of_a_head(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        with suppress(OSError):
            while not done.wait(0.02):
                peer.sendall(b"x")

    with talking(silence, drip, drip_of_a_head, timeout=0.1) as (_, wire):
        with pytest.raises(httpx.ReadTimeout):
            ask(wire, "GET", "/", None, {})
        for _ in (drip, drip_of_a_head):
            with pytest.raises(httpx.ReadTimeout):
                ask(wire, "GET", "/", None, {})
        done.set()


def test_nobody_there_is_no_answer() -> None:
    with pytest.raises(httpx.ConnectError):
        HttpClient("http://127.0.0.1:1", timeout=1, connects=2).request("GET", "/")


def test_a_store_that_redirects_is_refused_and_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = Script(OK)
    # Nor does the environment of the process say where requests go.
    monkeypatch.setenv("HTTP_PROXY", elsewhere.url)
    monkeypatch.setenv("http_proxy", elsewhere.url)
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {elsewhere.url}/\r\nContent-Length: 0\r\n\r\n"
    script = Script(moved.encode())
    store = StoreHttp(script.url, timeout=5)
    with closing(store), pytest.raises(BackendUnavailable, match="answered 307"):
        store.send("GET", "/")
    assert elsewhere.connections == 0 and script.connections == 1


def test_a_header_cannot_hold_another_one() -> None:
    with talking(OK) as (script, wire), pytest.raises(httpx.LocalProtocolError):
        ask(wire, "GET", "/", None, {"Authorization": "x\r\nHost: elsewhere"})
    assert script.requests == []


def test_a_certificate_is_checked_by_the_authorities_of_the_settings(tmp_path: Path) -> None:
    file, context = own_authority(tmp_path)
    script = Script(OK, tls=context)
    url = script.url.replace("http:", "https:")
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        StoreHttp(url, timeout=5).send("GET", "/")
    with closing(StoreHttp(url, timeout=5, authorities=file)) as store:
        assert store.send("GET", "/") == (200, b"[]")
    # The name is checked, too: the certificate is of 127.0.0.1.
    other = url.replace("127.0.0.1", "localhost")
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        StoreHttp(other, timeout=5, authorities=file).send("GET", "/")
    assert len(script.requests) == 1


TIMEOUT = 0.05
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n"


def drip(peer: socket.socket, before: bytes) -> None:
    peer.sendall(before)
    while True:
        peer.sendall(b"x")
        time.sleep(TIMEOUT / 5)


def send(url: str, content: bytes, timeout: float = TIMEOUT) -> httpx.Response:
    with HttpClient(url, timeout=timeout, most=10**6) as http:
        return http.request("POST", "/", content=content)


def continued(peer: socket.socket) -> None:
    while True:
        peer.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(TIMEOUT / 5)


def test_a_peer_that_sends_a_byte_now_and_then_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_RATE", 2**40)
    for name, play in {
        "a head": lambda peer: drip(peer, b"HTTP/1.1 200 OK\r\nX-Long: "),
        "no head": lambda peer: drip(peer, b"HTTP/1.1 "),
        "a body": lambda peer: drip(peer, HEAD + b"\r\n"),
        "heads before the answer's": continued,
    }.items():
        since = time.monotonic()
        with raw_server(play) as url, pytest.raises(httpx.TimeoutException):
            send(url, b"x" * 1000)
        spent = time.monotonic() - since
        assert spent < 3 * ANSWER_TIMEOUTS * TIMEOUT, f"{name}: {spent} s"


def test_a_stream_waits_for_no_head_without_end() -> None:
    since = time.monotonic()
    with (
        raw_server(lambda peer: drip(peer, b"HTTP/1.1 200 OK\r\nX-Long: ")) as url,
        HttpClient(url, timeout=TIMEOUT) as http,
        pytest.raises(httpx.TimeoutException),
        http.stream("GET", "/"),
    ):
        pass
    assert time.monotonic() - since < 3 * ANSWER_TIMEOUTS * TIMEOUT


def test_the_asynchronous_client_has_the_same_bounds() -> None:
    async def failure(url: str, most: int = 10**6) -> type[BaseException]:
        async with AsyncHttpClient(url, timeout=TIMEOUT, most=most) as http:
            with pytest.raises(httpx.HTTPError) as error:
                await http.request("GET", "/")
            return error.type

    packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx"
    with raw_server(lambda peer: drip(peer, HEAD + b"\r\n")) as url:
        assert asyncio.run(failure(url)) is httpx.ReadTimeout
        assert asyncio.run(failure(url, most=3)) is LongAnswer
    with talking(packed) as (script, _):
        assert asyncio.run(failure(script.url)) is PackedAnswer
    assert asyncio.run(failure("http://127.0.0.1:1")) is httpx.ConnectError


def test_calls_carry_on_what_the_request_in_work_says() -> None:
    before = module.carried.set(lambda: {"traceparent": "00-1"})
    try:
        with talking(OK) as (script, wire):
            wire.request("GET", "/")
    finally:
        module.carried.reset(before)
    assert b"traceparent: 00-1\r\n" in script.requests[0]


def test_no_variable_of_the_environment_changes_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Script()
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    netrc.chmod(0o600)
    file, context = own_authority(tmp_path)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, elsewhere.url)
        monkeypatch.setenv(name.lower(), elsewhere.url)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    module._usual_authorities.cache_clear()

    async def asked(url: str) -> int:
        async with AsyncHttpClient(url, timeout=5) as http:
            return (await http.request("GET", "/")).status_code

    with talking(OK, OK) as (script, wire):
        assert ask(wire, "GET", "/", None, {}) == (200, b"[]")
        assert asyncio.run(asked(script.url)) == 200
    assert not any(b"authorization" in request.lower() for request in script.requests)
    private = Script(OK, OK, tls=context)
    url = private.url.replace("http:", "https:")
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        HttpClient(url, timeout=5).request("GET", "/")
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(asked(url))
    assert elsewhere.connections == 0 and private.requests == []


def test_a_long_body_has_time_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(peer: socket.socket) -> None:
        while not peer.recv(65536).endswith(b"end"):
            time.sleep(TIMEOUT / 5)
        peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    monkeypatch.setattr(module, "ANSWER_TIMEOUTS", 0.1)
    body = b"x" * 2**22 + b"end"
    with raw_server(slow) as url:
        assert send(url, body, timeout=2).status_code == 204
        monkeypatch.setattr(module, "LEAST_RATE", 2**40)
        with pytest.raises(httpx.TimeoutException):
            send(url, body, timeout=2)
