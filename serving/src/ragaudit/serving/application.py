"""The FastAPI application of a service: what all services have in common."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import APIRouter, FastAPI
from ragaudit.serving.problems import install
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Application", "Lifespan", "add_routes", "application"]

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

_FOR_EVER = b"immutable"


class Application(FastAPI):
    """Nothing that it answers is kept by caches on the way.

    Attributes:
        front: what requests come to first, if it is not `answer`; it passes on what it leaves.
    """

    front: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await (self.front or self.answer)(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by the routes, behind all middleware."""
        if scope["type"] == "http":
            send = _kept_by_nobody(send)
        await super().__call__(scope, receive, send)


def _kept_by_nobody(send: Send) -> Send:
    """Return ``send`` that forbids caches to keep an answer, unless it never changes."""

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            said = [value for name, value in headers if name.lower() == b"cache-control"]
            if not any(_FOR_EVER in value for value in said):
                headers = [each for each in headers if each[0].lower() != b"cache-control"]
                message = {**message, "headers": [*headers, (b"cache-control", b"no-store")]}
        await send(message)

    return marked


def application(
    title: str,
    *,
    lifespan: Lifespan | None = None,
    summary: str | None = None,
    redirect_slashes: bool = False,
) -> Application:
    """Return an application without routes, whose errors are problem documents.

    Args:
        title, summary: of its OpenAPI document.
        lifespan: from its start to its end.
        redirect_slashes: whether a path with one slash too many or too few is sent elsewhere.
    """
    app = Application(
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
