"""Every error of a service as a problem document (RFC 9457): one table of statuses, one dialect.

No traceback, no secret and no text of a foreign error leaves the service or reaches its log.
"""

import logging
import math
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from ragaudit.encoding.errors import (
    Conflict,
    InternalError,
    MalformedError,
    MalformedRequest,
    MethodNotAllowed,
    NotAuthenticated,
    NotFound,
    PeerRefused,
    RagauditError,
    RefusedError,
    RejectedError,
    TooEarly,
    TooLarge,
    TooMany,
    UnavailableError,
    UnsupportedCoding,
    UnsupportedError,
)
from ragaudit.encoding.problems import MEDIA_TYPE, problem, problem_name
from ragaudit.serving.exchange import note
from ragaudit.serving.log_lines import where_raised
from ragaudit.serving.settings import in_words
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

__all__ = ["STATUSES", "as_ours", "documented", "handled", "install", "response", "status_of"]

_log = logging.getLogger(__name__)

STATUSES: Mapping[type[RagauditError], HTTPStatus] = {
    MalformedError: HTTPStatus.BAD_REQUEST,
    NotAuthenticated: HTTPStatus.UNAUTHORIZED,
    NotFound: HTTPStatus.NOT_FOUND,
    MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    Conflict: HTTPStatus.CONFLICT,
    RefusedError: HTTPStatus.CONFLICT,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RejectedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnsupportedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnsupportedCoding: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooEarly: HTTPStatus.TOO_EARLY,
    TooMany: HTTPStatus.TOO_MANY_REQUESTS,
    InternalError: HTTPStatus.INTERNAL_SERVER_ERROR,
    PeerRefused: HTTPStatus.BAD_GATEWAY,
    UnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The status of each family; of an error that belongs to two, that of the nearer base class."""

_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "where": {"type": "string"},
        "expected": {"type": "string"},
        "instance": {"type": "string"},
        # What single problems add: `RagauditError.extension`.
        "refusal": {"type": "object"},
        "promise": {"type": "object"},
        "verdict": {"type": "object"},
        "voided": {"type": "object"},
    },
}


def documented(*statuses: int | str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the problem documents that a handler answers with.

    Args:
        statuses: numbers, or ranges such as ``"4XX"``.
    """
    content = {MEDIA_TYPE: {"schema": _SCHEMA}}
    return {
        status: {
            "description": HTTPStatus(status).phrase
            if isinstance(status, int)
            else "A problem document (RFC 9457).",
            "content": content,
        }
        for status in statuses
    }


def status_of(error: RagauditError) -> HTTPStatus:
    """Return the HTTP status of an error: its family's.

    Args:
        error: of any class; one that no family of the table fits is answered with 500.
    """
    found = (STATUSES[kind] for kind in error.family.__mro__ if kind in STATUSES)
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def response(error: RagauditError, instance: str, status: int | None = None) -> JSONResponse:
    """Return the problem document of an error.

    Args:
        instance: path of the request.
        status: of the framework; the family's if None.
    """
    status = status_of(error) if status is None else status
    note(reason=problem_name(type(error)))
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    document = problem(error, status, instance)
    return JSONResponse(document, status, headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem document.

    Args:
        app: before its first request.
    """
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)


def handled(request: Request, error: Exception) -> Response:
    """Return the answer to a request that failed, as an application of `install` gives it.

    Args:
        error: of any class.
    """
    return next(_HANDLERS[kind] for kind in type(error).__mro__ if kind in _HANDLERS)(
        request, error
    )


def as_ours(request: Request, error: Exception) -> RagauditError:
    """Return what was raised as an error of ours, logged as the service logs errors.

    Args:
        request: during which it was raised.
        error: of any class; a foreign one is an internal error, and its text is left out.
    """
    if not isinstance(error, RagauditError):
        # Type and place only: the text of a foreign error may hold anything.
        _log.error("%s %s: %s", request.method, _route(request), where_raised(error))
        return InternalError(type(error).__name__)
    # Only what an operator can mend is logged: what callers get wrong could fill the disk.
    if isinstance(error, InternalError | UnavailableError):
        _log.error("%s %s: %s (%s)", request.method, _route(request), error, where_raised(error))
    return error


def _ours(request: Request, error: Exception) -> JSONResponse:
    return response(as_ours(request, error), request.url.path)


def _parameter(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    fault = error.errors()[0]
    what, expected = in_words(fault)
    where = ".".join(map(str, fault["loc"]))
    return response(MalformedRequest(what, where=where, expected=expected), request.url.path)


def _framework(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    # The framework wraps whatever reading a body raised.
    if isinstance(error.__cause__, RagauditError):
        return response(error.__cause__, request.url.path)
    known: dict[int, RagauditError] = {
        HTTPStatus.BAD_REQUEST: MalformedRequest("the request cannot be read"),
        HTTPStatus.NOT_FOUND: NotFound("no such path"),
        HTTPStatus.METHOD_NOT_ALLOWED: MethodNotAllowed("no such method here"),
    }
    refused = known.get(error.status_code, RefusedError(error.detail))
    answer = response(refused, request.url.path, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


def _gone(_request: Request, _error: Exception) -> Response:
    """Nobody reads this; and nothing is logged, or anybody could fill the disk with it."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


_HANDLERS: Final[Mapping[type[Exception], Callable[[Request, Exception], Response]]] = {
    RagauditError: _ours,
    RequestValidationError: _parameter,
    HTTPException: _framework,
    ClientDisconnect: _gone,
    Exception: _ours,
}


def _route(request: Request) -> str:
    """The path as it is declared: what stands in its place may belong to an account."""
    return str(getattr(request.scope.get("route"), "path", "unknown path"))
