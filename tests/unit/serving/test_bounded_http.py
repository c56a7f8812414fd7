"""A call to a server that is not ours ends in time, whatever that server does."""

import socket
import time

import httpx
import pytest
from ragaudit.serving import bounded_http
from ragaudit.serving.bounded_http import ANSWER_TIMEOUTS, BoundedHttp, BoundedTransport
from raw_server import raw_server

TIMEOUT = 0.05
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n"


def drip(peer: socket.socket, before: bytes) -> None:
    peer.sendall(before)
    while True:
        peer.sendall(b"x")
        time.sleep(TIMEOUT / 5)


def send(url: str, content: bytes, timeout: float = TIMEOUT) -> httpx.Response:
    http = BoundedHttp(url, timeout=timeout, most=10**6)
    try:
        return http.send(http.build_request("POST", "/", content=content))
    finally:
        http.close()


def continued(peer: socket.socket) -> None:
    while True:
        peer.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(TIMEOUT / 5)


def test_a_peer_that_sends_a_byte_now_and_then_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "LEAST_RATE", 2**40)
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


def test_another_client_on_this_network_waits_for_no_head_without_end() -> None:
    transport = BoundedTransport(timeout=TIMEOUT, verify=True)
    since = time.monotonic()
    with (
        raw_server(lambda peer: drip(peer, b"HTTP/1.1 200 OK\r\nX-Long: ")) as url,
        httpx.Client(transport=transport, timeout=TIMEOUT) as http,
        pytest.raises(httpx.TimeoutException),
    ):
        http.post(url, content=b"text")
    assert time.monotonic() - since < 3 * ANSWER_TIMEOUTS * TIMEOUT


def test_a_long_body_has_time_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(peer: socket.socket) -> None:
        while not peer.recv(65536).endswith(b"end"):
            time.sleep(TIMEOUT / 5)
        peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    monkeypatch.setattr(bounded_http, "ANSWER_TIMEOUTS", 0.1)
    body = b"x" * 2**22 + b"end"
    with raw_server(slow) as url:
        assert send(url, body, timeout=2).status_code == 204
        monkeypatch.setattr(bounded_http, "LEAST_RATE", 2**40)
        with pytest.raises(httpx.TimeoutException):
            send(url, body, timeout=2)
