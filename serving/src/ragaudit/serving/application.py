"""The FastAPI application of a service: what all services have in common."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import APIRouter, FastAPI
from ragaudit.serving.problems import install

__all__ = ["Lifespan", "add_routes", "application"]

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def application(
    title: str,
    *,
    lifespan: Lifespan | None = None,
    summary: str | None = None,
    redirect_slashes: bool = False,
) -> FastAPI:
    """Return an application without routes, whose errors are problem documents.

    Args:
        title, summary: of its OpenAPI document.
        lifespan: from its start to its end.
        redirect_slashes: whether a path with one slash too many or too few is sent elsewhere.
    """
    app = FastAPI(
        title=title,
        version="1",
        summary=summary,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=redirect_slashes,
        # FastAPI would tell whatever OpenTelemetry provider the process has, or the environment
        # names, of paths, queries and texts of errors, which may hold what belongs to an account.
        # What may be told is told by `Observed`.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    install(app)
    return app


def add_routes(app: FastAPI, *routers: APIRouter) -> None:
    """Serve the routes of routers as they stand, after those that the application has.

    What the application says of its routes (tags, responses) is not added: a router says it itself.

    Args:
        app: before its first request.
    """
    # `include_router` makes every route anew, at each application's first request, which waits
    # 0.1 s for it, and then looks for a request's route twice.
    for router in routers:
        app.router.routes.extend(router.routes)
