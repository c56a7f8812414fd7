"""How one surface speaks: whose key it reads, what JSON, how it says no; all else is refused."""

import json
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import get_annotations
from typing import Annotated, Any, NoReturn

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema
from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    MalformedRequest,
    NotAuthenticated,
    RagauditError,
)
from ragaudit.encoding.json_structure import loads
from ragaudit.encoding.problems import problem_name
from ragaudit.prover.errors import NotServed
from ragaudit.prover.surfaces.caller import Caller
from ragaudit.serving.bodies import SMALL_BYTES
from ragaudit.serving.exchange import note, phase
from ragaudit.serving.problems import as_ours, status_of
from ragaudit.serving.settings import in_words
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

MAX_MEMBERS = 64  # of an object whose members are known: no dialect has half as many
RECEIPT_HEADER = "Ragaudit-Receipt"
RECEIPT_MEMBER = "ragaudit_receipts"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
# Two statuses that clients of vector stores do not know.
_STATUSES = {422: 400, 425: 429}


def few_members(value: Any) -> Any:
    """Return a value, if it is no object of more than MAX_MEMBERS members; ValueError otherwise.

    Args:
        value: of which nothing is known; each member of it would have a fault of its own.
    """
    if isinstance(value, dict) and len(value) > MAX_MEMBERS:
        raise ValueError(f"too many members; expected at most {MAX_MEMBERS}")
    return value


def _fail_fast(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in ("list", "tuple"):
            schema["fail_fast"] = True
        for each in schema.values():
            _fail_fast(each)
    elif isinstance(schema, list | tuple):
        for each in schema:
            _fail_fast(each)


class Body(BaseModel):
    """A body of a surface. Members that nobody looked at are refused: they could mean anything.

    The first fault ends the reading: each takes more memory than what it is about.
    """

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema by which the library reads, whose lists end with their first fault."""
        schema = handler(source)
        _fail_fast(schema)
        return schema

    @model_validator(mode="before")
    @classmethod
    def _check_members(cls, value: Any) -> Any:
        return few_members(value)


def _vector(value: Any) -> Any:
    if type(value) is not list or not {*map(type, value)} <= {int, float}:
        raise ValueError("not a vector; expected a list of numbers")
    return value


Vector = Annotated[
    list[Any],  # of numbers; with floats alone the library would warn of integers
    PlainValidator(_vector),
    WithJsonSchema({"type": "array", "items": {"type": "number"}}),
]
"""A vector as it was read: the library would make each number anew, 16 bytes for one of a digit."""


class OpenBody(Body):
    """A body of a client that sends more to each service than it reads: the rest is ignored."""

    model_config = ConfigDict(extra="ignore")


def read_json(data: bytes) -> Any:
    """Return the value of a JSON body.

    Args:
        data: UTF-8, in any spelling; numbers may have fractions.

    Raises:
        MalformedRequest: not JSON, a key twice, NaN or infinity, nested too deeply, or more than
            its length allows (`json_structure`).
    """
    try:
        value = loads(data, object_pairs_hook=_distinct, parse_constant=_no_number)
        if b"\\u" in data:  # the only way to write half of a pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except MalformedError as error:
        raise _malformed(error.what, error.expected) from None
    except ValueError:
        raise _malformed("not JSON", "JSON in UTF-8, without duplicate keys") from None
    return value


def read_member(adapter: TypeAdapter[Any], value: Any, *where: str) -> Any:
    """Return a value as a declared type.

    Args:
        adapter: of the type.
        value: as it arrived.
        where: it stands, for the error.

    Raises:
        MalformedRequest: another type, an unknown member, or out of range.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        what, expected = in_words(fault)
        place = ".".join(str(part) for part in (*where, *fault["loc"]))
        # A key may be text of the application's: no more of it than a name has.
        raise MalformedRequest(what, where=place[:128], expected=expected) from None


def vector_bytes(values: Sequence[float], where: str) -> bytes:
    """Return a vector as little-endian float32.

    Args:
        values: as read, doubles.
        where: they stand, for the error.

    Raises:
        MalformedRequest: empty, or a number beyond float32.
    """
    if not values:
        raise MalformedRequest("no numbers", where=where, expected="a vector")
    with np.errstate(over="ignore"):
        packed = np.asarray(values, dtype="<f4")
    if not np.isfinite(packed).all():
        raise MalformedRequest("not a float32", where=where, expected="finite numbers")
    return packed.tobytes()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _no_number(_name: str) -> NoReturn:
    raise ValueError


def _malformed(what: str, expected: str) -> MalformedRequest:
    return MalformedRequest(what, where="body", expected=expected)


Run = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a call elsewhere than on the event loop, and returns what it returns."""


@dataclass(frozen=True)
class Dialect:
    """What is a surface's own.

    Attributes:
        prefixes: of its paths; what nobody serves under them is refused in its shape.
        key: reads the API key from the headers.
        shape: returns the body of an error, from its text and status.
        questions: operation ids of the routes that ask, see `Surfaces.run`.
    """

    name: str
    prefixes: tuple[str, ...]
    key: Callable[[Mapping[str, str]], str | None]
    shape: Callable[[str, int], dict[str, Any]]
    questions: frozenset[str] = frozenset()

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
        route = type(f"{self.name.title()}Route", (SurfaceRoute,), {"dialect": self})
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


class SurfaceRoute(APIRoute):
    """A route whose endpoint takes ``caller``, the path's parameters, those of the query and
    ``body``: all in one thread, first who calls, as `HotRoute` does. An endpoint that is ``async``
    goes on on the event loop."""

    dialect: Dialect

    @property
    def asks(self) -> bool:
        """Whether it takes questions, see `Dialect.questions`."""
        return self.operation_id in self.dialect.questions

    @cached_property
    def _adapters(self) -> tuple[dict[str, TypeAdapter[Any]], bool]:
        """Readers of the parameters by name, and whether they are open to all."""
        annotated = get_annotations(self.endpoint, eval_str=True)
        adapters = {
            name: TypeAdapter(kind)
            for name, kind in annotated.items()
            if name not in ("caller", "return")
        }
        return adapters, "caller" not in annotated

    def key(self, headers: Mapping[str, str]) -> str | None:
        """Return the API key of a request, None without one."""
        return self.dialect.key(headers)

    def refused(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed."""
        return self.dialect.error(as_ours(request, error))

    def work(self, request: Request, content: bytes) -> Response | Awaitable[Response]:
        """Return the answer to a request, whose body was read.

        Raises: whatever is wrong with it, or with the service.
        """
        note(surface=self.dialect.name)
        adapters, open_to_all = self._adapters
        values: dict[str, Any] = {}
        if not open_to_all:
            with phase("admit"):
                values["caller"] = self.dialect.caller(request)
        _check_query(request, adapters)
        for name, adapter in adapters.items():
            if name == "body":
                values[name] = read_member(adapter, _json(request, content), "body")
            elif name in request.path_params:
                values[name] = read_member(adapter, request.path_params[name], "path", name)
            elif name in request.query_params:
                values[name] = read_member(adapter, request.query_params[name], "query", name)
        answer: Response | Awaitable[Response] = self.endpoint(**values)
        return answer

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        if self.endpoint == self.dialect._not_served:
            return self.endpoint

        async def handle(request: Request) -> Response:
            try:
                content = await request.body()
                # A long body takes others' time while it is read.
                together = self.asks and len(content) <= SMALL_BYTES
                run: Run = request.app.state.surfaces.run if together else run_in_threadpool
                answer = await run(partial(self.work, request, content))
                return answer if isinstance(answer, Response) else await answer
            except ClientDisconnect:
                raise
            except Exception as error:
                return self.refused(request, error)

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
