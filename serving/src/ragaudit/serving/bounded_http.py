"""Calls to servers that are not ours: each may be slow, broken, or another one.

Answers are bounded in size and in time and never unpacked; the environment of the process decides
nothing; the trace of the request that is being worked on is passed on.
"""

import ssl
import time
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.serving.exchange import outgoing

ANSWER_TIMEOUTS = 12  # for a whole call, in timeouts of one phase
LEAST_RATE = 2**17  # bytes a second: for so much of a body a call has a second more

_PART_BYTES = 2**16
# Until when the call in this thread may go on, on the monotonic clock.
_until: ContextVar[float | None] = ContextVar("until", default=None)


class OddAnswer(Exception):
    """An answer that is not read to its end."""


class PackedAnswer(OddAnswer):
    """One that would have to be unpacked: a small one could become huge."""


class LongAnswer(OddAnswer):
    """One with more bytes than the caller takes."""


class BoundedHttp:
    """Calls to one server. Safe to use from several threads."""

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        most: int,
        verify: ssl.SSLContext | bool = True,
        headers: dict[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
        proxy: str | None = None,
        connects: int = 1,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            url: of the server, with a path if it has one.
            timeout: seconds for each phase of a call; a whole one, to the last byte of its answer,
                has `ANSWER_TIMEOUTS` of them, and more where it has a long body.
            most: bytes that are read of an answer.
            verify: as of `trusted_authorities`.
            headers: sent with every call; may hold a secret.
            transport: instead of the network, for tests.
            proxy: URL of the HTTP proxy through which the server is reached.
            connects: how often a connection is tried; a request is sent once.
        """
        self._timeout = timeout
        self._most = most
        if transport is None:
            transport = BoundedTransport(
                timeout=timeout, verify=verify, connects=connects, proxy=proxy
            )
        self._http = httpx.Client(
            event_hooks={"request": [_pass_trace_on]},
            base_url=url,
            timeout=timeout,
            # Proxy and authorities are settings, not variables.
            trust_env=False,
            transport=transport,
            headers={"Accept-Encoding": "identity", **(headers or {})},
        )
        self.build_request = self._http.build_request

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def send(self, request: httpx.Request) -> httpx.Response:
        """Return the response with its body; of its headers, ``Retry-After`` only.

        Redirections are not followed.

        Args:
            request: of `build_request`.

        Raises:
            httpx.HTTPError: no answer, or none in time.
            PackedAnswer, LongAnswer: it is not read.
        """
        sent = int(request.headers.get("content-length", "0"))
        set_before = _until.set(
            time.monotonic() + ANSWER_TIMEOUTS * self._timeout + sent / LEAST_RATE
        )
        try:
            return self._send(request)
        finally:
            _until.reset(set_before)

    def _send(self, request: httpx.Request) -> httpx.Response:
        response = self._http.send(request, stream=True)
        try:
            # Whatever the peer was asked for: what it packs is not unpacked.
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise PackedAnswer
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > self._most:
                    raise LongAnswer
        finally:
            response.close()
        wait = response.headers.get("retry-after")
        return httpx.Response(
            response.status_code,
            headers={} if wait is None else {"retry-after": wait},
            content=bytes(body),
            request=request,
        )


class BoundedTransport(httpx.HTTPTransport):
    """The network for a client of httpx, on which every step ends with the call that takes it.

    httpx bounds each step for itself, so that a peer which sends a byte of a header now and then is
    listened to without end. A call of `BoundedHttp` is bounded as a whole; any other one until its
    answer's body begins, which whoever reads it has to bound.
    """

    def __init__(
        self,
        *,
        timeout: float,
        verify: ssl.SSLContext | bool,
        connects: int = 1,
        proxy: str | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            timeout, verify, connects, proxy: as of `BoundedHttp`.
        """
        if verify is True:
            verify = _usual_authorities()
        super().__init__(verify=verify, trust_env=False, retries=connects - 1, proxy=proxy)
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
    """httpcore's stream; each step has the time that is left."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.close = inner.close
        self.get_extra_info = inner.get_extra_info

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        """Return bytes that arrived."""
        return self._inner.read(max_bytes, timeout=_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, a part at a time: the inner stream gives each part its whole timeout."""
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


def trusted_authorities(authorities: Path | None, setting: str) -> ssl.SSLContext | bool:
    """Return the authorities that servers' certificates are checked by; True for the system's.

    Args:
        authorities: a PEM file.
        setting: that names it, for the error.

    Raises:
        MalformedSettings: no certificates in the file.
    """
    if authorities is None:
        return True
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


def _pass_trace_on(request: httpx.Request) -> None:
    request.headers.update(outgoing())
