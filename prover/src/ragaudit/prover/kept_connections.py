"""Connections to one server that is asked in every answer: kept open, one request at a time each.

The standard library's client costs a quarter of the time that httpx takes around a small answer.
The bounds are those of `bounded_http`: size and time of an answer are limited, nothing is unpacked,
no redirection is followed, the environment of the process decides nothing.
"""

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from typing import Any
from urllib.parse import urlsplit

import httpx
from ragaudit.serving.bounded_http import ANSWER_TIMEOUTS, LongAnswer, PackedAnswer

__all__ = ["KeptConnections", "NoAnswer"]

IDLE_SECONDS = 5.0  # servers close what is idle, some soon; a request that meets that is lost
_CONNECTS = 2
_PART_BYTES = 2**16


class NoAnswer(Exception):
    """The server was not reached, or did not answer as HTTP demands, or in time."""


class KeptConnections:
    """Calls to one server. Safe to use from several threads."""

    def __init__(
        self, url: str, *, timeout: float, most: int, verify: ssl.SSLContext | bool = True
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            url: of the server, ``http`` or ``https``, with a path if it has one.
            timeout: seconds for each phase of a call; a whole one has `ANSWER_TIMEOUTS` of them.
            most: bytes that are read of an answer.
            verify: as of `trusted_authorities`.
        """
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/")
        self._timeout = timeout
        self._most = most
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            # The authorities of httpx, as for all other servers; no variable changes them.
            trusted = verify if isinstance(verify, ssl.SSLContext) else None
            self._context = trusted or httpx.create_ssl_context(trust_env=False)
        self._idle: deque[tuple[HTTPConnection, float]] = deque()

    def close(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            self._idle.pop()[0].close()

    def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Return status and body of an answer. The request is sent once.

        Args:
            path: below the server's URL, its parts quoted.
            body: None for none.
            headers: of the call; may hold a secret.

        Raises:
            NoAnswer: none, or none in time.
            PackedAnswer, LongAnswer: it is not read.
        """
        try:
            connection = self._take()
            kept = False
            try:
                sent = {"Accept-Encoding": "identity", **headers}
                until = time.monotonic() + ANSWER_TIMEOUTS * self._timeout
                connection.sock.settimeout(self._timeout)
                # Anything that makes an answer will do.
                made = partial(_Response, self._timeout, until)
                connection.response_class = made  # type: ignore[assignment]
                connection.request(method, self._path + path, body, sent)
                response = connection.getresponse()
                content = self._read(response)
                kept = not response.will_close
            finally:
                if not kept:
                    connection.close()
        except (OSError, HTTPException, UnicodeError) as error:
            raise NoAnswer(f"{type(error).__name__}: {error}") from None
        self._idle.append((connection, time.monotonic()))
        return response.status, content

    def _take(self) -> HTTPConnection:
        """Return a connection on which nothing waits to be read, the last one used first."""
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return self._connect()
            if time.monotonic() - since < IDLE_SECONDS and not _readable(connection):
                return connection
            connection.close()

    def _connect(self) -> HTTPConnection:
        for _ in range(_CONNECTS - 1):
            try:
                return self._connected()
            except OSError:
                continue
        return self._connected()

    def _connected(self) -> HTTPConnection:
        connection = (
            HTTPConnection(self._host, self._port, timeout=self._timeout)
            if self._context is None
            else HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=self._context
            )
        )
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        return connection

    def _read(self, response: HTTPResponse) -> bytes:
        # Whatever the peer was asked for: what it packs is not unpacked.
        if (response.headers.get("content-encoding") or "identity").lower() != "identity":
            raise PackedAnswer
        body = bytearray()
        while part := response.read1(_PART_BYTES):
            body += part
            if len(body) > self._most:
                raise LongAnswer
        # `read1` takes an early end for the end.
        if response.length:
            raise NoAnswer("an answer that is cut short")
        response.close()  # of the connection, only this answer
        return bytes(body)


class _Response(HTTPResponse):
    """An answer that ends in time: a peer which sends a byte now and then, of a header too, never
    runs into the timeout of a phase."""

    def __init__(self, timeout: float, until: float, sock: socket.socket, **more: Any) -> None:
        super().__init__(sock, **more)
        self.fp.close()
        self.fp = BufferedReader(_Timed(sock, timeout, until))


class _Timed(RawIOBase):
    """What arrives on a socket, until an instant."""

    def __init__(self, sock: socket.socket, timeout: float, until: float) -> None:
        # Of the file, which keeps the socket open until the answer was read.
        self._file = sock.makefile("rb", buffering=0)
        self._sock, self._timeout, self._until = sock, timeout, until

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """Read what there is, at least a byte but at the end."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(min(left, self._timeout))
        return self._file.readinto(buffer)

    def close(self) -> None:
        """Let go of the socket."""
        self._file.close()
        super().close()


def _readable(connection: HTTPConnection) -> bool:
    """Return whether an idle connection was closed, or has an answer that nobody asked for."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
