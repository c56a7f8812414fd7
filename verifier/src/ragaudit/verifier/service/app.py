"""The application of the verifier service."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from ragaudit.verifier.service import problems, routes_opening
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.core import Service
from ragaudit.verifier.service.database import Clock
from ragaudit.verifier.settings import Settings


def system_clock() -> int:
    """Unix milliseconds of the machine's clock."""
    return time.time_ns() // 1_000_000


def create_app(settings: Settings, *, clock: Clock = system_clock, auditor: Auditor) -> FastAPI:
    """The verifier's HTTP application.

    Args:
        settings: see `ragaudit.verifier.settings`.
        clock: Unix milliseconds; every attested time is taken from it.
        auditor: who runs the checks and signs verdicts; the audit procedure by default.

    Raises:
        MalformedError, RefusedError, InternalError: secrets or database cannot be used.
    """
    service = Service.open(settings, clock, auditor)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="ragaudit verifier",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    app.include_router(routes_opening.router)
    problems.install(app)
    return app
