"""The FastAPI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from ragaudit.prover.http import account, operator, public
from ragaudit.prover.http.turns import FairTurns
from ragaudit.prover.service import Components, Service
from ragaudit.prover.settings import Settings
from ragaudit.serving.bodies import BodyLimit
from ragaudit.serving.problems import documented, install


def create_app(settings: Settings, *, components: Components | None = None) -> FastAPI:
    """Return the application; the service starts and stops with its lifespan.

    Args:
        components: other parts than the prover's own, one by one.

    Raises: as `Service`.
    """
    service = Service(settings, components or Components())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # In a thread: loading windows takes long, and the loop must answer signals meanwhile.
        await anyio.to_thread.run_sync(service.start)
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(service.stop)

    app = FastAPI(
        title="ragaudit prover",
        version="1",
        summary="Answers by noise-then-select, and can prove it.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=documented("4XX", "5XX"),
    )
    app.state.service = service
    # The one added last runs first: a body that is too long does not wait for a turn.
    app.add_middleware(FairTurns, limits=settings.limits, keys=service.account_keys)
    app.add_middleware(BodyLimit, limit=settings.server.max_body_bytes)
    install(app)
    for router in (public.router, account.router, account.queries, operator.router):
        app.include_router(router)
    return app
