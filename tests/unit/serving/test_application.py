"""What all services' applications have in common."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from ragaudit.serving.application import application


def _asked(app: FastAPI) -> None:
    @app.get("/accounts/{name}")
    def show(name: str) -> str:
        raise ValueError(f"the key of {name}")

    TestClient(app, raise_server_exceptions=False).get("/accounts/alice?key=secret")


def test_paths_queries_and_errors_are_not_told_to_a_provider_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(told))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    _asked(application("a service"))
    assert not told.get_finished_spans()
    # The framework by itself would.
    _asked(FastAPI())
    assert any("secret" in span.to_json() for span in told.get_finished_spans())


def test_the_environment_adds_no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    before = trace.get_tracer_provider()
    with TestClient(application("a service")) as client:
        assert client.get("/").status_code == 404
    assert trace.get_tracer_provider() is before
