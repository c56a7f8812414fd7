"""Questions to a window, answered before what an application does for other requests.

A request to query, promise or reveal, or to search in a surface, of a known account, with a short
body, goes from the connection to its endpoint: past the stack of middleware and the router, which
cost more than they decide. Everything else, and whatever is unusual about such a request, goes on
to the application: its routes have the same endpoints, and its middleware the same gate.
"""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from functools import partial
from re import Pattern
from typing import Protocol

from fastapi import Request
from ragaudit.prover.errors import TooManyRequests
from ragaudit.prover.http.turns import PENALTY_SECONDS, Gate
from ragaudit.prover.keys import token_digest
from ragaudit.prover.sequencer import Sequencer
from ragaudit.prover.store.accounts import Caller, CallersKeys
from ragaudit.serving.application import Application
from ragaudit.serving.bodies import SMALL_BYTES, Respond
from ragaudit.serving.exchange import Exchange, begun
from ragaudit.serving.observed import Observer, trace_of
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

# What changes how a body is read, or where a request waits, is the application's to judge.
_UNUSUAL = frozenset((b"transfer-encoding", b"content-encoding", b"expect", b"upgrade"))


class Asked(Protocol):
    """A route that takes questions.

    Attributes:
        path: with its parameters' names.
        path_regex: that the paths match.
    """

    path: str
    path_regex: Pattern[str]

    def key(self, headers: Headers, /) -> str | None:
        """Return the API key of a request, None without one."""

    def work(self, request: Request, content: bytes, /) -> Response | Awaitable[Response]:
        """Return the answer to a request, whose body was read."""

    def refused(self, request: Request, error: Exception, /) -> Response:
        """Return the answer to a request for which `work` raised."""


class Questions:
    """ASGI application in front of another; where it answers, it does all that that one would.

    Args:
        app: that everything else is passed on to.
        routes: of the endpoints; the first that takes a path counts.
        gate: that `FairTurns` has, too.
        respond: makes the answer to who does not pass the gate, of the error and the path.
        keys: tells whose key a token is. The endpoint decides who may.
        delegating: names of accounts that may name end users, who have queues of their own.
        sequencer: runs the endpoints.
        limit: bytes of a body, beyond which the application says no.
    """

    def __init__(
        self,
        app: Application,
        routes: Sequence[Asked],
        gate: Gate,
        respond: Respond,
        keys: CallersKeys,
        observer: Observer,
        delegating: Sequence[str],
        sequencer: Sequencer,
        limit: int,
    ) -> None:
        self._app = app
        self._routes: dict[str, list[Asked]] = {}
        for each in routes:
            self._routes.setdefault(_last(each.path), []).append(each)
        self._gate = gate
        self._respond = respond
        self._keys = keys
        self._observer = observer
        self._delegating = frozenset(delegating)
        self._limit = min(limit, SMALL_BYTES)
        self._sequencer = sequencer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a question, or pass the request on."""
        if scope["type"] == "http" and scope["method"] == "POST":
            for route in self._routes.get(_last(scope["path"]), ()):
                found = route.path_regex.match(scope["path"])
                if found is None:
                    continue
                caller = self._caller(route, scope)
                if caller is not None:
                    scope.update(app=self._app, route=route, path_params=found.groupdict())
                    await self._answer(route, caller, scope, receive, send)
                    return
                break
        await self._app.answer(scope, receive, send)

    def _caller(self, route: Asked, scope: Scope) -> Caller | None:
        """Return who asks, None where the application has to look more closely."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        found = dict(headers)
        key, length = route.key(Headers(scope=scope)), found.get(b"content-length", b"")
        if (
            key is None
            or len(found) < len(headers)
            or not _UNUSUAL.isdisjoint(found)
            or not (length.isdigit() and len(length) < 6 and int(length) <= self._limit)
            or self._observer.spans is not None
            or scope["query_string"]
        ):
            return None
        caller = self._keys.known(token_digest(key))
        if caller is None or caller.kind != "account" or caller.name in self._delegating:
            return None
        return caller

    async def _answer(
        self, route: Asked, caller: Caller, scope: Scope, receive: Receive, send: Send
    ) -> None:
        observer, since, status = self._observer, time.perf_counter(), 0
        with begun(Exchange.of(trace_of(scope))) as exchange, observer.in_flight():
            try:
                content = await _body(receive)
                if content is None:
                    return
                try:
                    async with self._gate.turn(caller):
                        answer = await self._work(route, Request(scope), content)
                except TooManyRequests as error:
                    await asyncio.sleep(PENALTY_SECONDS)
                    answer = self._respond(error, scope["path"])
                status = int(answer.status_code)
                headers = [*answer.raw_headers, (b"cache-control", b"no-store")]
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": answer.body})
            finally:
                observer.finished(exchange, scope, status, time.perf_counter() - since)

    async def _work(self, route: Asked, request: Request, content: bytes) -> Response:
        try:
            answer = await self._sequencer.run(partial(route.work, request, content))
            return answer if isinstance(answer, Response) else await answer
        except Exception as error:
            return route.refused(request, error)


def _last(path: str) -> str:
    return path.rpartition("/")[2]


async def _body(receive: Receive) -> bytes | None:
    """Return a body of at most `SMALL_BYTES`, as was announced; None if the peer has gone."""
    message = await receive()
    content: bytes = message.get("body", b"")
    while message["type"] == "http.request" and message.get("more_body"):
        message = await receive()
        content += message.get("body", b"")
    return content if message["type"] == "http.request" else None
