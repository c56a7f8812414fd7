"""Request bodies are cut off at a limit before anything parses them, and wait where they may.

A limit of the whole service is `BodyLimit`'s. `receive` is for a handler that knows who calls, and
whose bodies may be too long for memory; `receive_anonymous` for one that
takes bodies of everybody.
"""

import asyncio
import errno
import hashlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

from fastapi import Request, Response
from ragaudit.encoding.errors import (
    NotAuthenticated,
    RagauditError,
    TooLarge,
    UnavailableError,
    UnsupportedCoding,
)
from ragaudit.serving.problems import response
from ragaudit.serving.rooms import SMALL_BYTES, Place, Room, anonymous_room
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "SMALL_BYTES",
    "Body",
    "BodyLimit",
    "Known",
    "Respond",
    "check_plain",
    "receive",
    "receive_anonymous",
]

Respond = Callable[[RagauditError, str], Response]
"""Makes the answer to an error on a path."""
MEMORY_BYTES = 2**20  # longer bodies of those who are known wait on disk
# Of an account that sends many at once, and of all that are known.
KNOWN_SHARE, KNOWN_BYTES = 2**26, 2**29
NEW_KEY_SECONDS = 1.0
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


async def receive(request: Request, limit: int) -> AsyncIterator[Body]:
    """Yield the body of somebody who is known; it is closed and forgotten afterwards.

    Of more than `MEMORY_BYTES` it waits on disk.

    Args:
        limit: bytes that are read at most.

    Raises:
        TooLarge: more than ``limit`` bytes, announced or sent.
        UnsupportedCoding: it is packed.
        UnavailableError: there is no room for it on disk.
    """
    check_plain(request.scope)
    if _announced(request.scope) > limit:
        raise _too_large(limit)
    # Counted as it arrives as well: the announced length is the sender's word, and may be missing.
    digest, size = hashlib.sha256(), 0
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        async for data in request.stream():
            size += len(data)
            if size > limit:
                raise _too_large(limit)
            digest.update(data)
            _keep(file, data)
        yield Body(cast(BinaryIO, file), size, digest.digest())


async def receive_anonymous(request: Request, limit: int, room: Room) -> AsyncIterator[Place]:
    """Yield the body of a request that nobody need be known for; it is forgotten afterwards.

    Args:
        limit: bytes that are read at most.
        room: of all such bodies of the service.

    Raises:
        TooLarge: more than ``limit`` bytes, announced or sent.
        UnsupportedCoding: it is packed.
        TooManyBodies: it gave way to later ones.
    """
    check_plain(request.scope)
    if _announced(request.scope) > limit:
        raise _too_large(limit)
    with Place(room) as place:
        async for data in request.stream():
            if place.size + len(data) > limit:
                raise _too_large(limit)
            place.add(data)
        yield place


Known = Callable[[Scope], Awaitable[Hashable | None]]
"""Returns the account or operator whose key a request carries, as far as can be told at once."""


class BodyLimit:
    """ASGI middleware: a longer body than ``limit`` bytes is answered with 413, the rest unread.

    Who asks is looked at before anything is read: a body of more than `SMALL_BYTES` is read for
    those that are known, and answered with 401 otherwise; all bodies of the others have one room.
    If a client goes away meanwhile, the application is not called.

    Args:
        limit: in bytes; of each path, where it is a function of the path.
        respond: makes the answer to a refused request, of the error and the path.
        known: tells who asks; None where nobody is known, and all have one room.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit: int | Callable[[str], int],
        respond: Respond = response,
        known: Known | None = None,
    ) -> None:
        self._app = app
        self._limit = limit if callable(limit) else lambda _path: limit
        self._respond = respond
        self._known = known
        self._anonymous = anonymous_room()
        self._of_known = Room(KNOWN_BYTES, KNOWN_SHARE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Collect the body and pass it on in one message, or refuse the request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with Place(self._anonymous) as place:
            try:
                content = await self._collect(scope, receive, place)
            except RagauditError as error:
                await self._respond(error, scope["path"])(scope, receive, send)
                return
            # A hang-up: nobody waits for an answer.
            if content is not None:
                await self._app(scope, _replay(content, receive), send)

    async def _collect(self, scope: Scope, receive: Receive, place: Place) -> bytes | None:
        check_plain(scope)
        limit, announced = self._limit(scope["path"]), _announced(scope)
        if announced > limit:
            raise _too_large(limit)
        if announced > SMALL_BYTES:
            await self._admit(scope, place)
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            data, more = message.get("body", b""), message.get("more_body", False)
            if place.size + len(data) > limit:
                raise _too_large(limit)
            # In chunks it is as long as its sender likes.
            if place.size + len(data) > SMALL_BYTES and place.sender is None:
                await self._admit(scope, place)
            if data:
                place.add(data)
        return place.settle()

    async def _admit(self, scope: Scope, place: Place) -> None:
        """Let a long body go on if it is somebody's that is known."""
        if self._known is None:
            return
        sender = await self._known(scope)
        if sender is None:
            # A key that was made just now may not be known yet. Nothing of the body waits with it.
            await asyncio.sleep(NEW_KEY_SECONDS)
            sender = await self._known(scope)
        if sender is None:
            raise NotAuthenticated(
                "a long body without a known key", expected=f"a key, or {SMALL_BYTES} bytes at most"
            )
        place.move(self._of_known, sender)


def check_plain(scope: Scope) -> None:
    """Check that a body is not packed.

    Args:
        scope: of the request.

    Raises:
        UnsupportedCoding: it has a content coding but ``identity``.
    """
    for name, value in scope["headers"]:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise UnsupportedCoding(
                "a content coding", where="Content-Encoding", expected="identity, or none"
            )


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
