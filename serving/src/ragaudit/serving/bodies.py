"""Request bodies are cut off at a limit before anything parses them."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.problems import MEDIA_TYPE, problem

__all__ = ["BodyLimit", "RequestTooLarge"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class RequestTooLarge(RefusedError):
    """A request body above the limit of its endpoint."""


class BodyLimit:
    """ASGI middleware: a longer body than ``limit`` bytes is answered with 413, the rest unread.

    If a client goes away meanwhile, the application is not called.
    """

    def __init__(self, app: Application, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Collect the body and pass it on in one message, or refuse the request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        body = bytearray()
        more = True
        while more and len(body) <= self._limit and not _exceeds(announced, self._limit):
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if more or len(body) > self._limit:
            await self._refuse(scope, send)
            return
        await self._app(scope, _replay(bytes(body), receive), send)

    async def _refuse(self, scope: MutableMapping[str, Any], send: Send) -> None:
        error = RequestTooLarge("body too long", expected=f"at most {self._limit} bytes")
        data = json.dumps(problem(error, 413, scope["path"])).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(data)).encode()),
        ]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": data})


def _exceeds(announced: bytes, limit: int) -> bool:
    # Nineteen digits decide; converting a very long number would cost time.
    return announced.isdigit() and int(announced[:19]) > limit


def _replay(body: bytes, receive: Receive) -> Receive:
    delivered = False

    async def replay() -> Message:
        nonlocal delivered
        # What comes after the body, a hang-up above all, is for the application.
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
