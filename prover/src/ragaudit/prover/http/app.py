"""The FastAPI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio.to_thread
from fastapi import FastAPI
from ragaudit.ledger.log.database import await_server
from ragaudit.prover.http import account, operator, owner, public
from ragaudit.prover.http.turns import FairTurns, known_caller
from ragaudit.prover.http.window_metrics import WindowMetrics
from ragaudit.prover.service import Components, Service
from ragaudit.prover.settings import Settings
from ragaudit.prover.surfaces.mount import Surfaces
from ragaudit.prover.surfaces.prover_port import ServicePort
from ragaudit.prover.surfaces.tokens import Tokens
from ragaudit.serving.application import add_routes, application
from ragaudit.serving.bodies import BodyLimit
from ragaudit.serving.observed import Observed


def create_app(settings: Settings, *, components: Components | None = None) -> FastAPI:
    """Return the application; the service starts and stops with its lifespan.

    Args:
        components: other parts than the prover's own, one by one.

    Raises: as `Service`.
    """
    await_server(settings.store.url, settings.store.wait_seconds)
    service = Service(settings, components or Components())
    surfaces = _surfaces(settings, service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # In a thread: loading windows takes long, and the loop must answer signals meanwhile.
        with service.observer:
            await anyio.to_thread.run_sync(service.start)
            try:
                async with surfaces.running():
                    yield
            finally:
                await anyio.to_thread.run_sync(service.stop)

    app = application(
        "ragaudit prover",
        summary="Answers by noise-then-select, and can prove it.",
        lifespan=lifespan,
        redirect_slashes=True,
    )
    app.state.service = service
    service.observer.metrics.add(WindowMetrics(service))
    # The one added last runs first: a body that is too long does not wait for a turn.
    app.add_middleware(
        FairTurns,
        limits=settings.limits,
        keys=service.callers,
        respond=surfaces.respond,
        key=surfaces.key,
        queue=surfaces.queue,
    )
    app.add_middleware(
        BodyLimit,
        limit=lambda path: surfaces.body_limit(path, settings.server.max_body_bytes),
        respond=surfaces.respond,
        known=partial(known_caller, service.callers, surfaces.key),
    )
    app.add_middleware(Observed, observer=service.observer)
    add_routes(
        app,
        public.router,
        account.router,
        account.queries,
        account.receipts,
        operator.router,
        owner.router,
    )
    surfaces.mount(app)
    return app


def _surfaces(settings: Settings, service: Service) -> Surfaces:
    jwt = settings.surfaces.delegation.jwt
    tokens = None if jwt is None else Tokens(jwt, service.clock)
    return Surfaces(settings.surfaces, ServicePort(service), tokens)
