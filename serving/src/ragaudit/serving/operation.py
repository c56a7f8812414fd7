"""Settings of how a service is watched and stopped; both services have this section."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.settings import service_url
from ragaudit.serving.settings import Section

__all__ = ["STANDARD_OUTPUT", "OperationSettings"]

STANDARD_OUTPUT = Path("-")
"""Instead of a file of the audit stream."""


def _url(text: str) -> str:
    try:
        return service_url(text)
    except MalformedError as error:
        raise ValueError(f"{error.what}; expected {error.expected}") from None


class OperationSettings(Section):
    """What an operator sees of a running service, and how it ends.

    Attributes:
        log_format: ``text``, or ``json`` with one object a line.
        metrics_host, metrics_port: where Prometheus reads; no port, no metrics.
        audit_file: of the audit stream, or ``-`` for standard output.
        trace_url: of an OpenTelemetry collector (OTLP over HTTP); needs the extra ``otel``.
        drain_seconds: for which a service that was told to stop answers as before, but for
            ``/readyz``, so that a balancer finds out first.
    """

    log_format: Literal["text", "json"] = "text"
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    audit_file: Path | None = None
    trace_url: Annotated[str, AfterValidator(_url)] | None = None
    drain_seconds: float = Field(default=0.0, ge=0, le=600)

    def beside(self, folder: Path) -> "OperationSettings":
        """Return the section with its file relative to ``folder``, that of the settings."""
        if self.audit_file is None or self.audit_file == STANDARD_OUTPUT:
            return self
        return self.model_copy(update={"audit_file": folder / self.audit_file})
