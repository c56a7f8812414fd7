"""What a connection answers to bytes, well-formed or not: statuses, and whether it then closes.

A proxy in front that reads a request differently than the service would let one caller put words
into another's mouth (RFC 9112 §11.2), so each form that two readers may take apart is here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from ragaudit.serving.server import ConnectionLimits, protocol_factory
from uvicorn.server import ServerState

GET = b"GET /a?b HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\n"
WHOLE = GET + b"\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
COUNTED = POST + b"Content-Length: 3\r\n\r\nabc"
LATER = 6  # turns of the loop, in which an answer is made

REQUESTS = {
    "a request": (WHOLE, "200"),
    "the last request": (GET + b"Connection: close\r\n\r\n", "200 closed"),
    "the last request, among other options": (GET + b"Connection: a, Close\r\n\r\n", "200 closed"),
    "the last request, in a second field": (
        GET + b"Connection: a\r\nConnection: close\r\n\r\n",
        "200 closed",
    ),
    "no option": (GET + b"Connection: ,,\r\n\r\n", "200"),
    "a request for a head": (WHOLE.replace(b"GET", b"HEAD"), "200"),
    "a body that is read by nobody": (GET + b"Content-Length: 3\r\n\r\nabc", "200"),
    "two requests at once": (WHOLE + WHOLE, "200 200"),
    "bodies and requests at once": (COUNTED + CHUNKED + b"0\r\n\r\n" + WHOLE, "200 200 200"),
    "a request and half a request": (WHOLE + GET, "200"),
    "a request and junk": (WHOLE + b"junk\r\n\r\n", "200 400 closed"),
    "a request behind the last one": (GET + b"Connection: close\r\n\r\n" + WHOLE, "200 closed"),
    # Versions
    "HTTP/1.0": (b"GET /a HTTP/1.0\r\n\r\n", "200 closed"),
    "HTTP/1.0, to be kept": (b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200 closed"),
    "HTTP/1.0 with chunks": (CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n", "200 closed"),
    "HTTP/1.0 that waits": (
        b"POST /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        "200 closed",
    ),
    "HTTP/0.9": (b"GET /a\r\n\r\n", "400 closed"),
    "HTTP/0.9, named": (WHOLE.replace(b"1.1", b"0.9"), "200 closed"),
    "HTTP/1.2": (WHOLE.replace(b"1.1", b"1.2"), "200"),
    "HTTP/1.10": (WHOLE.replace(b"1.1", b"1.10"), "400 closed"),
    "HTTP/2": (WHOLE.replace(b"1.1", b"2.0"), "200"),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "200 400 closed"),
    "http in lower case": (WHOLE.replace(b"HTTP", b"http"), "400 closed"),
    "another protocol": (b"SETUP /a RTSP/1.0\r\nHost: x\r\n\r\n", "400 closed"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00", "400 closed"),
    "no HTTP": (b"no HTTP at all\r\n\r\n", "400 closed"),
    # The request line
    "an empty line before": (b"\r\n" + WHOLE, "400 closed"),
    "an end of line before": (b"\n" + WHOLE, "400 closed"),
    "a space before": (b" " + WHOLE, "400 closed"),
    "two spaces": (WHOLE.replace(b"GET ", b"GET  "), "400 closed"),
    "two spaces behind the target": (WHOLE.replace(b" HTTP", b"  HTTP"), "400 closed"),
    "a space behind the version": (WHOLE.replace(b"1.1", b"1.1 "), "400 closed"),
    "a tab": (WHOLE.replace(b"GET ", b"GET\t"), "400 closed"),
    "a method in lower case": (WHOLE.replace(b"GET", b"get"), "200"),
    "an unknown method": (WHOLE.replace(b"GET", b"FROB"), "200"),
    "no method": (WHOLE.replace(b"GET", b'G"T'), "400 closed"),
    "a tunnel": (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "200 closed"),
    "a tunnel to a path": (b"CONNECT /a HTTP/1.1\r\nHost: x\r\n\r\n", "200 closed"),
    "no target": (b"GET  HTTP/1.1\r\nHost: x\r\n\r\n", "400 closed"),
    "a target of two words": (WHOLE.replace(b"/a", b"/a b"), "400 closed"),
    "a target with host": (WHOLE.replace(b"/a", b"http://x/a"), "200"),
    "a host as the target": (WHOLE.replace(b"/a", b"x:80"), "200"),
    "a relative target": (WHOLE.replace(b"/a", b"a"), "200"),
    "a target that is no path": (WHOLE.replace(b"GET /a?b", b"OPTIONS *"), "200"),
    "a target that looks like a host": (WHOLE.replace(b"/a", b"//y/a"), "200"),
    "a fragment": (WHOLE.replace(b"/a?b", b"/a#b"), "200"),
    "a fragment of a query": (WHOLE.replace(b"/a?b", b"/a?b#c"), "200"),
    "a target in Latin-1": (WHOLE.replace(b"/a", b"/\xe9"), "400 closed"),
    "a target with NUL": (WHOLE.replace(b"/a", b"/\0"), "400 closed"),
    "a target with DEL": (WHOLE.replace(b"/a", b"/\x7f"), "400 closed"),
    "a target with marks": (WHOLE.replace(b"/a?b", b"/\"<>\\^`{|}'?\"<>\\^`{|}'?"), "200"),
    "a target in percents": (WHOLE.replace(b"/a", b"/%41%zz%00"), "200"),
    # Host
    "no host": (b"GET /a HTTP/1.1\r\n\r\n", "400 closed"),
    "an empty host": (b"GET /a HTTP/1.1\r\nHost:\r\n\r\n", "200"),
    "two hosts": (GET + b"Host: y\r\n\r\n", "400 closed"),
    "one host twice": (GET + b"hOST: x\r\n\r\n", "400 closed"),
    "two hosts of HTTP/1.0": (
        b"GET /a HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",
        "400 closed",
    ),
    # Ends of lines
    "bare LF": (WHOLE.replace(b"\r\n", b"\n"), "200"),
    "bare LF behind the request line": (WHOLE.replace(b"1.1\r\n", b"1.1\n"), "200"),
    "bare LF at the end": (GET + b"\n", "200"),
    "bare CR behind the request line": (WHOLE.replace(b"1.1\r\n", b"1.1\r"), "400 closed"),
    "bare CR in a field": (GET + b"A: b\rC: d\r\n\r\n", "400 closed"),
    "two CR": (GET + b"A: b\r\r\n\r\n", "400 closed"),
    # Fields
    "a folded field": (GET + b"A: b\r\n c\r\n\r\n", "200"),
    "a field folded with a tab": (GET + b"A: b\r\n\tc\r\n\r\n", "200"),
    "a fold before the first field": (
        b"GET /a HTTP/1.1\r\n A: b\r\nHost: x\r\n\r\n",
        "400 closed",
    ),
    "a space before the colon": (GET + b"A : b\r\n\r\n", "400 closed"),
    "a space before the colon of chunks": (
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "400 closed",
    ),
    "no colon": (GET + b"A\r\n\r\n", "400 closed"),
    "no name": (GET + b": b\r\n\r\n", "400 closed"),
    "a name with a mark": (GET + b"A(b: c\r\n\r\n", "400 closed"),
    "a name in Latin-1": (GET + b"\xe9: c\r\n\r\n", "400 closed"),
    "a name with NUL": (GET + b"A\0: c\r\n\r\n", "400 closed"),
    "an odd name": (GET + b"!#$%&'*+-.^_`|~09: c\r\n\r\n", "200"),
    "a value with NUL": (GET + b"A: b\0c\r\n\r\n", "400 closed"),
    "a value with VT": (GET + b"A: b\x0bc\r\n\r\n", "400 closed"),
    "a value with a control character": (GET + b"A: b\x01c\r\n\r\n", "200"),
    "a value with DEL": (GET + b"A: b\x7fc\r\n\r\n", "200"),
    "a value in Latin-1": (GET + b"A: \xe9\x80\xff\x85\xa0\r\n\r\n", "200"),
    "a value among spaces": (GET + b"A: \t b\tc  d \t\r\n\r\n", "200"),
    "values without spaces": (GET + b"A:b\r\nC:\r\nD: \r\n\r\n", "200"),
    # Content-Length
    "a body": (COUNTED, "200"),
    "an empty body": (POST + b"Content-Length: 0\r\n\r\n", "200"),
    "half a body": (POST + b"Content-Length: 4\r\n\r\nabc", ""),
    "a length with zeros": (POST + b"Content-Length: 0003 \t\r\n\r\nabc", "200"),
    "no length": (POST + b"\r\nabc\r\n\r\n", "200 400 closed"),
    "an empty length": (POST + b"Content-Length:\r\n\r\n", "400 closed"),
    "one length twice": (POST + b"Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc", "200"),
    "two lengths": (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400 closed"),
    "a list of one length": (POST + b"Content-Length: 3, 3\r\n\r\nabc", "200"),
    "a list of lengths": (POST + b"Content-Length: 3, 4\r\n\r\nabcd", "400 closed"),
    "a positive length": (POST + b"Content-Length: +3\r\n\r\nabc", "400 closed"),
    "a negative length": (POST + b"Content-Length: -3\r\n\r\nabc", "400 closed"),
    "a hexadecimal length": (POST + b"Content-Length: 0x3\r\n\r\nabc", "400 closed"),
    "a fraction as length": (POST + b"Content-Length: 3.0\r\n\r\nabc", "400 closed"),
    "a length with an underscore": (POST + b"Content-Length: 1_0\r\n\r\nabc", "400 closed"),
    "a length in two words": (POST + b"Content-Length: 3 3\r\n\r\nabc", "400 closed"),
    "a length in Latin-1": (POST + b"Content-Length: \xb3\r\n\r\nabc", "400 closed"),
    "a length above 2^64": (POST + b"Content-Length: 18446744073709551619\r\n\r\nabc", ""),
    "a length of 21 digits": (POST + b"Content-Length: " + b"0" * 20 + b"3\r\n\r\n", "400 closed"),
    # Transfer-Encoding
    "chunks": (CHUNKED + b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n", "200"),
    "chunks in another case": (
        POST + b"transfer-encoding: ChunKed\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
        "200",
    ),
    "chunks and a length": (
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "200",
    ),
    "a length and chunks": (
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "200",
    ),
    "chunks, twice": (
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400 closed",
    ),
    **{
        f"the coding {coding!r}": (
            POST + b"Transfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n",
            "400 closed",
        )
        for coding in (
            b"identity",
            b"gzip, chunked",
            b"chunked, chunked",
            b"chunked, identity",
            b"chunked,",
            b",chunked",
            b"",
            b"\x0bchunked",
            b"xchunked",
            b'"chunked"',
            b"chunked;a=b",
        )
    },
    # Chunks
    "no chunk": (CHUNKED + b"0\r\n\r\n", "200"),
    "half a chunk": (CHUNKED + b"4\r\nabc", ""),
    "an empty line in a chunk": (CHUNKED + b"4\r\n\r\n\r\n\r\n0\r\n\r\n", "200"),
    "a size with zeros": (CHUNKED + b"0003\r\nabc\r\n000\r\n\r\n", "200"),
    "a size of 21 digits": (CHUNKED + b"0" * 20 + b"3\r\nabc\r\n0\r\n\r\n", "400 closed"),
    "a size above 2^64": (CHUNKED + b"10000000000000003\r\nabc\r\n0\r\n\r\n", ""),
    **{
        f"the size {size!r}": (CHUNKED + size + b"\r\nabc\r\n0\r\n\r\n", "400 closed")
        for size in (b"0x3", b"+3", b"-3", b"3g", b"1_0", b" 3", b"", b"3 ;a", b"\t3")
    },
    "a space behind the size": (CHUNKED + b"3 \r\nabc\r\n0\r\n\r\n", "200"),
    "an extension": (CHUNKED + b'3;a=b;c="d;\\""\r\nabc\r\n0;e\r\n\r\n', "200"),
    "an extension with NUL": (CHUNKED + b"3;a\0\r\nabc\r\n0\r\n\r\n", "200"),
    "an extension with bare CR": (CHUNKED + b"3;a\rb\r\nabc\r\n0\r\n\r\n", "200"),
    "an extension with bare LF": (CHUNKED + b"3;a\nabc\r\n0\r\n\r\n", "400 closed"),
    "bare LF behind sizes": (CHUNKED + b"3\nabc\n0\n\n", ""),
    "bare LF behind a chunk": (CHUNKED + b"3\r\nabc\n0\r\n\r\n", "400 closed"),
    "bare LF behind the last size": (CHUNKED + b"3\r\nabc\r\n0\n\r\n", "400 closed"),
    "bare LF behind the last chunk": (CHUNKED + b"3\r\nabc\r\n0\r\n\n", "200"),
    "bare CR behind a chunk": (CHUNKED + b"3\r\nabc\rX0\r\n\r\n", "400 closed"),
    "nothing behind a chunk": (CHUNKED + b"3\r\nabc0\r\n\r\n", "400 closed"),
    "a chunk longer than it says": (CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n", "400 closed"),
    "a trailer": (CHUNKED + b"3\r\nabc\r\n0\r\nA: b\r\nHost: z\r\n\r\n", "200"),
    "a folded trailer": (CHUNKED + b"3\r\nabc\r\n0\r\nA: b\r\n c\r\n\r\n", "200"),
    "a trailer that is no field": (CHUNKED + b"3\r\nabc\r\n0\r\nA b\r\n\r\n", "400 closed"),
    "a trailer with bare LF": (CHUNKED + b"3\r\nabc\r\n0\r\nA: b\n\n", "200"),
    "a trailer with a length": (CHUNKED + b"0\r\nContent-Length: 7\r\n\r\n", "200"),
    "a trailer with a coding": (CHUNKED + b"0\r\nTransfer-Encoding: x\r\n\r\n", "400 closed"),
    # Expectations and upgrades
    "a body that waits": (
        POST + b"Expect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc",
        "100 200",
    ),
    "another expectation": (POST + b"Expect: tea\r\nContent-Length: 3\r\n\r\nabc", "200"),
    "an upgrade": (
        GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n" + WHOLE,
        "200 200",
    ),
    "an upgrade with a body": (
        POST
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n"
        + b"Content-Length: 3\r\n\r\nabc"
        + WHOLE,
        "200 200",
    ),
    # Lengths
    "a long head": (GET + b"A: " + b"x" * 15_000 + b"\r\n\r\n", "200"),
    "a head without end": (GET + b"A: " + b"x" * 2**17, "400 closed"),
    "a target without end": (b"GET /" + b"x" * 2**17, "400 closed"),
    "an extension without end": (CHUNKED + b"3;" + b"x" * 2**17, "400 closed"),
    "a trailer without end": (CHUNKED + b"0\r\nA: " + b"x" * 2**17, "400 closed"),
}


@dataclass
class Answered:
    """What a connection did with bytes.

    Attributes:
        text: the statuses of its answers, and " closed" if it then closed.
        seen: of each request what the application saw: method, path, query, version, fields, body.
        written: its answers.
    """

    text: str
    seen: list[list[Any]]
    written: bytes


class Wire(asyncio.Transport):
    """The end of a connection that the service holds, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.paused = self.closing = False
        self.protocol: asyncio.Protocol | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The two addresses."""
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if not self.closing:
            self.written += data

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            assert self.protocol is not None
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer what was asked."""
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    fields = [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"]]
    asked = [scope["method"], scope["raw_path"].decode(), scope["path"]]
    asked += [scope["query_string"].decode(), scope["http_version"], fields, body.decode()]
    said = json.dumps(asked).encode()
    head = [(b"content-length", b"%d" % len(said)), (b"x-asked", said)]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": said})


def answered(
    raw: bytes, step: int, app: Any = echo, make: Callable[..., Any] | None = None
) -> Answered:
    """What a connection answers to bytes that arrive ``step`` at a time."""

    async def ask() -> Wire:
        config = uvicorn.Config(
            app, lifespan="off", log_config=None, access_log=False, server_header=False,
            date_header=False, ws="none",
        )  # fmt: skip
        config.load()
        factory = make or protocol_factory(ConnectionLimits())
        protocol = factory(config=config, server_state=ServerState(), app_state={})
        wire = Wire()
        wire.protocol = protocol
        protocol.connection_made(wire)
        rest = raw
        while rest and not wire.closing:
            assert not wire.paused, "nobody would read the rest"
            protocol.data_received(rest[:step])
            rest = rest[step:]
            for _ in range(LATER):
                await asyncio.sleep(0)
        for _ in range(LATER * (1 + raw.count(b"HTTP/"))):
            await asyncio.sleep(0)
        closed = wire.closing
        wire.close()
        await asyncio.sleep(0)
        wire.closing = closed
        return wire

    wire = asyncio.run(ask())
    statuses = [found.decode() for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", wire.written)]
    asked = [json.loads(found) for found in re.findall(rb"x-asked: (.*)\r\n", wire.written)]
    text = " ".join([*statuses, *(["closed"] if wire.closing else [])])
    return Answered(text, asked, wire.written)


@pytest.mark.parametrize("step", [1, 7, 2**16])
@pytest.mark.parametrize("name", REQUESTS)
def test_an_answer_to_bytes(name: str, step: int) -> None:
    raw, expected = REQUESTS[name]
    assert answered(raw, step).text == expected
