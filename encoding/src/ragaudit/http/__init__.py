"""Calls over HTTP: the one way in which programs of ours ask a server.

Whoever is asked may be slow, broken, or another one. Answers are bounded in size and in time and
never unpacked, no redirection is followed, and the environment of the process decides nothing: no
proxy, no certificate authorities, no password file. What follows from a failure is for the caller
to say: all of them are `httpx.HTTPError`.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

import httpx
from ragaudit.encoding.errors import MalformedSettings

__all__ = [
    "ANSWER_TIMEOUTS",
    "AsyncHttpClient",
    "HttpClient",
    "LongAnswer",
    "OddAnswer",
    "PackedAnswer",
    "carried",
    "trusted_authorities",
]

ANSWER_TIMEOUTS = 12  # for a whole call, in timeouts of one phase
LEAST_RATE = 2**17  # bytes a second: for so much of a body a call has a second more
MAX_ANSWER_BYTES = 2**26  # unless the caller says otherwise: whoever answers must not fill memory

_PART_BYTES = 2**16
# Some servers close what is idle soon, and a request that meets that is lost.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=5.0)
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "ragaudit"}

carried: ContextVar[Callable[[], Mapping[str, str]]] = ContextVar("carried", default=dict)
"""Headers of the request that is being worked on; calls that are made for it carry them on."""

# Until when the call in this thread may go on, on the monotonic clock.
_until: ContextVar[float | None] = ContextVar("until", default=None)


class OddAnswer(httpx.HTTPError):
    """An answer that is not read to its end."""


class PackedAnswer(OddAnswer):
    """One that would have to be unpacked: a small one could become huge."""


class LongAnswer(OddAnswer):
    """One with more bytes than the caller takes."""


class HttpClient:
    """Calls to one server. Safe to use from several threads."""

    def __init__(
        self,
        url: httpx.URL | str = "",
        *,
        timeout: float,
        most: int = MAX_ANSWER_BYTES,
        verify: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
        proxy: str | None = None,
        connects: int = 1,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            url: of the server, with a path if it has one; empty if each call has its own.
            timeout: seconds for each phase of a call; a whole one, to the last byte of its answer,
                has `ANSWER_TIMEOUTS` of them, and more where it has a long body.
            most: bytes that are read of an answer.
            verify: as `trusted_authorities` returns it; None for the usual authorities.
            headers: sent with every call; may hold a secret.
            params: of the query of every call.
            transport: instead of the network, for tests.
            proxy: URL of the HTTP proxy through which the server is reached.
            connects: how often a connection is tried; a request is sent once.
        """
        self._timeout = timeout
        self._most = most
        self._transport = transport or _BoundedTransport(timeout, verify, connects, proxy)
        self._http = httpx.Client(
            base_url=url,
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
            transport=self._transport,
            headers={**_HEADERS, **(headers or {})},
            params=params,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def build_request(self, method: str, path: str, **parts: Any) -> httpx.Request:
        """Return a request that `send` takes.

        Args:
            path: below the server's URL.
            parts: as of `httpx.Client.build_request`: ``content``, ``json``, ``headers``,
                ``params``.
        """
        request = self._http.build_request(method, path, **parts)
        request.headers.update(carried.get()())
        return request

    def request(self, method: str, path: str, **parts: Any) -> httpx.Response:
        """Return the answer to one request; arguments of `build_request`, errors of `send`."""
        return self.send(self.build_request(method, path, **parts))

    def send(self, request: httpx.Request) -> httpx.Response:
        """Return the response with its body.

        Args:
            request: of `build_request`.

        Raises:
            httpx.HTTPError: no answer, none in time, or closed meanwhile; PackedAnswer, LongAnswer:
                it is not read.
        """
        set_before = _until.set(time.monotonic() + _seconds(request, self._timeout))
        try:
            if self._http.is_closed:
                raise httpx.TransportError("closed meanwhile")
            # Past the client: it costs as much as the network, for what is not wanted here.
            response = self._transport.handle_request(request)
            try:
                _demand_plain(response)
                body = bytearray()
                # Not `iter_bytes`, which lets go of the connection at the end.
                for part in cast(httpx.SyncByteStream, response.stream):
                    body += part
                    if len(body) > self._most:
                        raise LongAnswer(f"more than {self._most} bytes")
                if isinstance(stream := response.extensions.get("network_stream"), _Stream):
                    stream.end_answer(response.headers, len(body))
            finally:
                response.close()
        finally:
            _until.reset(set_before)
        return _whole(request, response, bytes(body))

    @contextmanager
    def stream(self, method: str, path: str, **parts: Any) -> Iterator[httpx.Response]:
        """Yield the response to one request, whose body the caller reads and bounds.

        Args:
            method, path, parts: as of `build_request`.

        Raises:
            httpx.HTTPError: no answer, or its head does not come in time.
        """
        response = self._http.send(self.build_request(method, path, **parts), stream=True)
        try:
            yield response
        finally:
            response.close()


class AsyncHttpClient:
    """The same on an event loop, which it must not leave."""

    def __init__(
        self,
        url: httpx.URL | str = "",
        *,
        timeout: float,
        most: int = MAX_ANSWER_BYTES,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Prepare the calls; nothing is sent yet. Arguments as of `HttpClient`."""
        self._timeout = timeout
        self._most = most
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
            transport=transport,
            verify=_usual_authorities() if transport is None else False,
            limits=_LIMITS,
            headers={**_HEADERS, **(headers or {})},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release the connections."""
        await self._http.aclose()

    async def request(self, method: str, path: str, **parts: Any) -> httpx.Response:
        """Return the response with its body; arguments and errors as of `HttpClient.request`."""
        request = self._http.build_request(method, path, **parts)
        request.headers.update(carried.get()())
        try:
            async with asyncio.timeout(_seconds(request, self._timeout)):
                return await self._send(request)
        except TimeoutError:
            raise httpx.ReadTimeout("the call took too long", request=request) from None

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response = await self._http.send(request, stream=True)
        try:
            _demand_plain(response)
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > self._most:
                    raise LongAnswer(f"more than {self._most} bytes")
        finally:
            await response.aclose()
        return _whole(request, response, bytes(body))


def _seconds(request: httpx.Request, timeout: float) -> float:
    """Return how long a whole call may take."""
    sent = int(request.headers.get("content-length", "0"))
    return ANSWER_TIMEOUTS * timeout + sent / LEAST_RATE


def _demand_plain(response: httpx.Response) -> None:
    # Whatever the peer was asked for: what it packs is not unpacked.
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise PackedAnswer("a packed answer")


def _whole(request: httpx.Request, response: httpx.Response, body: bytes) -> httpx.Response:
    # One whose body can be read again, and is text whenever a caller asks.
    return httpx.Response(
        response.status_code, headers=response.headers, content=body, request=request
    )


class _BoundedTransport(httpx.HTTPTransport):
    """The network for a client of httpx, on which every step ends with the call that takes it.

    httpx bounds each step for itself, so that a peer which sends a byte of a header now and then is
    listened to without end. A call of `HttpClient.send` is bounded as a whole; a stream until its
    answer's body begins.
    """

    def __init__(
        self, timeout: float, verify: ssl.SSLContext | None, connects: int, proxy: str | None
    ) -> None:
        super().__init__(
            verify=verify or _usual_authorities(),
            trust_env=False,
            retries=connects - 1,
            proxy=proxy,
            limits=_LIMITS,
        )
        self._seconds = ANSWER_TIMEOUTS * timeout
        # Where it takes its connections from is not in its interface.
        pool: Any = self._pool
        pool._network_backend = _Backend(pool._network_backend)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer, its body not read."""
        if _until.get() is not None:
            return super().handle_request(request)
        before = _until.set(time.monotonic() + self._seconds)
        try:
            return super().handle_request(request)
        finally:
            _until.reset(before)


class _Backend:
    """httpcore's network, with streams that end in time."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.sleep = inner.sleep

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **more: Any) -> Any:
        """Return a stream to a host."""
        return _Stream(self._inner.connect_tcp(host, port, timeout=_left(timeout), **more))


class _Stream:
    """httpcore's stream; each step has the time that is left.

    httpcore takes what follows an answer for the next one, whoever asks next. So what arrives after
    a request is counted, and a stream on which more came than one answer is used no more.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.close = inner.close
        self._surplus = False
        self._begin_answer()

    def _begin_answer(self) -> None:
        self._head, self._count, self._tail = b"", 0, b""

    def end_answer(self, headers: httpx.Headers, length: int) -> None:
        """Note whether nothing came but an answer with a body of so many bytes."""
        if "transfer-encoding" in headers:
            self._surplus = not self._tail.endswith(b"0\r\n\r\n")
        else:
            self._surplus = self._count != self._head.find(b"\r\n\r\n") + 4 + length

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the stream; one that can be read before it is asked is closed."""
        return (info == "is_readable" and self._surplus) or self._inner.get_extra_info(info)

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        """Return bytes that arrived."""
        data = self._inner.read(max_bytes, timeout=_left(timeout))
        if b"\r\n\r\n" not in self._head:
            self._head += data
        self._count += len(data)
        self._tail = (self._tail + data)[-5:]
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, a part at a time: the inner stream gives each part its whole timeout."""
        self._begin_answer()
        for start in range(0, len(buffer), _PART_BYTES):
            self._inner.write(buffer[start : start + _PART_BYTES], timeout=_left(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> Any:  # fmt: skip
        """Return the stream, encrypted."""
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, timeout=_left(timeout)))


def _left(timeout: float | None) -> float | None:
    """Return for how many seconds a step may go on."""
    if (until := _until.get()) is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0:
        raise httpx.ReadTimeout("the call took too long")
    return left if timeout is None else min(timeout, left)


def trusted_authorities(authorities: Path | None, setting: str) -> ssl.SSLContext | None:
    """Return the authorities that servers' certificates are checked by; None for the usual.

    Args:
        authorities: a PEM file.
        setting: that names it, for the error.

    Raises:
        MalformedSettings: no certificates in the file.
    """
    if authorities is None:
        return None
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError):
        raise MalformedSettings(
            "no certificates", where=f"{setting}: {authorities}", expected="a PEM file"
        ) from None


@cache
def _usual_authorities() -> ssl.SSLContext:
    """The list is long: it is read once, however many servers are asked."""
    return httpx.create_ssl_context(trust_env=False)
