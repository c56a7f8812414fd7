"""Running a service: its address, its connections and their deadlines, its life span, its end.

uvicorn waits without limit for the rest of a head or body, and for a reader. Here every connection
that the service waits for has a deadline, and their number is bounded: a new one displaces the one
that has been waited for longest, so that half-open connections cannot shut others out.
"""

import asyncio
import ctypes
import errno
import logging
import resource
import signal
import socket
import ssl
import time
from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.private_process import keep_private
from ragaudit.serving import log_lines
from ragaudit.serving.framing import Framing
from ragaudit.serving.peers import BehindProxies
from ragaudit.serving.problems import response
from ragaudit.serving.settings import OperationSettings
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = [
    "ConnectionLimits",
    "bound_heaps",
    "check_address",
    "check_log_level",
    "give_back",
    "protocol_factory",
    "run",
]

_M_ARENA_MAX, _ARENAS = -8, 2  # glibc's malloc.h


def bound_heaps() -> None:
    """Let all threads share a few heaps, where the C library has one for each of them.

    Each one keeps what its thread needed at its busiest moment, so that memory grows for an hour.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return to the system what was freed, where the C library would keep it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


READ_BYTES = 2**16  # that are taken of a connection at a time


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds on what peers may hold, all in force before a request reaches the application.

    Attributes:
        connections: open at a time; when they are used up, the one that has been waited for longest
            is closed for the next. Lower than half of the file descriptors in any case.
        head_seconds: until the head of a request has arrived, from the connection's opening or the
            first byte on.
        idle_seconds: between two requests of a connection.
        body_seconds: until a body has arrived, and one second more for each ``body_rate`` bytes.
        body_rate: bytes a second that an upload reaches at least.
        write_seconds: without progress of a reply that its reader does not take.
        stop_seconds: for requests that are being answered when the service stops.
    """

    connections: int = 900
    head_seconds: float = 10.0
    idle_seconds: int = 15
    body_seconds: float = 20.0
    body_rate: int = 16_384
    write_seconds: float = 30.0
    stop_seconds: int = 30


def protocol_factory(limits: ConnectionLimits) -> Callable[..., "LimitedConnection"]:
    """Return a factory of one server's connections, which share the bound on their number.

    Args:
        limits: for each connection, and for all of them together.
    """
    waited_for: dict[LimitedConnection, None] = {}

    def make(**parts: Any) -> LimitedConnection:
        return LimitedConnection(limits, waited_for, **parts)

    return make


class _Gathering:
    """A transport that writes at once what is written in one turn of the event loop.

    Head and body of an answer are one call of the system then, and mostly one packet.
    """

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = bytearray()

    def __getattr__(self, name: str) -> Any:
        """Return what the transport has beside this."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data before the loop's next turn, or now if it is much."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held += data
        # Or a body in many parts, which waits for nobody, would be in memory as a whole.
        if len(self._held) >= READ_BYTES:
            self._flush()

    def close(self) -> None:
        """Close the connection, after what was written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, bytearray()
        if held:
            self._transport.write(held)


class LimitedConnection(HttpToolsProtocol):
    """One connection. It is in ``waited_for`` while it is the peer's turn to send."""

    def __init__(
        self, limits: ConnectionLimits, waited_for: "dict[LimitedConnection, None]", **parts: Any
    ) -> None:
        super().__init__(**parts)
        self._limits = limits
        self._waited_for = waited_for
        self._deadline: TimerHandle | None = None
        self._phase = ""
        self._since = 0.0
        self._received = 0
        self._framing = Framing()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Admit a connection, in the place of the one waited for longest if there are too many."""
        super().connection_made(_Gathering(transport, self.loop))  # type: ignore[arg-type]
        if hasattr(transport, "max_size"):  # asyncio's reads, of which one may wait for each peer
            transport.max_size = READ_BYTES
        if len(self.connections) > self._limits.connections:
            oldest = next(iter(self._waited_for), self)
            oldest._leave()
            oldest.transport.abort()
            if oldest is self:
                return
        self._await_peer("head", self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and its deadline."""
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the peer, and set the deadline of the next."""
        self._received += len(data)
        self._framing.add(data)
        self._parse()
        self._watch()

    def _parse(self) -> None:
        """Parse what has arrived, of one request at a time."""
        while not self.transport.is_closing():
            if not self._framing.in_body:
                if self._answers():
                    if self._framing:
                        self.flow.pause_reading()
                    return
                self.cycle = None  # type: ignore[assignment]
            try:
                piece = self._framing.piece()
            except MalformedError as error:
                self.logger.warning("%s", error)
                self.send_400_response("Invalid HTTP request received.")
                return
            if piece is None:
                return
            super().data_received(piece)

    def _answers(self) -> bool:
        """Return whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def on_headers_complete(self) -> None:
        """Begin to answer a request."""
        if self.parser.get_http_version() == "1.0":
            self.expect_100_continue = False  # it knows no interim answer (RFC 9110 §10.1.1)
            self.app = self._answer_without_chunks
        super().on_headers_complete()

    async def _answer_without_chunks(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer HTTP/1.0, where the end of the connection ends a body of unknown length."""
        cycle = self.cycle
        counted = True

        async def send_whole(message: Any) -> None:
            nonlocal counted
            if message["type"] == "http.response.start":
                counted = any(name.lower() == b"content-length" for name, _ in message["headers"])
                if not counted:
                    cycle.chunked_encoding = False
            elif not counted:
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self.config.loaded_app(scope, receive, send_whole)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; where its answer has begun, end the connection."""
        if self.cycle is None or not self.cycle.response_started:
            super().send_400_response(msg)
        self.transport.close()
        if self._answers():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._abort_in(self._limits.write_seconds)

    def on_response_complete(self) -> None:
        """Set the deadline of the next request, or of the close."""
        super().on_response_complete()
        self._parse()
        if self.transport.is_closing():
            # A peer that does not read would keep what is left, and the connection, for ever.
            self._abort_in(self._limits.write_seconds)
        else:
            self._watch()

    def pause_writing(self) -> None:
        """Set the deadline of a reader that does not read."""
        super().pause_writing()
        self._abort_in(self._limits.write_seconds)

    def resume_writing(self) -> None:
        """Lift that deadline."""
        super().resume_writing()
        if self.transport.is_closing():
            self._abort_in(self._limits.write_seconds)
            return
        self._cancel()
        self._phase = ""
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, and set the deadline of the close."""
        super().timeout_keep_alive_handler()
        self._abort_in(self._limits.write_seconds)

    def shutdown(self) -> None:
        """Stop; a request that has not arrived in full is aborted."""
        if self._framing.in_body:
            self.transport.abort()
            return
        super().shutdown()
        if self.transport.is_closing():
            self._abort_in(self._limits.write_seconds)

    def _watch(self) -> None:
        """Set the deadline for what the peer has to send now."""
        if self.transport.is_closing() or self.flow.write_paused:
            return
        if self._framing.in_body:
            self._await_peer("body", self._limits.body_seconds)
        elif not self._answers():
            # Between two requests uvicorn's own timer runs, until the first byte of the next.
            begun = bool(self._framing) or self.timeout_keep_alive_task is None
            if begun:
                self._await_peer("head", self._limits.head_seconds)
            else:
                self._cancel()
                self._phase = ""
                self._waited_for[self] = None
        else:
            self._leave()

    def _await_peer(self, phase: str, seconds: float) -> None:
        if phase == self._phase:
            return
        self._cancel()
        # The deadline of a phase runs from its beginning: bytes that trickle in do not renew it.
        self._phase, self._since, self._received = phase, self.loop.time(), 0
        self._waited_for[self] = None
        self._deadline = self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        """Cut the peer off, unless its body arrives at the rate that is demanded."""
        self._deadline = None
        if self._phase == "body":
            allowed = self._limits.body_seconds + self._received / self._limits.body_rate
            remaining = self._since + allowed - self.loop.time()
            if self.flow.read_paused:  # the delay is ours, not the peer's
                remaining = self._limits.body_seconds
            if remaining > 0:
                self._deadline = self.loop.call_later(remaining, self._late)
                return
        self.transport.abort()

    def _abort_in(self, seconds: float) -> None:
        self._cancel()
        self._phase = "leaving"
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _leave(self) -> None:
        self._cancel()
        self._phase = ""
        self._waited_for.pop(self, None)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


_log = logging.getLogger(__name__)

BACKLOG = 128
_QUIET_SECONDS = 60.0
_READY = "/readyz"


def run(
    make_app: Callable[[], Starlette],
    *,
    host: str,
    port: int,
    limits: ConnectionLimits | None = None,
    log_level: str = "info",
    certificate: Path | None = None,
    key: Path | None = None,
    operation: OperationSettings | None = None,
    trusted_proxies: Sequence[str] = (),
) -> None:
    """Serve an application until SIGINT or SIGTERM, and return when everything is closed.

    The address is taken first: a second process on it ends before it opens anything.

    Args:
        make_app: opens the service; its life span begins before the first request.
        host: name or address to listen on.
        port: 0 to 65535; 0 takes a free one.
        limits: on connections; the default ones if None.
        log_level: one of `log_lines.LEVELS`.
        certificate, key: PEM files; TLS if both are given.
        operation: form of the log, and how long SIGTERM is answered by ``/readyz`` alone.
        trusted_proxies: networks of proxies that say for whom they ask, see `peers`.

    Raises:
        UnavailableError: the address cannot be taken.
        MalformedError: not a log level, not a certificate with its key.
        RagauditError: as ``make_app`` and the life span raise.
    """
    check_log_level(log_level)
    _check_tls(certificate, key)
    bound_heaps()
    listener = _listen(host, port)
    try:
        watched = operation or OperationSettings()
        log_lines.configure(log_level, watched.log_format)
        if not keep_private():
            _log.warning("this system lets others of this user read the service's memory")
        chosen = _within_descriptors(limits or ConnectionLimits())
        server = _Server(
            make_app(), chosen, certificate, key, watched.drain_seconds, trusted_proxies
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)
        asyncio.run(server.serve_on(listener))
    finally:
        listener.close()


def check_log_level(name: str) -> str:
    """Return the name of a log level in lower case.

    Args:
        name: in any case, as an operator writes it.

    Raises:
        MalformedError: any other text.
    """
    if name.lower() not in log_lines.LEVELS:
        raise MalformedError(
            "not a log level", where="log level", expected=", ".join(log_lines.LEVELS)
        )
    return name.lower()


class _Server(uvicorn.Server):
    """uvicorn with bounded connections, whose life span raises instead of printing."""

    def __init__(
        self,
        app: Starlette,
        limits: ConnectionLimits,
        certificate: Path | None,
        key: Path | None,
        drain_seconds: float,
        trusted_proxies: Sequence[str],
    ) -> None:
        factory: Any = protocol_factory(limits)
        config = uvicorn.Config(
            _until_gone(BehindProxies(self._draining_app(app), trusted_proxies)),
            # Its own reader of such headers believes the environment, and whatever stands in them.
            proxy_headers=False,
            # `serve_on` runs the life span, so that its errors reach the caller.
            lifespan="off",
            log_config=None,
            # Paths and queries may hold what belongs to an account.
            access_log=False,
            server_header=False,
            ws="none",
            backlog=BACKLOG,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=limits.stop_seconds,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        config.load()
        config.http_protocol_class = factory
        super().__init__(config)
        self._service = app
        self._logged_at = 0.0
        self._drain_seconds = drain_seconds
        self._drained_at: float | None = None

    async def serve_on(self, listener: socket.socket) -> None:
        """Serve on a bound socket, within the application's life span."""
        asyncio.get_running_loop().set_exception_handler(self._log_fault)
        async with self._service.router.lifespan_context(self._service):
            _log.info("listening on %s:%d", *listener.getsockname()[:2])
            await self.serve(sockets=[listener])
            _log.info("stopping")
        _log.info("stopped")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; after SIGTERM only when balancers had the time to find out. Told twice, at once."""
        if sig == signal.SIGTERM and self.started and self._drain_seconds and not self._drained_at:
            self._drained_at = time.monotonic() + self._drain_seconds
            return
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop now."""
        if self._drained_at is not None and time.monotonic() >= self._drained_at:
            self.should_exit = True
        return await super().on_tick(counter)

    def _draining_app(self, app: ASGIApp) -> ASGIApp:
        """Return the application; while it drains it is not ready, and connections are not kept."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if self._drained_at is None or scope["type"] != "http":
                await app(scope, receive, send)
            elif scope["path"] == _READY:
                stopping = UnavailableError("the service stops", expected="another instance")
                await response(stopping, _READY)(scope, receive, send)
            else:
                await app(scope, receive, _closing(send))

        return serve

    def _log_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a fault of the event loop in one line, want of resources once a minute only."""
        error = context.get("exception")
        number = getattr(error, "errno", None)
        if number in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
            if loop.time() - self._logged_at < _QUIET_SECONDS:
                return
            self._logged_at = loop.time()
        kind = type(error).__name__ if error is not None else "no exception"
        reason = errno.errorcode.get(number, "") if number is not None else ""
        _log.error("%s (%s %s)", context.get("message", "event loop"), kind, reason)


def _closing(send: Send) -> Send:
    """Return ``send`` with the word that the connection ends with this answer."""

    async def closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        await send(message)

    return closing


def _until_gone(app: ASGIApp) -> Any:
    """Return the application; a client that goes away while it is read causes no error."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        with suppress(ClientDisconnect):
            await app(scope, receive, send)

    return serve


def check_address(host: str, port: int) -> None:
    """Check that a service could listen here now.

    Args:
        host, port: of this machine.

    Raises:
        UnavailableError: it could not.
    """
    _listen(host, port).close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            # A restart need not wait until the last connections of the previous run are gone.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        reason = error.strerror or "unknown address"
        raise UnavailableError(
            f"cannot listen: {reason.lower()}",
            where=f"{host}:{port}",
            expected="an address of this machine that no other process uses",
        ) from None
    listener.setblocking(False)
    return listener


def _check_tls(certificate: Path | None, key: Path | None) -> None:
    if (certificate is None) != (key is None):
        raise MalformedError("half of a TLS key pair", where="TLS", expected="both or none")
    if certificate is None or key is None:
        return
    for file in (certificate, key):
        if not file.is_file():
            raise MalformedError("no such file", where=str(file), expected="a PEM file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError):
        raise MalformedError(
            "not a certificate with its key", where=str(certificate), expected="PEM files"
        ) from None


def _within_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    """Raise the limit of file descriptors, and keep connections below half of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    demand = 2 * limits.connections + 2 * BACKLOG
    if soft != resource.RLIM_INFINITY and soft < demand:
        soft = demand if hard == resource.RLIM_INFINITY else min(demand, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=max(8, min(limits.connections, soft // 2 - BACKLOG)))
