"""How one surface speaks: whose key it reads, how it says no, and that all else is refused."""

import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from ragaudit.encoding.errors import (
    InternalError,
    MalformedRequest,
    NotAuthenticated,
    RagauditError,
)
from ragaudit.encoding.problems import problem_name
from ragaudit.prover.surfaces.caller import Caller
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.wire import read_json, read_member
from ragaudit.serving.exchange import note, phase
from ragaudit.serving.problems import as_ours, status_of
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

RECEIPT_HEADER = "Ragaudit-Receipt"
RECEIPT_MEMBER = "ragaudit_receipts"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
# Two statuses that clients of vector stores do not know.
_STATUSES = {422: 400, 425: 429}


@dataclass(frozen=True)
class Dialect:
    """What is a surface's own.

    Attributes:
        prefixes: of its paths; what nobody serves under them is refused in its shape.
        key: reads the API key from the headers.
        shape: returns the body of an error, from its text and status.
    """

    name: str
    prefixes: tuple[str, ...]
    key: Callable[[Mapping[str, str]], str | None]
    shape: Callable[[str, int], dict[str, Any]]

    def covers(self, path: str) -> bool:
        """Return whether a path is this surface's."""
        return any(path == prefix or path.startswith(f"{prefix}/") for prefix in self.prefixes)

    def caller(self, request: Request) -> Caller:
        """Return who calls.

        Raises:
            NotAuthenticated: no key, or nobody's.
            NotServed: a key that names an end user and may not.
        """
        caller: Caller = request.app.state.surfaces.caller(self.key(request.headers), request)
        return caller

    def error(self, error: RagauditError) -> JSONResponse:
        """Return an error in the surface's shape."""
        note(surface=self.name, reason=problem_name(type(error)))
        if isinstance(error, NotServed):
            note(denied=True)
        status = 403 if isinstance(error, NotServed) else int(status_of(error))
        status = _STATUSES.get(status, status)
        text = "internal error" if isinstance(error, InternalError) else str(error)
        # OpenAI's library asks again after a 409, which would be the same; others ignore this.
        headers = {"x-should-retry": "false"} if status < 500 and status != 429 else {}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if error.retry_after is not None:
            headers["Retry-After"] = str(math.ceil(error.retry_after))
        # The extension holds the signed refusal, which is evidence for the account.
        return JSONResponse({**self.shape(text, status), **error.extension}, status, headers)

    def router(self) -> APIRouter:
        """Return an empty router of this surface; `refuse_rest` ends it."""
        route = type(f"{self.name.title()}Route", (_Route,), {"dialect": self})
        shaped = {"description": "An error in the shape of this surface."}
        return APIRouter(
            tags=[self.name], route_class=route, responses={"4XX": shaped, "5XX": shaped}
        )

    def refuse_rest(self, router: APIRouter) -> APIRouter:
        """Return the router with a last route, of every path that nobody looked at."""
        for prefix in self.prefixes:
            for path in (prefix, prefix + "/{rest:path}"):
                router.add_api_route(
                    path, self._not_served, methods=[*METHODS], include_in_schema=False
                )
        return router

    async def _not_served(self, request: Request) -> Response:
        # Refused whoever asks; who did is for the operator to know.
        with suppress(RagauditError):
            await run_in_threadpool(self.caller, request)
        return self.error(NotServed(f"{request.method} is not served on this path", where="path"))


def reply(
    document: Any, receipts: Sequence[str] = (), *, status: int = 200, member: bool = True
) -> JSONResponse:
    """Return an answer with the ids of its receipts in a header, and in a member of the body.

    Args:
        document: the body, an object if it carries receipts.
        receipts: one for each query of the call.
        member: False where the client refuses members that it does not know.
    """
    if not receipts:
        return JSONResponse(document, status)
    if member:
        document = {**document, RECEIPT_MEMBER: list(receipts)}
    return JSONResponse(document, status, {RECEIPT_HEADER: ", ".join(receipts)})


class _Route(APIRoute):
    """A route whose endpoint takes ``caller``, the path's parameters, those of the query and
    ``body``: all in one thread, first who calls, as `HotRoute` does. An endpoint that is ``async``
    goes on on the event loop."""

    dialect: Dialect

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        endpoint, dialect = self.endpoint, self.dialect
        if endpoint == dialect._not_served:
            return endpoint
        annotated = get_annotations(endpoint, eval_str=True)
        adapters = {
            name: TypeAdapter(kind)
            for name, kind in annotated.items()
            if name not in ("caller", "return")
        }
        open_to_all = "caller" not in annotated

        def work(request: Request, content: bytes) -> Response | Awaitable[Response]:
            note(surface=dialect.name)
            values: dict[str, Any] = {}
            if not open_to_all:
                with phase("admit"):
                    values["caller"] = dialect.caller(request)
            _check_query(request, adapters)
            for name, adapter in adapters.items():
                if name == "body":
                    values[name] = read_member(adapter, _json(request, content), "body")
                elif name in request.path_params:
                    values[name] = read_member(adapter, request.path_params[name], "path", name)
                elif name in request.query_params:
                    values[name] = read_member(adapter, request.query_params[name], "query", name)
            answer: Response | Awaitable[Response] = endpoint(**values)
            return answer

        async def handle(request: Request) -> Response:
            try:
                answer = await run_in_threadpool(work, request, await request.body())
                return answer if isinstance(answer, Response) else await answer
            except ClientDisconnect:
                raise
            except Exception as error:
                return dialect.error(as_ours(request, error))

        return handle


def _check_query(request: Request, known: Mapping[str, object]) -> None:
    for name in request.query_params:
        if name not in known or name in request.path_params or name == "body":
            raise MalformedRequest("no such parameter", where=f"query.{name[:64]}")
        if len(request.query_params.getlist(name)) > 1:
            raise MalformedRequest("given twice", where=f"query.{name}")


def _json(request: Request, content: bytes) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and kind != "application/json":
        raise MalformedRequest("another type", where="body", expected="application/json")
    return read_json(content)


def check_key(key: str | None) -> str:
    """Return the key of a request.

    Raises:
        NotAuthenticated: there is none.
    """
    if key is None:
        raise NotAuthenticated("no API key", where="headers", expected="the surface's own header")
    return key
