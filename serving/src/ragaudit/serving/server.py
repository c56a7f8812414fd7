"""Running a service: its address, its life span, its end."""

import asyncio
import errno
import logging
import resource
import signal
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.private_process import keep_private
from ragaudit.serving import log_lines
from ragaudit.serving.connections import ConnectionLimits, protocol_factory
from ragaudit.serving.heaps import bound_heaps
from ragaudit.serving.operation import OperationSettings
from ragaudit.serving.peers import BehindProxies
from ragaudit.serving.problems import response
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["check_address", "check_log_level", "run"]

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
