"""Routes of an account's queries: everything about a request in one piece of work, in one thread.

FastAPI would hand such a request to two threads one after the other, and look for its
dependencies on the event loop that all others wait for. What it documents is taken from the
endpoint's signature, as of any route; the order is the same too: first who calls, then the path,
then the body.
"""

from collections.abc import Callable, Coroutine
from inspect import get_annotations
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials
from fastapi.security.utils import get_authorization_scheme_param
from pydantic import TypeAdapter, ValidationError
from ragaudit.encoding.errors import MalformedRequest
from ragaudit.prover.http import dependencies
from ragaudit.serving.bodies import json_value
from starlette.concurrency import run_in_threadpool


class HotRoute(APIRoute):
    """A route of an endpoint with ``service``, ``account``, ``window`` and ``body``.

    It may also have ``idempotency_key``, the header of that name.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        endpoint = self.endpoint
        annotated = get_annotations(endpoint, eval_str=True)
        # Built once for a route: building them takes longer than a query's parsing.
        window, body = (TypeAdapter(annotated[name]) for name in ("window", "body"))
        keyed = "idempotency_key" in annotated

        def work(request: Request, content: bytes) -> Response:
            service = request.app.state.service
            # First: who has no key learns nothing of windows, and costs no parsing.
            caller = dependencies.account(service, _credentials(request))
            # A key that names end users is not itself charged for what they ask.
            account = dependencies.acting(request, caller)
            more = {"idempotency_key": _key(request)} if keyed else {}
            answer: Response = endpoint(
                **more,
                service=service,
                account=account,
                window=_read(window, request.path_params["window"], "path", "window"),
                body=_read(body, _value(request, content), "body"),
            )
            return answer

        async def handle(request: Request) -> Response:
            return await run_in_threadpool(work, request, await request.body())

        return handle


def _credentials(request: Request) -> HTTPAuthorizationCredentials | None:
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    if scheme.lower() != "bearer" or not token:
        return None
    return HTTPAuthorizationCredentials(scheme=scheme, credentials=token)


def _key(request: Request) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    # Two of them would be two answers; whose form is wrong, the service says.
    if len(keys) > 1:
        raise MalformedRequest("several keys", where="Idempotency-Key", expected="one")
    return keys[0] if keys else None


def _value(request: Request, content: bytes) -> Any:
    """Return the body's JSON value; what does not say that it is JSON is not read as such."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return json_value(content) if content else None
    return content or None


def _read(adapter: TypeAdapter[Any], value: Any, *where: str) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise RequestValidationError(
            [{**fault, "loc": (*where, *fault["loc"])} for fault in faults]
        ) from None
