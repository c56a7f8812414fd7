"""Every error as a problem document (RFC 9457)."""

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from ragaudit.encoding.errors import InternalError, MalformedError, RagauditError, RefusedError
from ragaudit.encoding.problems import MEDIA_TYPE, problem
from ragaudit.verifier.service.errors import (
    MethodError,
    RefusedWindowError,
    StorageError,
    TooEarlyError,
    UnauthenticatedError,
    UnknownError,
    status_of,
)
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

_log = logging.getLogger(__name__)

_HTTP: dict[int, type[RagauditError]] = {404: UnknownError, 405: MethodError, 400: MalformedError}

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
    },
}


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The OpenAPI description of the problem documents that a handler answers with."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": _SCHEMA}},
        }
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem document."""
    app.add_exception_handler(RagauditError, _ours)
    app.add_exception_handler(RequestValidationError, _parameters)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def _ours(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RagauditError)
    status = status_of(error)
    document = problem(error, status)
    headers: dict[str, str] = {}
    if isinstance(error, InternalError):
        _log.error("internal error: %s", error, exc_info=error)
    if isinstance(error, StorageError):
        _log.error("%s", error)
    if isinstance(error, RefusedWindowError):
        document["verdict"] = error.verdict
    if isinstance(error, TooEarlyError):
        headers["Retry-After"] = str(error.retry_after)
    elif status == 503:
        headers["Retry-After"] = "1"
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(document, status, headers, MEDIA_TYPE)


def _parameters(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = "/".join(map(str, first["loc"]))
    return JSONResponse(
        problem(MalformedError(first["msg"], where=where), 400), 400, media_type=MEDIA_TYPE
    )


def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kind = _HTTP.get(error.status_code, RefusedError)
    document = problem(kind(error.detail), error.status_code)
    return JSONResponse(document, error.status_code, error.headers, MEDIA_TYPE)


def _gone(_request: Request, _error: Exception) -> Response:
    """Nobody reads this; and nothing is logged, or anybody could fill the disk with it."""
    return Response(status_code=400)


def _unexpected(_request: Request, error: Exception) -> JSONResponse:
    _log.error("unexpected error", exc_info=error)
    return JSONResponse(problem(InternalError("unexpected"), 500), 500, media_type=MEDIA_TYPE)
