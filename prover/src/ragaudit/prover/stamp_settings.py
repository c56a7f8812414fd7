"""Settings of the time-stamping authorities (RFC 3161) that the prover asks."""

from pathlib import Path

from pydantic import Field
from ragaudit.serving.settings import Section, Url


class StampSettings(Section):
    """Who stamps opening and final checkpoints, and how long that may take.

    Attributes:
        authorities: their URLs; nobody is asked without them.
        roots_file: PEM, the roots that vouch for them; an answer that they do not is not kept.
        every_seconds: how often those are asked again that have not answered.
        timeout_seconds: for each phase of a call.
        ca_file: PEM file of the certificate authorities to trust instead of the usual, for TLS.
        proxy: URL of the HTTP proxy through which they are reached.
    """

    authorities: tuple[Url, ...] = Field(default=(), max_length=8)
    roots_file: Path | None = None
    every_seconds: float = Field(default=15.0, ge=0.1, le=3600)
    timeout_seconds: float = Field(default=10.0, gt=0, le=60)
    ca_file: Path | None = None
    proxy: Url | None = None
