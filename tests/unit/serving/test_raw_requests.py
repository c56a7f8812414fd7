"""What a connection answers to bytes, well-formed or not: statuses, and whether it then closes.

Where a proxy in front reads the same bytes as other requests, one caller's bytes become part of
another's request (RFC 9112 §11.2): each form that readers are known to take differently is here.
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
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.serving.framing import CHUNK_LINE_BYTES, FIELDS, HEAD_BYTES
from ragaudit.serving.server import ConnectionLimits, protocol_factory
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

GET = b"GET /a?b HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\n"
WHOLE = GET + b"\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
COUNTED = POST + b"Content-Length: 3\r\n\r\nabc"
CODING = "transfer-encoding"
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
    "HTTP/1.0 with chunks": (CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n", "400 closed"),
    "HTTP/1.0 that waits": (
        b"POST /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        "200 closed",
    ),
    "HTTP/0.9": (b"GET /a\r\n\r\n", "400 closed"),
    "HTTP/0.9, named": (WHOLE.replace(b"1.1", b"0.9"), "400 closed"),
    "HTTP/1.2": (WHOLE.replace(b"1.1", b"1.2"), "400 closed"),
    "HTTP/1.10": (WHOLE.replace(b"1.1", b"1.10"), "400 closed"),
    "HTTP/2": (WHOLE.replace(b"1.1", b"2.0"), "400 closed"),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 closed"),
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
    "a method in lower case": (WHOLE.replace(b"GET", b"get"), "400 closed"),
    "an unknown method": (WHOLE.replace(b"GET", b"FROB"), "400 closed"),
    "no method": (WHOLE.replace(b"GET", b'G"T'), "400 closed"),
    "a tunnel": (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "400 closed"),
    "a tunnel to a path": (b"CONNECT /a HTTP/1.1\r\nHost: x\r\n\r\n", "400 closed"),
    "no target": (b"GET  HTTP/1.1\r\nHost: x\r\n\r\n", "400 closed"),
    "a target of two words": (WHOLE.replace(b"/a", b"/a b"), "400 closed"),
    "a target with host": (WHOLE.replace(b"/a", b"http://x/a"), "200"),
    "a target with host, and none": (b"GET http://x/a HTTP/1.1\r\n\r\n", "400 closed"),
    "a target with user": (WHOLE.replace(b"/a", b"http://u@x/a"), "400 closed"),
    "a target without host": (WHOLE.replace(b"/a", b"http:///a"), "400 closed"),
    "a target of another scheme": (WHOLE.replace(b"/a", b"ftp://x/a"), "400 closed"),
    "a host as the target": (WHOLE.replace(b"/a", b"x:80"), "400 closed"),
    "a relative target": (WHOLE.replace(b"/a", b"a"), "400 closed"),
    "a target that is no path": (WHOLE.replace(b"GET /a?b", b"OPTIONS *"), "400 closed"),
    "a target that looks like a host": (WHOLE.replace(b"/a", b"//y/a"), "200"),
    "a fragment": (WHOLE.replace(b"/a?b", b"/a#b"), "400 closed"),
    "a fragment of a query": (WHOLE.replace(b"/a?b", b"/a?b#c"), "400 closed"),
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
    "bare LF": (WHOLE.replace(b"\r\n", b"\n"), "400 closed"),
    "bare LF behind the request line": (WHOLE.replace(b"1.1\r\n", b"1.1\n"), "400 closed"),
    "bare LF at the end": (GET + b"\n", "400 closed"),
    "bare CR behind the request line": (WHOLE.replace(b"1.1\r\n", b"1.1\r"), "400 closed"),
    "bare CR in a field": (GET + b"A: b\rC: d\r\n\r\n", "400 closed"),
    "two CR": (GET + b"A: b\r\r\n\r\n", "400 closed"),
    # Fields
    "a folded field": (GET + b"A: b\r\n c\r\n\r\n", "400 closed"),
    "a field folded with a tab": (GET + b"A: b\r\n\tc\r\n\r\n", "400 closed"),
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
    "a value with a control character": (GET + b"A: b\x01c\r\n\r\n", "400 closed"),
    "a value with DEL": (GET + b"A: b\x7fc\r\n\r\n", "400 closed"),
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
    "one length twice": (POST + b"Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc", "400 closed"),
    "two lengths": (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400 closed"),
    "a list of one length": (POST + b"Content-Length: 3, 3\r\n\r\nabc", "400 closed"),
    "a list of lengths": (POST + b"Content-Length: 3, 4\r\n\r\nabcd", "400 closed"),
    "a positive length": (POST + b"Content-Length: +3\r\n\r\nabc", "400 closed"),
    "a negative length": (POST + b"Content-Length: -3\r\n\r\nabc", "400 closed"),
    "a hexadecimal length": (POST + b"Content-Length: 0x3\r\n\r\nabc", "400 closed"),
    "a fraction as length": (POST + b"Content-Length: 3.0\r\n\r\nabc", "400 closed"),
    "a length with an underscore": (POST + b"Content-Length: 1_0\r\n\r\nabc", "400 closed"),
    "a length in two words": (POST + b"Content-Length: 3 3\r\n\r\nabc", "400 closed"),
    "a length in Latin-1": (POST + b"Content-Length: \xb3\r\n\r\nabc", "400 closed"),
    "a length above 2^64": (
        POST + b"Content-Length: 18446744073709551619\r\n\r\nabc",
        "400 closed",
    ),
    "a length of 21 digits": (POST + b"Content-Length: " + b"0" * 20 + b"3\r\n\r\n", "400 closed"),
    # Transfer-Encoding
    "chunks": (CHUNKED + b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n", "200"),
    "chunks in another case": (
        POST + b"transfer-encoding: ChunKed\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
        "200",
    ),
    "chunks and a length": (
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "400 closed",
    ),
    "a length and chunks": (
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "400 closed",
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
    "a size above 2^64": (CHUNKED + b"10000000000000003\r\nabc\r\n0\r\n\r\n", "400 closed"),
    **{
        f"the size {size!r}": (CHUNKED + size + b"\r\nabc\r\n0\r\n\r\n", "400 closed")
        for size in (b"0x3", b"+3", b"-3", b"3g", b"1_0", b" 3", b"", b"3 ;a", b"\t3")
    },
    "a space behind the size": (CHUNKED + b"3 \r\nabc\r\n0\r\n\r\n", "400 closed"),
    "an extension": (CHUNKED + b'3;a=b;c="d;\\""\r\nabc\r\n0;e\r\n\r\n', "200"),
    "an extension with NUL": (CHUNKED + b"3;a\0\r\nabc\r\n0\r\n\r\n", "400 closed"),
    "an extension with bare CR": (CHUNKED + b"3;a\rb\r\nabc\r\n0\r\n\r\n", "400 closed"),
    "an extension with bare LF": (CHUNKED + b"3;a\nabc\r\n0\r\n\r\n", "400 closed"),
    "bare LF behind sizes": (CHUNKED + b"3\nabc\n0\n\n", "400 closed"),
    "bare LF behind a chunk": (CHUNKED + b"3\r\nabc\n0\r\n\r\n", "400 closed"),
    "bare LF behind the last size": (CHUNKED + b"3\r\nabc\r\n0\n\r\n", "400 closed"),
    "bare LF behind the last chunk": (CHUNKED + b"3\r\nabc\r\n0\r\n\n", "400 closed"),
    "bare CR behind a chunk": (CHUNKED + b"3\r\nabc\rX0\r\n\r\n", "400 closed"),
    "nothing behind a chunk": (CHUNKED + b"3\r\nabc0\r\n\r\n", "400 closed"),
    "a chunk longer than it says": (CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n", "400 closed"),
    "a trailer": (CHUNKED + b"3\r\nabc\r\n0\r\nA: b\r\nHost: z\r\n\r\n", "200"),
    "a folded trailer": (CHUNKED + b"3\r\nabc\r\n0\r\nA: b\r\n c\r\n\r\n", "400 closed"),
    "a trailer that is no field": (CHUNKED + b"3\r\nabc\r\n0\r\nA b\r\n\r\n", "400 closed"),
    "a trailer with bare LF": (CHUNKED + b"3\r\nabc\r\n0\r\nA: b\n\n", "400 closed"),
    "a trailer with a length": (CHUNKED + b"0\r\nContent-Length: 7\r\n\r\n", "400 closed"),
    "a trailer with a coding": (CHUNKED + b"0\r\nTransfer-Encoding: x\r\n\r\n", "400 closed"),
    "a trailer with options": (
        CHUNKED + b"0\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n\r\n" + WHOLE,
        "200 200",
    ),
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
    "the longest head": (GET + b"A: ".ljust(HEAD_BYTES - len(GET) - 4, b"x") + b"\r\n\r\n", "200"),
    "a longer head": (
        GET + b"A: ".ljust(HEAD_BYTES - len(GET) - 3, b"x") + b"\r\n\r\n",
        "400 closed",
    ),
    "the most fields": (GET + (FIELDS - 1) * b"A: b\r\n" + b"\r\n", "200"),
    "more fields": (GET + FIELDS * b"A: b\r\n" + b"\r\n", "400 closed"),
    "the longest extension": (
        CHUNKED + b"3;".ljust(CHUNK_LINE_BYTES - 2, b"x") + b"\r\nabc\r\n0\r\n\r\n",
        "200",
    ),
    "a longer extension": (
        CHUNKED + b"3;".ljust(CHUNK_LINE_BYTES - 1, b"x") + b"\r\nabc\r\n0\r\n\r\n",
        "400 closed",
    ),
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
        seen: of each request what the application saw, as `echo` says it.
        written: its answers.
        paused: whether it reads no more for now.
    """

    text: str
    seen: list[list[Any]]
    written: bytes
    paused: bool


class Wire(asyncio.Transport):
    """The service's end of a connection, in memory; ``stuck`` if nobody takes what is written."""

    def __init__(self, *, stuck: bool = False) -> None:
        super().__init__()
        self.written = b""
        self.paused = self.closing = self.aborted = False
        self.protocol: asyncio.Protocol | None = None
        self._stuck = stuck

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
            if not self._stuck:
                self._lose()

    def abort(self) -> None:
        self.closing = self.aborted = True
        self._lose()

    def _lose(self) -> None:
        assert self.protocol is not None
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer what was asked: method, target, path, query, version, fields and body."""
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
    asked += [scope["query_string"].decode(), scope["http_version"], fields, body.decode("latin-1")]
    said = json.dumps(asked).encode()
    head = [(b"content-length", b"%d" % len(said)), (b"x-asked", said)]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": said})


def connected(wire: Wire, app: Any, make: Callable[..., Any]) -> asyncio.Protocol:
    """A connection over a wire."""
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, server_header=False,
        date_header=False, ws="none",
    )  # fmt: skip
    config.load()
    protocol: asyncio.Protocol = make(config=config, server_state=ServerState(), app_state={})
    wire.protocol = protocol
    protocol.connection_made(wire)
    return protocol


def answered(
    raw: bytes, step: int = 2**16, app: Any = echo, make: Callable[..., Any] | None = None
) -> Answered:
    """What a connection answers to bytes that arrive ``step`` at a time."""

    async def ask() -> Wire:
        wire = Wire()
        protocol = connected(wire, app, make or protocol_factory(ConnectionLimits()))
        rest = raw
        while rest and not wire.closing:
            assert not wire.paused, "nobody would read the rest"
            protocol.data_received(rest[:step])
            rest = rest[step:]
            for _ in range(LATER):
                await asyncio.sleep(0)
        for _ in range(LATER * raw.count(b"HTTP/")):
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
    return Answered(text, asked, wire.written, wire.paused)


@pytest.mark.parametrize("step", [1, 7, 2**16])
@pytest.mark.parametrize("name", REQUESTS)
def test_an_answer_to_bytes(name: str, step: int) -> None:
    raw, expected = REQUESTS[name]
    assert answered(raw, step).text == expected


def seen(answers: Answered) -> list[list[Any]]:
    """What the application saw; h11 has the one coding in lower case, and offers of upgrades."""
    return [
        [*before, [[a, b.lower() if a == CODING else b] for a, b in fields if a != "upgrade"], body]
        for *before, fields, body in answers.seen
    ]


def no_request_is_read_in_another_way(raw: bytes, step: int) -> None:
    found = seen(answered(raw, step))
    assert found == seen(answered(raw, make=H11Protocol))[: len(found)]


# An absolute target is not taken apart by the second reader.
ALIKE = [raw for raw, _ in REQUESTS.values() if b"://" not in raw]
SHORT = [raw for raw in ALIKE if len(raw) < 200]


def test_a_second_reader_reads_the_same_requests() -> None:
    for raw in ALIKE:
        no_request_is_read_in_another_way(raw, 2**16)


PIECES = [
    b"", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b"\t", b":", b",", b";", b"#", b"/", b"0", b"3",
    b"\0", b"\x0b", b"\x7f", b"\xff", b"A: b\r\n", b"Host: y\r\n", b"Content-Length: 3\r\n",
    b"content-length:0\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: upgrade\r\n",
    b"Upgrade: x\r\n", b"0\r\n\r\n", b"1;a=b\r\nc\r\n", b"HTTP/1.0", b"HEAD", WHOLE,
]  # fmt: skip
EDITS = st.tuples(st.integers(0, 400), st.integers(0, 4), st.sampled_from(PIECES))


@given(
    st.lists(st.sampled_from(SHORT), min_size=1, max_size=3),
    st.lists(EDITS, max_size=3),
    st.sampled_from([1, 5, 2**16]),
)
@settings(max_examples=60)
def test_a_second_reader_reads_the_same_changed_requests(
    parts: list[bytes], edits: list[tuple[int, int, bytes]], step: int
) -> None:
    raw = b"".join(parts)
    for at, gone, put in edits:
        raw = raw[:at] + put + raw[at + gone :]
    no_request_is_read_in_another_way(raw, step)


@pytest.mark.parametrize(
    ("target", "seen", "host"),
    [
        (b"http://h.example:81/a%20b/x?c", ["/a%20b/x", "/a b/x", "c"], "h.example:81"),
        (b"HTTPS://h.example/a%20b/x", ["/a%20b/x", "/a b/x", ""], "h.example"),
        (b"http://[::1]:8080", ["/", "/", ""], "[::1]:8080"),
        (b"http://h.example?c", ["/", "/", "c"], "h.example"),
    ],
)
def test_an_absolute_target_is_path_and_host(target: bytes, seen: list[str], host: str) -> None:
    raw = b"GET " + target + b" HTTP/1.1\r\nA: b\r\nhOST: other\r\nC: d\r\n\r\n"
    ((_, *asked, _, fields, _),) = answered(raw).seen
    assert asked == seen and sorted(fields) == [["a", "b"], ["c", "d"], ["host", host]]


def test_requests_wait_unread_for_the_one_before() -> None:
    begun = []

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.append(scope["path"])
        await asyncio.Event().wait()

    answers = answered(1000 * WHOLE, app=slow)
    assert begun == ["/a"] and answers.paused and answers.written == b""


async def in_parts(scope: Any, receive: Any, send: Any) -> None:
    """Answer with a body of unknown length."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"one", "more_body": True})
    await send({"type": "http.response.body", "body": b"two"})


async def with_length(scope: Any, receive: Any, send: Any) -> None:
    """Answer with a body of stated length, before anything of a body is read."""
    head = [(b"Content-Length", b"6")]
    await send({"type": "http.response.start", "status": 413, "headers": head})
    await send({"type": "http.response.body", "body": b"onetwo"})


async def empty(scope: Any, receive: Any, send: Any) -> None:
    """Answer without a body."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def broken(scope: Any, receive: Any, send: Any) -> None:
    """Fail."""
    raise ValueError


OLD = b"GET /a HTTP/1.0\r\n\r\n"
HEAD = WHOLE.replace(b"GET", b"HEAD")
BODIES = {
    "in parts": (in_parts, WHOLE, b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", False),
    "in parts, not asked for": (in_parts, HEAD, b"", False),
    "in parts, to HTTP/1.0": (in_parts, OLD, b"onetwo", True),
    "in parts, not asked for by HTTP/1.0": (in_parts, OLD.replace(b"GET", b"HEAD"), b"", True),
    "with length": (with_length, WHOLE, b"onetwo", False),
    "with length, not asked for": (with_length, HEAD, b"", False),
    "with length, to HTTP/1.0": (with_length, OLD, b"onetwo", True),
    "empty": (empty, WHOLE, b"", False),
    "empty, to HTTP/1.0": (empty, OLD, b"", True),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_framed_as_its_reader_knows(name: str) -> None:
    app, raw, expected, closed = BODIES[name]
    answers = answered(raw, app=app)
    head, _, body = answers.written.partition(b"\r\n\r\n")
    assert (body, answers.text.endswith("closed")) == (expected, closed)
    assert (CODING.encode() in head) == (expected[-2:] == b"\r\n")
    assert (b"connection: close" in head) == closed


@pytest.mark.parametrize("raw", [WHOLE, OLD])
def test_a_fault_is_answered(raw: bytes) -> None:
    answers = answered(raw, app=broken)
    assert answers.text == "500 closed" and answers.written.endswith(
        b"\r\n\r\nInternal Server Error"
    )


MALFORMED = CHUNKED + b"3\r\nabcd\r\n"


def test_an_answer_that_was_given_is_the_only_one_to_its_request() -> None:
    assert answered(MALFORMED, len(CHUNKED), with_length).text == "413 closed"


def test_an_answer_is_cut_off_where_the_body_turns_out_to_be_none() -> None:
    received: list[Any] = []

    async def both(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not received or received[-1]["type"] != "http.disconnect":
            received.append(await receive())
        await send({"type": "http.response.body", "body": b"all is well"})

    answers = answered(MALFORMED, len(CHUNKED), both)
    assert answers.text == "200 closed" and b"all is well" not in answers.written
    assert received[-1]["type"] == "http.disconnect"


def test_who_takes_no_refusal_is_cut_off() -> None:
    async def refuse() -> bool:
        wire = Wire(stuck=True)
        limits = ConnectionLimits(write_seconds=0.01)
        connected(wire, echo, protocol_factory(limits)).data_received(b"no HTTP\r\n\r\n")
        assert wire.closing and not wire.aborted
        await asyncio.sleep(0.1)
        return wire.aborted

    assert asyncio.run(refuse())
