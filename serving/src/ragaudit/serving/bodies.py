"""Request bodies are cut off at a limit before anything parses them.

A limit of the whole service is `BodyLimit`'s; `receive` is for a handler whose limit depends on who
calls and on what, and whose bodies may be too long for memory.
"""

import errno
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

from fastapi import Request, Response
from ragaudit.encoding.errors import RagauditError, TooLarge, UnavailableError
from ragaudit.serving.problems import response
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Body", "BodyLimit", "Respond", "receive"]

Respond = Callable[[RagauditError, str], Response]
"""Makes the answer to an error on a path."""
MEMORY_BYTES = 2**20  # longer bodies wait on disk
# Nineteen digits decide; converting a very long number would cost time.
_LENGTH_DIGITS = 19


@dataclass(frozen=True)
class Body:
    """A body received in full: a file open for reading, its length and SHA-256."""

    file: BinaryIO
    size: int
    digest: bytes

    def read(self) -> bytes:
        """Return all of it."""
        self.file.seek(0)
        return self.file.read()


async def receive(request: Request, limit: int, memory: int = MEMORY_BYTES) -> AsyncIterator[Body]:
    """Yield the body; it is closed and forgotten afterwards.

    Args:
        limit: bytes that are read at most.
        memory: bytes of it that are held in memory at most; a longer one waits on disk.

    Raises:
        TooLarge: more than ``limit`` bytes, announced or sent.
        UnavailableError: there is no room for it on disk.
    """
    if _announced(request.scope) > limit:
        raise _too_large(limit)
    # Counted as it arrives as well: the announced length is the sender's word, and may be missing.
    digest, size = hashlib.sha256(), 0
    with tempfile.SpooledTemporaryFile(max_size=memory) as file:
        async for data in request.stream():
            size += len(data)
            if size > limit:
                raise _too_large(limit)
            digest.update(data)
            _keep(file, data)
        yield Body(cast(BinaryIO, file), size, digest.digest())


class BodyLimit:
    """ASGI middleware: a longer body than ``limit`` bytes is answered with 413, the rest unread.

    If a client goes away meanwhile, the application is not called.

    Args:
        limit: in bytes; of each path, where it is a function of the path.
        respond: makes the answer to a refused request, of the error and the path.
    """

    def __init__(
        self, app: ASGIApp, limit: int | Callable[[str], int], respond: Respond = response
    ) -> None:
        self._app = app
        self._limit = limit if callable(limit) else lambda _path: limit
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Collect the body and pass it on in one message, or refuse the request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope["path"])
        excess = _announced(scope) > limit
        body, more = bytearray(), True
        while more and not excess:
            message = await receive()
            # A hang-up: nobody waits for an answer.
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            excess = len(body) > limit
        if excess:
            await self._respond(_too_large(limit), scope["path"])(scope, receive, send)
            return
        await self._app(scope, _replay(bytes(body), receive), send)


def _announced(scope: Scope) -> int:
    length: bytes = dict(scope["headers"]).get(b"content-length", b"")
    return int(length[:_LENGTH_DIGITS]) if length.isdigit() else 0


def _too_large(limit: int) -> TooLarge:
    return TooLarge("body too long", expected=f"at most {limit} bytes")


def _keep(file: IO[bytes], data: bytes) -> None:
    try:
        file.write(data)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise UnavailableError(
            f"a body cannot be kept: {name}", expected="a disk with room"
        ) from None


def _replay(body: bytes, receive: Receive) -> Receive:
    delivered = False

    async def replay() -> dict[str, object]:
        nonlocal delivered
        # What comes after the body, a hang-up above all, is for the application.
        if delivered:
            return dict(await receive())
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
