"""How much of the bodies of many requests is in memory at a time.

Nobody knows yet who sends them, or somebody sends many at once: together they have a room. Where it
is full the long body that was begun first gives way, as connections do, so that whoever sends
slowly keeps nobody out. A short one, such as a claim, never does: their number is that of
connections.
"""

from collections.abc import Hashable

from ragaudit.encoding.errors import TooMany

__all__ = ["ANONYMOUS_BYTES", "SMALL_BYTES", "Place", "Room", "TooManyBodies", "anonymous_room"]

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
