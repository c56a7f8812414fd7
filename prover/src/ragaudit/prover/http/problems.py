"""Errors as RFC 9457 problem documents; no traceback and no secret ever leaves."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    RagauditError,
    RefusedError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.encoding.problems import MEDIA_TYPE, problem
from ragaudit.ledger.errors import UnknownResource
from ragaudit.prover import errors
from ragaudit.prover.settings import in_words
from starlette.exceptions import HTTPException

_log = logging.getLogger(__name__)

TOO_EARLY = 425
TOO_MANY = 429
RETRY_SECONDS = 1

# The first class that fits decides, so special ones stand first.
_STATUS: tuple[tuple[type[RagauditError], int], ...] = (
    (errors.NotAuthenticated, 401),
    (errors.TooManyRequests, TOO_MANY),
    (errors.UnknownTenant, 404),
    (errors.UnknownAccount, 404),
    (errors.UnknownWindow, 404),
    (errors.UnknownRecord, 404),
    (UnknownResource, 404),
    (errors.NotReady, TOO_EARLY),
    (errors.WindowUnusable, 503),
    (errors.VerifierRefused, 502),
    (MalformedError, 400),
    (UnsupportedError, 400),
    (RefusedError, 409),
    (RejectedError, 422),
    (UnavailableError, 503),
    (InternalError, 500),
)
DOCUMENTED: dict[str, Any] = {
    "description": "a problem document (RFC 9457)",
    "content": {
        MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status"],
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                    "where": {"type": "string"},
                    "expected": {"type": "string"},
                    "refusal": {"type": "object"},
                    "promise": {"type": "object"},
                },
            }
        }
    },
}
_REFUSAL_STATUS = {"budget": 429, "closed": 409, "unavailable": 503}


class NotFoundError(RefusedError):
    """No such path."""


class NotAllowedError(RefusedError):
    """The path knows no such method."""


def status_of(error: RagauditError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, errors.QueryRefused):
        return _REFUSAL_STATUS[error.reason]
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def response(error: RagauditError, instance: str) -> JSONResponse:
    """Return the problem document of an error, with the members that its class adds."""
    status = status_of(error)
    document: dict[str, Any] = problem(error, status, instance)
    headers: dict[str, str] = {}
    if isinstance(error, errors.QueryRefused):
        document["refusal"] = error.refusal
    if isinstance(error, errors.PromisePending):
        document["promise"] = error.promise
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if (seconds := getattr(error, "retry_after", None)) is not None:
        headers["Retry-After"] = str(seconds)
    elif status in {TOO_EARLY, 503} or isinstance(error, errors.TooManyRequests):
        headers["Retry-After"] = str(RETRY_SECONDS)
    return JSONResponse(document, status, headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem document."""

    async def known(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RagauditError)
        if isinstance(error, InternalError):
            _log.error("%s %s: %s", request.method, request.url.path, error)
        return response(error, request.url.path)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what, expected = in_words(first)
        refused = errors.MalformedRequest(what, where=where, expected=expected)
        return response(refused, request.url.path)

    async def framework(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        if error.status_code == 404:
            return response_with(NotFoundError("no such path"), 404, request.url.path)
        if error.status_code == 405:
            return response_with(NotAllowedError("no such method here"), 405, request.url.path)
        cause = error.__cause__
        what = cause.what if isinstance(cause, MalformedError) else "the body cannot be read"
        where = cause.where if isinstance(cause, MalformedError) else ""
        refused = errors.MalformedRequest(
            what, where=f"body {where}".strip(), expected="JSON in UTF-8, without duplicate keys"
        )
        return response(refused, request.url.path)

    async def unknown(request: Request, error: Exception) -> JSONResponse:
        # Only the type: the text of a foreign error may hold anything.
        _log.error("%s %s: %s", request.method, request.url.path, type(error).__name__)
        return response(InternalError(type(error).__name__), request.url.path)

    app.add_exception_handler(RagauditError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, framework)
    app.add_exception_handler(Exception, unknown)


def response_with(error: RagauditError, status: int, instance: str) -> JSONResponse:
    """Return a problem document with a status of the framework's."""
    return JSONResponse(problem(error, status, instance), status, media_type=MEDIA_TYPE)
