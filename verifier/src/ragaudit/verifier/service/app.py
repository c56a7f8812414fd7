"""The application of the verifier service."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from anyio import to_thread
from fastapi import FastAPI
from ragaudit.encoding.errors import ClockStepped
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.serving.application import add_routes, application
from ragaudit.serving.clock import UNTIL_IT_STAYS, EvenClock
from ragaudit.serving.observed import Observed, Observer
from ragaudit.verifier.history import Clock
from ragaudit.verifier.service import routes
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.core import Service
from ragaudit.verifier.settings import Settings

_log = logging.getLogger(__name__)


def create_app(
    settings: Settings, *, clock: Clock | None = None, auditor: Auditor | None = None
) -> FastAPI:
    """Return the verifier's HTTP application.

    Args:
        settings: see `ragaudit.verifier.settings`.
        clock: Unix milliseconds; every attested time is taken from it. By default the system's,
            while it runs evenly.
        auditor: who runs the checks and signs verdicts; the audit procedure by default.

    Raises:
        MalformedError, RefusedError, UnavailableError: secrets or database cannot be used.
        UnsupportedError: the database is of another version, or the engine of the settings is not
            installed.
    """
    observer = Observer(settings.operation, service="ragaudit-verifier", name=settings.name)
    service = Service.open(settings, clock or EvenClock(UNTIL_IT_STAYS), auditor)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        with observer:
            ticking = asyncio.create_task(_tick(service))
            try:
                yield
            finally:
                ticking.cancel()
                with suppress(asyncio.CancelledError):
                    await ticking
                await to_thread.run_sync(service.close)

    # A provider signs the path: nothing is served under another one.
    app = application("ragaudit verifier", lifespan=lifespan, redirect_slashes=False)
    app.state.service = service
    app.add_middleware(Observed, observer=observer)
    add_routes(app, routes.opening, routes.router)
    return app


async def _tick(service: Service) -> None:
    """Do what is due, for as long as the service runs."""
    while True:
        try:
            await to_thread.run_sync(service.scheduler.tick)
        except (ClockStepped, StoreUnavailable) as error:
            _log.error("nothing that is due can be done: %s", error)
        except Exception:
            # The task must go on: without it no sample is drawn, and deadlines pass.
            _log.exception("a tick failed")
        await asyncio.sleep(service.settings.tick_seconds)
