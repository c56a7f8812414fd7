"""Routes of modules, served by an application."""

from fastapi import APIRouter, FastAPI


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
