"""Bodies of both services: how much of them waits where, how they are read, how answers leave.

Request bodies are cut off at a limit before anything parses them. A limit of the whole service is
`BodyLimit`'s. `receive` is for a handler that knows who calls, and whose bodies may be too long for
memory; `receive_anonymous` for one that takes bodies of everybody. Nobody knows yet who sends
those, or somebody sends many at once: together they have a `Room`. Where it is full the long body
that was begun first gives way, as connections do, so that whoever sends slowly keeps nobody out. A
short one, such as a claim, never does: their number is that of connections.

JSON may be written with any spacing and key order, but duplicate keys, fractions, lone surrogates,
deep nesting and integers beyond ±(2^53 - 1) are refused: it has one meaning only
(docs/spec/01-encoding.md §1.4). What is signed leaves byte for byte as it was signed.
"""

import asyncio
import errno
import hashlib
import re
import tempfile
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any, BinaryIO, cast

from fastapi import Request
from fastapi.routing import APIRoute
from ragaudit.encoding.canonical_json import loads_any
from ragaudit.encoding.errors import (
    MalformedError,
    MalformedRequest,
    NotAuthenticated,
    RagauditError,
    TooLarge,
    TooMany,
    UnavailableError,
    UnsupportedCoding,
)
from ragaudit.serving.problems import response
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "ANONYMOUS_BYTES",
    "SMALL_BYTES",
    "Body",
    "BodyLimit",
    "Known",
    "Place",
    "Respond",
    "Resumable",
    "Room",
    "StrictRoute",
    "TooManyBodies",
    "anonymous_room",
    "check_plain",
    "json_object",
    "json_value",
    "receive",
    "receive_anonymous",
    "resumable",
    "signed_json",
]


def json_value(data: bytes) -> Any:
    """Return the value of a JSON body.

    Args:
        data: the body, in any spelling.

    Raises:
        MalformedRequest: not JSON, or a value that has no canonical form.
    """
    try:
        return loads_any(data)
    except MalformedError as error:
        raise MalformedRequest(
            error.what,
            where=f"body {error.where}".strip(),
            expected=error.expected or "JSON in UTF-8, without duplicate keys",
        ) from None


def json_object(data: bytes) -> dict[str, Any]:
    """Return the object of a JSON body; MalformedRequest for anything else.

    Args:
        data: the body, in any spelling.
    """
    value = json_value(data)
    if not isinstance(value, dict):
        raise MalformedRequest("not an object", where="body")
    return value


def signed_json(content: bytes) -> Response:
    """Return the answer that holds a signed message, byte for byte as it was signed.

    Args:
        content: canonical JSON. A framework that wrote it anew could break the signature.
    """
    return Response(content, media_type="application/json")


class _StrictRequest(Request):
    async def json(self) -> Any:
        """Return the body's value; MalformedRequest if it has no canonical form."""
        # The framework would use json.loads, which takes the last of two equal keys.
        return json_value(await self.body())


class StrictRoute(APIRoute):
    """A route whose body the framework reads, strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, given a request that reads strictly."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


ANONYMOUS_BYTES = 2**26
"""Of the bodies of everybody whom a service does not know, all together."""
SMALL_BYTES = 2**16
"""Of a body that nobody need be known for, and that always finds room."""


class TooManyBodies(TooMany):
    """A body gave way to others. No fault of the service: what strangers do fills no log."""

    retry_after = 1


class Room:
    """Holds bodies of up to ``most`` bytes, ``share`` of one sender. For one event loop.

    Args:
        most: bytes of all of them.
        share: bytes of those of one sender.
        small: bytes of a body that never gives way.
    """

    def __init__(self, most: int, share: int | None = None, small: int = 0) -> None:
        self.most = most
        self.small = small
        self.share = most if share is None else share
        self.held = 0
        self._by_sender: dict[Hashable, int] = {}
        self._places: dict[Place, None] = {}

    def grew(self, place: "Place", size: int) -> None:
        """Count ``size`` more bytes of a place; others, or itself, give way if there is no room."""
        self._places[place] = None
        self.count(place, size)
        while place.sender is not None and self._by_sender.get(place.sender, 0) > self.share:
            self._oldest(place.sender, place).give_way()
        while self.held > self.most:
            oldest = self._oldest(None, place)
            if oldest.size <= self.small:
                break  # all others are worked on
            oldest.give_way()

    def count(self, place: "Place", size: int) -> None:
        """Add to the bytes of a place, without a look at the room."""
        self.held += size
        left = self._by_sender.get(place.sender, 0) + size
        self._by_sender[place.sender] = left
        if not left:
            del self._by_sender[place.sender]

    def forget(self, place: "Place") -> None:
        """Count nothing of a place any more."""
        if place in self._places:
            del self._places[place]
            self.count(place, -place.size)

    def _oldest(self, sender: Hashable, itself: "Place") -> "Place":
        """Return the place that gives way; those that are worked on do not."""
        for place in self._places:
            if place.settled or place.size <= self.small:
                continue
            if sender in (None, place.sender):
                return place
        return itself


class Place:
    """The body of one request, as far as it has arrived: a context manager, left when it is over.

    Attributes:
        sender: who sends it, as far as a share counts; None for nobody that is known.
        size: bytes that have arrived.
        settled: whether it is worked on, and does not give way any more.
    """

    def __init__(self, room: Room, sender: Hashable = None) -> None:
        self._room = room
        self.sender = sender
        self.size = 0
        self._data = bytearray()
        self.settled = False
        self._gave_way = False

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_: object) -> None:
        self._room.forget(self)

    def add(self, data: bytes) -> None:
        """Keep the next bytes.

        Raises:
            TooManyBodies: there was no room for all of them.
        """
        self.check()
        self._data += data
        self.size += len(data)
        self._room.grew(self, len(data))
        self.check()

    def check(self) -> None:
        """Check that the body is still there; TooManyBodies if it gave way to others."""
        if self._gave_way:
            raise TooManyBodies("too many bodies at once", expected="fewer, or later")

    def settle(self) -> bytes:
        """Return the whole body, which is worked on from now on; TooManyBodies as `check`."""
        self.check()
        self.settled = True
        whole, self._data = bytes(self._data), bytearray()
        return whole

    def move(self, room: Room, sender: Hashable) -> None:
        """Go on in another room, whose sender is known by now; TooManyBodies as `add`."""
        self._room.forget(self)
        self._room, self.sender = room, sender
        room.grew(self, self.size)
        self.check()

    def give_way(self) -> None:
        """Lose what has arrived; whoever reads the rest is told."""
        self._room.forget(self)
        self._data, self.size = bytearray(), 0
        self._gave_way = True


def anonymous_room() -> Room:
    """Return the room of all bodies of nobody that a service has."""
    return Room(ANONYMOUS_BYTES, small=SMALL_BYTES)


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


_TO_THE_END = re.compile(r"bytes=([0-9]{1,15})-", re.ASCII)


@dataclass(frozen=True)
class Resumable:
    """A representation whose bytes never change.

    Attributes:
        size: of the whole, bytes.
        tag: that no other bytes have; hexadecimal.
        pieces: yields its bytes, all but so many at the beginning.
    """

    size: int
    tag: str
    pieces: Callable[[int], Iterator[bytes]]


def resumable(
    whole: Resumable, asked: Mapping[str, str], media_type: str, headers: Mapping[str, str]
) -> Response:
    """Return the whole, or the rest that a request asks for.

    A range has one form, from a byte to the end; any other is passed over, as RFC 9110 allows,
    and so is one of another representation (`If-Range`).

    Args:
        whole: what there is.
        asked: the request's headers.
        media_type: of the whole.
        headers: of the answer, beside those of the range.
    """
    tag = f'"{whole.tag}"'
    found = _TO_THE_END.fullmatch(asked.get("range", ""))
    start = int(found[1]) if found and asked.get("if-range", tag) == tag else 0
    given = {**headers, "Accept-Ranges": "bytes", "ETag": tag}
    if start >= whole.size:
        given["Content-Range"] = f"bytes */{whole.size}"
        return Response(status_code=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=given)
    given["Content-Length"] = str(whole.size - start)
    if start:
        given["Content-Range"] = f"bytes {start}-{whole.size - 1}/{whole.size}"
    status = HTTPStatus.PARTIAL_CONTENT if start else HTTPStatus.OK
    return StreamingResponse(
        whole.pieces(start), status_code=status, media_type=media_type, headers=given
    )
