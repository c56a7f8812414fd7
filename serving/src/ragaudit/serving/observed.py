"""What an operator sees of a service's requests: metrics, log lines, audit stream, spans.

Metrics are in the format of Prometheus, on a port of their own. No label holds a name of a tenant,
an account, a window or a document: labels are the surfaces, the statuses, the problems and the
phases that this software knows, so that their number is bounded.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)
from prometheus_client.registry import Collector
from ragaudit.encoding.errors import UnavailableError, UnsupportedError
from ragaudit.serving.audit_stream import AuditStream, change_event, events
from ragaudit.serving.exchange import Exchange, begun
from ragaudit.serving.settings import OperationSettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from ragaudit.serving.spans import Spans

__all__ = ["SECONDS", "MetricsServer", "Observed", "Observer", "ServiceMetrics", "trace_of"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ServiceMetrics:
    """What every service counts; each of its attributes is a metric of ``registry``."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "ragaudit_requests", "Requests by surface and status.", ["surface", "code"],
            registry=self.registry,
        )  # fmt: skip
        self.request_seconds = Histogram(
            "ragaudit_request_seconds", "Time from request to answer.", ["surface"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            "ragaudit_requests_in_flight", "Requests that are being worked on.",
            registry=self.registry,
        )  # fmt: skip
        self.retrieval_seconds = Histogram(
            "ragaudit_retrieval_seconds", "Time of a retrieval's phases.", ["phase"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.receipts = Counter(
            "ragaudit_receipts", "Answers with a receipt.", registry=self.registry
        )
        self.refused = Counter(
            "ragaudit_refused", "Requests that were declined, by problem.", ["reason"],
            registry=self.registry,
        )  # fmt: skip
        self.store_errors = Counter(
            "ragaudit_store_errors", "Requests that failed for a database or a vector store.",
            registry=self.registry,
        )  # fmt: skip
        self.comparisons = Counter(
            "ragaudit_store_comparisons",
            "Comparisons of a tenant's documents in their store with its index, by outcome.",
            ["outcome"], registry=self.registry,
        )  # fmt: skip
        self.bypass_denied = Counter(
            "ragaudit_bypass_denied", "Requests for paths that lead around the receipts.",
            registry=self.registry,
        )  # fmt: skip
        self.audit_failures = Counter(
            "ragaudit_audit_stream_failures", "Events that the audit stream did not take.",
            registry=self.registry,
        )  # fmt: skip

    def add(self, collector: Collector) -> None:
        """Let a collector of a service's own be read too.

        Args:
            collector: is asked at every reading; it must not raise.
        """
        self.registry.register(collector)


class MetricsServer:
    """A thread that shows a registry at ``/metrics``."""

    def __init__(self, metrics: ServiceMetrics, host: str, port: int) -> None:
        """Listen.

        Args:
            metrics: to show.
            host, port: of this machine; port 0 takes a free one.

        Raises:
            UnavailableError: the address cannot be taken.
        """
        try:
            self._server: WSGIServer
            self._thread: threading.Thread
            self._server, self._thread = start_http_server(port, host, metrics.registry)
        except OSError as error:
            reason = (error.strerror or "unknown address").lower()
            raise UnavailableError(
                f"metrics cannot be shown: {reason}",
                where=f"{host}:{port}",
                expected="an address of this machine that no other process uses",
            ) from None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_port)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_log = logging.getLogger(__name__)

NO_ROUTE = "none"
_STORES = ("store-unavailable", "backend-unavailable")  # names of the problems


class Observer:
    """The eyes of one service: a context manager that is entered when the service starts."""

    def __init__(self, settings: OperationSettings, *, service: str, name: str) -> None:
        """Prepare; nothing is opened yet.

        Args:
            settings: how the service is watched.
            service: ``ragaudit-prover`` or ``ragaudit-verifier``.
            name: of this one, such as the provider's.

        Raises:
            UnsupportedError: traces are wanted, and the extra for them is not installed.
        """
        self.metrics = ServiceMetrics()
        self._settings = settings
        self._service = service
        self._name = name
        self._stack = ExitStack()
        self._stream: AuditStream | None = None
        self.spans = None if settings.trace_url is None else _spans(settings.trace_url, service)

    def __enter__(self) -> "Observer":
        """Open the audit stream and the port of the metrics.

        Raises:
            UnavailableError: one of them cannot be had.
        """
        settings = self._settings
        with ExitStack() as stack:
            if settings.audit_file is not None:
                self._stream = AuditStream(settings.audit_file)
                stack.callback(self._stream.close)
            if settings.metrics_port is not None:
                shown = MetricsServer(self.metrics, settings.metrics_host, settings.metrics_port)
                stack.callback(shown.close)
                _log.info("metrics on %s:%d", settings.metrics_host, shown.port)
            if self.spans is not None:
                stack.callback(self.spans.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def check(self) -> None:
        """Check that the audit stream takes what is written.

        Raises:
            UnavailableError: the last event was lost.
        """
        if self._stream is not None:
            self._stream.check()

    def in_flight(self) -> AbstractContextManager[None]:
        """Count a request as one that is being worked on, within the block."""
        tracked: AbstractContextManager[None] = self.metrics.in_flight.track_inprogress()
        return tracked

    def finished(self, exchange: Exchange, scope: Scope, status: int, seconds: float) -> None:
        """Tell of a request that was answered.

        Args:
            exchange: of the request, with what handlers noted.
            scope: of the request.
            status: of the answer; 0 if there was none.
            seconds: that it took.
        """
        route = scope.get("route")
        tags = getattr(route, "tags", None) or [NO_ROUTE]
        exchange.surface = exchange.surface or str(tags[0])
        self._count(exchange, status, seconds)
        if exchange.receipts:
            shown = ", ".join(map(str, exchange.receipts))
            _log.info(
                "answered: receipt %s", shown,
                extra={"surface": exchange.surface, "milliseconds": round(1000 * seconds, 1)},
            )  # fmt: skip
        action = getattr(route, "operation_id", None) or getattr(route, "name", None) or NO_ROUTE
        self._write(
            lambda: events(
                exchange,
                service=self._service,
                name=self._name,
                action=str(action),
                method=str(scope["method"]),
                peer=scope["client"][0] if scope.get("client") else "",
                status=status,
                seconds=seconds,
                ended=time.time(),
            )
        )

    def compared(self, window: str, tenant: str, outcome: str) -> None:
        """Tell of a comparison of a tenant's documents in their store with its index.

        Args:
            window: whose index it is.
            tenant: by name.
            outcome: ``same``, ``changed`` or ``failed``; a change goes into the audit stream.
        """
        self.metrics.comparisons.labels(outcome).inc()
        if outcome != "changed":
            return
        self._write(
            lambda: [
                change_event(
                    service=self._service, name=self._name, window=window, tenant=tenant,
                    noticed=time.time(),
                )
            ]
        )  # fmt: skip

    def _write(self, made: Callable[[], list[dict[str, Any]]]) -> None:
        """Append events to the audit stream, if there is one."""
        if self._stream is None:
            return
        for event in made():
            try:
                self._stream.write(event)
            except UnavailableError as error:
                self.metrics.audit_failures.inc()
                _log.error("%s", error)

    def _count(self, exchange: Exchange, status: int, seconds: float) -> None:
        metrics, surface = self.metrics, exchange.surface
        metrics.requests.labels(surface, str(status or NO_ROUTE)).inc()
        metrics.request_seconds.labels(surface).observe(seconds)
        metrics.receipts.inc(len(exchange.receipts))
        for name, spent in exchange.seconds.items():
            metrics.retrieval_seconds.labels(name).observe(spent)
        if status >= HTTPStatus.BAD_REQUEST or exchange.reason:
            metrics.refused.labels(exchange.reason or NO_ROUTE).inc()
        if exchange.reason in _STORES:
            metrics.store_errors.inc()
        if exchange.denied:
            metrics.bypass_denied.inc()


class Observed:
    """ASGI middleware, the outermost: each request is an exchange, of which an observer tells."""

    def __init__(self, app: ASGIApp, observer: Observer) -> None:
        self._app = app
        self._observer = observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and tell of it when it is answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, since = 0, time.perf_counter()

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        observer = self._observer
        with ExitStack() as stack:
            stack.enter_context(observer.in_flight())
            exchange = stack.enter_context(begun(Exchange.of(trace_of(scope))))
            spans, span = observer.spans, None
            if spans is not None:
                span = stack.enter_context(spans.span(exchange, str(scope["method"])))
            try:
                await self._app(scope, receive, counted)
            finally:
                observer.finished(exchange, scope, status, time.perf_counter() - since)
                if spans is not None and span is not None:
                    path = str(getattr(scope.get("route"), "path", NO_ROUTE))
                    spans.describe(span, exchange, path, status)


def trace_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request that say which trace it belongs to."""
    wanted = (b"traceparent", b"tracestate")
    found: list[tuple[bytes, bytes]] = scope["headers"]
    return {
        name.decode("latin-1"): value.decode("latin-1") for name, value in found if name in wanted
    }


def _spans(url: str, service: str) -> "Spans":
    try:
        from ragaudit.serving.spans import Spans  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise UnsupportedError(
            "traces need OpenTelemetry",
            where="operation.trace_url",
            expected="ragaudit-serving with the extra otel",
        ) from None
    made: Any = Spans(url, service)
    return made  # type: ignore[no-any-return]
