"""Metrics in the format of Prometheus, on a port of their own.

No label holds a name of a tenant, an account, a window or a document: labels are the surfaces, the
statuses, the problems and the phases that this software knows, so that their number is bounded.
"""

import threading
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
from ragaudit.encoding.errors import UnavailableError

__all__ = ["SECONDS", "MetricsServer", "ServiceMetrics"]

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
