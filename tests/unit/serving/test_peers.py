"""Who sent a request, by its connection and by proxies; in which form its path may come."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from ipaddress import ip_network
from typing import Any

import pytest
from fastapi import FastAPI, Response
from fastapi.testclient import TestClient
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.prover.settings import ServerSettings
from ragaudit.serving.application import application
from ragaudit.serving.peers import BehindProxies, peer_of
from ragaudit.serving.settings import malformed

TRUSTED = ("127.0.0.1/32", "10.0.0.0/8", "fd00::/8")
CASES: dict[str, tuple[str, str, str]] = {
    "nobody forwards": ("203.0.113.5", "", "203.0.113.5"),
    "a stranger says who it is": ("203.0.113.5", "198.51.100.1", "203.0.113.5"),
    "a proxy says who asks": ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
    "the caller said it first": ("127.0.0.1", "192.0.2.9, 198.51.100.1", "198.51.100.1"),
    "two proxies": ("127.0.0.1", "192.0.2.9, 198.51.100.1, 10.1.2.3", "198.51.100.1"),
    "none but proxies": ("127.0.0.1", "10.0.0.2, 10.0.0.1", "10.0.0.2"),
    "no address": ("127.0.0.1", "alice", "127.0.0.1"),
    "no address behind a proxy": ("127.0.0.1", "evil, 10.0.0.1", "10.0.0.1"),
    "junk before an address": ("127.0.0.1", "\x1b[2J, 198.51.100.1", "198.51.100.1"),
    "a port": ("127.0.0.1", "198.51.100.1:99", "127.0.0.1"),
    "a zone": ("127.0.0.1", "fe80::1%\x1b[31mPASS", "127.0.0.1"),
    "nothing": ("127.0.0.1", "", "127.0.0.1"),
    "an empty member": ("127.0.0.1", "198.51.100.1, ", "127.0.0.1"),
    "another spelling": ("127.0.0.1", "2001:DB8::0:1", "2001:db8::1"),
    "IPv4 in IPv6": ("::ffff:127.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
    "IPv6": ("fd00::2", "2001:db8::1", "2001:db8::1"),
    "no address at all": ("testclient", "198.51.100.1", "testclient"),
}


def test_peers() -> None:
    networks = [ip_network(each) for each in TRUSTED]
    for name, (peer, header, expected) in CASES.items():
        forwarded = [each.strip().encode() for each in header.split(",")] if header else []
        assert peer_of(peer, forwarded, networks) == expected, name
        assert peer_of(peer, forwarded, []) == peer, name


def test_networks_of_proxies_are_exact() -> None:
    assert ServerSettings().trusted_proxies == ()
    assert ServerSettings(trusted_proxies=TRUSTED).trusted_proxies == TRUSTED
    for wrong in ("*", "localhost", "10.0.0.1/8", "10.0.0.0/33", ""):
        with pytest.raises(ValueError, match="not a network") as caught:
            ServerSettings(trusted_proxies=(wrong,))
        error = malformed(caught.value, "f")  # type: ignore[arg-type]
        assert isinstance(error, MalformedSettings) and "127.0.0.1/32" in error.expected


async def called(app: Any, **changes: Any) -> tuple[dict[str, Any], dict[bytes, bytes]]:
    """What an application sees of a request, and the headers of its answer."""
    scope = {
        "type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"",
        "headers": [], "scheme": "http", "client": ("127.0.0.1", 9), "server": None,
        "root_path": "", **changes,
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return scope, dict(sent[0]["headers"])


@pytest.mark.anyio
async def test_several_lines_are_one_list_and_the_scheme_is_the_proxys() -> None:
    seen: list[dict[str, Any]] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        seen.append(scope)
        await send({"type": "http.response.start", "status": 204, "headers": []})

    lines = [b"192.0.2.9", b"198.51.100.1"]
    headers = [(b"x-forwarded-for", line) for line in lines] + [(b"x-forwarded-proto", b"https")]
    await called(BehindProxies(app, TRUSTED), headers=headers)
    await called(BehindProxies(app, TRUSTED), headers=headers, client=("203.0.113.5", 9))
    await called(BehindProxies(app, ()), headers=headers)
    await called(BehindProxies(app, TRUSTED), headers=[(b"x-forwarded-proto", b"gopher")])
    shown = [(scope["client"][0], scope["scheme"]) for scope in seen]
    assert shown == [
        ("198.51.100.1", "https"), ("203.0.113.5", "http"), ("127.0.0.1", "http"),
        ("127.0.0.1", "http"),
    ]  # fmt: skip


def service() -> FastAPI:
    app = application("a service")

    @app.get("/a b/{name}")
    def show(name: str) -> str:
        return name

    @app.get("/tile")
    def tile() -> Response:
        return Response(b"", headers={"Cache-Control": "max-age=31536000, immutable"})

    @app.get("/events")
    def events() -> Response:
        return Response(b"", headers={"Cache-Control": "no-cache, no-transform"})

    @app.get("/fault")
    def fault() -> None:
        raise KeyError("a secret")

    return app


def test_caches_keep_nothing_but_what_never_changes() -> None:
    http = TestClient(service(), raise_server_exceptions=False)
    for path in ("/a b/x", "/events", "/fault", "/nowhere", "/openapi.json"):
        assert http.get(path).headers.get_list("cache-control") == ["no-store"], path
    assert http.get("/tile").headers["cache-control"] == "max-age=31536000, immutable"


PROGRAM = """
import sys
from ragaudit.serving import server
from ragaudit.serving.application import application
from starlette.requests import Request

app = application("a service")

@app.get("/peer")
def peer(request: Request) -> str:
    return request.client.host

server.run(lambda: app, host="127.0.0.1", port=int(sys.argv[1]), trusted_proxies=sys.argv[2:])
"""


def ask(port: int, target: str, forwarded: str) -> str:
    """The last line of the answer to a request as it stands on the wire."""
    until = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
                head = f"GET {target} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {forwarded}\r\n"
                peer.sendall(f"{head}Connection: close\r\n\r\n".encode())
                return b"".join(iter(lambda: peer.recv(4096), b"")).decode().splitlines()[-1]
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.parametrize(("trusted", "seen"), [((), "127.0.0.1"), (TRUSTED, "198.51.100.1")])
def test_a_service_believes_its_settings_only(trusted: tuple[str, ...], seen: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [sys.executable, "-c", PROGRAM, str(port), *trusted]
    # uvicorn's variable, which would let anybody name anybody.
    environment = {**os.environ, "FORWARDED_ALLOW_IPS": "*"}
    with subprocess.Popen(program, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            for target in ("/peer", f"http://127.0.0.1:{port}/peer"):
                assert ask(port, target, "192.0.2.9, 198.51.100.1") == f'"{seen}"'
        finally:
            process.terminate()
