"""Spans for an OpenTelemetry collector; only a service whose settings name one loads this."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanContext, SpanKind, TraceFlags, TraceState
from ragaudit.serving.exchange import Exchange

__all__ = ["Spans"]


class Spans:
    """One span for each request: method, route and status, and the indices of its receipts."""

    def __init__(self, url: str, service: str, *, exporter: SpanExporter | None = None) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: of the collector, without ``/v1/traces``.
            service: name that the spans bear.
            exporter: instead of the network.
        """
        self._provider = TracerProvider(resource=Resource({"service.name": service}))
        chosen = exporter or OTLPSpanExporter(f"{url}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(chosen))
        self._tracer = self._provider.get_tracer("ragaudit.serving")

    @contextmanager
    def span(self, exchange: Exchange, method: str) -> Iterator[Span]:
        """Make the span of an exchange, which calls made meanwhile are children of.

        Args:
            exchange: its traceparent becomes this span's.
            method: of the request.
        """
        parent = trace.set_span_in_context(trace.NonRecordingSpan(_parent(exchange)))
        with self._tracer.start_as_current_span(
            method, parent, SpanKind.SERVER, record_exception=False
        ) as span:
            own = span.get_span_context()
            exchange.traceparent = (
                f"00-{own.trace_id:032x}-{own.span_id:016x}-{int(own.trace_flags):02x}"
            )
            yield span

    def describe(self, span: Span, exchange: Exchange, route: str, status: int) -> None:
        """Add to a span what is known of it at its end.

        Args:
            span: of `span`.
            route: as it is declared, without what stands in its place.
            status: of the answer.
        """
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", status)
        if exchange.receipts:
            span.set_attribute("ragaudit.receipts", [str(each) for each in exchange.receipts])

    def close(self) -> None:
        """Send what is left, and stop."""
        self._provider.shutdown()


def _parent(exchange: Exchange) -> SpanContext:
    """Return the caller's span, an invalid one if there is none."""
    if not exchange.traceparent:
        return trace.INVALID_SPAN_CONTEXT
    _, trace_id, span_id, flags = exchange.traceparent.split("-")[:4]
    return SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([exchange.tracestate]) if exchange.tracestate else None,
    )
