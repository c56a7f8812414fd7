"""Bodies wait outside of memory until somebody is known; those of nobody have one room together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ragaudit.serving import bodies
from ragaudit.serving.bodies import SMALL_BYTES, BodyLimit, Place, Room, TooManyBodies

pytestmark = pytest.mark.anyio
LIMIT = 2**20


class Sent:
    """A request, and what came of it.

    Attributes:
        read: bytes of its body that were asked for.
        reached: the body that the application got, None if it was not called.
    """

    def __init__(self, *pieces: bytes, announced: int | None = None, **headers: str) -> None:
        self._pieces = list(pieces)
        self.read = 0
        self.reached: bytes | None = None
        self.status = 0
        self.problem: dict[str, Any] = {}
        named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        if announced is not None:
            named[b"content-length"] = b"%d" % announced
        self._scope = {"type": "http", "path": "/x", "headers": list(named.items())}

    async def to(self, known: Iterator[str | None] | None) -> Sent:
        """Send it to an application behind the limit, which finds out who asks in this order."""

        async def who(_scope: object) -> str | None:
            assert known is not None
            return next(known)

        limit = BodyLimit(self._application, LIMIT, known=None if known is None else who)
        await limit(self._scope, self._receive, self._take)
        return self

    async def _application(self, _scope: Any, receive: Any, send: Any) -> None:
        self.reached = (await receive())["body"]
        await send({"type": "http.response.start", "status": 204, "headers": []})

    async def _receive(self) -> dict[str, Any]:
        data = self._pieces.pop(0) if self._pieces else b""
        self.read += len(data)
        return {"type": "http.request", "body": data, "more_body": bool(self._pieces)}

    async def _take(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        if message.get("body"):
            self.problem = json.loads(message["body"])


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "NEW_KEY_SECONDS", 0)


async def test_nothing_is_read_of_a_long_body_of_nobody() -> None:
    sent = await Sent(bytes(SMALL_BYTES + 1), announced=SMALL_BYTES + 1).to(iter([None, None]))
    assert (sent.status, sent.read, sent.reached) == (401, 0, None)
    assert sent.problem["type"].endswith("not-authenticated")


async def test_a_body_in_chunks_is_read_up_to_what_nobody_may_send() -> None:
    pieces = [bytes(SMALL_BYTES // 2)] * 40
    sent = await Sent(*pieces).to(iter([None, None]))
    assert sent.status == 401 and sent.reached is None
    assert sent.read == SMALL_BYTES + SMALL_BYTES // 2
    sent = await Sent(*pieces[:2]).to(iter([]))
    assert sent.status == 204 and sent.reached == bytes(SMALL_BYTES)


@pytest.mark.parametrize("announced", [None, 2 * SMALL_BYTES])
async def test_long_bodies_of_somebody(announced: int | None) -> None:
    pieces = [b"a" * SMALL_BYTES, b"b" * SMALL_BYTES]
    for known in (["account a"], [None, "account made just now"]):
        sent = await Sent(*pieces, announced=announced).to(iter(known))
        assert sent.status == 204 and sent.reached == b"".join(pieces)


async def test_a_body_above_the_limit_is_too_large_whoever_sends_it() -> None:
    sent = await Sent(bytes(9), announced=LIMIT + 1).to(iter([]))
    assert (sent.status, sent.read) == (413, 0)
    sent = await Sent(*[bytes(SMALL_BYTES)] * 20).to(iter(["account a"]))
    assert (sent.status, sent.reached) == (413, None)


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, gzip"])
async def test_packed_bodies_are_not_read(coding: str) -> None:
    sent = await Sent(b"{}", announced=2, content_encoding=coding).to(iter([]))
    assert (sent.status, sent.read) == (415, 0)
    assert sent.problem["type"].endswith("unsupported-coding")
    sent = await Sent(b"{}", announced=2, content_encoding="Identity").to(iter([]))
    assert sent.status == 204


async def test_where_nobody_is_known_all_have_one_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await Sent(bytes(LIMIT)).to(None)).status == 204
    monkeypatch.setattr(bodies, "ANONYMOUS_BYTES", LIMIT - 1)
    sent = await Sent(bytes(LIMIT)).to(None)
    assert sent.status == 429 and sent.problem["type"].endswith("too-many-bodies")


def test_the_body_that_was_begun_first_gives_way() -> None:
    room = Room(100)
    with Place(room) as first, Place(room) as second, Place(room) as third:
        first.add(bytes(50))
        second.add(bytes(40))
        third.add(bytes(60))
        assert room.held == 100
        for lost in (lambda: first.add(b"x"), first.settle):
            with pytest.raises(TooManyBodies, match="too many bodies"):
                lost()
        second.settle()
        third.settle()
        # What is worked on stays; whoever finds nobody that can give way does so itself.
        with Place(room) as late, pytest.raises(TooManyBodies):
            late.add(b"x")
        assert room.held == 100
    assert room.held == 0


def test_a_short_body_always_finds_room() -> None:
    """A claim must get through, whatever long bodies there are, complete or on their way."""
    room = Room(100, small=10)
    with Place(room) as claim, Place(room) as slow, Place(room) as worked_on:
        claim.add(bytes(5))
        slow.add(bytes(60))
        worked_on.add(bytes(90))
        with pytest.raises(TooManyBodies):
            slow.check()
        worked_on.settle()
        claim.add(bytes(5))
        with Place(room) as second, Place(room) as long:
            second.add(bytes(10))
            assert (claim.settle(), second.settle()) == (bytes(10), bytes(10))
            with pytest.raises(TooManyBodies):
                long.add(bytes(11))
    assert room.held == 0


def test_one_sender_has_its_share() -> None:
    room, strangers = Room(100, 60), Room(10)
    with Place(room, "a") as first, Place(room, "a") as second, Place(strangers) as other:
        first.add(bytes(50))
        other.add(bytes(10))
        other.move(room, "b")
        assert (room.held, strangers.held) == (60, 0)
        second.add(bytes(20))
        assert room.held == 30
        with pytest.raises(TooManyBodies):
            first.check()
        with pytest.raises(TooManyBodies):
            second.add(bytes(50))
        assert room.held == 10 and other.settle() == bytes(10)
